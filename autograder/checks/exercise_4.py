"""Trusted checks of exercise 4: a vector over threads, judged by what each thread holds, in order."""

from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.exercise_4 import due, held
from tilelab.grading.values import whole, word
from tilelab.layout import Layout


def _check(which: str, answers: dict[str, Any], vector: Layout) -> Verdict:
    layout, thread = answers.get(which), answers.get(f"{which}_thread")
    if layout is None:
        return Verdict(0.0, (f"({which}): not answered",))
    right = due(vector, which)
    try:
        holds = held(vector, layout, thread)
    except GradingError as error:
        if _fits(vector, layout, right):
            return Verdict(0.5, (f"({which}): the layout is right, but {error}",))
        return Verdict(0.0, (f"({which}): {error}",))
    if holds == right:
        return Verdict(1.0, (f"({which}): every thread holds its two elements, in order",))
    if [sorted(elements) for elements in holds] == right:
        return Verdict(0.5, (f"({which}): every thread holds its two elements, but thread 0 in the order {holds[0]}",))
    t = next(t for t in range(len(right)) if holds[t] != right[t])
    return Verdict(0.0, (f"({which}): by your layout thread {t} holds {holds[t]}",))


def _fits(vector: Layout, layout: object, right: list[list[int]]) -> bool:
    """Whether the layout is right with one of its modes as the thread."""
    for mode in (0, 1):
        try:
            if held(vector, layout, mode) == right:
                return True
        except GradingError:
            continue
    return False


def check_a(answers: dict[str, Any], vector: Layout) -> Verdict:
    """Neighbours; half where only the thread's mode is misnamed."""
    return _check("a", answers, vector)


def check_b(answers: dict[str, Any], vector: Layout) -> Verdict:
    """Half the vector apart; half where only the thread's mode is misnamed."""
    return _check("b", answers, vector)


_WHERE = {
    "numbers": "the byte addresses of the lanes, divided by 32",
    "better": "your two numbers of sectors, side by side",
    "why": "which bytes of those sectors are wanted, and by which load",
}


def check_sectors(answers: dict[str, Any]) -> Verdict:
    """A fifth for each of the five."""
    right = {
        "sectors_a": whole(answers.get("sectors_a")) == 8,
        "sectors_b": whole(answers.get("sectors_b")) == 4,
        "better": word(answers.get("better")) == "b",
        "sectors_float2": whole(answers.get("sectors_float2")) == 8,
        "why": word(answers.get("why")) == "all-used",
    }
    if all(answers.get(name) is None for name in right):
        return Verdict(0.0, ("sectors: not answered",))
    wrong = [name for name, fine in right.items() if not fine]
    if not wrong:
        return Verdict(1.0, ("sectors: all five are right",))
    return Verdict(
        sum(right.values()) / len(right),
        (
            f"sectors: {len(right) - len(wrong)} of 5 are right; not right: {', '.join(wrong)}",
            f"where to look: {_WHERE['why' if wrong == ['why'] else 'better' if wrong == ['better'] else 'numbers']}",
        ),
    )
