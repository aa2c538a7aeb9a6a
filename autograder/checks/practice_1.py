"""Trusted checks of practice 1: the tiled matrix product. Times need a GPU; without one their points wait."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.cuda_answers import Judgement, judge_kernel
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_1 import NO_TILE, STATEMENTS, TILE, answer
from tilelab.grading.sharing import shares_a_tile
from tilelab.grading.timed.thresholds import Mark
from tilelab.grading.timed.wanted import Measured, Wanted
from tilelab.grading.timing import by_gain, by_nearness, waits_for_gpu, want
from tilelab.grading.values import number, statements_fault, statements_line, statements_right

SHAPES = ((32, 32, 32), (48, 32, 64), (33, 17, 40), (1, 1, 1), (17, 70, 35), (64, 16, 1000))
HINT = "which element each thread loads, which ones it multiplies, and that the sum goes on over all tiles of K"
TRUE = {"a": False, "b": True, "c": True, "d": False}


def _judged(answers: dict[str, Any]) -> Judgement:
    found = judge_kernel(lambda: answer(answers), SHAPES).hinted(HINT)
    if found.answer is not None and found.share and not shares_a_tile(found.answer, SHAPES[0]):
        return found.lowered(0.5, NO_TILE)
    return found


def check_prediction(answers: dict[str, Any]) -> Verdict:
    """Half for the traffic, half for a time ratio that can be."""
    traffic, time = number(answers.get("traffic_ratio")), number(answers.get("time_ratio"))
    right, possible = traffic == TILE, time is not None and 1 <= time <= TILE
    return Verdict(
        0.5 * right + 0.5 * possible,
        (
            "traffic: right"
            if right
            else "traffic: not right. Count what a block of TILE × TILE threads reads in a K step",
            "time: a prediction" if possible else f"time: the ratio lies between 1 and {TILE}",
        ),
    )


def check_correct(answers: dict[str, Any]) -> Verdict:
    """By shape; half where no tile is kept in shared memory."""
    found = _judged(answers)
    return Verdict(found.share, found.lines)


def check_timed(answers: dict[str, Any]) -> Verdict:
    """Only a kernel that is right everywhere is timed."""
    return waits_for_gpu(_judged(answers), "1024³ against the coalesced naive kernel")


def time_timed(answers: dict[str, Any], asked: Mapping[str, Any]) -> Wanted:
    """The learner's kernel against the coalesced naive one."""
    return want(asked, answer(answers))


def settle_timed(answers: dict[str, Any], measured: Measured, mark: Mark | None) -> Verdict:
    """By the gain over the naive kernel."""
    return by_gain(
        measured,
        mark,
        below="do neighbouring threads read neighbouring elements? x is the column: threadIdx.x belongs in B's and C's",
        half="a larger TILE asks for less; or unroll the inner loop: a TILE that is known when compiling does it",
    )


def check_explanation(answers: dict[str, Any]) -> Verdict:
    """Half for the statements now, half for the ratio when the judge has measured."""
    share, wrong = statements_right(answers.get("explanation"), TRUE)
    ratio = number(answers.get("measured_ratio"))
    decided = not statements_fault(answers.get("explanation"), STATEMENTS)
    possible = decided and ratio is not None and 0 < ratio <= TILE
    lines = (
        statements_line(
            f"statements: {len(STATEMENTS) - len(wrong)} of {len(STATEMENTS)} are right",
            answers.get("explanation"),
            STATEMENTS,
        ),
        "ratio: pending, compared with the judge's measurement on a GPU"
        if possible
        else f"ratio: not between 0 and {TILE}, or there before the statements are decided",
    )
    return Verdict(0.5 * share, lines, pending=0.5 * possible)


def time_explanation(answers: dict[str, Any], asked: Mapping[str, Any]) -> Wanted:
    """The course's own pair: the same measurement for everybody."""
    return want(asked, None)


def settle_explanation(answers: dict[str, Any], measured: Measured, mark: Mark | None) -> Verdict:
    """The learner's ratio against the judge's."""
    return by_nearness(answers.get("measured_ratio"), measured, mark, "ratio")
