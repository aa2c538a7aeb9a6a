"""Trusted checks of exercise 1: a layout of 3 rows and 4 columns."""

from typing import Any

from tilelab.grading.judge import Verdict
from tilelab.grading.problems.exercise_1 import COLUMNS, ROWS, order_fault, order_meant
from tilelab.grading.tables import listed, misshapen, strange_cells, wrong_cells
from tilelab.layout import Layout


def check_table(answers: dict[str, Any], layout: Layout) -> Verdict:
    """By cell: each right offset earns a twelfth."""
    table = answers.get("table")
    if fault := misshapen(table, ROWS, COLUMNS):
        return Verdict(0.0, (f"table: {fault}",))
    if not any(value is not None for row in answers["table"] for value in row):
        return Verdict(0.0, ("table: not answered",))
    wrong = wrong_cells(table, layout)
    cells = ROWS * COLUMNS
    if not wrong:
        return Verdict(1.0, (f"table: all {cells} offsets are right",))
    return Verdict(
        (cells - len(wrong)) / cells,
        (
            f"table: {cells - len(wrong)} of {cells} offsets are right; not right: {listed(wrong, most=cells)}",
            *filter(None, (strange_cells(table),)),
            "where to look: each coordinate times its own stride, then the sum; the first stride is the row's",
        ),
    )


def check_order(answers: dict[str, Any], layout: Layout) -> Verdict:
    """Neighbours in memory lie along the mode of stride 1."""
    if fault := order_fault(answers.get("order")):
        return Verdict(0.0, (f"order: {fault}",))
    if order_meant(answers["order"]) == ("column-major" if layout(1, 0) == 1 else "row-major"):
        return Verdict(1.0, ("order: right",))
    return Verdict(0.0, ("order: not right. Find the cell that lies one after (0,0) in memory",))


def check_contiguous(answers: dict[str, Any], layout: Layout) -> Verdict:
    """There are holes where the cosize is larger than the size; only a plain truth value counts."""
    contiguous = answers.get("contiguous")
    if contiguous is None:
        return Verdict(0.0, ("contiguous: not answered",))
    if contiguous is (layout.cosize == layout.size):
        return Verdict(1.0, ("contiguous: right",))
    if not isinstance(contiguous, bool):
        return Verdict(0.0, (f"contiguous: write True or False, without quotes, not {contiguous!r:.40}",))
    return Verdict(0.0, ("contiguous: not right. Sort the twelve offsets and look for gaps",))
