"""What a simulator must get right, one small kernel each; both engines."""

import numpy as np
import pytest

from tilelab.simt import (
    BoundsError,
    DivergenceError,
    LaunchError,
    RaceError,
    SimtError,
    UninitialisedError,
    UnsupportedError,
    cuda,
    float32,
    int32,
    uint32,
)

pytestmark = pytest.mark.parametrize("engine", ["lanes", "threads"])
N = 64


def launch(kernel, engine, *args, grid=1, block=N, **options):
    cuda.simulate(kernel, engine=engine, **options)[grid, block](*args)


def fails(error, kernel, engine, *args, match=None, **where):
    with pytest.raises(error, match=match) as caught:
        launch(kernel, engine, *args, **where)
    return caught.value.finding


@cuda.jit
def unguarded(out, a):
    i = cuda.threadIdx.x
    out[i] = a[i + 1]


@cuda.jit
def negative(out, a):
    i = cuda.threadIdx.x
    out[i] = a[i - 1]


def test_indices(engine):
    a, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    found = fails(
        BoundsError, unguarded, engine, out, a, match=r"index 64 of axis 0 of a \(extent 64\), thread \(63, 0, 0\)"
    )
    assert (found.kind, found.index, found.threads) == ("bounds", (64,), ((63, 0, 0),))
    found = fails(BoundsError, negative, engine, out, a, match="index -1 of axis 0")
    assert found.kind == "negative index"
    assert "does not count from the end" in found.hint


@cuda.jit
def guarded_barrier(out):
    i = cuda.threadIdx.x
    if i < 16:
        cuda.syncthreads()
    out[i] = 1


@cuda.jit
def barrier_in_both_branches(out):
    i = cuda.threadIdx.x
    if i < 16:
        cuda.syncthreads()
        out[i] = 1
    else:
        cuda.syncthreads()
        out[i] = 2


@cuda.jit
def early_return(out):
    s = cuda.shared.array(N, float32)
    i = cuda.threadIdx.x
    if i >= 16:
        return
    s[i] = i
    cuda.syncthreads()
    out[i] = s[15 - i]


@cuda.jit
def barrier_in_a_loop(out):
    i = cuda.threadIdx.x
    for _ in range(i % 3):
        cuda.syncthreads()
    out[i] = 1


@cuda.jit(device=True)
def meet():
    cuda.syncthreads()


@cuda.jit
def barrier_in_a_call(out):
    i = cuda.threadIdx.x
    if i > 3:
        meet()
    out[i] = 1


@cuda.jit
def a_break_before(out):
    i = cuda.threadIdx.x
    for k in range(4):
        if k == i:
            break
        cuda.syncthreads()
    out[i] = 1


@cuda.jit
def a_round_left_out(out):
    i = cuda.threadIdx.x
    for k in range(4):
        if k == i:
            continue
        cuda.syncthreads()
    out[i] = 1


def test_threads_that_leave_a_round_before_the_barrier(engine):
    line = a_break_before.source.first + 4
    found = fails(DivergenceError, a_break_before, engine, np.zeros(N), match="63 of 64 .* does not come there, since")
    assert f"`if k == i:` in line {line} is true for it" in found.message
    assert found.hint.startswith(f"Let no thread leave by the branch of line {line} before the barrier")
    fails(DivergenceError, a_round_left_out, engine, np.zeros(N), match="waits there in another round or call. Let all")


