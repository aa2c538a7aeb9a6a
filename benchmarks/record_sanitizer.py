"""compute-sanitizer on every rung, clean, and on wrong versions of the tiled kernel, caught.

    python benchmarks/record_sanitizer.py [--json] [--record FILE]

Each tool runs over all rungs in one process, and over each wrong version in a process of its own. The last rung's
three tiles come first, and each kernel's launches are counted: a process that ends early counts as a complaint.
"""

import json
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
from tilelab.kernels.verify import check_product
from tilelab.measure.records import conclude, target, where_gpu

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
SHAPES = [(35, 33, 17), (129, 132, 40)]
SECONDS = 40
#: What a worker that came to its end prints before its count of launches.
LAUNCHED = "launched: "
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


def kernels_of(which: str, N: int) -> dict[str, Kernel]:
    """One wrong version, or every rung and tile that can multiply to N columns."""
    if which != "all":
        old, new, _ = WRONG[which]
        tiled = rung("tiled_16")
        return {which: Kernel(tiled.source.replace(old, new), "matmul", tiled.grid, tiled.block, defines=tiled.defines)}
    tiles = {"large": LARGE, "wide": WIDE, "narrow": NARROW}
    found = {f"warp_tiled, {name} tile": tile.kernel for name, tile in tiles.items() if N % tile.vector == 0}
    return found | {one.name: one.kernel for one in LADDER[:-1]}


def run_kernels(which: str) -> None:
    """In a process under the sanitizer: launch, check the products of the rungs, and print how often each ran."""
    import cupy
    import numpy

    cupy.cuda.set_allocator(None)  # every array its own allocation, so that the tool sees where it ends
    draw = numpy.random.default_rng(0)
    launches: dict[str, int] = {}
    for M, N, K in SHAPES:
        a, b = draw.random((M, K), dtype=numpy.float32), draw.random((K, N), dtype=numpy.float32)
        A, B = cupy.asarray(a), cupy.asarray(b)
        for name, kernel in kernels_of(which, N).items():
            C = cupy.empty((M, N), cupy.float32)
            kernel(A, B, C, M, N, K)
            cupy.cuda.runtime.deviceSynchronize()
            if which == "all" and not (verdict := check_product(C.get(), a, b)):
                raise SystemExit(f"{name}: {verdict.message}")
            launches[name] = launches.get(name, 0) + 1
    print(LAUNCHED + json.dumps(launches))


def sanitized(tool: str, which: str) -> dict[str, Any]:
    """A row: the errors that a tool counts, -1 if it did not finish, its first complaint, and the launches it saw."""
    argv = [shutil.which("compute-sanitizer") or "compute-sanitizer", "--tool", tool]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [*argv, sys.executable, __file__, "--worker", which], capture_output=True, text=True, timeout=SECONDS
        )
        text, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        code = -1
        text = (error.stdout or b"").decode(errors="replace") + "\ntimed out"
    counts = re.findall(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+)", text)
    complaints = [
        line.strip("= ")
        for line in text.splitlines()
        if line.startswith("=========") and not re.search("COMPUTE|SUMMARY", line)
    ]
    ended = re.search(rf"^{LAUNCHED}(.*)$", text, re.M)
    launches: dict[str, int] = json.loads(ended[1]) if ended else {}
    errors = int(counts[-1]) if counts else -1
    if which == "all" and errors == 0 and (code or not launches):
        errors = -1  # nothing was found, for the process ended before everything ran
    row = {
        "kernel": "every rung" if which == "all" else which,
        "tool": tool,
        "errors": errors,
        "launches": launches,
        "seconds": time.perf_counter() - start,
        "first": next(iter(complaints), "") if errors >= 0 else text.strip()[-200:],
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
    rungs = [row for row in rows if row["kernel"] == "every rung"]
    expected = sorted({name for _, N, _ in SHAPES for name in kernels_of("all", N)})
    targets = [
        target(
            "launches of each rung and tile under each tool, at least",
            min(row["launches"].get(name, 0) for row in rungs for name in expected),
            1,
            ">=",
        ),
        target(
            "complaints about the rungs",
            sum(abs(row["errors"]) for row in rungs),
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
