"""Exercise 1: the offsets of a layout by hand, their order, and whether they leave holes."""

import re
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.tables import listed, misshapen, strange_cells, wrong_cells
from tilelab.layout import Layout

ROWS, COLUMNS = 3, 4
ORDERS = ("row-major", "column-major")
_ORDER = re.compile("(row|col|column)s?(major)?(order|layout)?")


def look_at_table(layout: Layout, answers: Mapping[str, Any]) -> Finding:
    """Form first, then which cells are not right yet, and where to look."""
    table = answers["table"]
    if fault := misshapen(table, ROWS, COLUMNS) or strange_cells(table):
        return Finding(False, fault)
    empty = [(i, j) for i, row in enumerate(table) for j, value in enumerate(row) if value is None]
    if empty:
        return Finding(False, f"not filled in yet: {listed(empty)}")
    wrong = wrong_cells(table, layout)
    if not wrong:
        return Finding(True, "all 12 offsets are right")
    along_rows = all(value == COLUMNS * i + j for i, row in enumerate(table) for j, value in enumerate(row))
    hint = (
        "You walk along a row in steps of one. Which of the two strides belongs to the row coordinate?"
        if along_rows
        else f"Take {listed(wrong[:1])}: multiply each coordinate by its own stride, then add."
    )
    return Finding(False, f"{len(wrong)} of 12 cells are not right: {listed(wrong)}. {hint}")


def look_at_order(layout: Layout, answers: Mapping[str, Any]) -> Finding:
    """Form, and whether it agrees with the learner's own table; which word is right stays the judge's."""
    order = answers["order"]
    if fault := order_fault(order):
        return Finding(False, fault)
    steps = _steps(answers.get("table"))
    if steps is None:
        return Finding.undecided("readable; give check() your table too and it compares the two")
    along_row, down_column = steps
    if (order_meant(order) == "row-major") != (along_row < down_column):
        return Finding(
            False,
            f"this does not agree with your table: it steps by {along_row} along a row and by {down_column} down a "
            "column. Neighbours in memory are one apart",
        )
    return _agrees(layout, answers["table"])


def _agrees(layout: Layout, table: list[list[object]]) -> Finding:
    """Say that a statement agrees with the learner's table, which decides it where the table is right."""
    return Finding(True, "it agrees with your table", decided=not wrong_cells(table, layout))


def order_meant(order: object) -> str:
    """Read an order as it is written in the wild: ``Column major``, ``col-major``, ``row_major order``, ``columns``.

    What is neither of the two comes back as it is.
    """
    found = _ORDER.fullmatch(re.sub("[^a-z]", "", str(order).lower())) if isinstance(order, str) else None
    return str(order) if found is None else "row-major" if found[1] == "row" else "column-major"


def order_fault(order: object) -> str:
    """Say what keeps it from being one of the two orders, or ``""``."""
    if order is None:
        return "not answered yet"
    return (
        ""
        if order_meant(order) in ORDERS
        else f"the order is one of {' and '.join(map(repr, ORDERS))}, not {order!r:.40}"
    )


def look_at_contiguous(layout: Layout, answers: Mapping[str, Any]) -> Finding:
    """Form, and whether it agrees with the learner's own table."""
    contiguous = answers["contiguous"]
    if contiguous is None:
        return Finding(False, "not answered yet")
    if not isinstance(contiguous, bool):
        return Finding(False, f"write True or False, without quotes, not {contiguous!r:.40}")
    if _steps(answers.get("table")) is None:
        return Finding.undecided("readable; give check() your table too and it compares the two")
    offsets = sorted(value for row in answers["table"] for value in row)
    without_holes = all(after - before == 1 for before, after in pairwise(offsets))
    if contiguous != without_holes:
        return Finding(False, "this does not agree with your table: sort its 12 numbers and look at the gaps")
    return _agrees(layout, answers["table"])


def picture(answers: Mapping[str, Any]) -> object | None:
    """The learner's table as they filled it in."""
    table = answers.get("table")
    if misshapen(table, ROWS, COLUMNS) or strange_cells(table or []):
        return None
    from tilelab.grading.pictures import table_picture  # drawing loads only where a picture is shown

    return table_picture(table or (), "your table")


def _steps(table: object) -> tuple[int, int] | None:
    """Steps of a filled table along its first row and down its first column; None where there is no such table."""
    if misshapen(table, ROWS, COLUMNS) or not isinstance(table, list):
        return None
    if strange_cells(table) or any(None in row for row in table):
        return None
    return table[0][1] - table[0][0], table[1][0] - table[0][0]


def posed(layout: Layout) -> Problem:
    """Return the exercise about a layout of 3 rows and 4 columns."""
    return Problem(
        name="exercise_1",
        assignment="exercises",
        parts=(
            Part("table", 2, partial(look_at_table, layout)),
            Part("order", 1, partial(look_at_order, layout)),
            Part("contiguous", 1, partial(look_at_contiguous, layout)),
        ),
        picture=picture,
        layout=layout,
        statement=f"the layout {layout}",
    )


PROBLEM = posed(Layout((ROWS, COLUMNS), (1, 3)))
#: By columns and by rows, with and without holes.
OTHERS = tuple(Layout((ROWS, COLUMNS), stride) for stride in ((1, 4), (1, 5), (1, 7), (4, 1), (5, 1), (6, 1), (7, 1)))
