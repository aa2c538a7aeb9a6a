"""Today's simulator still counts what the GPU counted, and finds the races that racecheck found."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tilelab.simt import cuda

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ROWS = json.loads((BENCHMARKS / "records" / "simulator_on_gpu.json").read_text())["rows"]


@pytest.fixture(scope="module")
def benchmark():
    sys.path.insert(0, str(BENCHMARKS))
    import simulator_on_gpu

    yield simulator_on_gpu
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.slow
def test_counts_are_those_of_the_hardware(benchmark):
    recorded = [row for row in ROWS if "pattern" in row]
    plan = benchmark.launches()
    assert [(row["pattern"], row["kernel"]) for row in recorded] == [(label, kernel) for label, kernel, _ in plan]
    assert len(plan) >= 14
    for row, (label, kernel, index) in zip(recorded, plan, strict=True):
        counts = benchmark.simulated(kernel, index)
        for (space, what, op), counter in benchmark.COUNTERS.items():
            _, hardware = row.get(f"{space} {op} {what}", (0, 0))
            assert counts[counter] == hardware, (kernel, label, space, op, what)


def test_races_are_those_of_racecheck(benchmark):
    import simulator_kernels

    recorded = [row for row in ROWS if "hazards, racecheck" in row]
    assert len(recorded) >= 10
    for row in recorded:
        report = cuda.inspect(getattr(simulator_kernels, row["kernel"]))[1, 256](np.zeros(256, np.int32))
        assert bool([f for f in report.races if f.space == "shared"]) == bool(row["hazards, racecheck"]), row["kernel"]
