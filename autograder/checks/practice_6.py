"""Trusted checks of practice 6: a report that cannot be earns nothing, one that can waits for a person."""

from typing import Any

from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_6 import STATEMENTS, fault_of
from tilelab.grading.values import statements_line, statements_right

TRUE = {"a": True, "b": True, "c": True, "d": False}


def check_measurement(answers: dict[str, Any]) -> Verdict:
    """Within 10 % of what a person measures on the card that the report names; the judge may have another."""
    if fault := fault_of(answers.get("report")):
        return Verdict(0.0, (f"measurement: {fault}",))
    device = str(answers["report"]["device"])[:60]
    return Verdict(
        0.0,
        (
            "measurement: pending: your instructor compares it, within 10 %, with a measurement of their own on "
            f"{device} and gives the points in nbgrader's formgrader",
        ),
        pending=1.0,
    )


def check_statement(answers: dict[str, Any]) -> Verdict:
    """By statement; guessing earns nothing."""
    share, wrong = statements_right(answers.get("statement"), TRUE)
    line = f"statement: {len(STATEMENTS) - len(wrong)} of {len(STATEMENTS)} are right"
    return Verdict(share, (statements_line(line, answers.get("statement"), STATEMENTS),))
