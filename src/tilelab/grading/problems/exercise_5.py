"""Exercise 5: one body of a tiled product for every order, type and padding, with layouts as parameters."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.layout import Layout

FUNCTION = "tiled_block"
ORDERS, KINDS, PADDINGS = ("row", "column"), ("fp32", "fp16", "bf16"), ("plain", "padded")
#: M, N, K of the instant check, and rows, columns and depth of its tiles.
PUBLIC = ((5, 7, 5), (4, 3, 2))
#: Relative size of one rounding in single precision.
ROUNDOFF = 2.0**-24


@dataclass(frozen=True)
class Variant:
    """One of the variants that a body must serve."""

    order: str
    kind: str
    padding: str

    def __str__(self) -> str:
        """Name it as the exercise does."""
        return f"{self.order} × {self.kind} × {self.padding}"


VARIANTS = tuple(Variant(order, kind, padding) for order in ORDERS for kind in KINDS for padding in PADDINGS)


def layouts(variant: Variant, sizes: Sequence[int], tile: Sequence[int]) -> dict[str, Layout]:
    """Return the layouts of A, B, C and of the shared tiles for one variant."""
    (m, n, k), (rows, columns, depth) = sizes, tile
    pad = 1 if variant.padding == "padded" else 0

    def matrix(height: int, width: int) -> Layout:
        strides = (width + pad, 1) if variant.order == "row" else (1, height + pad)
        return Layout((height, width), strides)

    return {
        "A": matrix(m, k),
        "B": matrix(k, n),
        "C": Layout((m, n), (n, 1)),
        "sA": Layout((rows, depth), (depth + pad, 1)),
        "sB": Layout((depth, columns), (columns + pad, 1)),
    }


@dataclass(frozen=True)
class Outcome:
    """How a body did for one variant; ``tiled`` says that it read global memory no more often than a tiled one must."""

    variant: Variant
    right: bool
    tiled: bool
    words: str


@lru_cache(128)
def outcomes(
    source: str, sizes: tuple[int, int, int], tile: tuple[int, int, int], seed: int, variants: tuple[Variant, ...]
) -> tuple[Outcome, ...]:
    """Run a body for several variants and compare each with the exact product.

    Raises
    ------
    GradingError
        It ended the process, or did not end.
    """
    from tilelab.grading.inside.tiled_block import ROUND
    from tilelab.grading.python_answers import run_python

    (m, n, k), draw = sizes, random.Random(seed)
    jobs, products = [], []
    for variant in variants:
        places = layouts(variant, sizes, tile)
        rounded = ROUND[variant.kind]
        a = [[rounded(draw.uniform(-1, 1)) for _ in range(k)] for _ in range(m)]
        b = [[rounded(draw.uniform(-1, 1)) for _ in range(n)] for _ in range(k)]
        values = {"A": _stored(a, places["A"]), "B": _stored(b, places["B"])}
        jobs.append({"layouts": {name: str(it) for name, it in places.items()}, "values": values, "kind": variant.kind})
        products.append((a, b))
    results = run_python("tiled_block", source, {"function": FUNCTION, "variants": jobs})
    if not isinstance(results, list) or len(results) != len(variants):
        raise GradingError("your function disturbed the record of its results")
    return tuple(
        _outcome(variant, result, *factors, sizes, tile)
        for variant, result, factors in zip(variants, results, products, strict=True)
    )


def _stored(matrix: list[list[float]], layout: Layout) -> list[float | None]:
    """Lay a matrix out in a flat buffer; ``None`` where no element lies."""
    buffer: list[float | None] = [None] * layout.cosize
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            buffer[layout(i, j)] = value
    return buffer


def _outcome(
    variant: Variant,
    result: Any,
    a: list[list[float]],
    b: list[list[float]],
    sizes: Sequence[int],
    tile: Sequence[int],
) -> Outcome:
    if not isinstance(result, dict) or "error" in result:
        said = result.get("error") if isinstance(result, dict) else "no result"
        return Outcome(variant, False, False, f"{said}")
    (m, n, k), (rows, columns, _) = sizes, tile
    c = result.get("C")
    if not isinstance(c, list) or len(c) != m * n:
        return Outcome(variant, False, False, "C is not there")
    for i in range(m):
        for j in range(n):
            exact = sum(a[i][p] * b[p][j] for p in range(k))
            room = k * ROUNDOFF * sum(abs(a[i][p] * b[p][j]) for p in range(k)) + 1e-30
            got = c[i * n + j]
            if not isinstance(got, int | float) or not abs(got - exact) <= room:
                why = ": poison was read, or nothing was written" if got is None else ""
                return Outcome(variant, False, False, f"C({i},{j}) is not the product's element{why}")
    reads = result.get("reads")
    reads = reads if isinstance(reads, dict) else {}
    most = {"A": m * k * -(-n // columns), "B": k * n * -(-m // rows)}
    for name, limit in most.items():
        if not isinstance(reads.get(name), int) or reads[name] > limit:
            words = (
                f"right, but {name} was read {reads.get(name)} times; with tiles in shared memory {limit} are enough"
            )
            return Outcome(variant, True, False, words)
    return Outcome(variant, True, True, "right")


def look_at_executable(answers: Mapping[str, Any]) -> Finding:
    """Run all variants for the public sizes, and name the first that fails."""
    from tilelab.grading.python_answers import read_python

    try:
        source = read_python(answers["body"], FUNCTION)
        found = outcomes(source, *PUBLIC, seed=0, variants=VARIANTS)
    except GradingError as error:
        return Finding(False, str(error))
    failed = [outcome for outcome in found if not outcome.tiled]
    if not failed:
        return Finding(True, f"right for all {len(VARIANTS)} variants, at M, N, K = {PUBLIC[0]} with tiles {PUBLIC[1]}")
    fine = len(found) - len(failed)
    return Finding(False, f"{fine} of {len(found)} variants are right. {failed[0].variant}: {failed[0].words}")


def picture(answers: Mapping[str, Any]) -> object | None:
    """Which variants the body serves."""
    from tilelab.grading.pictures import verdict_picture
    from tilelab.grading.python_answers import read_python

    try:
        found = outcomes(read_python(answers.get("body"), FUNCTION), *PUBLIC, seed=0, variants=VARIANTS)
    except GradingError:
        return None
    fine = {outcome.variant: outcome.tiled for outcome in found}
    columns = [f"{kind} {padding}" for kind in KINDS for padding in PADDINGS]
    rows = [[fine[Variant(order, *column.split())] for column in columns] for order in ORDERS]
    return verdict_picture(rows, "variants that your body serves", list(ORDERS), columns)


PROBLEM = Problem(
    name="exercise_5",
    assignment="exercises",
    parts=(Part("executable", 5, look_at_executable, ("body",)), Part.text("text", 5)),
    picture=picture,
)
