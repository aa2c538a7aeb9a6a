"""Trusted checks of practice 6: a report that cannot be earns nothing, one that can waits for the judge's own."""

from typing import Any

from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_6 import STATEMENTS, fault_of
from tilelab.grading.values import statements_right

TRUE = {"a": True, "b": True, "c": True, "d": False}


def check_measurement(answers: dict[str, Any]) -> Verdict:
    """Within 10 % of the judge's own measurement, which needs a GPU."""
    if fault := fault_of(answers.get("report")):
        return Verdict(0.0, (f"measurement: {fault}",))
    device = str(answers["report"]["device"])[:60]
    return Verdict(
        0.0, (f"measurement: pending, to be compared within 10 % with the judge's own on {device}",), pending=1.0
    )


def check_statement(answers: dict[str, Any]) -> Verdict:
    """By statement; guessing earns nothing."""
    share, wrong = statements_right(answers.get("statement"), TRUE)
    return Verdict(share, (f"statement: {len(STATEMENTS) - len(wrong)} of {len(STATEMENTS)} are right",))
