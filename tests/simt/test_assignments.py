"""Assignments, in Python's order: the value first and once, then the targets from left to right."""

import numpy as np
import pytest

from tilelab.simt import cuda, float32

pytestmark = pytest.mark.parametrize("engine", ["lanes", "threads"])


def launch(kernel, engine, *args, block=1):
    cuda.simulate(kernel, engine=engine)[1, block](*args)


@cuda.jit
def swap_neighbours(a):
    i = 2 * cuda.threadIdx.x
    a[i], a[i + 1] = a[i + 1], a[i]


@cuda.jit
def odd_even_sort(a, n):
    t = cuda.threadIdx.x
    for turn in range(n):
        i = 2 * t + turn % 2
        if i + 1 < n and a[i] > a[i + 1]:
            a[i], a[i + 1] = a[i + 1], a[i]
        cuda.syncthreads()


@cuda.jit
def bitonic_sort(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = 2
    while k <= 64:
        j = k >> 1
        while j > 0:
            other = t ^ j
            if other > t and (t & k == 0) == (s[t] > s[other]):
                s[t], s[other] = s[other], s[t]
            cuda.syncthreads()
            j >>= 1
        k <<= 1
    x[t] = s[t]


@cuda.jit
def turn_about(a, out):
    x, y, z = a[0], a[1], a[2]
    x, y, z = z, x, y
    (x, y), out[0] = (y, x), x
    out[1], (out[2], out[3]) = x, (y, z)
    a[0], a[1], a[2] = a[2], a[0], a[1]


def test_elements_that_change_places(engine):
    a = np.arange(8)
    launch(swap_neighbours, engine, a, block=4)
    assert a.tolist() == [1, 0, 3, 2, 5, 4, 7, 6]
    for kernel, rest in ((odd_even_sort, (64,)), (bitonic_sort, ())):
        x = np.random.default_rng(1).permutation(64).astype(np.float32)
        launch(kernel, engine, x, *rest, block=64)
        assert x.tolist() == list(range(64)), kernel
    a, out = np.array([5, 6, 7]), np.zeros(4, np.int64)
    launch(turn_about, engine, a, out)
    assert (out.tolist(), a.tolist()) == ([7, 5, 7, 6], [7, 5, 6])


@cuda.jit
def several_targets(count, a, b, out):
    i = cuda.threadIdx.x
    first = second = cuda.atomic.add(count, 0, 1)
    out[i, 0], out[i, 1] = first, second
    a[i] = b[i] = a[i] + 1
    left = right = cuda.shared.array(32, float32)
    left[i] = i
    out[i, 2] = right[i]


def test_several_targets_of_one_value(engine):
    count, a, b, out = np.zeros(1, np.int32), np.arange(32), np.zeros(32, np.int64), np.zeros((32, 3), np.int32)
    launch(several_targets, engine, count, a, b, out, block=32)
    assert count[0] == 32
    assert sorted(out[:, 0]) == list(range(32))
    assert np.array_equal(out[:, 0], out[:, 1])
    assert np.array_equal(out[:, 2], np.arange(32))
    assert a.tolist() == b.tolist() == list(range(1, 33))


@cuda.jit(device=True)
def take(count, by):
    old = count[0]
    count[0] = old + by
    return old


@cuda.jit
def value_before_index(count, out):
    out[cuda.atomic.add(count, 0, 1)] = cuda.atomic.add(count, 0, 10)
    out[take(count, 1)] = take(count, 1)
    out[count[0]] = take(count, 2)
    out[take(count, 1) % 4] += take(count, 5)
    out[1], out[take(count, 1)] = count[0], take(count, 1)


def test_the_value_comes_before_the_index(engine):
    count, out = np.zeros(1, np.int64), np.zeros(32, np.int64)
    launch(value_before_index, engine, count, out)
    wanted, n = [0] * 32, 0

    def taken(by):
        nonlocal n
        n += by
        return n - by

    value = taken(10)
    wanted[taken(1)] = value
    value = taken(1)
    wanted[taken(1)] = value
    value = taken(2)
    wanted[n] = value
    index = taken(1) % 4
    wanted[index] += taken(5)
    values = n, taken(1)
    wanted[1] = values[0]
    wanted[taken(1)] = values[1]
    assert (out.tolist(), count[0]) == (wanted, n)


@cuda.jit
def two_in_one_statement(out):
    t = cuda.threadIdx.x
    left, right = cuda.shared.array(32, float32), cuda.shared.array(32, float32)
    left[t] = 1
    out[t] = right[t] + left[t]


def test_arrays_of_one_statement_have_their_own_names(engine):
    report = cuda.inspect(two_in_one_statement, engine=engine)[1, 32](np.zeros(32, np.float32))
    assert [f.array for f in report.findings] == ["right"]
