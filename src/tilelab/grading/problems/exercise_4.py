"""Exercise 4: ``8:1`` over four threads, as neighbours and half the vector apart, and the sectors of a whole warp."""

from collections.abc import Callable, Mapping
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.layouts import read_layout
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.values import whole, whole_fault, word

THREADS, EACH = 4, 2
WHYS = ("fewer-bytes", "all-used", "cached")
#: What each thread holds, in order.
HOLDS: dict[str, Callable[[int], list[int]]] = {"a": lambda t: [2 * t, 2 * t + 1], "b": lambda t: [t, t + THREADS]}


def held(layout: object, thread: object) -> list[list[int]]:
    """Return what each thread holds, in order, by a layout and the number of its mode that is the thread.

    Raises
    ------
    GradingError
        It is no division of eight elements among four threads. The message is for the learner.
    """
    answer = read_layout(layout)
    if len(answer.extents) != 2:
        raise GradingError(f"{answer.text} has {len(answer.extents)} modes: one for the thread, one for its elements")
    mode = whole(thread)
    if mode not in (0, 1):
        raise GradingError(f"say which mode is the thread, 0 or 1, not {thread!r:.40}")
    threads, each = answer.extents[mode], answer.extents[1 - mode]
    if (threads, each) != (THREADS, EACH):
        raise GradingError(
            f"{answer.text} with the thread in mode {mode} has {threads} threads with {each} elements each; "
            f"{THREADS} threads hold {EACH} each"
        )
    if mode == 0:
        return [[answer.offset(t, v) for v in range(each)] for t in range(threads)]
    return [[answer.offset(v, t) for v in range(each)] for t in range(threads)]


def look_at(which: str) -> Callable[[Mapping[str, Any]], Finding]:
    """Return the instant check of (a) or (b): it says what a thread holds by the learner's layout."""

    def look(answers: Mapping[str, Any]) -> Finding:
        layout, thread = answers[which], answers[f"{which}_thread"]
        if layout is None:
            return Finding(False, "not answered yet")
        try:
            holds = held(layout, thread)
        except GradingError as error:
            return Finding(False, str(error))
        for t, elements in enumerate(holds):
            if elements != HOLDS[which](t):
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
    if word(answers["why"]) not in WHYS:
        return Finding(False, f"why is one of {', '.join(WHYS)}, not {answers['why']!r:.60}")
    a, b = answers["sectors_a"], answers["sectors_b"]
    if a != b and (word(answers["better"]) == "a") != (a < b):
        return Finding(False, f"better does not agree with your numbers: (a) asks for {a}, (b) for {b} sectors a load")
    return Finding(True, "readable, and in itself consistent")


def picture(answers: Mapping[str, Any]) -> object | None:
    """Which thread holds each element, by the learner's layouts."""
    from tilelab.grading.pictures import holders_picture

    rows = {}
    for which in ("a", "b"):
        try:
            rows[f"({which})"] = held(answers.get(which), answers.get(f"{which}_thread"))
        except GradingError:
            continue
    return holders_picture(rows, THREADS * EACH) if rows else None


PROBLEM = Problem(
    name="exercise_4",
    assignment="exercises",
    parts=(
        Part("a", 2, look_at("a"), ("a", "a_thread")),
        Part("b", 2, look_at("b"), ("b", "b_thread")),
        Part("sectors", 2, look_at_sectors, ("sectors_a", "sectors_b", "better", "sectors_float2", "why")),
    ),
    picture=picture,
)
