"""Trusted checks of practice 5: one source, several tiles; the byte count as a rule."""

from functools import partial
from typing import Any

from tilelab.grading.cuda_answers import judge_kernel, report
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_5 import answer, bytes_asked, fits, not_dynamic

TRIED = {8: ((16, 24, 32), (9, 17, 19)), 16: ((33, 17, 1000),), 32: ((33, 40, 65), (1, 1, 1))}
TILES = (4, 8, 12, 16, 32, 64)


def check_correct(answers: dict[str, Any]) -> Verdict:
    """By tile and shape, the same source each time; half where the two tiles are not in dynamic shared memory."""
    trials = []
    for tile, shapes in TRIED.items():
        found = judge_kernel(partial(answer, answers, tile), shapes)
        if found.answer is None:
            return Verdict(0.0, found.lines)
        trials += found.trials
    share, lines = sum(trial.ok for trial in trials) / len(trials), report(trials)
    if trials[0].ok and (missing := not_dynamic(answer(answers, 8), TRIED[8][0])):
        return Verdict(share / 2, (*lines, missing))
    return Verdict(share, lines)


def check_byte_rule(answers: dict[str, Any]) -> Verdict:
    """All for two tiles in bytes; a third for one tile, or for elements instead of bytes; half for always too much."""
    try:
        asked = {tile: bytes_asked(answers.get("launch"), tile) for tile in TILES}
    except GradingError as error:
        return Verdict(0.0, (f"byte rule: {error}",))
    if all(fits(found, tile) for tile, found in asked.items()):
        return Verdict(1.0, (f"byte rule: right for {len(TILES)} values of TILE",))
    for share, what, rule in (
        (1 / 3, "it counts elements, and a launch counts bytes", lambda tile: 2 * tile * tile),
        (1 / 3, "it counts one tile, and there are two", lambda tile: tile * tile * 4),
    ):
        if all(found == rule(tile) for tile, found in asked.items()):
            return Verdict(share, (f"byte rule: {what}",))
    tile = next(tile for tile, found in asked.items() if not fits(found, tile))
    line = f"byte rule: for TILE = {tile} it gives {asked[tile]} bytes"
    if all(found >= 2 * tile * tile * 4 for tile, found in asked.items()):
        return Verdict(0.5, (f"{line}: more than both tiles take, which costs occupancy",))
    return Verdict(0.0, (f"{line}: not what both tiles take",))
