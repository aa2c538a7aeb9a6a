"""Exercise 3: a column-major tile in shared memory, the conflict of its rows, and a layout without one."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.layouts import LayoutAnswer, collision, meant, shown
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.values import whole, whole_fault
from tilelab.hardware.banks import bank_access
from tilelab.layout import Layout

TILE = 32
#: Bytes of a float32.
ITEM = 4
#: Elements of shared memory that a block may ask for on any GPU without opting in: 48 KiB.
ROOM = 48 * 1024 // ITEM


def tile_fault(answer: LayoutAnswer) -> str:
    """Say why a layout cannot hold the tile at all, or ``""``."""
    if answer.extents != (TILE, TILE):
        return f"{answer.text} has the shape {shown(answer.extents)}: the tile has {TILE} rows and {TILE} columns"
    if found := collision(answer):
        first, second = map(shown, found)
        return f"{answer.text} puts {first} and {second} in the same place"
    if answer.cosize > ROOM:
        return f"{answer.text} needs {answer.cosize * ITEM:,} bytes, a block has {ROOM * ITEM:,} without opting in"
    return ""


def worst_row(answer: LayoutAnswer) -> tuple[int, int]:
    """Return the degree of the worst row read, and that row."""
    return _worst([[answer.offset(i, j) for j in range(TILE)] for i in range(TILE)])


def worst_column(answer: LayoutAnswer) -> tuple[int, int]:
    """Return the degree of the worst column access, and that column."""
    return _worst([[answer.offset(i, j) for i in range(TILE)] for j in range(TILE)])


def _worst(lines: list[list[int]]) -> tuple[int, int]:
    ways = [bank_access([ITEM * offset for offset in line]).ways for line in lines]
    return max(ways), ways.index(max(ways))


def look_at_prediction(answers: Mapping[str, Any]) -> Finding:
    """Form alone: a prediction is compared with what you find, by you."""
    fault = whole_fault(answers["prediction"], "the number of banks", 1, 32)
    return Finding.undecided("written down; you will see", fault)


def look_at_degree(answers: Mapping[str, Any]) -> Finding:
    """Form alone: with 32 possible answers anything more would be the answer."""
    fault = whole_fault(answers["degree"], "the degree", 1, 32)
    return Finding.undecided("readable; does it agree with the offsets of threads 0, 1, 2 and 31?", fault)


def look_at_layout(answers: Mapping[str, Any]) -> Finding:
    """Shape, places, then the worst row and the worst column."""
    answer = meant(answers["layout"])
    if isinstance(answer, str):
        return Finding(False, answer)
    if fault := tile_fault(answer):
        return Finding(False, fault)
    faults = conflicts(answer)
    return Finding(not faults, "; ".join(faults) or "no row and no column makes a thread wait")


def conflicts(answer: LayoutAnswer) -> list[str]:
    """Say which row and which column conflict most, with the degree."""
    faults = []
    for what, (ways, line) in (("row", worst_row(answer)), ("column", worst_column(answer))):
        if ways > 1:
            faults.append(f"reading {what} {line} is a {ways}-way conflict")
    return faults


def look_at_size_and_cosize(answers: Mapping[str, Any]) -> Finding:
    """Compare with the learner's own layout, without saying the numbers."""
    for name in ("size", "cosize"):
        if fault := whole_fault(answers[name], name, 1, 1 << 20):
            return Finding(False, fault)
    answer = meant(answers["layout"])
    if isinstance(answer, str):
        return Finding(False, f"both are judged for your layout, and there is none: {answer}")
    if fault := tile_fault(answer):
        return Finding(False, f"both are judged for your layout, which cannot hold the tile: {fault}")
    wrong = [name for name in ("size", "cosize") if whole(answers[name]) != getattr(answer, name)]
    if not wrong:
        return Finding(True, f"they are the size and cosize of {answer.text}")
    hint = {
        "size": "The size counts coordinates, not places.",
        "cosize": "At which coordinate is the offset largest, and how many places are there from 0 to it?",
    }
    return Finding(False, f"not the {wrong[0]} of {answer.text}. {hint[wrong[0]]}")


def picture(answers: Mapping[str, Any]) -> object | None:
    """The bank of each element of the learner's layout."""
    from tilelab.grading.pictures import bank_picture

    return bank_picture(answers.get("layout"), "the bank of each element")


def posed(tile: Layout) -> Problem:
    """Return the exercise about a column-major tile of 32 × 32; only the judge needs to know its pitch."""
    return Problem(
        name="exercise_3",
        assignment="exercises",
        parts=(
            Part("prediction", 1, look_at_prediction),
            Part("degree", 1, look_at_degree),
            Part("layout", 2, look_at_layout),
            Part("size_and_cosize", 2, look_at_size_and_cosize, ("layout", "size", "cosize")),
        ),
        picture=picture,
        layout=tile,
        statement=f"the tile {tile}",
    )


PROBLEM = posed(Layout((TILE, TILE), (1, TILE)))
#: Pitches at which a row wants 16, 8, 4, 8, 2 and 4 banks.
OTHERS = tuple(Layout((TILE, TILE), (1, pitch)) for pitch in (34, 36, 40, 44, 48, 56))
