"""compute-sanitizer on every rung, clean, and on wrong versions of the tiled kernel, caught.

    python benchmarks/record_sanitizer.py [--json] [--record FILE]

Each tool runs over all rungs in one process, and over each wrong version in a process of its own.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click

from tilelab.cudacpp.kernel import Kernel
from tilelab.kernels.ladder import LADDER, LARGE, SMALL, rung
from tilelab.measure.records import conclude, target, where_gpu

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
SHAPES = [(35, 33, 17), (129, 132, 40), (17, 100, 79)]
#: Name -> (what stands in the tiled kernel, what stands there instead, the tool that sees it).
WRONG = {
    "no first barrier": ("__syncthreads();  // the tiles are complete", "", "racecheck"),
    "no second barrier": ("__syncthreads();  // nobody reads them any more", "", "racecheck"),
    "no guard on rows of A": ("row < M && start + tx < K ?", "start + tx < K ?", "memcheck"),
    "no guard on the output": ("if (row < M && column < N) C", "C", "memcheck"),
    "guarded barrier": (
        "__syncthreads();  // the tiles are complete",
        "if (tx < 5) __syncthreads(); else if (ty < 3) return;",
        "synccheck",
    ),
}


def run_kernels(which: str) -> None:
    """In a process under the sanitizer: one wrong version, or every rung."""
    import cupy

    cupy.cuda.set_allocator(None)  # every array its own allocation, so that the tool sees where it ends
    if which == "all":
        kernels = [one.kernel for one in LADDER[:-1]] + [LARGE.kernel, SMALL.kernel]
    else:
        old, new, _ = WRONG[which]
        tiled = rung("tiled_16")
        kernels = [Kernel(tiled.source.replace(old, new), "matmul", tiled.grid, tiled.block, defines=tiled.defines)]
    for M, N, K in SHAPES:
        A = cupy.asarray(cupy.random.random((M, K)), dtype=cupy.float32)
        B = cupy.asarray(cupy.random.random((K, N)), dtype=cupy.float32)
        for kernel in kernels:
            C = cupy.empty((M, N), cupy.float32)
            kernel(A, B, C, M, N, K)
            cupy.cuda.runtime.deviceSynchronize()


def sanitized(tool: str, which: str) -> tuple[int, str]:
    """Errors that a tool counts, and its first complaint about one of our kernels."""
    argv = [
        shutil.which("compute-sanitizer") or "compute-sanitizer",
        "--tool",
        tool,
        "--kernel-name",
        "kernel_substring=matmul",
    ]
    done = subprocess.run(
        [*argv, sys.executable, __file__, "--worker", which], capture_output=True, text=True, timeout=280
    )
    text = done.stdout + done.stderr
    counts = re.findall(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+)", text)
    first = re.search(r"={9} (?:Error: |Invalid |Barrier error|Divergent|Uninitialized|Potential|Race).*", text)
    return int(counts[-1]) if counts else -1, first[0].strip("= ") if first else "" if counts else text.strip()[-300:]


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
@click.option("--worker", default="", hidden=True)
def main(as_json: bool, record: Path | None, worker: str) -> None:
    """Run the tools and print what they count."""
    if worker:
        run_kernels(worker)
        return
    rows = []
    for tool in TOOLS:
        errors, first = sanitized(tool, "all")
        rows.append({"kernel": "every rung", "tool": tool, "errors": errors, "first": first})
    for name, (_, _, tool) in WRONG.items():
        errors, first = sanitized(tool, name)
        rows.append({"kernel": name, "tool": tool, "errors": errors, "first": first})
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
