"""Is the stopwatch right? Kernels of known length, the same pair measured again and again, and kernels that cheat.

python benchmarks/record_timer.py [--json] [--record FILE]
"""

import statistics
from pathlib import Path
from typing import Any

import click

from tilelab.kernels.ladder import rung
from tilelab.measure import gpu
from tilelab.measure.compare import DISTRIBUTION, compare
from tilelab.measure.records import conclude, target, where_gpu
from tilelab.measure.rounds import Rule
from tilelab.measure.statistics import estimate

MICROSECONDS = (100, 300, 1_000, 5_000, 20_000, 50_000)
SHAPE = (2048, 2048, 2048)


def known_lengths() -> list[dict[str, Any]]:
    """A spin on the GPU's own clock, timed."""
    cupy = gpu.require_gpu()
    sink, watch = cupy.zeros(1, cupy.int64), gpu.Stopwatch()
    rows = []
    for length in MICROSECONDS:
        go = gpu.SPIN.prepared(sink, length * 1000)
        time = estimate([watch([go]).device for _ in range(9)])
        rows.append(
            {"what": f"spin of {length} µs", "ms": time.value, "off": time.value / (length * 1e-3) - 1, "caught": ""}
        )
    return rows


def same_pair(times: int = 20) -> dict[str, Any]:
    """The ratio of two rungs, measured again and again."""
    rule, ratios = Rule(least=7, most=7), []
    for turn in range(times):
        rows = compare({name: rung(name) for name in ("tiled_32", "vectorised")}, [SHAPE], rule=rule, seed=turn).rows
        times_by = {row.name: row.timing.device.value for row in rows}
        ratios.append(times_by["tiled_32"] / times_by["vectorised"])
    ratios.sort()
    low, high = ratios[round(0.05 * (times - 1))], ratios[round(0.95 * (times - 1))]
    middle = statistics.median(ratios)
    return {
        "what": f"tiled_32 over vectorised, {times} times",
        "ms": middle,
        "off": (high - low) / middle,
        "caught": "",
    }


def cheats() -> dict[str, Any]:
    """Products that are not what they seem."""
    cupy = gpu.require_gpu()
    honest = rung("tiled_32")
    aside = cupy.cuda.Stream(non_blocking=True)
    kept: dict[int, Any] = {}

    def on_another_stream(A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        with aside:
            honest(A, B, C, M, N, K)

    def from_memory(A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        if A.data.ptr not in kept:
            honest(A, B, C, M, N, K)
            kept[A.data.ptr] = C.copy()
        cupy.copyto(C, kept[A.data.ptr])

    def nothing(A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        pass

    def half_of_it(A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        honest(A[: M // 2], B, C[: M // 2], M // 2, N, K)

    true_elapsed = cupy.cuda.get_elapsed_time

    def with_patched_events(A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        cupy.cuda.get_elapsed_time = lambda start, stop: true_elapsed(start, stop) / 3
        honest(A, B, C, M, N, K)

    fakes = {
        f.__name__.replace("_", " "): f
        for f in (on_another_stream, from_memory, nothing, half_of_it, with_patched_events)
    }
    found = {}
    for name, fake in fakes.items():
        # Twice: what the first run patched is in place when the second one makes its stopwatch.
        for _ in range(2):
            rows = {
                row.name: row
                for row in compare({name: fake, "honest": honest}, [SHAPE], rule=Rule(least=3, most=3)).rows
            }
        cupy.cuda.get_elapsed_time = true_elapsed
        patched = name == "with patched events"
        # Patched events make everyone three times as fast, and every row says that the clocks disagree.
        found[name] = rows[name].trouble if not patched else rows[name].trouble and rows["honest"].trouble
        if not patched and rows["honest"].trouble:
            found[name] = ""
    return found


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
def main(as_json: bool, record: Path | None) -> None:
    """Measure and print."""
    spins, pair, caught = known_lengths(), same_pair(), cheats()
    rows = [
        *spins,
        pair,
        *({"what": name, "ms": 0.0, "off": 0.0, "caught": why or "NOT CAUGHT"} for name, why in caught.items()),
    ]
    targets = [
        target("largest error on a known length", max(abs(row["off"]) for row in spins), 0.03, "<="),
        target("(p95 − p5) / median of the same ratio", pair["off"], 0.02, "<="),
        target("cheats that were believed", sum(not why for why in caught.values()), 0, "<="),
    ]
    where = where_gpu(DISTRIBUTION, state=gpu.state())
    conclude(rows, targets, where, as_json, record)


if __name__ == "__main__":
    main()