def test_divergence(engine):
    out = np.zeros(N)
    first = guarded_barrier.source.first
    found = fails(DivergenceError, guarded_barrier, engine, out, match="16 of 64 threads .* does not come there, since")
    assert f"`if i < 16:` in line {first + 3} is false for it" in found.message
    assert f"out of the branch of line {first + 3}" in found.hint
    assert found.lines == (first + 4, first + 3)
    found = fails(DivergenceError, barrier_in_both_branches, engine, out, match="waits at the barrier of line")
    assert len(found.lines) == 2
    assert "`if i < 16:`" in found.message
    returns = early_return.source.first + 5
    fails(DivergenceError, early_return, engine, out, match=f"has returned in line {returns}")
    loop = barrier_in_a_loop.source.first + 3
    fails(
        DivergenceError, barrier_in_a_loop, engine, out, match=rf"`for _ in range\(i % 3\):` in line {loop} has ended"
    )
    call = barrier_in_a_call.source.first + 3
    fails(DivergenceError, barrier_in_a_call, engine, out, match=f"`if i > 3:` in line {call} is false")
    if engine == "lanes":
        assert not out.any(), "what a failed block wrote is put back"


@cuda.jit
def two_on_one_line(out):
    a = cuda.shared.array(N, int32)
    b = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    a[i] = 1
    b[i] = 2
    cuda.syncthreads()
    out[i] = a[N - 1 - i] * 10 + b[N - 1 - i]


def test_two_shared_arrays_on_one_line_are_two(engine):
    out = np.zeros(N, np.int32)
    launch(two_on_one_line, engine, out)
    assert (out == 12).all()


@cuda.jit
def leftovers(out):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        s[i] = 7
    cuda.syncthreads()
    out[cuda.grid(1)] = s[i]


def test_shared_memory_does_not_persist_between_blocks(engine):
    found = fails(UninitialisedError, leftovers, engine, np.zeros(2 * N, np.int32), grid=2, match="nobody wrote it")
    assert (found.block, found.array, found.phase) == ((1, 0, 0), "s", 1)


@cuda.jit
def one_word_short(out):
    s = cuda.shared.array(N, float32)
    i = cuda.threadIdx.x
    if i < N - 1:
        s[i] = i
    cuda.syncthreads()
    out[i] = s[i]


@cuda.jit
def local_unwritten(out):
    a = cuda.local.array(4, float32)
    i = cuda.threadIdx.x
    a[i % 2] = 1
    out[i] = a[1]


def test_unwritten_reads(engine):
    found = fails(UninitialisedError, one_word_short, engine, np.zeros(N), match=r"s\[63\]")
    assert found.threads == ((63, 0, 0),)
    found = fails(UninitialisedError, local_unwritten, engine, np.zeros(N), match=r"a\[1\] in local memory")
    assert found.threads == ((0, 0, 0),)


@cuda.jit
def plus_equals(out):
    out[0] += 1


@cuda.jit
def everyone_writes(out):
    out[0] = cuda.threadIdx.x


@cuda.jit
def same_value(out):
    if cuda.threadIdx.x > 3:
        out[0] = 1


@cuda.jit
def histogram(out, a):
    i = cuda.grid(1)
    cuda.atomic.add(out, a[i], 1)


def test_races_in_global_memory(engine):
    found = fails(RaceError, plus_equals, engine, np.zeros(1, np.int32), match=r"out\[0\] in global memory of block")
    assert found.accesses in (("read", "write"), ("write", "write"))
    assert "line" in found.hint
    fails(RaceError, everyone_writes, engine, np.zeros(1, np.int32), match="Give each thread its own element")
    found = fails(RaceError, plus_equals, engine, np.zeros(1, np.int32), grid=4, block=1, match="nothing orders blocks")
    assert found.blocks == ((0, 0, 0), (1, 0, 0))
    out = np.zeros(5, np.int64)
    launch(histogram, engine, out, np.arange(4 * N) % 5, grid=4)
    assert out.tolist() == np.bincount(np.arange(4 * N) % 5).tolist()


def test_the_same_value_is_a_warning(engine):
    out = np.zeros(1, np.int32)
    launch(same_value, engine, out)
    report = cuda.inspect(same_value, engine=engine)[1, N](out)
    assert report.ok
    assert [f.severity for f in report.races] == ["warning"]


