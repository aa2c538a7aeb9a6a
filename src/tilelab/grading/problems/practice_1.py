"""Practice 1: the tiled matrix product against the naive one: predicted, written, measured, explained."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer, look_at_kernel, read_cuda
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.sharing import NOTHING_SHARED, shares_a_tile
from tilelab.grading.values import number, statements_fault

TILE = 16
STATEMENTS = ("a", "b", "c", "d")
PUBLIC = ((32, 48, 40), (17, 19, 35))
NO_TILE = f"the kernel {NOTHING_SHARED}: it is not the tiled one"


def answer(answers: Mapping[str, Any]) -> CudaAnswer:
    """Read the kernel and its launch rule."""
    return read_cuda(answers.get("kernel"), answers.get("launch"))


def look_at_prediction(answers: Mapping[str, Any]) -> Finding:
    """Form, and whether the time ratio is one that the learner's own traffic ratio allows."""
    traffic, time = number(answers["traffic_ratio"]), number(answers["time_ratio"])
    if traffic is None or time is None:
        return Finding(False, "both ratios are numbers, and they are not both there yet")
    if traffic > 1e6:
        return Finding(False, f"{traffic:g} times fewer: a tiled kernel still asks for every element once at least")
    if traffic < 1 or not time >= 1:
        return Finding(False, "a ratio below 1 would mean that tiling makes it worse")
    if time > traffic:
        return Finding(False, f"by your own numbers, {traffic:g} times fewer requests make it {time:g} times faster?")
    return Finding.undecided("written down; you will see")


def look_at_kernel_of(answers: Mapping[str, Any]) -> Finding:
    """Try the kernel for the public shapes."""
    found = look_at_kernel(lambda: answer(answers), PUBLIC)
    if found.ok and found.decided and not shares_a_tile(answer(answers), PUBLIC[0]):
        return Finding(False, f"{found.text}, but {NO_TILE}")
    return found


def look_at_explanation(answers: Mapping[str, Any]) -> Finding:
    """Form alone."""
    if fault := statements_fault(answers["explanation"], STATEMENTS):
        return Finding(False, fault)
    ratio = number(answers["measured_ratio"])
    if ratio is None or ratio <= 0:
        return Finding(False, "measured_ratio is a number above 0: naive time divided by tiled time")
    return Finding.undecided("all decided")


def picture(answers: Mapping[str, Any]) -> object | None:
    """Where the kernel's product is right."""
    from tilelab.grading.pictures import product_picture

    return product_picture(lambda: answer(answers), PUBLIC[-1])


PROBLEM = Problem(
    name="practice_1",
    assignment="practice",
    parts=(
        Part("prediction", 1, look_at_prediction, ("traffic_ratio", "time_ratio")),
        Part("correct", 4, look_at_kernel_of, ("kernel", "launch")),
        Part("timed", 3, look_at_kernel_of, ("kernel", "launch")),
        Part("explanation", 2, look_at_explanation, ("explanation", "measured_ratio")),
    ),
    picture=picture,
)
