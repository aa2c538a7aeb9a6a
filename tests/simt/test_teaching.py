"""The lecture's rungs: what is right is right, what is wrong is wrong."""

import threading

import numpy as np
import pytest

from tilelab.simt.teaching import block_with_a_barrier, one_thread_at_a_time, private_shared

T = 4


def naive(block, thread, dim, a, b, c):
    x, y = block.x * dim.x + thread.x, block.y * dim.y + thread.y
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = sum(a[y, k] * b[k, x] for k in range(a.shape[1]))


def tiled(block, thread, dim, shared, barrier, a, b, c):
    x, y = block.x * T + thread.x, block.y * T + thread.y
    total = np.float32(0)
    for t in range(-(-a.shape[1] // T)):
        ka, kb = t * T + thread.x, t * T + thread.y
        shared[0, thread.y, thread.x] = a[y, ka] if y < a.shape[0] and ka < a.shape[1] else 0
        shared[1, thread.y, thread.x] = b[kb, x] if kb < b.shape[0] and x < b.shape[1] else 0
        barrier()
        for k in range(T):
            total += shared[0, thread.y, k] * shared[1, k, thread.x]
        barrier()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@pytest.fixture
def matrices():
    rng = np.random.default_rng(0)
    return rng.random((6, 9), np.float32), rng.random((9, 7), np.float32), np.zeros((6, 7), np.float32)


def test_one_thread_at_a_time(matrices):
    a, b, c = matrices
    one_thread_at_a_time(naive, (2, 2), (T, T), a, b, c)
    assert np.allclose(c, a @ b)


def test_a_real_barrier_makes_the_tiled_product_right(matrices):
    a, b, c = matrices
    block_with_a_barrier(tiled, (2, 2), (T, T), (2, T, T), a, b, c)
    assert np.allclose(c, a @ b)


def test_the_mock_is_wrong(matrices):
    a, b, c = matrices
    private_shared(tiled, (2, 2), (T, T), (2, T, T), a, b, c)
    assert not np.allclose(c, a @ b)
    assert np.isfinite(c).all()


def test_the_mock_is_right_only_if_each_thread_fills_the_tile(matrices):
    a, b, c = matrices

    def greedy(block, thread, dim, shared, barrier, a, b, c):
        x, y = block.x * T + thread.x, block.y * T + thread.y
        total = np.float32(0)
        for t in range(-(-a.shape[1] // T)):
            for i in range(T):
                k = t * T + i
                shared[0, thread.y, i] = a[y, k] if y < a.shape[0] and k < a.shape[1] else 0
                shared[1, i, thread.x] = b[k, x] if k < b.shape[0] and x < b.shape[1] else 0
            barrier()
            total += shared[0, thread.y] @ shared[1, :, thread.x]
        if y < c.shape[0] and x < c.shape[1]:
            c[y, x] = total

    private_shared(greedy, (2, 2), (T, T), (2, T, T), a, b, c)
    assert np.allclose(c, a @ b)


def test_a_missed_barrier_breaks_and_an_error_is_told():
    def misses(block, thread, dim, shared, barrier):
        if thread.x:
            return
        raise ValueError("the first thread fails")

    with pytest.raises(ValueError, match="the first thread"):
        block_with_a_barrier(misses, 1, 3, (1,))

    def breaks(block, thread, dim, shared, barrier):
        if thread.x:
            raise threading.BrokenBarrierError

    with pytest.raises(threading.BrokenBarrierError):
        block_with_a_barrier(breaks, 1, 2, (1,))
