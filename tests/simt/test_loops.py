"""Loops that never end are said, soon and alike on both engines; loops that wait for a thread get threads."""

import numpy as np
import pytest

from tilelab.simt import BudgetError, LaunchError, RaceError, cuda, int32

ENGINES = pytest.mark.parametrize("engine", ["lanes", "threads"])


@cuda.jit
def forever(out):
    i = 0
    while i < 10:
        out[cuda.threadIdx.x] = i


@cuda.jit
def forever_true(out):
    while True:
        pass


@cuda.jit
def forever_outside(out):
    n = 0
    while n >= 0:
        for k in range(3):
            n = k


@cuda.jit
def forever_by_break(out, n):
    step = 0
    while True:
        flag = n > 3
        if flag:
            break
        step += 1


@pytest.mark.parametrize(
    ("kernel", "line", "args"),
    [(forever, 3, ()), (forever_true, 2, ()), (forever_outside, 3, ()), (forever_by_break, 3, (2,))],
)
@ENGINES
def test_a_loop_in_which_nothing_changes_its_end(kernel, line, args, engine):
    with pytest.raises(BudgetError, match=r"never ends for thread .* nothing in it changes what ends it") as caught:
        cuda.simulate(kernel, engine=engine)[40, 64](np.zeros(64), *args)
    finding = caught.value.finding
    assert finding.lines == (kernel.source.first + line,)
    assert (finding.kind, finding.block, finding.threads) == ("endless", (0, 0, 0), ((0, 0, 0),))


@cuda.jit
def some_never_leave(out):
    i = cuda.grid(1)
    n = i
    while n == 70:
        pass
    out[i] = i


@ENGINES
def test_the_block_whose_thread_never_leaves(engine):
    with pytest.raises(BudgetError, match=r"thread \(6, 0, 0\) of block \(2, 0, 0\)"):
        cuda.simulate(some_never_leave, engine=engine)[4, 32](np.zeros(128))


@cuda.jit
def counts_on(out):
    i = 0
    while i >= 0:
        out[cuda.threadIdx.x] = i
        i += 1


@cuda.jit
def counts_on_inside(out):
    for _ in range(3):
        i = 0
        while i >= 0:
            i += 1


@cuda.jit
def too_many(out):
    x = 0
    for k in range(10**9):
        x += k


@cuda.jit
def with_barriers(out):
    i = 0
    while i >= 0:
        cuda.syncthreads()
        i += 1


@pytest.mark.parametrize(
    ("kernel", "lines"), [(counts_on, (3,)), (counts_on_inside, (4, 2)), (too_many, (3,)), (with_barriers, (3,))]
)
@ENGINES
def test_a_loop_that_goes_on_is_stopped_by_the_budget(kernel, lines, engine):
    with pytest.raises(BudgetError, match=r"still running after [\d,]+ rounds") as caught:
        cuda.simulate(kernel, engine=engine, steps=2000)[1, 32](np.zeros(32))
    assert caught.value.finding.lines == tuple(kernel.source.first + line for line in lines)
    assert "cuda.simulate(kernel, steps=...)" in caught.value.finding.hint


@cuda.jit
def one_block_counts_on(out):
    i = cuda.blockIdx.x - 2
    while i >= 0:
        i += 1
    out[cuda.grid(1)] = 1


def test_blocks_before_an_endless_one_are_done():
    out = np.zeros(4 * 32)
    report = cuda.inspect(one_block_counts_on, engine="lanes", steps=2000)[4, 32](out)
    assert [f.kind for f in report.findings] == ["budget"]
    assert not report.complete
    assert out.tolist() == [1] * 64 + [0] * 64


@cuda.jit
def long_and_right(out):
    x = 0
    for k in range(90_000):
        x += k
    out[0] = x


@ENGINES
def test_a_long_loop_of_one_thread_is_no_endless_one(engine):
    out = np.zeros(1, np.int64)
    cuda.simulate(long_and_right, engine=engine)[1, 1](out)
    assert out[0] == sum(range(90_000))


@cuda.jit
def lock(out, mutex):
    while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
        pass
    cuda.atomic.add(out, 0, 1)
    cuda.atomic.exch(mutex, 0, 0)


