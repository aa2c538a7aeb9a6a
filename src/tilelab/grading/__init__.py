"""Answers, the judge, the sandbox and the gradebook.

A learner's notebook needs three names, ``from tilelab.grading import check, given, submit``; they load nothing but the
standard library. The judge's side is in the modules: `tilelab.grading.judge` (a record and a trusted check give a
verdict), `tilelab.grading.course` (nbgrader's steps over a class), `tilelab.grading.single` (one notebook).
"""

from tilelab.grading.errors import GradingError
from tilelab.grading.notebook_side import check, given, submit

__all__ = ["GradingError", "check", "given", "submit"]
