"""Values and rules that a tester found wrong: ``and`` and ``or``, wide integers, ends of memory, local arrays."""

import numpy as np
import pytest

from tilelab.simt import BoundsError, BudgetError, LaunchError, RaceError, UnsupportedError, cuda, float32, int32

pytestmark = pytest.mark.parametrize("engine", ["lanes", "threads"])


def launch(kernel, engine, *args, grid=1, block=4, **options):
    cuda.simulate(kernel, engine=engine, **options)[grid, block](*args)
    return args[0].tolist()


# ---- and, or
@cuda.jit
def either(o, a):
    t = cuda.threadIdx.x
    o[t] = a[t] or 7


@cuda.jit
def both(o, a):
    t = cuda.threadIdx.x
    o[t] = a[t] and a[t] + 10 and 5


@cuda.jit
def mixed(o, a, n):
    t = cuda.threadIdx.x
    m = n or 5
    o[t] = (a[t] % 2 and m) or 0.5
    if (a[t] and n) or t == 1:
        o[t] += 100


@cuda.jit
def guarded(o, a):
    t = cuda.threadIdx.x
    o[t] = (t < 2 and a[t]) or (t - 1 and a[t - 2])


def test_the_operand_that_decides(engine):
    a = np.arange(4, dtype=np.int32)
    assert launch(either, engine, np.zeros(4, np.int32), a) == [7, 1, 2, 3]
    assert launch(both, engine, np.zeros(4, np.int32), a) == [0, 5, 5, 5]
    assert launch(mixed, engine, np.zeros(4), a, 0) == [0.5, 105, 0.5, 5]
    assert launch(mixed, engine, np.zeros(4), a, 2) == [0.5, 102, 100.5, 102]
    nan = np.array([np.nan, 0.0, -0.0, 2.0])
    assert launch(either, engine, np.zeros(4), nan)[1:] == [7, 7, 2]


def test_the_right_operand_only_where_it_decides(engine):
    assert launch(guarded, engine, np.zeros(4, np.int32), np.array([3, 4], np.int32)) == [3, 4, 3, 4]


@cuda.jit
def no_number(o):
    o[0] = o.shape or 1


def test_only_numbers_decide(engine):
    with pytest.raises(UnsupportedError, match="write if and else"):
        launch(no_number, engine, np.zeros(4))


# ---- integers of 64 bits
@cuda.jit
def product(o, x, y):
    o[0] = x * y


def test_wide_integers(engine):
    assert launch(product, engine, np.zeros(1, np.uint64), 2**63, 1) == [2**63]
    assert launch(product, engine, np.zeros(1, np.int64), -(2**63), 1) == [-(2**63)]
    for wide in (2**70, 2**64, -(2**63) - 1):
        with pytest.raises(LaunchError, match=f"argument x of product: {wide} does not fit into 64 bits"):
            launch(product, engine, np.zeros(1, np.uint64), wide, 1)


@cuda.jit
def least(o):
    o[0] = -9223372036854775808


@cuda.jit
def too_wide(o):
    o[0] = 18446744073709551616


def test_wide_numbers_in_the_source(engine):
    assert launch(least, engine, np.zeros(1, np.int64)) == [-(2**63)]
    with pytest.raises(UnsupportedError, match="18446744073709551616 does not fit into 64 bits"):
        launch(too_wide, engine, np.zeros(1, np.int64))


# ---- without checks both ends of memory are alike
@cuda.jit
def moved(o, k):
    o[cuda.threadIdx.x + k] = 1


@cuda.jit
def moved_in_shared(o, k):
    s = cuda.shared.array(4, int32)
    s[cuda.threadIdx.x + k] = 1
    o[0] = 1


@cuda.jit
def moved_in_local(o, k):
    s = cuda.local.array(4, int32)
    s[cuda.threadIdx.x + k] = 1
    o[0] = 1


@pytest.mark.parametrize("kernel", [moved, moved_in_shared, moved_in_local])
@pytest.mark.parametrize("k", [-2, 2])
def test_both_ends_without_checks(engine, kernel, k):
    with pytest.raises(BoundsError, match=r"lies outside its memory of 4; run it with checks"):
        launch(kernel, engine, np.zeros(4), k, grid=2, checks=False)


# ---- a step of 0
@cuda.jit
def standing(o):
    for k in range(0, 5, cuda.threadIdx.x):
        o[cuda.threadIdx.x] += k


@pytest.mark.parametrize("checks", [True, False])
def test_a_step_of_zero(engine, checks):
    with pytest.raises(BudgetError, match=r"has a step of 0 for thread \(0, 0, 0\)"):
        launch(standing, engine, np.zeros(4), checks=checks)