@cuda.jit
def aliased(out):
    a = cuda.shared.array(0, float32)
    b = cuda.shared.array(0, float32)
    i = cuda.threadIdx.x
    a[i] = i
    out[i] = b[N - 1 - i]


@cuda.jit
def split_buffer(out):
    buffer = cuda.shared.array(0, float32)
    a = buffer[:N]
    b = buffer[N:]
    i = cuda.threadIdx.x
    a[i] = i
    b[i] = 2 * i
    cuda.syncthreads()
    out[i] = a[N - 1 - i] + b[N - 1 - i]


@cuda.jit
def two_types(out):
    a = cuda.shared.array(0, float32)
    b = cuda.shared.array(0, uint32)
    i = cuda.threadIdx.x
    a[i] = 1
    cuda.syncthreads()
    out[i] = b[i]


def dynamic(kernel, engine, nbytes, *args):
    cuda.simulate(kernel, engine=engine)[1, N, 0, nbytes](*args)


def test_dynamic_shared_memory(engine):
    with pytest.raises(RaceError, match="shared memory"):
        dynamic(aliased, engine, 4 * N, np.zeros(N))
    out = np.zeros(N)
    dynamic(split_buffer, engine, 8 * N, out)
    assert out.tolist() == [3 * (N - 1 - i) for i in range(N)]
    with pytest.raises(BoundsError, match="extent 0"):
        dynamic(split_buffer, engine, 4 * N, np.zeros(N))
    dynamic(two_types, engine, 4 * N, out)
    assert (out == np.float32(1).view(np.uint32)).all()
    with pytest.raises(LaunchError, match="the launch gives none"):
        launch(split_buffer, engine, out)


@cuda.jit
def big_static(out):
    s = cuda.shared.array((128, 128), float32)
    s[0, 0] = 1
    out[0] = s[0, 0]


def test_launch_limits(engine):
    out = np.zeros(4096, np.int32)
    for where, message in [
        ({"block": 2048}, "2048 threads a block, but sm_90 allows 1024"),
        ({"block": (64, 64)}, "4096 threads"),
        ({"grid": (1, 70000)}, "grid extent y = 70000"),
        ({"grid": 0}, "grid extent x = 0"),
    ]:
        with pytest.raises(LaunchError, match=message):
            launch(guarded_barrier, engine, out, **where)
    with pytest.raises(LaunchError, match="65536 bytes of static shared memory"):
        launch(big_static, engine, out)
    with pytest.raises(LaunchError, match="cannot be launched on RTX 4090: 131072 bytes of shared memory"):
        cuda.simulate(split_buffer, engine=engine, device="RTX 4090")[1, N, 0, 131072](out)
    cuda.simulate(split_buffer, engine=engine, device="H200")[1, N, 0, 131072](np.zeros(N))


