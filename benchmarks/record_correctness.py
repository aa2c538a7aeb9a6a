"""Every rung of the ladder on every odd shape, and on some large ones, on a GPU: right, and nothing outside touched.

    python benchmarks/record_correctness.py [--json] [--sides 1,3,16] [--record FILE]

Inputs and outputs stand in memory full of NaN, with NaN on both sides; the reference is float64 on the same device, and
what is allowed is what rounding makes of random inputs (``tilelab.kernels.verify.allowance``). Every fifth shape starts
its arrays 4 bytes past a multiple of 16. The library is held to the same on the large shapes.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch

from tilelab.kernels.ladder import LADDER
from tilelab.kernels.shapes import SIDES, all_shapes
from tilelab.kernels.verify import allowance
from tilelab.measure.compare import library_products
from tilelab.measure.records import conclude, target, where_gpu

DEVICE = "cuda"
GUARD = 1024
NAN = float("nan")
#: Shapes of long sums, and of matrices as large as those that are timed.
LARGE = [(300, 520, 65_536), (17, 8192, 8192), (1024, 1024, 1024), (4095, 4097, 4093), (8192, 8192, 8192)]
Multiply = Callable[[Any, Any, Any, int, int, int], object]


def in_nan(values: torch.Tensor | None, rows: int, columns: int, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix in the middle of NaN, and the buffer that it is a part of."""
    buffer = torch.full((rows * columns + 2 * GUARD,), NAN, device=DEVICE)
    matrix = buffer[GUARD + shift : GUARD + shift + rows * columns].view(rows, columns)
    if values is not None:
        matrix.copy_(values)
    return matrix, buffer


def intact(buffer: torch.Tensor, elements: int, shift: int) -> bool:
    """Whether both sides of a matrix are still NaN."""
    before, after = buffer[: GUARD + shift], buffer[GUARD + shift + elements :]
    return bool(before.isnan().all() & after.isnan().all())


def outcome(
    multiply: Multiply, a: torch.Tensor, b: torch.Tensor, shift: int, exact: torch.Tensor, allowed: torch.Tensor
) -> tuple[float, str]:
    """The largest error of a product as a share of what is allowed, and what is wrong; empty if nothing is."""
    (m, k), n = a.shape, b.shape[1]
    A, _ = in_nan(a, m, k, shift)
    B, _ = in_nan(b, k, n, shift)
    C, around = in_nan(None, m, n, shift)
    multiply(A, B, C, m, n, k)
    share = (C.double() - exact).abs() / allowed
    worst = share.max().item()
    if not bool((share <= 1).all()):
        return worst, f"worst error {worst:.3g} of the bound, {int((~(share <= 1)).sum())} elements wrong"
    if not intact(around, m * n, shift):
        return worst, "wrote outside C"
    return worst, ""


def library() -> dict[str, Multiply]:
    """The library by each way to it, for torch's arrays."""
    import cupy

    def with_cupy(multiply: Multiply) -> Multiply:
        return lambda A, B, C, m, n, k: multiply(*map(cupy.asarray, (A, B, C)), m, n, k)

    return {name: with_cupy(multiply) for name, multiply in library_products().items()}


def check(multiplies: dict[str, Multiply], shapes: list[tuple[int, int, int]], seed: int) -> list[dict[str, Any]]:
    """A row for each: how many products are wrong, the first of them, and the largest error as a share of the bound."""
    generator = torch.Generator(DEVICE).manual_seed(seed)
    failed: dict[str, list[str]] = {name: [] for name in multiplies}
    worst = dict.fromkeys(multiplies, 0.0)
    for number, (m, n, k) in enumerate(shapes):
        a = torch.rand(m, k, device=DEVICE, generator=generator) * 2 - 1
        b = torch.rand(k, n, device=DEVICE, generator=generator) * 2 - 1
        exact = a.double() @ b.double()
        allowed = allowance(a.double(), b.double(), torch, around_zero=True)
        for name, multiply in multiplies.items():
            share, wrong = outcome(multiply, a, b, 1 if number % 5 == 4 else 0, exact, allowed)
            worst[name] = max(worst[name], share)
            if wrong:
                failed[name].append(f"{m}×{n}×{k}: {wrong}")
    return [
        {
            "rung": name,
            "shapes": len(shapes),
            "wrong": len(found),
            "worst share of the bound": worst[name],
            "first": found[0] if found else "",
        }
        for name, found in failed.items()
    ]


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
@click.option("--sides", default=",".join(map(str, SIDES)))
def main(as_json: bool, record: Path | None, sides: str) -> None:
    """Check the ladder and print a row for each rung, and one more for the large shapes."""
    start = time.perf_counter()
    rungs: dict[str, Multiply] = {rung.name: rung for rung in LADDER}
    odd = check(rungs, list(all_shapes([int(side) for side in sides.split(",")])), seed=1)
    large = check({f"{name}, large": one for name, one in (rungs | library()).items()}, LARGE, seed=2)
    targets = [target("wrong products", sum(row["wrong"] for row in (*odd, *large)), 0, "<=")]
    where = where_gpu(
        "uniform in [-1, 1)",
        seconds=time.perf_counter() - start,
        bound="the lesser of γ·Σ|a||b| and 10·u·√K·‖a∘b‖₂",
        large="; ".join("×".join(map(str, shape)) for shape in LARGE),
    )
    conclude([*odd, *large], targets, where, as_json, record)


if __name__ == "__main__":
    main()
