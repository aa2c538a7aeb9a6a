"""Emulation on the CPU: how long builds and runs take here.

python benchmarks/emulator.py [--json]
"""

import os
import tempfile
import time
from collections.abc import Callable
from statistics import median

import click
import numpy as np

from tilelab.kernels.ladder import LADDER
from tilelab.kernels.verify import check_product
from tilelab.measure.records import conclude, target


def seconds(work: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--side", default=128)
def main(as_json: bool, side: int) -> None:
    """Build every rung cold and cached, and run the tiled product."""
    A, B = (np.random.default_rng(seed).uniform(-1, 1, (side, side)).astype(np.float32) for seed in (0, 1))
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TILELAB_CACHE"] = cache
        for one in LADDER:
            C = np.full((side, side), np.nan, np.float32)
            kernel = one.kernel_for(side, side, side)
            cold = seconds(kernel.build)
            rows.append(
                {
                    "kernel": one.name,
                    "cold build s": cold,
                    "cached build s": median(seconds(kernel.build) for _ in range(5)),
                    f"run {side}³ s": median(
                        seconds(lambda one=one, C=C: one(A, B, C, side, side, side)) for _ in range(3)
                    ),
                    "checked build s": seconds(lambda kernel=kernel: kernel.build(checked=True)),
                    f"checked run {side}³ s": seconds(
                        lambda kernel=kernel, C=C: kernel.check(A, B, C, side, side, side)
                    ),
                    "right": bool(check_product(C, A, B)),
                }
            )
    tiled = next(row for row in rows if row["kernel"] == "tiled_16")
    targets = [
        target(
            "slowest cold build, s (the first builds the emulator too)",
            max(row["cold build s"] for row in rows),
            3.0,
            "<=",
        ),
        target("slowest cached build, s", max(row["cached build s"] for row in rows), 0.05, "<="),
        target(f"tiled product at {side}³, s", tiled[f"run {side}³ s"], 1.0, "<="),
        target("wrong products", sum(not row["right"] for row in rows), 0, "<="),
    ]
    conclude(rows, targets, {"cpus": os.cpu_count() or 0, "load": os.getloadavg()[0]}, as_json)


if __name__ == "__main__":
    main()
