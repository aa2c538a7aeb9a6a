"""A report of a run that an error ended: all that was found up to there, and counts of the blocks before."""

import numpy as np
import pytest

from tilelab.simt import cuda, float32

N = 64


@cuda.jit
def race_then_half_a_barrier(out, x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[63 - t]
    cuda.syncthreads()
    if t < 32:
        cuda.syncthreads()
    out[t] = s[63 - t]


@cuda.jit
def race_then_outside(out, x):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 2:
        out[0] = t
        cuda.syncthreads()
        out[t + 1] = x[63 - t]


@cuda.jit
def blocks_race_then_one_is_outside(out, x):
    i = cuda.grid(1)
    out[i // 128] = x[i % 64]
    if cuda.blockIdx.x == 3:
        out[i] = 4


@cuda.jit
def in_the_same_phase(out, x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t + 1] = s[63 - t]


def reports(kernel, grid):
    for options in ({"engine": "lanes"}, {"engine": "lanes", "chunk": N}, {"engine": "threads"}):
        yield cuda.inspect(kernel, **options)[grid, N](np.zeros(N, np.float32), np.arange(N, dtype=np.float32))


@pytest.mark.parametrize(
    ("kernel", "grid", "kinds"),
    [
        (race_then_half_a_barrier, 1, ["race", "divergence"]),
        (race_then_outside, 4, ["race", "bounds"]),
        (blocks_race_then_one_is_outside, 5, ["race", "race", "bounds"]),
        (in_the_same_phase, 1, ["race", "bounds"]),
    ],
)
def test_what_was_found_before_the_error(kernel, grid, kinds):
    for report in reports(kernel, grid):
        assert [(f.kind, f.severity) for f in report.findings] == [(kind, "error") for kind in kinds]
        assert not report.complete


def test_counts_are_of_the_blocks_before():
    told = []
    for report in reports(blocks_race_then_one_is_outside, 5):
        record = report.to_dict()
        for access in record["accesses"]:
            assert access.pop("example")
        told.append({name: record[name] for name in ("accesses", "branches", "arithmetic", "traffic", "barriers")})
    assert told[0] == told[1] == told[2]
    assert [a["threads"] for a in told[0]["accesses"]] == [3 * N, 3 * N]
    assert [t["minimum"] for t in told[0]["traffic"]] == [2 * 4, 64 * 4]


def test_outputs_are_of_the_blocks_before():
    out = np.zeros(256, np.int32)

    @cuda.jit
    def outside_at_last(out):
        i = cuda.grid(1)
        out[i] = 1
        out[i + N * (cuda.blockIdx.x == 3)] = 1

    for chunk in (N, 8192):
        out[:] = 0
        cuda.inspect(outside_at_last, engine="lanes", chunk=chunk)[5, N](out)
        assert out.sum() == 3 * N


WEIGHTS = np.arange(64, dtype=np.float32)


@cuda.jit
def constants(out, n):
    c = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    out[i] = c[n] + c[i]


def test_constants_have_neither_banks_nor_sectors():
    for engine in ("lanes", "threads"):
        report = cuda.inspect(constants, engine=engine)[1, N](np.zeros(N, np.float32), 3)
        told = [(a.text, a.requests, a.threads, a.wavefronts, a.sectors) for a in report.accesses if a.space == "const"]
        assert told == [("c[i]", 2, N, 0, 0), ("c[n]", 2, N, 0, 0)]


@cuda.jit
def count_up(out):
    out[0] += 1


def test_blocks_that_race_in_one_line_are_told_once():
    for engine in ("lanes", "threads"):
        report = cuda.inspect(count_up, engine=engine)[3, 1](np.zeros(1, np.int32))
        assert [f.accesses for f in report.findings] == [("read", "write"), ("write", "write")]
