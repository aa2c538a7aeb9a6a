"""Trusted checks of practice 2: the table follows from the limits of sm_86; TILE 64 is tried; times are looked at."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.cuda_answers import judge_kernel
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_2 import COLUMNS, STATEMENTS, TILES, answer, blocks_cover, form_fault, row
from tilelab.grading.values import number, statements_line, statements_right
from tilelab.hardware.limits import capability
from tilelab.measure.occupancy import resident

SHAPES = ((64, 64, 192), (65, 70, 133), (128, 64, 40), (1, 1, 1), (20, 130, 129))
HINT = "does every thread load, sum up and store all of its outputs, each into a place of its own?"
TRUE = {"a": False, "b": True, "c": False, "d": True, "e": True}
#: Few enough not to limit anything.
REGISTERS = 32
_WHERE = {
    "shared": "both tiles, in bytes",
    "threads": "one for each element of a tile",
    "occupancy": "in percent; the smallest of three limits counts: warps, blocks, shared memory",
}
#: Share of the table's points that is for times.
TIMES = 0.25


def _right(tile: int) -> dict[str, float]:
    shared, threads = 2 * tile * tile * 4, tile * tile
    try:
        share = resident(capability("sm_86"), threads, REGISTERS, shared).share
    except ValueError:  # more threads than a block may have
        share = 0.0
    return {"shared": shared, "threads": threads, "occupancy": 100 * share}


def check_table(answers: dict[str, Any]) -> Verdict:
    """Three quarters by cell, a quarter for at least three times, at which a person looks."""
    table, filled = answers.get("table"), 0
    wrong: dict[str, list[int]] = {name: [] for name in COLUMNS}
    for tile in TILES:
        for name, right in _right(tile).items():
            value = number(row(table, tile).get(name))
            filled += value is not None
            if value is None or abs(value - right) > (1 if name == "occupancy" else 0):
                wrong[name].append(tile)
    cells = len(TILES) * len(COLUMNS)
    right_cells = cells - sum(map(len, wrong.values()))
    times = [number(row(table, tile).get("ms")) for tile in TILES]
    timed = sum(time is not None and 0 < time < 1e5 for time in times) >= 3
    if not filled and not timed:
        empty = table is None or isinstance(table, Mapping)
        return Verdict(0.0, (f"table: {'not answered' if empty else form_fault(table)}",))
    lines = [f"table: {right_cells} of {cells} cells are right"]
    lines += [f"{name} is not right at {', '.join(map(str, at))}: {_WHERE[name]}" for name, at in wrong.items() if at]
    lines.append(
        "times: pending: your instructor looks at them and gives their points in nbgrader's formgrader"
        if timed
        else "times: fewer than three are there"
    )
    return Verdict((1 - TIMES) * right_cells / cells, tuple(lines), pending=TIMES * timed)


def check_tile_64(answers: dict[str, Any]) -> Verdict:
    """By shape; half where a block computes another tile than 64 × 64."""
    found = judge_kernel(lambda: answer(answers), SHAPES).hinted(HINT)
    if found.answer is not None and found.share:
        try:
            if not blocks_cover(found.answer):
                found = found.lowered(
                    0.5, "a block does not compute 64 × 64 outputs: the grid has another number of blocks"
                )
        except GradingError as error:
            found = found.lowered(0.0, str(error))
    return Verdict(found.share, found.lines)


def check_conclusion(answers: dict[str, Any]) -> Verdict:
    """By statement; guessing earns nothing."""
    share, wrong = statements_right(answers.get("conclusion"), TRUE)
    line = f"conclusion: {len(STATEMENTS) - len(wrong)} of {len(STATEMENTS)} statements are right"
    return Verdict(share, (statements_line(line, answers.get("conclusion"), STATEMENTS),))
