"""Variables that some threads never give a value: said for the thread that reads one, and only then."""

import numpy as np
import pytest

from tilelab.simt import UninitialisedError, UnsupportedError, cuda

pytestmark = pytest.mark.parametrize("engine", ["lanes", "threads"])
N = 64


@cuda.jit
def in_a_branch(out, n):
    i = cuda.threadIdx.x
    if i < n:
        v = i
    out[i] = v


@cuda.jit
def in_a_loop(out, n):
    i = cuda.threadIdx.x
    for k in range(n - i):
        v = k
    out[i] = v


@cuda.jit
def loop_variable(out, n):
    i = cuda.threadIdx.x
    for v in range(n - i):  # noqa: B007
        pass
    out[i] = v


@cuda.jit
def in_a_while_loop(out, n):
    i = cuda.threadIdx.x
    k = i
    while k < n:
        v = k
        k += 1
    out[i] = v


@cuda.jit
def after_a_break(out, n):
    i = cuda.threadIdx.x
    while True:
        if i >= n:
            break
        v = i
        break
    out[i] = v


@cuda.jit
def in_another_round(out, n):
    i = cuda.threadIdx.x
    for k in range(2):
        if k > 0 or i >= n:
            out[i] = v  # noqa: F821
        v = k  # noqa: F841


@cuda.jit
def changes_type(out, n):
    i = cuda.threadIdx.x
    if i < n:
        v = 1
    if i < n // 2:
        v = 2.5
    out[i] = v


@cuda.jit
def an_array(out, n):
    i = cuda.threadIdx.x
    if i < n:
        v = out
    v[i] = 1


@cuda.jit
def added_to(out, n):
    i = cuda.threadIdx.x
    if i < n:
        v = 1
    v += 1
    out[i] = v


@cuda.jit(device=True)
def some(i, n):
    if i < n:
        v = 3
    return v


@cuda.jit
def in_a_device_function(out, n):
    out[cuda.threadIdx.x] = some(cuda.threadIdx.x, n)


KERNELS = [
    in_a_branch, in_a_loop, loop_variable, in_a_while_loop, after_a_break, changes_type, an_array,
    added_to, in_a_device_function,
]  # fmt: skip


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_a_read_before_any_value(kernel, checks, engine):
    with pytest.raises(
        UninitialisedError, match=r"v is read in line .* thread \(10, 0, 0\).* never gave it a value"
    ) as e:
        cuda.simulate(kernel, engine=engine, checks=checks)[1, N](np.zeros(N), 10)
    assert e.value.finding.array == "v"
    assert "only line" in str(e.value)
    cuda.simulate(kernel, engine=engine, checks=checks)[1, 10](np.zeros(N), 10)  # nobody goes without


@cuda.jit
def under_one_condition(out, n):
    i = cuda.threadIdx.x
    ok = i < n
    if ok:
        v = i + 1
    w = 1 if ok and v > 3 else 0
    if ok or False:
        out[i] = v + w


@cuda.jit
def in_a_loop_that_comes_in(out, n):
    i = cuda.threadIdx.x
    for k in range(3):
        v = i + k
    out[i] = v + k


@cuda.jit
def both_ways(out, n):
    i = cuda.threadIdx.x
    if i < n:
        v = 1
    elif i < 2 * n:
        v = 2
    else:
        return
    out[i] = v


def test_a_thread_that_has_a_value_may_read_it(engine):
    i = np.arange(N)
    for kernel, wanted in [
        (under_one_condition, np.where(i < 10, i + 1 + (i + 1 > 3), 0)),
        (in_a_loop_that_comes_in, i + 4),
        (both_ways, np.where(i < 10, 1, np.where(i < 20, 2, 0))),
    ]:
        out = np.zeros(N)
        report = cuda.inspect(kernel, engine=engine)[1, N](out, 10)
        assert report.ok
        assert out.tolist() == wanted.tolist()


@cuda.jit
def never(out):
    out[0] = v  # noqa: F821
    v = 1  # noqa: F841


def test_what_nobody_can_have_is_refused_at_once(engine):
    with pytest.raises(UnsupportedError, match="v is read before anything is assigned"):
        cuda.simulate(never, engine=engine)[1, 1](np.zeros(1))
    with pytest.raises(UnsupportedError, match="v is read before anything is assigned to it; give it a value first"):
        cuda.simulate(in_another_round, engine=engine)[1, N](np.zeros(N), N)
