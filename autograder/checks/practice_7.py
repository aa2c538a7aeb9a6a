"""Trusted checks of practice 7: register tiling. Times need a GPU; without one their points wait."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilelab.grading.cuda_answers import Judgement, judge_kernel
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_7 import OUTPUTS, answer, outputs_a_thread, tiled_answer
from tilelab.grading.sharing import NOTHING_SHARED, shares_a_tile
from tilelab.grading.timed.thresholds import Mark
from tilelab.grading.timed.wanted import Measured, Wanted
from tilelab.grading.timing import YOUR_TILED, by_gain, waits_for_gpu, want

SHAPES = ((64, 64, 32), (33, 17, 19), (65, 66, 17), (1, 1, 1), (40, 100, 48), (31, 33, 1110))
HINT = "a sum of its own for each of a thread's outputs; loads that fill the whole tile; the grid by the tile of C"
NO_TILE = f"right, but it {NOTHING_SHARED}: the threads of a block read the same elements again and again"
TILED_SHAPES = ((32, 48, 40), (17, 19, 35))


def _judged(answers: dict[str, Any]) -> Judgement:
    found = judge_kernel(lambda: answer(answers), SHAPES).hinted(HINT)
    if found.answer is None or not found.share:
        return found
    outputs = outputs_a_thread(found.answer)
    if outputs < OUTPUTS:
        return found.lowered(
            1 / 3, f"the launch has a thread for every {outputs:g} elements of C, {OUTPUTS} are asked for"
        )
    if not shares_a_tile(found.answer, SHAPES[0]):
        return found.lowered(1, NO_TILE)
    return found


def check_correct(answers: dict[str, Any]) -> Verdict:
    """By shape; a third where a thread has fewer than four elements of C."""
    found = _judged(answers)
    return Verdict(found.share, found.lines)


def check_timed(answers: dict[str, Any]) -> Verdict:
    """Timed against the learner's own tiled kernel, where both are right."""
    found = _judged(answers)
    try:
        tiled_answer(answers)
    except GradingError as error:
        return Verdict(0.0, (f"timed: the tiled kernel that yours is compared with: {error}",))
    own = judge_kernel(lambda: tiled_answer(answers), TILED_SHAPES)
    if own.share < 1:
        return Verdict(0.0, ("timed: your tiled kernel, which this one is compared with, is not right", *own.lines))
    if own.answer is not None and not shares_a_tile(own.answer, TILED_SHAPES[0]):
        return Verdict(0.0, (f"timed: the kernel that yours is compared with {NOTHING_SHARED}",))
    waits = waits_for_gpu(found, "1024³ against the faster of your tiled kernel and the course's")
    return replace(waits, lines=(*waits.lines, NO_TILE)) if waits.pending and NO_TILE in found.lines else waits


def time_timed(answers: dict[str, Any], asked: Mapping[str, Any]) -> Wanted:
    """The learner's kernel against their own tiled one and the course's."""
    return want(asked, answer(answers), {YOUR_TILED: tiled_answer(answers)})


def settle_timed(answers: dict[str, Any], measured: Measured, mark: Mark | None) -> Verdict:
    """By the gain over the faster of the two."""
    return by_gain(
        measured,
        mark,
        below="is the grid as small as the patches allow, and do the sums stay in registers? An index known only while "
        "running moves them to memory",
        half="a patch of 4 × 4 reads half as much again; neighbouring threads should still read neighbouring elements",
    )
