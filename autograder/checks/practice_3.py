"""Trusted checks of practice 3: the missing barrier. What counts is what can race, not what came out."""

from typing import Any

from tilelab.grading.cuda_answers import judge_kernel
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_3 import NO_TILE, SIZES, answer, line_of, pairs
from tilelab.grading.sharing import shares_a_tile
from tilelab.grading.values import statements_line, statements_right

READS = line_of("acc +=")
RACES = {frozenset({READS, line_of("shA[ti, tj] =")}), frozenset({READS, line_of("shB[ti, tj] =")})}
#: One K step alone, exactly two, and many, with every edge.
SHAPES = ((16, 16, 16), (16, 16, 32), (17, 19, 40), (33, 7, 100))


def check_prediction(answers: dict[str, Any]) -> Verdict:
    """One K step of 16 cannot race, two can; guessing earns nothing."""
    share, wrong = statements_right(answers.get("always_right"), {size: int(size) <= 16 for size in SIZES})
    hint = "" if share == 1 else ". Count the K steps: what does the second one overwrite?"
    line = f"prediction: {len(SIZES) - len(wrong)} of {len(SIZES)} sizes are decided rightly{hint}"
    return Verdict(share, (statements_line(line, answers.get("always_right"), SIZES),))


def check_lines(answers: dict[str, Any]) -> Verdict:
    """Half for each of the two pairs; a pair that does not race takes half away."""
    found = pairs(answers.get("racing"))
    if isinstance(found, str):
        return Verdict(0.0, (f"lines: {found}",))
    if not found:
        return Verdict(0.0, ("lines: not answered",))
    right, wrong = len(found & RACES), len(found - RACES)
    line = f"lines: {right} of the {len(RACES)} racing pairs are named, and {wrong} that do not race"
    hint = ("where to look: which line reads both tiles, and which lines write them in the next K step?",)
    share = max(right - wrong, 0) / len(RACES)
    return Verdict(share, (line, *(hint if share < 1 else ())))


def check_mended(answers: dict[str, Any]) -> Verdict:
    """Right and free of races for every shape, or nothing: a barrier is there or it is not; half for another kernel."""
    found = judge_kernel(lambda: answer(answers), SHAPES)
    if found.share == 1 and found.answer is not None and not shares_a_tile(found.answer, SHAPES[0]):
        return Verdict(0.5, (*found.lines, NO_TILE))
    return Verdict(float(found.share == 1), found.lines)
