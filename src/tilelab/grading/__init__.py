"""Answers, the judge, the sandbox and the gradebook."""
