"""How a course's files travel on a JupyterHub: a service that keeps them, and nbgrader's exchange in front of it.

Learners never see the folder where submissions lie. They speak to the service, which knows who they are by the token
that the hub gave their server, and which alone knows the time.
"""