@cuda.jit
def warp_sum(out):
    v = cuda.threadIdx.x
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
    if cuda.laneid == 0:
        out[cuda.threadIdx.x // cuda.warpsize] = v


@cuda.jit
def all_shuffles(out):
    i = cuda.threadIdx.x
    out[0, i] = cuda.shfl_sync(0xFFFFFFFF, i, 3)
    out[1, i] = cuda.shfl_up_sync(0xFFFFFFFF, i, 1)
    out[2, i] = cuda.shfl_xor_sync(0xFFFFFFFF, i, 5)
    out[3, i] = cuda.ballot_sync(0xFFFFFFFF, i % 2 == 0)
    out[4, i] = cuda.all_sync(0xFFFFFFFF, i < 40) + 10 * cuda.any_sync(0xFFFFFFFF, i == 40)
    out[5, i] = cuda.match_any_sync(0xFFFFFFFF, i % 4)
    mask, every = cuda.match_all_sync(0xFFFFFFFF, i // 32)
    out[6, i] = mask if every else 0
    out[7, i] = cuda.popc(cuda.lanemask_lt())
    out[8, i] = cuda.syncthreads_count(i < 10) * 100 + cuda.syncthreads_and(i >= 0) * 10 + cuda.syncthreads_or(i > 99)
    if i % 3 == 0:
        out[9, i] = cuda.activemask()


@cuda.jit
def half_a_warp(out):
    i = cuda.threadIdx.x
    if i < 16:
        out[i] = cuda.shfl_down_sync(0xFFFFFFFF, i, 1)


@cuda.jit
def without_syncwarp(out):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    s[i] = i
    out[i] = s[i ^ 1]


@cuda.jit
def with_syncwarp(out):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncwarp()
    out[i] = s[i ^ 1]


@cuda.jit
def syncwarp_across_warps(out):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncwarp()
    out[i] = s[i ^ 32]


def test_warps(engine):
    out = np.zeros(2, np.int64)
    launch(warp_sum, engine, out)
    assert out.tolist() == [sum(range(32)), sum(range(32, 64))]
    table = np.zeros((10, N), np.int64)
    launch(all_shuffles, engine, table)
    i = np.arange(N)
    assert table[0].tolist() == (i // 32 * 32 + 3).tolist()
    assert table[1].tolist() == np.where(i % 32, i - 1, i).tolist()
    assert table[2].tolist() == (i ^ 5).tolist()
    assert (table[3] == 0x55555555).all()
    assert table[4].tolist() == [1 if k < 32 else 10 for k in i]
    assert table[5].tolist() == [np.int32(np.uint32(0x11111111 << k % 4)).item() for k in i]
    assert (table[6] == -1).all()
    assert table[7].tolist() == (i % 32).tolist()
    assert (table[8] == 1010).all()
    wanted = [sum(1 << j for j in range(32) if (w + j) % 3 == 0) for w in (0, 32)]
    assert table[9].tolist() == [wanted[k // 32] if k % 3 == 0 else 0 for k in i]
    fails(DivergenceError, half_a_warp, engine, out, block=32, match="named in its mask but does not come")
    fails(RaceError, without_syncwarp, engine, np.zeros(N))
    launch(with_syncwarp, engine, np.zeros(N))
    fails(RaceError, syncwarp_across_warps, engine, np.zeros(N))


@cuda.jit
def chosen_by_thread(out, a, b):
    i = cuda.threadIdx.x
    c = a if i % 2 else b
    out[i] = c[i]


def test_arrays_chosen_by_each_thread(engine):
    out = np.zeros(N)
    if engine == "lanes":
        with pytest.raises(LaunchError, match="needs engine='threads'"):
            launch(chosen_by_thread, engine, out, np.ones(N), np.zeros(N))
    cuda.simulate(chosen_by_thread)[1, N](out, np.ones(N), np.zeros(N))
    assert out.tolist() == [i % 2 for i in range(N)]


@cuda.jit
def swap_buffers(out):
    a = cuda.shared.array(N, int32)
    b = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    a[i] = i
    for _ in range(3):
        cuda.syncthreads()
        b[i] = a[(i + 1) % N]
        a, b = b, a
    cuda.syncthreads()
    out[i] = a[i]


def test_buffers_may_be_swapped(engine):
    out = np.zeros(N, np.int32)
    launch(swap_buffers, engine, out)
    assert out.tolist() == [(i + 3) % N for i in range(N)]


@cuda.jit
def atomics(old, out):
    i = cuda.threadIdx.x
    old[0, i] = cuda.atomic.add(out, 0, i)
    old[1, i] = cuda.atomic.max(out, 1, i % 7)
    old[2, i] = cuda.atomic.inc(out, 2, 9)
    old[3, i] = cuda.atomic.dec(out, 3, 9)
    old[4, i] = cuda.atomic.exch(out, 4, i)
    old[5, i] = cuda.atomic.cas(out, 5, i, i + 1)
    old[6, i] = cuda.atomic.compare_and_swap(out[6:], 0, 5)


def test_atomics_in_turn(engine):
    old, out = np.zeros((7, N), np.uint32), np.zeros(7, np.uint32)
    launch(atomics, engine, old, out)
    assert old[0].tolist() == np.concatenate([[0], np.cumsum(range(N))[:-1]]).tolist()
    assert old[2].tolist() == [i % 10 for i in range(N)]
    assert old[3].tolist() == [-i % 10 for i in range(N)]
    assert old[4].tolist() == [0, *range(N - 1)]
    assert old[5].tolist() == list(range(N))
    assert old[6].tolist() == [0, *[5] * (N - 1)]
    assert out.tolist() == [sum(range(N)), 6, 4, 6, 63, 64, 5]


@cuda.jit
def vectors(out):
    s = cuda.shared.array(32, cuda.float32x4)
    i = cuda.threadIdx.x
    s[i] = cuda.float32x4(i, i + 0.5, 2 * i, 1)
    cuda.syncthreads()
    v = s[31 - i]
    out[i] = v.x + v.y + v.z + v.w


def test_vectors_are_one_access(engine):
    out = np.zeros(32, np.float32)
    report = cuda.inspect(vectors, engine=engine)[1, 32](out)
    assert report.ok
    i = 31 - np.arange(32)
    assert out.tolist() == (4 * i + 1.5).tolist()
    read = next(a for a in report.accesses if a.text == "s[31 - i]")
    assert (read.width, read.requests, read.wavefronts, read.parts, read.ways) == (16, 1, 4, 4, 1)


@cuda.jit(device=True)
def exchange(s, i, v):
    s[i] = v
    cuda.syncthreads()
    w = s[i ^ 1]
    cuda.syncthreads()
    return w


@cuda.jit
def through_a_device_function(out):
    s = cuda.shared.array(N, int32)
    i = cuda.threadIdx.x
    out[i] = exchange(s, i, exchange(s, i, i)) + exchange(s, i, 1)


def test_device_functions_may_hold_barriers(engine):
    out = np.zeros(N, np.int32)
    launch(through_a_device_function, engine, out)
    assert out.tolist() == [i + 1 for i in range(N)]


def test_arguments_are_checked(engine):
    with pytest.raises(LaunchError, match="takes 2 arguments"):
        launch(unguarded, engine, np.zeros(3))
    with pytest.raises(LaunchError, match="argument a of unguarded is a list"):
        launch(unguarded, engine, np.zeros(3), [1, 2])
    with pytest.raises(UnsupportedError, match="has no elements"):
        launch(unguarded, engine, np.zeros(3), 4)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        launch(plus_equals, engine, frozen)
    with pytest.raises(SimtError, match="no option speed"):
        cuda.simulate(unguarded, speed=1)


@cuda.jit
def strided(out, a):
    i = cuda.threadIdx.x
    out[i] = a[i] * 2


def test_views_and_overlaps(engine):
    base = np.arange(4 * N, dtype=np.float32)
    out = np.zeros(2 * N, np.float32)
    launch(strided, engine, out[::2], base[::-1][:N])
    assert out[::2].tolist() == [2.0 * (4 * N - 1 - i) for i in range(N)]
    assert not out[1::2].any()
    found = fails(RaceError, strided, engine, base[1 : N + 1], base[:N], match="global memory")
    assert found.space == "global"


@cuda.jit
def shifted(out, a):
    i = cuda.threadIdx.x
    out[i] = a[i]


def test_a_shifted_view_is_a_misaligned_load(engine):
    base = np.zeros(33, np.float32)
    report = cuda.inspect(shifted, engine=engine)[1, 32](np.zeros(32, np.float32), base[1:])
    assert next(a for a in report.accesses if a.array == "a").sectors == 5


def test_without_checks_a_bad_index_is_still_an_error(engine):
    with pytest.raises(BoundsError, match="run it with checks"):
        launch(unguarded, engine, np.zeros(N), np.arange(float(N)), checks=False)
