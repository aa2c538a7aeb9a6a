"""Types are those that numba-cuda infers, as recorded from its typing context."""

import json
from pathlib import Path

import numpy as np
import pytest

from tilelab.simt import UnsupportedError, boolean, cuda, float32, float64, int32, int64, uint64
from tilelab.simt import types as T

RECORD = json.loads((Path(__file__).parents[1] / "data" / "simt" / "numba_typing.json").read_text())
TYPES = [getattr(T, name if name != "bool" else "boolean") for name in RECORD["types"]]
PAIRS = [(i, j) for i in range(len(TYPES)) for j in range(len(TYPES))]


@pytest.mark.parametrize("op", RECORD["binary"])
def test_binary_operators(op):
    for i, j in PAIRS:
        wanted = RECORD["binary"][op][i][j]
        try:
            got = str(T.binary(op, TYPES[i], TYPES[j])[0])
        except T.TypingFault:
            got = None
        if op == "**" and TYPES[i] == boolean and TYPES[j].kind in "iu" and TYPES[j].bits <= 32:
            continue  # Numba takes a bool for a float32 here; nobody raises a truth value to a power
        assert got == wanted, f"{TYPES[i]} {op} {TYPES[j]}"


def test_where_ways_meet():
    for i, j in PAIRS:
        assert str(T.unify(TYPES[i], TYPES[j])) == RECORD["unify"][i][j], (TYPES[i], TYPES[j])


def test_signs_and_functions():
    for i, kind in enumerate(TYPES):
        assert str(T.unary("-", kind)) == RECORD["unary"]["-"][i]
        if kind.kind != "f":
            assert str(T.unary("~", kind)) == RECORD["unary"]["~"][i]
        assert str(T.of_math("sqrt", kind)) == RECORD["math"]["sqrt"][i]


def one(kernel, out, *args):
    """Run one thread on both engines and return what it stores."""
    results = []
    for engine in ("lanes", "threads"):
        out[...] = 0
        cuda.simulate(kernel, engine=engine)[1, 1](out, *args)
        results.append(out.copy())
    assert results[0].tolist() == results[1].tolist()
    return results[0][0].item()


@cuda.jit
def sum_in_double(out, a):
    acc = 0.0
    for i in range(a.shape[0]):
        acc += a[i]
    out[0] = acc


@cuda.jit
def sum_in_single(out, a):
    acc = float32(0.0)
    for i in range(a.shape[0]):
        acc += a[i]
    out[0] = acc


def test_an_accumulator_that_starts_at_a_literal_is_double():
    a = np.full(1000, np.float32(0.1))
    double, single = one(sum_in_double, np.zeros(1), a), one(sum_in_single, np.zeros(1), a)
    assert double == np.sum(a.astype(np.float64)) == pytest.approx(100.0000015, abs=1e-7)
    assert single == np.add.accumulate(a)[-1] == pytest.approx(99.999046, abs=1e-6)


@cuda.jit
def literal_times_single(out, a):
    out[0] = a[0] * 2


@cuda.jit
def int_then_float(out, a):
    x = 7
    out[0] = x // 2
    x = x / 2
    out[1] = x
    if a[0] > 0:
        x = 1
    out[2] = x / 2


def test_a_name_may_change_its_type():
    out = np.zeros(3)
    for a in (np.array([1.0]), np.array([-1.0])):
        cuda.simulate(int_then_float, engine="lanes")[1, 1](out, a)
        assert out.tolist() == [3, 3.5, 0.5 if a[0] > 0 else 1.75]


@cuda.jit
def integers(out, a, b):
    out[0] = a // b
    out[1] = a % b
    out[2] = a << 70
    out[3] = a >> 70
    out[4] = a * a * a * a
    out[5] = -a // 2
    out[6] = a ^ b


