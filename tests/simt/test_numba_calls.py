"""Calls in a kernel are taken, refused and typed as numba-cuda does, as recorded from its compiler."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from tilelab.simt import LaunchError, UnsupportedError, cuda, float32, int8, int32, tree, uint8, uint16
from tilelab.simt import types as T
from tilelab.simt.lower import FunctionTyper

CALLS = json.loads((Path(__file__).parents[1] / "data" / "simt" / "numba_calls.json").read_text())["calls"]
#: What numba-cuda refuses and the simulator takes, since CUDA C++ has it: expression -> types.
TAKEN = {
    **{f"cuda.{vote}_sync(0xffffffff, a)": ("float16", "float32", "float64")
       for vote in ("all", "any", "eq", "ballot")},
    **{f"cuda.shfl_{way}sync(0xffffffff, a, 1)": ("bool", "int8", "int16", "uint8", "uint16", "uint32", "uint64")
       for way in ("", "up_", "down_", "xor_")},
    **{f"cuda.syncthreads_{op}(a)": ("bool", "float16", "float32", "float64") for op in ("count", "and", "or")},
    **{f"cuda.atomic.{op}(m, 0, a)": ("int32[] int32", "int64[] int64") for op in ("inc", "dec")},
    "cuda.ffs(a)": ("int8", "int16", "uint8", "uint16"),
    "float(a)": ("bool",),
    "cuda.selp(c, a, b)": ("bool bool bool", "bool int8 int8", "bool uint8 uint8", "bool float16 float16"),
}  # fmt: skip
#: What numba-cuda takes by way of a type that nobody means, and the simulator refuses.
REFUSED = {
    **{f"cuda.{name}(a)": ("bool", "float16", "float32", "float64") for name in ("popc", "clz", "brev")},
    **{f"cuda.match_{which}_sync(0xffffffff, a)": ("float16",) for which in ("any", "all")},
}  # fmt: skip


def parameters(call, given):
    if call.startswith("cuda.atomic"):
        return ["m", "a"]
    return ["c", "a", "b"] if "selp" in call else ["a", "b"][: len(given.split())]


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """A device function for each call."""
    lines = ["import math", "import numpy as np", "from tilelab.simt import cuda"]
    for i, (call, given) in enumerate(CALLS.items()):
        names = ", ".join(parameters(call, next(iter(given))))
        lines.append(f"@cuda.jit(device=True)\ndef f{i}({names}):\n    return {call}\n")
    path = tmp_path_factory.mktemp("calls") / "recorded_calls.py"
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {call: getattr(module, f"f{i}") for i, call in enumerate(CALLS)}


def type_named(text):
    kind = getattr(T, {"bool": "boolean"}.get(text.removesuffix("[]"), text.removesuffix("[]")))
    return T.Array(kind, 1, "global", frozenset(["m"])) if text.endswith("[]") else kind


def typed(function, given):
    """The type that a device function gives for arguments of some types; ``None`` if it is refused."""
    kinds = [type_named(text) for text in given.split()]
    made = tree.Function("f", function.source.params, kinds)
    try:
        FunctionTyper(
            tree.Program(tree.Function("k", [], []), ""), function.source, kinds, made, is_device=True
        ).build()
    except UnsupportedError:
        return None
    return str(made.returns)


@pytest.mark.parametrize("call", [call for call in CALLS if not call.startswith(("max(", "min(", "pow("))])
def test_types_of_calls(call, functions):
    for given, wanted in CALLS[call].items():
        got = typed(functions[call], given)
        if wanted is None and given in TAKEN.get(call, ()):
            assert got is not None, given
        elif given in REFUSED.get(call, ()):
            assert got is None, given
        else:
            assert got == wanted, given


@pytest.mark.parametrize("call", ["max(a, b)", "min(a, b)", "pow(a, b)"])
def test_types_of_built_in_calls(call, functions):
    for given, wanted in CALLS[call].items():
        if "bool" not in given:  # which Numba takes for a float32 here, or not at all
            assert typed(functions[call], given) == wanted, given


# ---- what they give
@cuda.jit
def narrow(a, b, c, out):
    i = cuda.threadIdx.x
    out[0, i] = -a[i]
    out[1, i] = abs(a[i])
    out[2, i] = -b[i]
    out[3, i] = ~b[i]
    out[4, i] = ~c[i]
    out[5, i] = -c[i]
    out[6, i] = -uint8(5)
    out[7, i] = ~uint16(5)
    out[8, i] = abs(c[i] > 3)


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_signs_turn_the_bits_of_the_operand(engine):
    """Numba negates and inverts before it widens: -uint8(5) is 251, and the lowest int8 is its own opposite."""
    a, b, c = np.array([-128, 5], np.int8), np.array([0, 200], np.uint8), np.array([1, 2**32 - 1], np.uint32)
    out = np.zeros((9, 2), np.int64)
    cuda.simulate(narrow, engine=engine)[1, 2](a, b, c, out)
    assert out.tolist() == [
        [-128, -5], [-128, 5], [0, 56], [255, 55], [2**32 - 2, 0], [2**32 - 1, 1], [251, 251], [2**16 - 6] * 2, [0, 1],
    ]  # fmt: skip


@cuda.jit
def extremes(a, b, out):
    i = cuda.threadIdx.x
    out[0, i] = min(a[i], b[i])
    out[1, i] = max(a[i], b[i])
    out[2, i] = np.minimum(a[i], b[i])
    out[3, i] = np.maximum(a[i], b[i])


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_extremes_of_zeros_and_of_what_is_no_number(engine):
    a, b = np.array([0.0, -0.0, 0.0, np.nan, 2], np.float32), np.array([-0.0, 0.0, 0.0, 1, np.nan], np.float32)
    out = np.zeros((4, 5), np.float32)
    cuda.simulate(extremes, engine=engine)[1, 5](a, b, out)
    assert np.signbit(out[:, :3]).tolist() == [[True, True, False], [False] * 3] * 2
    assert out[:2, 3:].tolist() == [[1, 2], [1, 2]]
    assert np.isnan(out[2:, 3:]).all()


@cuda.jit
def quotients(a, b, out, rest, half):
    i = cuda.threadIdx.x
    out[i], rest[i] = divmod(a[i], b[i])
    half[i] = divmod(a[i] * 0.5, 2.0)[1]


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_divmod(engine):
    a, b = np.array([7, -7, 7, -7, 5], np.int32), np.array([3, 3, -3, -3, 0], np.int32)
    out, rest, half = np.zeros(5, np.int64), np.zeros(5, np.int64), np.zeros(5)
    cuda.simulate(quotients, engine=engine)[1, 5](a, b, out, rest, half)
    assert out.tolist() == [2, -3, -3, 2, 0]
    assert rest.tolist() == [1, 2, -2, -1, 0]
    assert half.tolist() == [1.5, 0.5, 1.5, 0.5, 0.5]


@cuda.jit
def bits(a, out):
    i = cuda.threadIdx.x
    out[0, i] = cuda.brev(a[i])
    out[1, i] = cuda.clz(a[i])
    out[2, i] = cuda.popc(a[i])
    out[3, i] = cuda.ffs(a[i])


@pytest.mark.parametrize("engine", ["lanes", "threads"])
@pytest.mark.parametrize(("dtype", "reversed_"), [(np.int8, 2**31), (np.int64, 2**31), (np.uint64, 2**63)])
def test_bits_are_those_of_the_type(engine, dtype, reversed_):
    out = np.zeros((4, 2), np.uint64)
    cuda.simulate(bits, engine=engine)[1, 2](np.array([1, 0], dtype), out)
    width = np.dtype(dtype).itemsize * 8
    assert out.tolist() == [[reversed_, 0], [width - 1, width], [1, 0], [1, 0]]


# ---- conditions in a row
@cuda.jit
def chained(a, out):
    i = cuda.threadIdx.x - 2
    if 0 <= i < a[i]:  # a[i] is read only where 0 <= i
        out[i] += 1
    if i < a[max(i, 0)] + 1 <= 100 > i:
        out[max(i, 0)] += 10 * (i >= 0)


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_a_chain_of_comparisons_stops_at_the_first_that_fails(engine):
    out = np.zeros(30, np.int32)
    report = cuda.inspect(chained, engine=engine)[1, 32](np.full(30, 20, np.int32), out)
    assert [f for f in report.findings if f.kind != "race"] == []
    assert out.tolist() == [11] * 20 + [10] + [0] * 9
    assert {a.text: a.threads for a in report.accesses if a.array == "a"} == {"a[i]": 30, "a[max(i, 0)]": 32}


# ---- signatures
@cuda.jit("void(float32[:], float32, int8)")
def signed(out, x, n):
    out[0] = x * float32(3.0)
    out[1] = n


@cuda.jit((float32[:], float32, int8))
def signed_by_a_tuple(out, x, n):
    out[0] = x * float32(3.0)
    out[1] = n


@cuda.jit("int32(float32)", device=True)
def whole(x):
    return x * 10


@cuda.jit("f4[::1], f8")
def through_a_function(out, x):
    out[0] = whole(x)
    out[1] = x


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_a_signature_fixes_the_types_of_numbers(engine):
    for kernel in (signed, signed_by_a_tuple):
        out = np.zeros(2, np.float32)
        cuda.simulate(kernel, engine=engine)[1, 1](out, 0.1, 7)
        assert out.tolist() == [float(np.float32(0.1) * np.float32(3)), 7]
        for bad in ((np.zeros(2), 0.1, 7), (out, 0.1, 1000), (out, "a", 7)):
            with pytest.raises(LaunchError, match=r"signature says float32|is no int8|is no float32"):
                kernel[1, 1](*bad)
    cuda.simulate(through_a_function, engine=engine)[1, 1](out, 0.77)
    assert out.tolist() == [7, np.float32(0.77)]


def test_a_signature_of_another_length():
    with pytest.raises(UnsupportedError, match="whole takes 1 argument, its signature names 2"):
        cuda.jit("int32(float32, int32)", device=True)(whole.py_func)
    assert [str(s) for s in (int8, int32)] == ["int8", "int32"]
