"""Practice 4: a tiled matrix product that is right for every M, N and K."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer, look_at_kernel, read_cuda
from tilelab.grading.problems import Finding, Part, Problem

#: Shapes that the instant check tries: only K does not divide, then nothing does.
PUBLIC = ((16, 16, 1000), (17, 35, 19))


def answer(answers: Mapping[str, Any]) -> CudaAnswer:
    """Read the kernel and its launch rule."""
    return read_cuda(answers.get("kernel"), answers.get("launch"))


def look_at_edges(answers: Mapping[str, Any]) -> Finding:
    """Try the kernel for the public shapes."""
    return look_at_kernel(lambda: answer(answers), PUBLIC)


def picture(answers: Mapping[str, Any]) -> object | None:
    """Where the kernel's product is right, for the shape in which nothing divides."""
    from tilelab.grading.pictures import product_picture

    return product_picture(lambda: answer(answers), PUBLIC[-1])


PROBLEM = Problem(
    name="practice_4",
    assignment="practice",
    parts=(Part("edges", 8, look_at_edges, ("kernel", "launch")),),
    picture=picture,
)
