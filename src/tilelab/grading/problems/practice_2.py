"""Practice 2: what TILE costs, the tile that cannot launch, and how it can."""

import itertools
from collections.abc import Mapping
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer, look_at_kernel, read_cuda
from tilelab.grading.errors import GradingError
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.rules import numbers_of
from tilelab.grading.values import number, statements_fault

TILES = (8, 16, 32, 64)
COLUMNS = ("shared", "threads", "occupancy")
STATEMENTS = ("a", "b", "c", "d", "e")
PUBLIC = ((64, 70, 65),)


def answer(answers: Mapping[str, Any]) -> CudaAnswer:
    """Read the kernel and its launch rule."""
    return read_cuda(answers.get("kernel"), answers.get("launch"))


def row(table: object, tile: int) -> Mapping[str, Any]:
    """Return a row of the table, empty where there is none; JSON has made the tile a text."""
    found = table.get(str(tile), table.get(tile)) if isinstance(table, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def form_fault(table: object) -> str:
    """Say what keeps a table from being read, or ``""``."""
    if not isinstance(table, Mapping):
        return f"the table is a dict with a row for each of {TILES}, not {table!r:.40}"
    for tile in TILES:
        for name in COLUMNS:
            value = row(table, tile).get(name)
            if number(value) is None:
                return f"TILE {tile}, {name}: a number is asked for, not {value!r:.40}"
        ms = row(table, tile).get("ms")
        if ms is not None and not (number(ms) or 0) > 0:
            return f"TILE {tile}, ms: a time in milliseconds is asked for, or None, not {ms!r:.40}"
    return ""


def look_at_table(answers: Mapping[str, Any]) -> Finding:
    """What is missing, and what cannot be."""
    table = answers["table"]
    if fault := form_fault(table):
        return Finding(False, fault)
    shares = [number(row(table, tile)["occupancy"]) or 0.0 for tile in TILES]
    if not all(0 <= share <= 100 for share in shares) or 0 < max(shares) <= 1:
        return Finding(False, "an occupancy is in percent, from 0 to 100")
    for name in ("shared", "threads"):
        values = [number(row(table, tile)[name]) or 0.0 for tile in TILES]
        if any(after != 4 * before for before, after in itertools.pairwise(values)):
            return Finding(
                False, f"{name}: when TILE doubles, a tile has four times the elements. Is that so in yours?"
            )
    return Finding.undecided("all cells are filled in, and the columns grow as they must")


def blocks_cover(answer: CudaAnswer) -> bool:
    """Whether the launch has one block for each 64 × 64 tile of C."""
    names = {"M": 128, "N": 192, "K": 64, "TILE": answer.tile}
    grid = numbers_of(answer.launch["grid"], names)
    count = 1
    for extent in grid:
        count *= extent
    return count == 6


def look_at_tile_64(answers: Mapping[str, Any]) -> Finding:
    """Try the kernel: the launch's own error is the first thing to see."""
    found = look_at_kernel(lambda: answer(answers), PUBLIC)
    if not found.ok:
        return found
    try:
        covers = blocks_cover(answer(answers))
    except GradingError as error:
        return Finding(False, str(error))
    return found if covers else Finding(False, f"{found.text}, but a block does not compute 64 × 64 outputs any more")


def look_at_conclusion(answers: Mapping[str, Any]) -> Finding:
    """Form alone."""
    fault = statements_fault(answers["conclusion"], STATEMENTS)
    return Finding.undecided("all decided", fault)


def picture(answers: Mapping[str, Any]) -> object | None:
    """Where the kernel's product is right."""
    from tilelab.grading.pictures import product_picture

    return product_picture(lambda: answer(answers), PUBLIC[-1])


PROBLEM = Problem(
    name="practice_2",
    assignment="practice",
    parts=(
        Part("table", 4, look_at_table),
        Part("tile_64", 3, look_at_tile_64, ("kernel", "launch")),
        Part("conclusion", 3, look_at_conclusion),
    ),
    picture=picture,
)
