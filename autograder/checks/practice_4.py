"""Trusted checks of practice 4: shapes that no tile divides, poisoned surroundings."""

from typing import Any

from tilelab.grading.cuda_answers import judge_kernel, try_all
from tilelab.grading.judge import Verdict
from tilelab.grading.problems.practice_4 import answer

#: In the first one A and in the last one B has more elements than a short can count.
#: No tile of 8, 16 or 32 divides all three; there are at least two K tiles of 16 in most.
EDGES = ((48, 32, 1000), (33, 17, 19), (1, 1, 1), (35, 79, 129), (15, 16, 17), (100, 3, 45), (16, 33, 40), (2, 65, 510))
HINT = "what is loaded for the last tile of K, and which elements of C the last row and column of blocks store"
WHOLE = (32, 64, 96)


def check_edges(answers: dict[str, Any]) -> Verdict:
    """By shape; a kernel that breaks where everything divides keeps half."""
    found = judge_kernel(lambda: answer(answers), EDGES).hinted(HINT)
    if found.answer is not None and found.share:
        (whole,) = try_all(found.answer, [WHOLE])
        if not whole.ok:
            found = found.lowered(0.5, f"and where everything divides, {whole.name}: {whole.words}")
    return Verdict(found.share, tuple(f"edges: {line}" for line in found.lines[:1]) + found.lines[1:])
