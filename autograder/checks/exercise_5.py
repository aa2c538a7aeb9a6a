"""Trusted checks of exercise 5: twelve variants, two sizes of the judge's own. The paragraph is read by a person."""

from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.exercise_5 import FUNCTION, VARIANTS, outcomes
from tilelab.grading.python_answers import read_python

#: M, N, K and the tiles: one that divides nothing and has three K tiles, one that divides everything.
TRIED = (((7, 8, 5), (3, 5, 2)), ((4, 6, 8), (2, 3, 4)))


def check_executable(answers: dict[str, Any]) -> Verdict:
    """By variant; half of a variant where it is right but reads global memory as if there were no tiles."""
    try:
        source = read_python(answers.get("body"), FUNCTION)
        tried = [outcomes(source, sizes, tile, seed=5 + len(sizes), variants=VARIANTS) for sizes, tile in TRIED]
    except GradingError as error:
        return Verdict(0.0, (f"executable: {error}",))
    share, faults = 0.0, []
    for variant, *both in zip(VARIANTS, *tried, strict=True):
        right, tiled = all(found.right for found in both), all(found.tiled for found in both)
        share += (0.5 * right + 0.5 * tiled) / len(VARIANTS)
        if not tiled:
            faults.append((variant, next(found.words for found in both if not found.tiled)))
    if not faults:
        return Verdict(1.0, (f"executable: right and tiled for all {len(VARIANTS)} variants",))
    lines = [f"executable: {len(VARIANTS) - len(faults)} of {len(VARIANTS)} variants are right and tiled"]
    for words in dict.fromkeys(words for _, words in faults[:8]):
        alike = [str(variant) for variant, said in faults if said == words]
        lines.append(f"{'all of them' if len(alike) == len(VARIANTS) else ', '.join(alike)}: {words}")
    return Verdict(share, tuple(lines[:5]))
