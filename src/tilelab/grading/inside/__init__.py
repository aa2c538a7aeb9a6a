"""What runs beside learner-written Python: it calls the learner's code, and writes down what came out.

Nothing here decides anything. The judge makes the inputs and compares the outputs, in another process.
"""
