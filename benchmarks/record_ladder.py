"""The ladder of fp32 products beside cuBLAS, on a GPU.

    python benchmarks/record_ladder.py [--json] [--sides 1024,2048] [--record benchmarks/records/ladder_h200.json]

Every product is checked, inputs are fresh every round, the L2 is cleared before each timing, candidates take turns.
Where Nsight Compute is installed, each kernel then runs once more under it, on caches that were flushed: that gives the
DRAM traffic, and what bounds the kernel.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from tilelab.cudacpp import device
from tilelab.kernels.ladder import LADDER, LARGE, NARROW, WIDE
from tilelab.measure import gpu, profiler
from tilelab.measure.compare import DISTRIBUTION, LIBRARY, Problem, compare, library_products
from tilelab.measure.records import conclude, target, where_gpu
from tilelab.measure.rounds import Rule

SHAPES = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4095, 4097, 4093)]
#: Share of cuBLAS that the last rung has to reach.
BOUNDS = {(2048, 2048, 2048): 0.85, (4096, 4096, 4096): 0.9, (8192, 8192, 8192): 0.9, (4095, 4097, 4093): 0.8}


def build_all() -> dict[str, dict[str, float]]:
    """Build every kernel of the ladder: seconds, and what each takes."""
    kernels = {one.name: one.kernel for one in LADDER}
    kernels |= {"warp_tiled, wide tile": WIDE.kernel, "warp_tiled, narrow tile": NARROW.kernel}
    builds = {}
    for name, kernel in kernels.items():
        start = time.perf_counter()
        loaded = device.load(kernel)
        builds[name] = {
            "seconds": time.perf_counter() - start,
            "registers": loaded.registers,
            "static_shared": loaded.static_shared,
        }
    return builds


def run_once(shapes: list[tuple[int, int, int]]) -> None:
    """In a process under the profiler: every rung, then the library, on each shape; their second launch is profiled."""
    runtime = gpu.require_gpu().cuda.runtime
    products = {one.name: one for one in LADDER} | {LIBRARY[1]: library_products()[LIBRARY[1]]}
    for shape in shapes:
        problem = Problem(shape, sets=1, seed=0)
        for product in products.values():
            product(*problem.sets[0], *shape)
            runtime.deviceSynchronize()
            runtime.profilerStart()
            product(*problem.sets[0], *shape)
            runtime.deviceSynchronize()
            runtime.profilerStop()


def add_profiles(rows: list[dict[str, Any]], shapes: list[tuple[int, int, int]], seconds: float) -> dict[str, Any]:
    """Give rows what the profiler saw; returns what is to be said of it.

    Raises
    ------
    RuntimeError
        The profiler saw nothing, or other launches than those that were made; no row has changed.
    """
    start = time.perf_counter()
    argv = [sys.executable, __file__, "--under-profiler", ",".join("x".join(map(str, shape)) for shape in shapes)]
    left = profiler.profile(argv, seconds)
    found: dict[tuple[str, int, int, int], dict[str, Any]] = {}
    for M, N, K in shapes:
        for one in LADDER:
            name = left[0].kernel if left else "nothing"
            if name != "matmul":
                raise RuntimeError(f"{one.name} at {M}×{N}×{K} shows as {name}")
            found[one.name, M, N, K] = left.pop(0).as_dict()
        # The library may split its work: the longest launch counts.
        own = []
        while left and left[0].kernel != "matmul":
            own.append(left.pop(0))
        if not own:
            raise RuntimeError(f"the library at {M}×{N}×{K} shows no launch")
        longest = max(own, key=lambda seen: seen.values["seconds"])
        found[LIBRARY[1], M, N, K] = longest.as_dict() | {"launches": [seen.kernel for seen in own]}
    for row in rows:
        row.update(found.get((row["kernel"], row["M"], row["N"], row["K"]), {}))
    return {"caches": "flushed before each launch", "seconds": time.perf_counter() - start}


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--sides", default="", help="only these cubes, such as 1024,2048")
@click.option("--record", type=click.Path(path_type=Path), help="also write a recorded run there")
@click.option("--profiler-seconds", default=300.0, show_default=True, help="how long the profiler may take")
@click.option("--under-profiler", default="", hidden=True)
def main(as_json: bool, sides: str, record: Path | None, profiler_seconds: float, under_profiler: str) -> None:
    """Measure and print a row for each rung and shape."""
    if under_profiler:
        given = [tuple(map(int, shape.split("x"))) for shape in under_profiler.split(",")]
        run_once([(m, n, k) for m, n, k in given])
        return
    shapes = [(int(side),) * 3 for side in sides.split(",")] if sides else SHAPES
    empty = tempfile.TemporaryDirectory()  # so that no build comes from a cache; CuPy looks when it is first imported
    os.environ["CUPY_CACHE_DIR"] = empty.name
    builds = build_all()
    comparison = compare(
        {one.name: one for one in LADDER}, shapes, rule=Rule(least=7, most=40, width=0.005, seconds=12)
    )
    rows = comparison.as_dicts()
    try:
        profiled = add_profiles(rows, shapes, profiler_seconds)
    except (RuntimeError, ValueError) as error:  # the times stand without it
        profiled = {"missing": str(error)}
        print(f"no profiles: {error}", file=sys.stderr)
    last = {tuple(row[key] for key in "MNK"): row for row in rows if row["kernel"] == LADDER[-1].name}
    targets = [
        target(
            f"{LADDER[-1].name} over cuBLAS at {'×'.join(map(str, shape))}",
            last[shape]["percent_of_cublas"] / 100,
            bound,
            ">=",
        )
        for shape, bound in BOUNDS.items()
        if shape in last
    ]
    targets.append(target("rows with trouble", sum(bool(row["trouble"]) for row in rows), 0, "<="))
    targets.append(target("slowest NVRTC build, s", max(build["seconds"] for build in builds.values()), 2.0, "<="))
    where = where_gpu(
        DISTRIBUTION,
        l2=comparison.l2,
        profiled=profiled,
        before=comparison.before,
        after=comparison.after,
        fp32_ceiling_tflops=gpu.fp32_ceiling() / 1e12,
        copy_tb_s=gpu.bandwidth_ceiling() / 1e12,
        builds=builds,
        tiles={"large": f"{LARGE.bm}×{LARGE.bn}", "wide": f"{WIDE.bm}×{WIDE.bn}", "narrow": f"{NARROW.bm}×{NARROW.bn}"},
        denominator="cuBLAS fp32 with TF32 off, row-major: the faster of torch.mm(out=) and cublasSgemm",
    )
    conclude(rows, targets, where, as_json, record)


if __name__ == "__main__":
    main()
