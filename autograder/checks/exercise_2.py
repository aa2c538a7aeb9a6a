"""Trusted checks of exercise 2: the transpose of a column-major layout."""

from typing import Any

from tilelab.grading.judge import Verdict
from tilelab.grading.layouts import meant, shown
from tilelab.grading.problems.exercise_1 import order_fault, order_meant
from tilelab.grading.problems.exercise_2 import extents, misplaced, view_fault
from tilelab.grading.values import whole, whole_fault
from tilelab.layout import Layout


def check_layout(answers: dict[str, Any], original: Layout) -> Verdict:
    """All coordinates right earn all; half of the layout right, shape or strides, earns a quarter."""
    answer = meant(answers.get("layout"))
    if isinstance(answer, str):
        return Verdict(0.0, (f"layout: {answer}",))
    rows, columns = extents(original)
    if answer.extents != (columns, rows):
        swapped_strides = original(0, 1), original(1, 0)
        swapped = answer.extents == (rows, columns) and (answer.offset(1, 0), answer.offset(0, 1)) == swapped_strides
        return Verdict(
            0.25 if swapped else 0.0,
            (f"layout: {answer.text} has the shape {shown(answer.extents)}; shape and stride change places together",),
        )
    wrong = misplaced(original, answer)
    if not wrong:
        return Verdict(1.0, (f"layout: {answer.text} puts all {original.size} elements where the original has them",))
    return Verdict(
        0.25,
        (
            f"layout: {answer.text} has the right shape, {len(wrong)} of {original.size} elements lie elsewhere, "
            f"first {shown(wrong[0])}",
            "where to look: each extent takes its own stride along",
        ),
    )


def check_same_memory(answers: dict[str, Any], original: Layout) -> Verdict:
    """Half for the view, half for the bytes that move."""
    fault = "not answered" if answers.get("memory") is None else view_fault(original, answers["memory"])
    moved = answers.get("bytes_moved")
    right = whole(moved) == 0
    said = "right" if right else whole_fault(moved, "it", 0, 1 << 40) or "not right: compare the two addresses"
    lines = (f"same memory: {fault or 'transposed is a view'}", f"bytes moved: {said}")
    return Verdict(0.5 * (not fault) + 0.5 * right, lines)


def check_statement(answers: dict[str, Any]) -> Verdict:
    """The elements of a row are neighbours."""
    if fault := order_fault(answers.get("order")):
        return Verdict(0.0, (f"order: {fault}",))
    if order_meant(answers["order"]) == "row-major":
        return Verdict(1.0, ("order: right",))
    return Verdict(0.0, ("order: not right. Which mode of the transposed layout has stride 1?",))