@pytest.mark.parametrize("a", [7, -7, 2**40 + 3])
def test_integers_round_down_and_wrap(a):
    for engine in ("lanes", "threads"):
        out = np.zeros(7, np.int64)
        cuda.simulate(integers, engine=engine)[1, 1](out, a, 3)
        wrapped = (a**4 + 2**63) % 2**64 - 2**63
        assert out.tolist() == [a // 3, a % 3, 0, -1 if a < 0 else 0, wrapped, -a // 2, a ^ 3]


@cuda.jit
def casts(out, x):
    out[0] = int32(x)
    out[1] = int(x)
    out[2] = uint64(int(x)) >> 60
    out[3] = float64(float32(x))
    out[4] = round(x)
    out[5] = int64(True)


@pytest.mark.parametrize("x", [2.7, -2.7, 3e9, 2.5])
def test_conversions(x):
    results = []
    for engine in ("lanes", "threads"):
        out = np.zeros(6)
        cuda.simulate(casts, engine=engine)[1, 1](out, x)
        results.append(out.tolist())
    assert results[0] == results[1]
    assert results[0][1:2] + results[0][3:] == [int(x), float(np.float32(x)), round(x), 1]


LOW, HIGH = -(2**63), 2**63
#: A float -> what ``cvt.rzi`` makes of it as int8, uint8, int16, uint16, int32, uint32, int64, uint64. Numba converts
#: to 8 bits in a register of 16; a float64 that is no number gives the highest bit alone (PTX ISA 9.0).
CONVERTED = {
    300.7: (44, 44, 300, 300, 300, 300, 300, 300),
    -1.5: (-1, 0, -1, 0, -1, 0, -1, 0),
    40000.0: (-1, 64, 32767, 40000, 40000, 40000, 40000, 40000),
    3e9: (-1, 255, 32767, 65535, 2**31 - 1, 3 * 10**9, 3 * 10**9, 3 * 10**9),
    -3e9: (0, 0, -(2**15), 0, -(2**31), 0, -3 * 10**9, 0),
    float("inf"): (-1, 255, 32767, 65535, 2**31 - 1, 2**32 - 1, HIGH - 1, 2**64 - 1),
    float("-inf"): (0, 0, -(2**15), 0, -(2**31), 0, LOW, 0),
    float("nan"): (0, 0, -(2**15), 2**15, -(2**31), 2**31, LOW, HIGH),
}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@cuda.jit
def stored(out, x):
    out[cuda.threadIdx.x] = x[cuda.threadIdx.x]


@cuda.jit
def stored_by_one(out, x):
    out[0] = x[0]


@pytest.mark.parametrize("engine", ["lanes", "threads"])
@pytest.mark.parametrize("name", INTEGERS)
def test_floats_become_integers_as_on_a_gpu(engine, name):
    wanted = [row[INTEGERS.index(name)] for row in CONVERTED.values()]
    x, out = np.array(list(CONVERTED)), np.zeros(len(CONVERTED), name)
    cuda.simulate(stored, engine=engine)[1, len(x)](out, x)
    assert out.tolist() == wanted
    for value, number in zip(CONVERTED, wanted, strict=True):
        cuda.simulate(stored_by_one, engine=engine)[1, 1](out, np.array([value]))
        assert out[0] == number
    cuda.simulate(stored_by_one, engine=engine)[1, 1](out, np.array([np.nan], np.float32))
    assert out[0] == (wanted[-1] if name in ("int64", "uint64") else 0), "of 32 bits, what is no number gives 0"


@cuda.jit
def written_out(out):
    out[0] = int32(3e9)
    out[1] = uint64(-2.5)
    out[2] = 2 ** uint64(HIGH)
    out[3] = 1 << uint64(HIGH)


def test_numbers_written_out_are_converted_alike():
    for engine in ("lanes", "threads"):
        out = np.zeros(4, np.int64)
        cuda.simulate(written_out, engine=engine)[1, 1](out)
        assert out[:2].tolist() == [2**31 - 1, 0]
        assert out[3] == 0


@cuda.jit
def quotients(out, n):
    i = cuda.threadIdx.x
    out[0] = i / i
    out[1] = float(n) / i
    out[2] = n**1.5


def test_integers_are_divided_as_floats():
    for engine in ("lanes", "threads"):
        out = np.zeros(3)
        cuda.simulate(quotients, engine=engine)[1, 1](out, 4)
        assert np.isnan(out[0])
        assert out[1:].tolist() == [np.inf, 8]


@cuda.jit
def bits_of_a_float(out, x):
    out[0] = x & 1


@cuda.jit
def unclear(out, x):
    y = 1
    if x > 0:
        y = (1, 2)
    out[0] = y


@pytest.mark.parametrize(
    ("kernel", "message"), [(bits_of_a_float, "float64 & int64 asks for the bits"), (unclear, "y has no one type")]
)
def test_types_that_do_not_fit(kernel, message):
    with pytest.raises(UnsupportedError, match=message):
        kernel[1, 1](np.zeros(1), 1.0)


@cuda.jit
def half(out, a):
    out[0] = cuda.fp16.hfloor(a[0])
    out[1] = cuda.fp16.hadd(a[0], a[1])
    out[2] = a[0] * a[1]


def test_half_precision():
    out = np.zeros(3, np.float16)
    half[1, 1](out, np.array([1.5, 2.25], np.float16))
    assert out.tolist() == [1.0, 3.75, 3.375]


@cuda.jit
def fused_or_not(out, a, b, c):
    out[0] = a[0] * b[0] + c[0]
    out[1] = cuda.fma(a[0], b[0], c[0])


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_a_product_and_a_sum_are_rounded_twice(engine):
    a = np.array([1 + 2**-12], np.float32)
    c = np.array([-1], np.float32)
    out = np.zeros(2, np.float32)
    cuda.simulate(fused_or_not, engine=engine)[1, 1](out, a, a, c)
    assert out.tolist() == [2**-11, 2**-11 + 2**-24], "a GPU gives the second value for both"


@cuda.jit
def loop_variables(small, wide, unsigned, out):
    for i in range(small[0]):
        out[0] = cuda.selp(i > 0, i, small[0])  # takes two of one type
        out[1] = cuda.brev(cuda.popc(i))
    for i in range(wide[0]):
        out[2] = cuda.selp(i > 0, i, wide[0])
    for i in range(small[0] - 1, 5):
        out[3] = cuda.selp(i > 0, i, wide[0])
    for i in range(unsigned[0]):
        out[4] = float64(i - unsigned[1])
    for i in range(unsigned[0], 9):
        out[5] = float64(i - 20)
    for i in range(5, unsigned[0] - 2, -1):
        out[6] = float64(i - 20)


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_the_type_of_a_loop_variable(engine):
    """As numba-cuda 0.30.4 infers it: int32 of an int32, uint64 of integers without a sign, else int64."""
    out = np.zeros(7)
    small, wide, unsigned = np.array([3], np.int32), np.array([4]), np.array([3, 5], np.uint32)
    cuda.simulate(loop_variables, engine=engine)[1, 1](small, wide, unsigned, out)
    assert out.tolist() == [2, 2**31, 3, 4, 2.0**64, -12, -18]
