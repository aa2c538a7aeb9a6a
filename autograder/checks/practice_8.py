"""Trusted checks of practice 8: the numbers of the learner's own shape. The plan is read by a person."""

from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_8 import WHERE, bound_meant, roofline_of, wrong_numbers


def check_roofline(answers: dict[str, Any]) -> Verdict:
    """A quarter for each of flops, bytes, intensity and bound."""
    answer = answers.get("roofline")
    try:
        right = roofline_of(answer)
    except GradingError as error:
        return Verdict(0.0, (f"roofline: {error}",))
    assert isinstance(answer, dict)
    wrong = wrong_numbers(answer, right)
    if bound_meant(answer.get("bound")) != right.bound:
        wrong.append("bound")
    if not wrong:
        return Verdict(1.0, ("roofline: all four are those of your shape",))
    hints = (f"where to look for {name}: {WHERE[name]}" for name in wrong)
    return Verdict((4 - len(wrong)) / 4, (f"roofline: not those of your shape: {', '.join(wrong)}", *hints))
