"""Which accesses race: compared byte by byte, ordered lane by lane; and what is advised."""

import numpy as np
import pytest

from tilelab.simt import DivergenceError, RaceError, cuda, float32, int8, int16, int32, uint8

pytestmark = pytest.mark.parametrize("engine", ["lanes", "threads"])
N = 64


def launch(kernel, engine, *args, grid=1, block=N, nbytes=0):
    cuda.simulate(kernel, engine=engine)[grid, block, 0, nbytes](*args)


def races(kernel, engine, *args, grid=1, block=N, nbytes=0):
    """Severities of the races in a report, and the first finding."""
    report = cuda.inspect(kernel, engine=engine)[grid, block, 0, nbytes](*args)
    assert {f.kind for f in report.findings} <= {"race"}
    return {f.severity for f in report.races}, (report.races or [None])[0]


# ---- the same value is the same bytes
@cuda.jit
def float_and_int(out, value):
    a = cuda.shared.array(0, float32)
    b = cuda.shared.array(0, int32)
    i = cuda.threadIdx.x
    if i == 0:
        a[0] = 1
    if i == 40:
        b[0] = value
    cuda.syncthreads()
    out[i] = a[0]


@cuda.jit
def one_byte_of_four(out, value):
    a = cuda.shared.array(0, float32)
    b = cuda.shared.array(0, uint8)
    i = cuda.threadIdx.x
    if i == 0:
        a[0] = 1
    if i == 40:
        b[2] = value
    cuda.syncthreads()
    out[i] = a[0]


@cuda.jit
def vector_over_floats(out, value):
    a = cuda.shared.array(0, cuda.float32x4)
    b = cuda.shared.array(0, float32)
    i = cuda.threadIdx.x
    if i == 0:
        a[0] = cuda.float32x4(1, 2, 3, 4)
    if i == 40:
        b[2] = value
    cuda.syncthreads()
    out[i] = b[i % 4]


@cuda.jit
def two_zeros(out):
    i = cuda.threadIdx.x
    if i < 2:
        out[0] = -0.0 if i else 0.0


@cuda.jit
def no_numbers(out, a):
    i = cuda.threadIdx.x
    if i < 2:
        out[0] = a[0]


def test_bytes_are_compared(engine):
    out = np.zeros(N, np.float32)
    for kernel, args, severity in [
        (float_and_int, (1,), "error"),
        (float_and_int, (0x3F800000,), "warning"),
        (one_byte_of_four, (0x80,), "warning"),
        (one_byte_of_four, (0x3F,), "error"),
        (vector_over_floats, (float32(3),), "warning"),
        (vector_over_floats, (float32(4),), "error"),
        (two_zeros, (), "error"),
        (no_numbers, (np.array([np.nan], np.float32),), "warning"),
    ]:
        found, _ = races(kernel, engine, out, *args, nbytes=4 * N)
        assert found == {severity}, (kernel.__name__, args)
    with pytest.raises(RaceError, match=r"a\[0\] in shared memory"):
        launch(float_and_int, engine, out, 1, nbytes=4 * N)


@cuda.jit
def reads_what_all_write(out):
    out[0] = out[0] * 0 + 1


def test_equal_values_prove_nothing_where_they_hang_on_a_racing_read(engine):
    found, _ = races(reads_what_all_write, engine, np.zeros(1))
    assert found == {"error"}


# ---- several views of one buffer
@cuda.jit
def views_of_three_types(out):
    a = cuda.shared.array(0, float32)
    b = cuda.shared.array(0, int8)
    c = cuda.shared.array(0, int16)
    i = cuda.threadIdx.x
    a[i] = 1
    cuda.syncthreads()
    out[i] = b[4 * i + 3] + c[2 * i + 1]
    cuda.syncthreads()
    b[i] = i


@cuda.jit
def small_view_first(out):
    c = cuda.shared.array(0, int16)
    v = cuda.shared.array(0, cuda.float32x2)
    i = cuda.threadIdx.x
    v[i] = cuda.float32x2(i, np.nan)
    cuda.syncthreads()
    out[i] = c[4 * i + 1]


