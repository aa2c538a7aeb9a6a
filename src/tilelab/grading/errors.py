"""The exception of the grading floor."""


class GradingError(Exception):
    """Something the reader of the message can put right: a wrong path, name or value, which the message quotes."""