# ---- the first thread is named
@cuda.jit
def read_by_all(o):
    i = cuda.grid(1)
    if cuda.blockIdx.x == 0:
        o[1 + cuda.threadIdx.x * 0] = o[5]
    elif i == 299 * 64:
        o[5] = 3


def test_the_first_thread_is_named(engine):
    with pytest.raises(
        RaceError, match=r"block \(0, 0, 0\) thread \(0, 0, 0\) reads .* block \(299, 0, 0\) thread \(0,"
    ):
        launch(read_by_all, engine, np.zeros(8), grid=300, block=64)


# ---- a local array lasts as long as the call
@cuda.jit
def kept(o):
    t = cuda.threadIdx.x
    for k in range(2):
        held = cuda.local.array(2, float32)
        if k == 0:
            held[t % 2] = t
        else:
            o[t] = held[t % 2]


def test_a_local_array_in_a_loop(engine):
    assert launch(kept, engine, np.zeros(4)) == [0, 1, 2, 3]


# ---- slices
@cuda.jit
def of_nothing(o):
    o[0] = o[2:2][cuda.threadIdx.x]


@cuda.jit
def before_a_slice(o):
    o[0] = o[2:][cuda.threadIdx.x - 1]


def test_indices_of_a_slice(engine):
    with pytest.raises(BoundsError, match="this axis is empty"):
        launch(of_nothing, engine, np.zeros(6))
    with pytest.raises(BoundsError, match=r"index -1 of axis 0 of a slice of o \(extent 4\)"):
        launch(before_a_slice, engine, np.zeros(6))


# ---- what is refused says what to write
def whole_shape(o):
    if o.shape == (4,):
        o[0] = 1


def not_imported(o):
    o[0] = maths.fmod(3.0, 2.0)  # noqa: F821


def summed(o):
    o[0] = np.sum(o)


def everywhere(o):
    o[...] = 1


def a_part(o):
    o[0:2] = 1


REFUSED = [
    (whole_shape, "a tuple cannot be compared as a whole in a kernel; compare its items"),
    (not_imported, "the name maths is not defined; import it"),
    (summed, r"cannot call np\.sum; write a loop"),
    (everywhere, "one element at a time; write a loop"),
    (a_part, "one element at a time; write a loop"),
]


@pytest.mark.parametrize(("function", "words"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_what_to_write(engine, function, words):
    with pytest.raises(UnsupportedError, match=words):
        launch(cuda.jit(function), engine, np.zeros(4))


@cuda.jit
def powers(o):
    o[0] = pow(2, 3)
    o[1] = pow(2.0, cuda.threadIdx.x)


def test_pow(engine):
    assert launch(powers, engine, np.zeros(4), block=1)[:2] == [8, 1]


# ---- atomics
@cuda.jit
def counts(o):
    cuda.atomic.add(o, cuda.threadIdx.x, 1)


@cuda.jit
def one_bin(o):
    s = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    if t < 4:
        s[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, t // 16, 1)
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.add(o, 0, s[0])


def test_traffic_of_atomics(engine):
    (traffic,) = cuda.inspect(counts, engine=engine)[4, 32](np.zeros(32, np.int32)).traffic
    assert (traffic.loaded, traffic.stored, traffic.moved, traffic.minimum) == (512, 512, 1024, 256)


def test_lanes_that_meet(engine):
    report = cuda.inspect(one_bin, engine=engine)[2, 64](np.zeros(1, np.int32))
    assert report.costs == [
        f"Line {one_bin.source.first + 7}: 16 lanes of a warp change one element by cuda.atomic.add(s, t // 16, 1): "
        "they take turns, 64 where 4 would do (the time of that is not modelled)."
    ]
    assert "16 lanes meet at one element and take turns, 64 in all" in str(report)


# ---- what an access costs, against what it must
@cuda.jit
def cheap(o, a):
    t = cuda.grid(1)
    o[t] = a[0]
    if t == 0:
        o[40] = a[1]


@cuda.jit
def strided(o, a):
    o[cuda.threadIdx.x * 2] = a[cuda.threadIdx.x + 1]


def test_costly_is_what_could_be_saved(engine):
    report = cuda.inspect(cheap, engine=engine)[1, 32](np.zeros(64, np.int32), np.zeros(64, np.int32))
    assert report.verdict == "Nothing wrong was found."
    report = cuda.inspect(strided, engine=engine)[1, 32](np.zeros(64, np.int32), np.zeros(64, np.int32))
    (cost,) = report.costs
    assert "moves 8 sectors where 4 would do (50% used)" in cost
