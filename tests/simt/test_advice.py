"""Hints that are obeyed: what a finding advises is pinned, and the kernel that follows it runs without a finding."""

import numpy as np
import pytest

from tilelab.simt import DivergenceError, cuda, float32

pytestmark = pytest.mark.parametrize("engine", ["lanes", "threads"])


def advised(kernel, engine, threads=64):
    """Hint of the first race, with its lines counted from the kernel's ``def``."""
    found = cuda.inspect(kernel, engine=engine)[1, threads](np.arange(threads, dtype=np.float32)).races[0]
    hint = found.hint
    for line in range(kernel.source.first + 1, kernel.source.first + 40):
        hint = hint.replace(f"line {line}", f"line +{line - kernel.source.first - 1}")
    return hint


def runs(kernel, engine, threads=64):
    o = np.arange(threads, dtype=np.float32)
    cuda.simulate(kernel, engine=engine)[1, threads](o)
    return o


# ---- a scan in place: the barrier at the end of the loop is there, the race is within a round
@cuda.jit
def scan(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    cuda.syncthreads()
    k = 1
    while k < 64:
        if t >= k:
            s[t] += s[t - k]
        cuda.syncthreads()
        k *= 2
    o[t] = s[t]


@cuda.jit
def scan_mended(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    cuda.syncthreads()
    k = 1
    while k < 64:
        if t >= k:
            v = s[t - k]
        cuda.syncthreads()
        if t >= k:
            s[t] += v
        cuda.syncthreads()
        k *= 2
    o[t] = s[t]


def test_scan_in_place(engine):
    hint = advised(scan, engine)
    assert hint.startswith("Read into a variable in line +8 and end `if t >= k:` of line +7 there")
    assert "at the end of the loop" not in hint
    assert runs(scan_mended, engine).tolist() == np.cumsum(np.arange(64)).tolist()


@cuda.jit
def shift(o):
    s = cuda.shared.array(65, float32)
    t = cuda.threadIdx.x
    s[t + 1] = o[t]
    cuda.syncthreads()
    for _ in range(3):
        if t < 63:
            o[t] = 0
        s[t] = s[t + 1]
        cuda.syncthreads()


@cuda.jit
def shift_mended(o):
    s = cuda.shared.array(65, float32)
    t = cuda.threadIdx.x
    s[t + 1] = o[t]
    cuda.syncthreads()
    for _ in range(3):
        v = s[t + 1]
        cuda.syncthreads()
        s[t] = v
        cuda.syncthreads()


def test_shift_in_place(engine):
    assert advised(shift, engine) == "Read into a variable, put cuda.syncthreads() after it, and write then (line +8)."
    runs(shift_mended, engine)


# ---- a reduction whose rounds nothing parts: one line reads and writes, but a round later
@cuda.jit
def reduction(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    cuda.syncthreads()
    k = 32
    while k:
        if t < k:
            s[t] += s[t + k]
        k //= 2
    if t == 0:
        o[0] = s[0]


@cuda.jit
def reduction_mended(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    cuda.syncthreads()
    k = 32
    while k:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k //= 2
    if t == 0:
        o[0] = s[0]


def test_reduction(engine):
    assert advised(reduction, engine) == (
        "Put cuda.syncthreads() after line +8, at the end of the loop of line +6, outside `if t < k:` of line +7, "
        "before its next round comes to line +8."
    )
    assert runs(reduction_mended, engine)[0] == 64 * 63 / 2


# ---- inside a branch that not all threads come into
@cuda.jit
def one_warp(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    cuda.syncthreads()
    if t < 32:
        s[t] = s[t + 32]
        o[t] = s[31 - t]


@cuda.jit
def one_warp_mended(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    cuda.syncthreads()
    if t < 32:
        s[t] = s[t + 32]
        cuda.syncwarp()
        o[t] = s[31 - t]


@cuda.jit
def one_warp_not_so(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = o[t]
    cuda.syncthreads()
    if t < 32:
        s[t] = s[t + 32]
        cuda.syncthreads()
        o[t] = s[31 - t]


def test_within_a_warp(engine):
    hint = advised(one_warp, engine)
    assert hint.startswith("Put cuda.syncwarp() between line +6 and line +7 (")
    assert hint.endswith("since not all threads come into `if t < 32:` of line +5.")
    assert runs(one_warp_mended, engine)[:32].tolist() == list(range(63, 31, -1))
    with pytest.raises(DivergenceError):
        runs(one_warp_not_so, engine)


@cuda.jit
def two_warps(o):
    s = cuda.shared.array(96, float32)
    t = cuda.threadIdx.x
    if t < 64:
        s[t] = o[t]
        o[t] = s[63 - t]


@cuda.jit
def two_warps_mended(o):
    s = cuda.shared.array(96, float32)
    t = cuda.threadIdx.x
    if t < 64:
        s[t] = o[t]
    cuda.syncthreads()
    if t < 64:
        o[t] = s[63 - t]


def test_across_warps(engine):
    assert advised(two_warps, engine, 96) == (
        "Put cuda.syncthreads() between line +4 and line +5, but outside `if t < 64:` of line +3, into which not all "
        "threads come: end the branch after line +4 and open it again for line +5."
    )
    assert runs(two_warps_mended, engine, 96)[:64].tolist() == list(range(63, -1, -1))


@cuda.jit
def alike(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    n = cuda.blockDim.x // 2
    if cuda.blockIdx.x < n:
        s[t] = o[t]
        o[t] = s[63 - t]


def test_a_branch_that_all_threads_come_into(engine):
    assert advised(alike, engine) == "Put cuda.syncthreads() between line +5 and line +6."


@cuda.jit
def rounds_differ(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for k in range(t + 1):
        s[t] = k
        o[t] = s[63 - t]


def test_rounds_that_differ(engine):
    hint = advised(rounds_differ, engine)
    assert "Let all threads go through `for k in range(t + 1):` of line +3" in hint


# ---- two writes through one device function
@cuda.jit(device=True)
def put(s, i, v):
    s[i] = v


@cuda.jit
def puts_twice(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    put(s, t, t)
    put(s, 63 - t, t + 1)
    cuda.syncthreads()
    o[t] = s[t]


def test_two_writes_by_one_function(engine):
    assert advised(puts_twice, engine) == (
        "Give each thread its own element, or use cuda.atomic if they add to s[0]; if the later write is to stay, put "
        "cuda.syncthreads() between the calls of put in line +3 and line +4."
    )


# ---- the barrier belongs between calls of device functions, or at the end of a loop of the caller
@cuda.jit(device=True)
def mirrored(s, t):
    return s[63 - t]


@cuda.jit(device=True)
def total(s, t, x):
    s[t] = x
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    return s[0]


@cuda.jit(device=True)
def put_and_mirror(s, t):
    put(s, t, t)
    return mirrored(s, t)


@cuda.jit
def called_twice(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    mean = total(s, t, o[t]) / 64
    o[t] = total(s, t, (o[t] - mean) * (o[t] - mean))


@cuda.jit
def called_in_a_loop(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for _ in range(3):
        o[t] += total(s, t, o[t])


@cuda.jit
def called_and_read(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    put(s, t, t)
    o[t] = s[63 - t]


@cuda.jit
def called_and_read_in_a_loop(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for _ in range(3):
        put(s, t, t)
        cuda.syncthreads()
        o[t] += s[63 - t]


@cuda.jit
def deeper(o):
    s = cuda.shared.array(64, float32)
    o[cuda.threadIdx.x] = put_and_mirror(s, cuda.threadIdx.x)


def test_between_calls(engine):
    for kernel, start in (
        (called_twice, "Put cuda.syncthreads() between line +3 and line +4."),
        (called_in_a_loop, "Put cuda.syncthreads() after line +4, at the end of the loop of line +3, before its next"),
        (called_and_read, "Put cuda.syncthreads() between line +3 and line +4."),
        (
            called_and_read_in_a_loop,
            "Put cuda.syncthreads() after line +6, at the end of the loop of line +3, before its next round comes to "
            "line +4.",
        ),
    ):
        assert advised(kernel, engine).startswith(start), kernel
    first = put_and_mirror.source.first + 2
    assert advised(deeper, engine) == f"Put cuda.syncthreads() between line {first} and line {first + 1}."


# ---- threads that have returned would miss the barrier that is advised
@cuda.jit
def early(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t >= 60:
        return
    s[t] = o[t]
    o[t] = s[59 - t]


@cuda.jit
def early_mended(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < 60:
        s[t] = o[t]
    cuda.syncthreads()
    if t < 60:
        o[t] = s[59 - t]


@cuda.jit
def skipping(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for k in range(2):
        if t >= 60:
            continue
        s[t] = o[t] + k
        if k == 5:
            break
        o[t] = s[59 - t]
    if t > 70:
        return


@cuda.jit(device=True)
def through(s, t):
    s[t] = t
    if t > 40:
        return 0
    return s[40 - t]


@cuda.jit
def calling(o):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x > 0:  # all or none
        return
    if t == 50:
        return
    o[t] = through(s, t)


def test_threads_that_leave_before_the_barrier(engine):
    hint = advised(early, engine)
    assert hint == (
        "Put cuda.syncthreads() between line +5 and line +6. Let no thread leave by `if t >= 60:` of line +3 before "
        "that, for it would miss the barrier: guard the loads and stores instead."
    )
    assert runs(early_mended, engine).tolist() == [*range(59, -1, -1), *range(60, 64)]
    assert "between line +6 and line +9. Let no thread leave by `if t >= 60:` of line +4 before" in advised(
        skipping, engine
    )


def test_threads_that_leave_between_the_two(engine):
    first = through.source.first
    last = calling.source.first
    found = cuda.inspect(calling, engine=engine)[1, 64](np.zeros(64, np.float32)).races[0]
    assert found.hint == (
        f"Put cuda.syncthreads() between line {first + 2} and line {first + 3}. Let no thread leave by `if t == 50:` "
        f"of line {last + 6} before that, for it would miss the barrier: guard the loads and stores instead."
    )
