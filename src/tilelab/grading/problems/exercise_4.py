"""Exercise 4: a vector over threads, as neighbours and half the vector apart, and the sectors of a whole warp."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.layouts import read_layout
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.values import whole, whole_fault, word
from tilelab.layout import Layout

#: Elements of each thread.
EACH = 2
WHYS = ("fewer bytes", "all used", "cached")


def threads_of(vector: Layout) -> int:
    """Return how many threads a vector is divided among."""
    return int(vector.size) // EACH


def due(vector: Layout, which: str) -> list[list[int]]:
    """Return what each thread holds in (a) or (b), in order."""
    threads = threads_of(vector)
    return [[2 * t, 2 * t + 1] if which == "a" else [t, t + threads] for t in range(threads)]


def held(vector: Layout, layout: object, thread: object) -> list[list[int]]:
    """Return what each thread holds, in order, by a layout and the number of its mode that is the thread.

    Raises
    ------
    GradingError
        It is no division of the vector among its threads. The message is for the learner.
    """
    answer = read_layout(layout)
    if len(answer.extents) != 2:
        modes = f"{len(answer.extents)} mode{'s' if len(answer.extents) > 1 else ''}"
        raise GradingError(f"{answer.text} has {modes}, not two: one for the thread, one for its elements")
    mode = whole(thread)
    if mode not in (0, 1):
        raise GradingError(f"say which mode is the thread, 0 or 1, not {thread!r:.40}")
    threads, each = answer.extents[mode], answer.extents[1 - mode]
    if (threads, each) != (threads_of(vector), EACH):
        raise GradingError(
            f"{answer.text} with the thread in mode {mode} has {threads} threads with {each} elements each; "
            f"{threads_of(vector)} threads hold {EACH} each"
        )
    if mode == 0:
        return [[answer.offset(t, v) for v in range(each)] for t in range(threads)]
    return [[answer.offset(v, t) for v in range(each)] for t in range(threads)]


def look_at(vector: Layout, which: str) -> Callable[[Mapping[str, Any]], Finding]:
    """Return the instant check of (a) or (b): it says what a thread holds by the learner's layout."""

    def look(answers: Mapping[str, Any]) -> Finding:
        layout, thread = answers[which], answers[f"{which}_thread"]
        if layout is None:
            return Finding(False, "not answered yet")
        try:
            holds = held(vector, layout, thread)
        except GradingError as error:
            return Finding(False, str(error))
        for t, (elements, right) in enumerate(zip(holds, due(vector, which), strict=True)):
            if elements != right:
                return Finding(False, f"by this layout thread {t} holds {elements}: compare with what it should hold")
        return Finding(True, "every thread holds its two elements, in order")

    return look


def look_at_sectors(answers: Mapping[str, Any]) -> Finding:
    """Form, and whether the numbers can be: not fewer sectors than the bytes need."""
    for name, least in (("sectors_a", 4), ("sectors_b", 4), ("sectors_float2", 8)):
        if fault := whole_fault(answers[name], name, 1, 64):
            return Finding(False, fault)
        if (whole(answers[name]) or 0) < least:
            wanted = least * 32
            return Finding(False, f"{name}: the warp wants {wanted} different bytes in that load, a sector has 32")
    if word(answers["better"]) not in ("a", "b"):
        return Finding(False, f"better is 'a' or 'b', not {answers['better']!r:.40}")
    if word(answers["why"]) not in map(word, WHYS):
        return Finding(False, f"why is one of {', '.join(map(repr, WHYS))}, not {answers['why']!r:.60}")
    a, b = answers["sectors_a"], answers["sectors_b"]
    if a != b and (word(answers["better"]) == "a") != (a < b):
        return Finding(False, f"better does not agree with your numbers: (a) asks for {a}, (b) for {b} sectors a load")
    return Finding.undecided("the numbers agree with one another")


def picture(vector: Layout, answers: Mapping[str, Any]) -> object | None:
    """Which thread holds each element, by the learner's layouts."""
    from tilelab.grading.pictures import holders_picture

    rows = {}
    for which in ("a", "b"):
        try:
            rows[f"({which})"] = held(vector, answers.get(which), answers.get(f"{which}_thread"))
        except GradingError:
            continue
    return holders_picture(rows, int(vector.size)) if rows else None


def posed(vector: Layout) -> Problem:
    """Return the exercise about a vector; the question about a whole warp is the same for all."""
    return Problem(
        name="exercise_4",
        assignment="exercises",
        parts=(
            Part("a", 2, look_at(vector, "a"), ("a", "a_thread")),
            Part("b", 2, look_at(vector, "b"), ("b", "b_thread")),
            Part("sectors", 2, look_at_sectors, ("sectors_a", "sectors_b", "better", "sectors_float2", "why")),
        ),
        picture=partial(picture, vector),
        layout=vector,
        statement=f"the vector {vector} over {threads_of(vector)} threads",
    )


PROBLEM = posed(Layout(8, 1))
OTHERS = tuple(Layout(size, 1) for size in (10, 12, 14, 16))
