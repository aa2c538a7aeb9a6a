"""Practice 7: register tiling, at least 2 × 2 outputs a thread."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer, look_at_kernel, read_cuda
from tilelab.grading.errors import GradingError
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.rules import numbers_of

PUBLIC = ((33, 40, 19),)
#: Elements of C that a thread computes at least, and a size at which edges do not count.
OUTPUTS, LARGE = 4, 4096


def answer(answers: Mapping[str, Any]) -> CudaAnswer:
    """Read the kernel and its launch rule."""
    return read_cuda(answers.get("kernel"), answers.get("launch"))


def tiled_answer(answers: Mapping[str, Any]) -> CudaAnswer:
    """Read the learner's own tiled kernel, which the time is compared with."""
    return read_cuda(answers.get("tiled"), answers.get("tiled_launch"))


def outputs_a_thread(answer: CudaAnswer) -> float:
    """Return how many elements of C there are for each thread of a large launch.

    Raises
    ------
    GradingError
        A launch rule cannot be worked out.
    """
    names = {"M": LARGE, "N": LARGE, "K": LARGE, "TILE": answer.tile}
    threads = math.prod(numbers_of(answer.launch["grid"], names)) * math.prod(numbers_of(answer.launch["block"], names))
    return LARGE * LARGE / max(threads, 1)


def look_at_correct(answers: Mapping[str, Any]) -> Finding:
    """Try the kernel, then count the threads of its launch."""
    found = look_at_kernel(lambda: answer(answers), PUBLIC)
    if not found.ok:
        return found
    outputs = outputs_a_thread(answer(answers))
    if outputs < OUTPUTS:
        return Finding(
            False, f"{found.text}, but the launch has a thread for every {outputs:g} elements of C: at least four"
        )
    return replace(found, text=f"{found.text}; {outputs:g} elements of C a thread")


def look_at_timed(answers: Mapping[str, Any]) -> Finding:
    """Form of the kernel that is compared with."""
    try:
        tiled_answer(answers)
    except GradingError as error:
        return Finding(False, f"tiled: {error}")
    return look_at_correct(answers)


def picture(answers: Mapping[str, Any]) -> object | None:
    """Where the kernel's product is right."""
    from tilelab.grading.pictures import product_picture

    return product_picture(lambda: answer(answers), PUBLIC[-1])


PROBLEM = Problem(
    name="practice_7",
    assignment="practice",
    parts=(
        Part("correct", 6, look_at_correct, ("kernel", "launch")),
        Part("timed", 8, look_at_timed, ("kernel", "launch", "tiled", "tiled_launch")),
    ),
    picture=picture,
)