def test_a_report_on_views_of_several_types(engine):
    out = np.zeros(N, np.int64)
    report = cuda.inspect(views_of_three_types, engine=engine)[1, N, 0, 4 * N](out)
    assert report.ok, str(report)
    assert (out == 0x3F + 0x3F80).all()
    first, second, third = (s.arrays["a"] for s in report.snapshots)
    assert first.shape == (N,)
    assert first.values == [1.0] * N
    assert (first.written, second.read) == (list(range(N)), list(range(N)))
    assert third.written == list(range(N // 4)), "elements of the first view"
    assert "<svg" in report._repr_html_()
    report = cuda.inspect(small_view_first, engine=engine)[1, N, 0, 8 * N](out)
    assert report.ok, str(report)
    assert report.snapshots[0].arrays["c"].shape == (4 * N,)


@cuda.jit
def no_finite_numbers(out, a):
    s = cuda.shared.array(4, cuda.float32x2)
    i = cuda.threadIdx.x
    s[i] = cuda.float32x2(i, a[i])
    cuda.syncthreads()
    out[i] = s[i].y


def test_a_snapshot_tells_nan_from_nothing(engine):
    a = np.array([np.nan, np.inf, 1.5], np.float32)
    report = cuda.inspect(no_finite_numbers, engine=engine)[1, 3](np.zeros(3), a)
    contents = report.snapshots[0].arrays["s"]
    assert contents.shape == (4, 2)
    assert contents.values == [0.0, "nan", 1.0, "inf", 2.0, 1.5, None, None]
    assert ">nan<" in report._repr_html_().replace("[", "").replace("]", "")


@cuda.jit
def race_in_the_second_view(out):
    a = cuda.shared.array(0, float32)
    b = cuda.shared.array(0, int8)
    i = cuda.threadIdx.x
    a[i] = 0
    cuda.syncthreads()
    if i < 2:
        b[4 * 5 + 2] = i
    out[i] = 1


def test_a_cell_is_called_by_the_first_view(engine):
    with pytest.raises(RaceError, match=r"a\[5\] in shared memory"):
        launch(race_in_the_second_view, engine, np.zeros(N), nbytes=4 * N)


# ---- syncwarp orders the lanes that its mask names
@cuda.jit
def by_halves(out, step):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    s[i] = i
    if i % 32 < 16:
        cuda.syncwarp(0xFFFF)
    else:
        cuda.syncwarp(0xFFFF0000)
    out[i] = s[i ^ step]


@cuda.jit
def by_halves_on_one_line(out, step):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncwarp(0xFFFF if i % 32 < 16 else 0xFFFF0000)
    out[i] = s[i ^ step]


@cuda.jit
def one_half_only(out, step):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    s[i] = i
    if i % 32 < 16:
        cuda.syncwarp(0xFFFF)
    out[i] = s[i ^ step] if i % 32 < 16 else 0


@cuda.jit
def one_half_reads_the_other(out, step):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    s[i] = i
    if i % 32 < 16:
        cuda.syncwarp(0xFFFF)
        out[i] = s[i + step]


@pytest.mark.parametrize("kernel", [by_halves, by_halves_on_one_line, one_half_only], ids=lambda k: k.__name__)
def test_syncwarp_orders_the_lanes_of_its_mask_only(kernel, engine):
    out = np.zeros(N)
    for step in (1, 8):
        launch(kernel, engine, out, step)
        assert out[0] == step
    for step in (16, 32):
        with pytest.raises(RaceError, match=r"s\[\d+\] in shared memory"):
            launch(kernel, engine, out, step)


def test_lanes_outside_the_mask_are_not_ordered(engine):
    launch(one_half_reads_the_other, engine, np.zeros(N), 0)
    with pytest.raises(RaceError):
        launch(one_half_reads_the_other, engine, np.zeros(N), 16)


@cuda.jit
def handed_on(out):
    s = cuda.shared.array(32, int32)
    lane = cuda.threadIdx.x
    s[lane] = lane
    if lane < 16:
        cuda.syncwarp(0xFFFF)
    if 8 <= lane < 24:
        cuda.syncwarp(0xFFFF00)
    if lane == 20:
        out[0] = s[3]


@cuda.jit
def handed_on_the_wrong_way(out):
    s = cuda.shared.array(32, int32)
    lane = cuda.threadIdx.x
    s[lane] = lane
    if 8 <= lane < 24:
        cuda.syncwarp(0xFFFF00)
    if lane < 16:
        cuda.syncwarp(0xFFFF)
    if lane == 20:
        out[0] = s[3]


def test_a_chain_of_masks_orders(engine):
    out = np.zeros(1)
    launch(handed_on, engine, out, block=32)
    assert out[0] == 3
    with pytest.raises(RaceError, match=r"s\[3\]"):
        launch(handed_on_the_wrong_way, engine, out, block=32)


@cuda.jit
def masks_that_differ(out):
    i = cuda.threadIdx.x
    cuda.syncwarp(0xFFFFFFFF if i % 32 < 16 else 0xFFFF0000)
    out[i] = 1


@cuda.jit
def vote_with_masks_that_differ(out):
    i = cuda.threadIdx.x
    out[i] = cuda.any_sync(0xFFFFFFFF if i % 2 else 0xAAAAAAAA | 1 << i % 32, i > 3)


def test_lanes_that_name_each_other_must_give_one_mask(engine):
    for kernel in (masks_that_differ, vote_with_masks_that_differ):
        with pytest.raises(DivergenceError, match="names a thread that gives another mask"):
            launch(kernel, engine, np.zeros(N))


# ---- advice
@cuda.jit
def adds(o):
    o[0] += 1


@cuda.jit
def adds_written_out(o):
    o[0] = o[0] + cuda.threadIdx.x


@cuda.jit
def adds_from_the_left(o):
    o[0] = cuda.threadIdx.x + o[0]


@cuda.jit
def largest(o):
    i = cuda.threadIdx.x
    o[0] = max(o[0], i)


@cuda.jit
def in_two_dimensions(o):
    v = o[0:1]
    v[0] -= cuda.threadIdx.x * 2


@cuda.jit
def in_two_places(o):
    if cuda.threadIdx.x < 5:
        o[0] += 1
    else:
        o[0] |= 2


@cuda.jit
def doubles(o):
    o[0] *= 2


@cuda.jit
def takes_away_from(o):
    o[0] = 3 - o[0]


ADVICE = [
    (adds, "Use cuda.atomic.add(o, 0, 1) in line {}: it reads, changes and writes in one step"),
    (adds_written_out, "Use cuda.atomic.add(o, 0, cuda.threadIdx.x) in line {}:"),
    (adds_from_the_left, "Use cuda.atomic.add(o, 0, cuda.threadIdx.x) in line {}:"),
    (largest, "Use cuda.atomic.max(o, 0, i) in line {}:"),
    (in_two_dimensions, "Use cuda.atomic.sub(v, 0, cuda.threadIdx.x * 2) in line {}:"),
    (doubles, "Read into a variable"),
    (takes_away_from, "Read into a variable"),
]


@pytest.mark.parametrize(("kernel", "advice"), ADVICE, ids=[k.__name__ for k, _ in ADVICE])
def test_the_atomic_that_would_mend_it(kernel, advice, engine):
    with pytest.raises(RaceError) as caught:
        launch(kernel, engine, np.zeros(1, np.int32))
    line = caught.value.finding.lines[0]
    assert advice.format(line) in caught.value.finding.hint
    if "atomic" in advice:
        with pytest.raises(RaceError, match=r"nothing orders blocks of one launch\. Use cuda\.atomic") as caught:
            launch(kernel, engine, np.zeros(1, np.int32), grid=3, block=1)
        assert advice.format(line) in caught.value.finding.hint


def test_atomics_that_a_gpu_has(engine):
    with pytest.raises(RaceError, match="Read into a variable"):
        launch(adds, engine, np.zeros(1, np.int8))
    _, first = races(in_two_places, engine, np.zeros(1, np.int32))
    assert "cuda.atomic.add(o, 0, 1) in line" in first.hint


@cuda.jit
def mended(o):
    cuda.atomic.add(o, 0, 1)


def test_the_advice_is_right(engine):
    o = np.zeros(1, np.int32)
    launch(mended, engine, o, grid=3)
    assert o[0] == 3 * N


# ---- a fence and an atomic order blocks on a GPU; here that is said, not followed
@cuda.jit
def last_block_adds(part, count, out):
    part[cuda.blockIdx.x] = cuda.blockIdx.x
    cuda.threadfence()
    if cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1:
        for k in range(cuda.gridDim.x):
            out[0] += part[k]


def test_a_fence_that_may_order_blocks_is_named(engine):
    arguments = np.zeros(4, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    report = cuda.inspect(last_block_adds, engine=engine)[4, 1](*arguments)
    assert [f.array for f in report.races] == ["part"]
    assert "that holds on a GPU but is not followed here" in report.races[0].hint
    arguments[1][0] = arguments[2][0] = 0
    cuda.simulate(last_block_adds, engine=engine, checks=False)[4, 1](*arguments)
    assert arguments[2][0] == 6


# ---- harmless writes, of one value by many threads, hide no race
@cuda.jit
def zeroed_by_all(o):
    s = cuda.shared.array(800, int32)
    t = cuda.threadIdx.x
    for k in range(700):
        s[k] = 0
    s[700 + t] = t
    o[t] = s[700 + (t ^ 1)]


@cuda.jit
def last_elements_differ(o):
    s = cuda.shared.array(800, int32)
    t = cuda.threadIdx.x
    for k in range(700):
        s[k] = 0 if k < 650 else t
    for k in range(700, 800):
        s[k] = t


@cuda.jit
def pairs_differ(o):
    s = cuda.shared.array(700, cuda.float32x2)
    for k in range(700):
        s[k] = cuda.float32x2(1, 2 if k < 600 else cuda.threadIdx.x)


@cuda.jit
def in_warps_and_between(o):
    s = cuda.shared.array(96, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncwarp()
    s[90] = 5
    x = s[t]
    s[t ^ 1] = x


def test_harmless_writes_hide_no_race(engine):
    for kernel, threads, places in (
        (zeroed_by_all, 8, {("warning", 4, 4, 0), ("error", 5, 6, 700)}),
        (last_elements_differ, 8, {("warning", 4, 4, 0), ("error", 4, 4, 650), ("error", 6, 6, 700)}),
        (pairs_differ, 8, {("warning", 3, 3, 0), ("error", 3, 3, 600)}),
        (in_warps_and_between, 64, {("warning", 5, 5, 90), ("error", 6, 7, 0)}),
    ):
        report = cuda.inspect(kernel, engine=engine)[2, threads](np.zeros(64, np.int32))
        first = kernel.source.first + 1
        shared = [f for f in report.races if f.space == "shared"]
        assert {(f.severity, *(n - first for n in f.lines), f.index[0]) for f in shared} == places
        with pytest.raises(RaceError):
            cuda.simulate(kernel, engine=engine)[1, threads](np.zeros(64, np.int32))
