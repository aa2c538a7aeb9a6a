"""Practice 5: the tiled matrix product with dynamic shared memory, one binary for several tiles."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer, Shape, look_at_kernel, read_cuda
from tilelab.grading.errors import GradingError
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.rules import number_of
from tilelab.grading.sharing import NOTHING_SHARED, right_with, shares_a_tile

#: Tile and shape that the instant check tries.
PUBLIC = ((8, (17, 9, 20)), (16, (17, 35, 40)))
#: Elements that a padded row may be longer.
PADDING = 4
STATIC = (
    "it is right with half of the dynamic shared memory too: the two tiles are not both in the extern __shared__ array"
)


def answer(answers: Mapping[str, Any], tile: int) -> CudaAnswer:
    """Read the kernel and its launch rule, for one of the judge's tiles."""
    return read_cuda(answers.get("kernel"), answers.get("launch"), tile, tile_argument=True)


def look_at_correct(answers: Mapping[str, Any]) -> Finding:
    """Try the kernel with two tiles."""
    told = []
    for tile, shape in PUBLIC:
        found = look_at_kernel(partial(answer, answers, tile), [shape])
        if not (found.ok and found.decided):
            return found
        told.append(f"TILE = {tile}: {found.text}")
    tile, shape = PUBLIC[0]
    if missing := not_dynamic(answer(answers, tile), shape):
        return Finding(False, missing)
    return Finding(True, "; ".join(told))


def not_dynamic(answer: CudaAnswer, shape: Shape) -> str:
    """Say why a kernel that is right has not got its two tiles in dynamic shared memory, or ``""``."""
    if right_with(answer, shape, answer.tile * answer.tile * 4):
        return STATIC
    return "" if shares_a_tile(answer, shape) else f"it is right, but {NOTHING_SHARED}"


def bytes_asked(launch: object, tile: int) -> int:
    """Return the shared bytes that a launch rule asks for.

    Raises
    ------
    GradingError
        There is no such rule.
    """
    if not isinstance(launch, Mapping) or launch.get("shared") is None:
        raise GradingError("the launch rule has no shared bytes yet")
    return number_of(launch["shared"], {"TILE": tile})


def fits(asked: int, tile: int) -> bool:
    """Whether so many bytes hold two tiles, padded at most, and nothing else."""
    return 2 * tile * tile * 4 <= asked <= 2 * tile * (tile + PADDING) * 4


def look_at_byte_rule(answers: Mapping[str, Any]) -> Finding:
    """Say which direction the rule is off, for one tile."""
    try:
        asked = {tile: bytes_asked(answers["launch"], tile) for tile in (8, 20)}
    except GradingError as error:
        return Finding(False, str(error))
    for tile, found in asked.items():
        if not fits(found, tile):
            much = (
                "fewer bytes than two tiles of" if found < 2 * tile * tile * 4 else "far more bytes than two tiles of"
            )
            return Finding(False, f"for TILE = {tile} your rule gives {found}: {much} {tile} × {tile} floats take")
    return Finding(True, "it holds two tiles for every TILE that was tried")


def picture(answers: Mapping[str, Any]) -> object | None:
    """Where the product is right, with each of the two tiles."""
    from tilelab.draw.picture import side_by_side
    from tilelab.grading.pictures import product_picture

    drawn = [product_picture(partial(answer, answers, tile), shape) for tile, shape in PUBLIC]
    pictures = [one for one in drawn if one is not None]
    return side_by_side(pictures, "the same kernel with two tiles") if pictures else None


PROBLEM = Problem(
    name="practice_5",
    assignment="practice",
    parts=(
        Part("correct", 5, look_at_correct, ("kernel", "launch")),
        Part("byte_rule", 3, look_at_byte_rule, ("launch",)),
    ),
    picture=picture,
)
