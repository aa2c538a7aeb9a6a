"""compute-sanitizer on every rung, clean, and on wrong versions of the tiled kernel, caught.

    python benchmarks/record_sanitizer.py [--json] [--record FILE]

Each tool runs over all rungs in one process, and over each wrong version in a process of its own.
"""

import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from tilelab.cudacpp.kernel import Kernel
from tilelab.kernels.ladder import LADDER, LARGE, NARROW, WIDE, rung
from tilelab.measure.records import conclude, target, where_gpu

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
SHAPES = [(35, 33, 17), (129, 132, 40)]
SECONDS = 40
#: Name -> (what stands in the tiled kernel, what stands there instead, the tool that sees it).
WRONG = {
    "no first barrier": ("__syncthreads();  // the tiles are complete", "", "racecheck"),
    "no second barrier": ("__syncthreads();  // nobody reads them any more", "", "racecheck"),
    "no guard on rows of A": ("row < M && start + tx < K ?", "start + tx < K ?", "memcheck"),
    "no guard on the output": ("if (row < M && column < N) C", "C", "memcheck"),
    "guarded barrier": (
        "__syncthreads();  // the tiles are complete",
        "if (tx < 5) __syncthreads();",
        "synccheck",
    ),
}


def run_kernels(which: str) -> None:
    """In a process under the sanitizer: one wrong version, or every rung."""
    import cupy
    import numpy

    cupy.cuda.set_allocator(None)  # every array its own allocation, so that the tool sees where it ends
    if which == "all":
        kernels = [one.kernel for one in LADDER[:-1]] + [tile.kernel for tile in (LARGE, WIDE, NARROW)]
    else:
        old, new, _ = WRONG[which]
        tiled = rung("tiled_16")
        kernels = [Kernel(tiled.source.replace(old, new), "matmul", tiled.grid, tiled.block, defines=tiled.defines)]
    draw = numpy.random.default_rng(0)
    for M, N, K in SHAPES:
        A = cupy.asarray(draw.random((M, K), dtype=numpy.float32))
        B = cupy.asarray(draw.random((K, N), dtype=numpy.float32))
        for kernel in kernels:
            C = cupy.empty((M, N), cupy.float32)
            kernel(A, B, C, M, N, K)
            cupy.cuda.runtime.deviceSynchronize()


def sanitized(tool: str, which: str) -> dict[str, Any]:
    """A row: the errors that a tool counts, -1 if it did not finish, and its first complaint."""
    argv = [shutil.which("compute-sanitizer") or "compute-sanitizer", "--tool", tool]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [*argv, sys.executable, __file__, "--worker", which], capture_output=True, text=True, timeout=SECONDS
        )
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode(errors="replace") + "\ntimed out"
    counts = re.findall(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+)", text)
    complaints = [
        line.strip("= ") for line in text.splitlines() if line.startswith("=========") and "COMPUTE" not in line
    ]
    row = {
        "kernel": "every rung" if which == "all" else which,
        "tool": tool,
        "errors": int(counts[-1]) if counts else -1,
        "seconds": time.perf_counter() - start,
        "first": next(iter(complaints), "") if counts else text.strip()[-200:],
    }
    print(row, file=sys.stderr)
    return row


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
@click.option("--worker", default="", hidden=True)
def main(as_json: bool, record: Path | None, worker: str) -> None:
    """Run the tools and print what they count."""
    if worker:
        run_kernels(worker)
        return
    work = [(tool, "all") for tool in TOOLS] + [(tool, name) for name, (_, _, tool) in WRONG.items()]
    with ThreadPoolExecutor(5) as pool:
        rows = list(pool.map(lambda one: sanitized(*one), work))
    targets = [
        target(
            "complaints about the rungs",
            sum(abs(row["errors"]) for row in rows if row["kernel"] == "every rung"),
            0,
            "<=",
        ),
        target(
            "wrong versions caught", sum(row["errors"] > 0 for row in rows if row["kernel"] in WRONG), len(WRONG), ">="
        ),
    ]
    where = where_gpu("uniform in [0, 1)")
    conclude(rows, targets, where, as_json, record)


if __name__ == "__main__":
    main()
