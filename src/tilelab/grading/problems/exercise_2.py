"""Exercise 2: the transpose of a column-major layout, on real storage, and its order."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.layouts import LayoutAnswer, meant, read_layout, shown
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.problems.exercise_1 import order_fault, order_meant
from tilelab.grading.values import whole
from tilelab.layout import Layout

#: Bytes of a float32, the element of the exercise's buffer.
ITEM = 4


def extents(original: Layout) -> tuple[int, int]:
    """Return rows and columns of a layout."""
    rows, columns = (mode.size for mode in original)
    return rows, columns


def misplaced(original: Layout, answer: LayoutAnswer) -> list[tuple[int, int]]:
    """Return the coordinates ``(j,i)`` that do not lie where the original puts ``(i,j)``."""
    rows, columns = extents(original)
    return [(j, i) for j in range(columns) for i in range(rows) if answer.offset(j, i) != original(i, j)]


def look_at_layout(original: Layout, answers: Mapping[str, Any]) -> Finding:
    """The shape, then one coordinate that went astray; never the strides."""
    answer = meant(answers["layout"])
    if isinstance(answer, str):
        return Finding(False, answer)
    rows, columns = extents(original)
    if answer.extents != (columns, rows):
        return Finding(
            False,
            f"{answer.text} has the shape {shown(answer.extents)}. The original has {rows} rows and {columns} columns: "
            "how many rows and columns has its transpose?",
        )
    wrong = misplaced(original, answer)
    if not wrong:
        return Finding(True, "every element lies where the original has it")
    j, i = wrong[0]
    return Finding(
        False,
        f"the shape is right, {len(wrong)} of {original.size} elements are not. Take ({j},{i}): {answer.text} looks "
        f"for it at offset {answer.offset(j, i)}. Where does the original keep its element ({i},{j})?",
    )


def look_at_same_memory(original: Layout, answers: Mapping[str, Any]) -> Finding:
    """Whether the array is a view of the right form; how many bytes move is only read for its form."""
    if answers["memory"] is None:
        rows, columns = extents(original)
        return Finding(False, f"transposed is not a NumPy array of shape ({columns}, {rows}) yet")
    if fault := view_fault(original, answers["memory"]):
        return Finding(False, fault)
    if answers["bytes_moved"] is None:
        return Finding(False, "transposed is right; bytes_moved is not answered yet")
    if whole(answers["bytes_moved"]) is None:
        return Finding(False, f"bytes_moved is a whole number, not {answers['bytes_moved']!r:.40}")
    return Finding.undecided("transposed looks at the same memory in the right steps; bytes_moved is readable")


def view_fault(original: Layout, memory: object) -> str:
    """Say why an array's evidence is not that of the transposed view, or ``""``."""
    if not isinstance(memory, Mapping) or not isinstance(memory.get("strides"), list):
        return f"this is not what the locked cell makes of your array: {memory!r:.60}"
    if memory.get("starts") != 0 or memory.get("seen") is not True:
        return "transposed is a copy: it begins at another address, and does not see what is written through matrix"
    if memory["strides"] != [ITEM * original(0, 1), ITEM * original(1, 0)]:
        return f"transposed shares the memory, but steps by {memory['strides']!r:.60} bytes: compare with your layout"
    return ""


def look_at_statement(original: Layout, answers: Mapping[str, Any]) -> Finding:
    """Form, and whether it agrees with the learner's own layout."""
    order = answers["order"]
    if fault := order_fault(order):
        return Finding(False, fault)
    try:
        own = read_layout(answers.get("layout"))
        down, along = own.offset(1, 0), own.offset(0, 1)
    except (GradingError, TypeError, ValueError):
        return Finding.undecided("readable; give check() your layout too and it compares the two")
    if (order_meant(order) == "row-major") != (along < down):
        return Finding(
            False, f"this does not agree with your layout: it steps by {along} along a row and by {down} down a column"
        )
    rows, columns = extents(original)
    right = own.extents == (columns, rows) and not misplaced(original, own)
    return Finding(True, "it agrees with your layout", decided=right)


def picture(answers: Mapping[str, Any]) -> object | None:
    """The learner's layout."""
    from tilelab.grading.pictures import layout_picture

    return layout_picture(answers.get("layout"), "your layout")


def posed(original: Layout) -> Problem:
    """Return the exercise about a column-major layout."""
    return Problem(
        name="exercise_2",
        assignment="exercises",
        parts=(
            Part("layout", 2, partial(look_at_layout, original)),
            Part("same_memory", 1, partial(look_at_same_memory, original), ("memory", "bytes_moved")),
            Part("statement", 1, partial(look_at_statement, original), ("order",)),
        ),
        picture=picture,
        layout=original,
        statement=f"the layout {original}",
    )


PROBLEM = posed(Layout((3, 4), (1, 3)))
OTHERS = tuple(Layout(shape, (1, shape[0])) for shape in ((2, 5), (3, 5), (4, 3), (4, 5), (5, 2), (5, 3), (5, 4)))