@cuda.jit
def lock_inside(out, mutex):
    done = False
    while not done:
        if cuda.atomic.cas(mutex, 0, 0, 1) == 0:
            cuda.atomic.add(out, 0, 1)
            cuda.atomic.exch(mutex, 0, 0)
            done = True


@cuda.jit(device=True)
def wait_for(flag):
    while cuda.atomic.add(flag, 0, 0) == 0:
        pass


@cuda.jit
def waits_for_a_flag(out, flag):
    i = cuda.threadIdx.x
    if i < 7:
        wait_for(flag)
    else:
        cuda.atomic.max(flag, 0, 1)
    cuda.atomic.add(out, 0, 1)


@cuda.jit
def waits_for_a_shuffle(out, flag):
    i = cuda.threadIdx.x
    if i // 32 == 0:
        wait_for(flag)
    else:
        total = cuda.shfl_sync(0xFFFFFFFF, i, 3)
        cuda.atomic.add(flag, 0, total)
    cuda.atomic.add(out, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "block"), [(lock, 8), (lock_inside, 8), (waits_for_a_flag, 8), (waits_for_a_shuffle, 64)]
)
def test_loops_that_wait_get_threads(kernel, block):
    out = np.zeros(1, np.int32)
    report = cuda.inspect(kernel)[1, block](out, np.zeros(1, np.int32))
    assert report.engine == "threads"
    assert report.ok, str(report)
    assert out[0] == block
    with pytest.raises(LaunchError, match=r"needs engine='threads': the loop of line .* waits for another thread"):
        cuda.simulate(kernel, engine="lanes")[1, block](out, np.zeros(1, np.int32))


@cuda.jit
def plain_flag(out, flag):
    i = cuda.threadIdx.x
    while flag[0] == 0:
        if i == 5:
            flag[0] = 1


@cuda.jit
def plain_flag_set_first(out, flag):
    i = cuda.threadIdx.x
    if i == 5:
        flag[0] = 1
    while flag[0] == 0:
        pass


@cuda.jit
def flag_set_too_late(out, flag):
    while flag[0] == 0:
        pass
    flag[0] = 1


@cuda.jit
def flag_set_after_a_barrier(out, flag):
    i = cuda.threadIdx.x
    if i == 0:
        wait_for(flag)
    cuda.syncthreads()
    cuda.atomic.add(flag, 0, 1)


def test_waits_that_no_thread_ends():
    for kernel in (flag_set_too_late, flag_set_after_a_barrier):
        with pytest.raises(BudgetError, match=r"never ends .* waits for memory that no thread changes any more"):
            kernel[1, 64](np.zeros(1), np.zeros(1, np.int32))
    for kernel in (plain_flag, plain_flag_set_first):
        with pytest.raises(RaceError, match="flag"):
            kernel[1, 64](np.zeros(1), np.zeros(1, np.int32))


@cuda.jit
def takes_numbers(out, counter):
    s = cuda.shared.array(1, int32)
    i = cuda.threadIdx.x
    if i == 0:
        s[0] = 0
    cuda.syncthreads()
    mine = cuda.atomic.add(s, 0, 1)
    while mine < 40:
        cuda.atomic.add(out, mine, 1)
        mine = cuda.atomic.add(s, 0, 1)


@ENGINES
def test_a_queue_of_work_is_no_wait(engine):
    out = np.zeros(40, np.int32)
    cuda.simulate(takes_numbers, engine=engine)[1, 8](out, 0)
    assert (out == 1).all()


@cuda.jit
def walks(out, parent):
    x = cuda.threadIdx.x
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    out[cuda.threadIdx.x] = x


@ENGINES
def test_a_walk_through_memory_is_no_wait(engine):
    out = np.zeros(1, np.int64)
    cuda.simulate(walks, engine=engine)[1, 1](out, np.array([3, 1, 1, 2]))
    assert out[0] == 1


@cuda.jit
def swaps_by_the_way(out):
    n = 0
    while n < 3:
        n += 1
        cuda.atomic.exch(out, 0, 7)


@ENGINES
def test_a_swap_that_no_condition_asks_for_is_no_wait(engine):
    out = np.zeros(1, np.int32)
    cuda.simulate(swaps_by_the_way, engine=engine)[1, 64](out)
    assert out[0] == 7
