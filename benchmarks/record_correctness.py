"""Every rung of the ladder on every odd shape, on a GPU: right, and nothing outside its arrays touched.

    python benchmarks/record_correctness.py [--json] [--sides 1,3,16]

Inputs and outputs stand in memory full of NaN, with NaN on both sides; the reference is float64 on the same device.
Every fifth shape starts its arrays 4 bytes past a multiple of 16.
"""

import time
from pathlib import Path
from typing import Any

import click
import torch

from tilelab.kernels.ladder import LADDER, Rung
from tilelab.kernels.shapes import SIDES, all_shapes
from tilelab.kernels.verify import allowance
from tilelab.measure.records import conclude, target, where_gpu

GUARD = 1024
NAN = float("nan")


def in_nan(values: torch.Tensor | None, rows: int, columns: int, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix in the middle of NaN, and the buffer that it is a part of."""
    buffer = torch.full((rows * columns + 2 * GUARD,), NAN, device="cuda")
    matrix = buffer[GUARD + shift : GUARD + shift + rows * columns].view(rows, columns)
    if values is not None:
        matrix.copy_(values)
    return matrix, buffer


def intact(buffer: torch.Tensor, elements: int, shift: int) -> bool:
    """Whether both sides of a matrix are still NaN."""
    before, after = buffer[: GUARD + shift], buffer[GUARD + shift + elements :]
    return bool(before.isnan().all() & after.isnan().all())


def trouble(
    rung: Rung, a: torch.Tensor, b: torch.Tensor, shift: int, exact: torch.Tensor, allowed: torch.Tensor
) -> str:
    """What is wrong with one product; empty if nothing is."""
    (m, k), n = a.shape, b.shape[1]
    A, _ = in_nan(a, m, k, shift)
    B, _ = in_nan(b, k, n, shift)
    C, around = in_nan(None, m, n, shift)
    rung(A, B, C, m, n, k)
    share = (C.double() - exact).abs() / allowed
    if not bool((share <= 1).all()):
        return f"worst error {share.max().item():.3g} of the bound, {int((~(share <= 1)).sum())} elements wrong"
    if not intact(around, m * n, shift):
        return "wrote outside C"
    return ""


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
@click.option("--sides", default=",".join(map(str, SIDES)))
def main(as_json: bool, record: Path | None, sides: str) -> None:
    """Check the ladder and print a row for each rung."""
    generator = torch.Generator("cuda").manual_seed(1)
    shapes = list(all_shapes([int(side) for side in sides.split(",")]))
    failed: dict[str, list[str]] = {rung.name: [] for rung in LADDER}
    start = time.perf_counter()
    for number, (m, n, k) in enumerate(shapes):
        a = torch.rand(m, k, device="cuda", generator=generator) * 2 - 1
        b = torch.rand(k, n, device="cuda", generator=generator) * 2 - 1
        exact = a.double() @ b.double()
        allowed = allowance(a.double(), b.double(), torch, around_zero=True)
        for rung in LADDER:
            wrong = trouble(rung, a, b, 1 if number % 5 == 4 else 0, exact, allowed)
            if wrong:
                failed[rung.name].append(f"{m}×{n}×{k}: {wrong}")
    rows: list[dict[str, Any]] = [
        {"rung": name, "shapes": len(shapes), "wrong": len(found), "first": found[0] if found else ""}
        for name, found in failed.items()
    ]
    targets = [target("wrong products", sum(map(len, failed.values())), 0, "<=")]
    where = where_gpu("uniform in [-1, 1)", seconds=time.perf_counter() - start)
    conclude(rows, targets, where, as_json, record)


if __name__ == "__main__":
    main()
