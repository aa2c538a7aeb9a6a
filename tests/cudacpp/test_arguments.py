"""Arguments that do not fit are refused with one clear sentence, before anything is built or run."""
# ruff: noqa: E501

import numpy as np
import pytest

from tilelab.cudacpp.errors import BuildError, LaunchError
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.source import kernels_in, signature

SOURCE = "__global__ void add(const float* a, const float* b, float* c, int n, float s) { }"


def plan(a=None, b=None, c=None, n=4, s=1.0):
    a, b, c = (np.zeros(4, "f4") if x is None else x for x in (a, b, c))
    return Kernel(SOURCE, "add").plan(a, b, c, n, s)


def test_what_fits_is_bound_by_name():
    arguments, launch = plan(n=np.int64(3), s=2)
    assert [getattr(a, "dtype", None) for a in arguments] == ["float32"] * 3 + ["int32", "float32"]
    assert arguments[3].packed == b"\x03\0\0\0"
    assert np.frombuffer(arguments[4].packed, "f4")[0] == 2
    assert launch.threads == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"a": np.zeros(4)}, "argument a is float64, but the kernel declares const float"),
        ({"a": np.zeros((4, 4), "f4").T[:2]}, "argument a is not contiguous"),
        ({"a": np.zeros(8, "f4")[::2]}, "argument a is not contiguous"),
        ({"c": np.zeros((0, 3), "f4")}, r"argument c has shape \(0, 3\)"),
        ({"a": np.zeros((2, 2), "f4").view(np.matrix)}, r"argument a is matrix\(.*: .* so pass numpy.asarray\(a\)"),
        ({"c": np.ma.zeros(4, "f4")}, r"argument c is masked_array\(.*pass numpy.asarray\(c\)"),
        ({"a": 3}, "argument a is 3, but the kernel declares const float"),
        ({"n": np.zeros(4, "f4")}, "argument n is an array"),
        ({"n": 1.5}, "argument n is 1.5, but the kernel declares int n: pass a whole number"),
        ({"n": 2**31}, "argument n is 2147483648, which does not fit int"),
        ({"n": "4"}, "argument n is '4'"),
        ({"s": None}, "argument s is None"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    with pytest.raises(LaunchError, match=message):
        plan(**wrong)


def test_more_elements_than_an_index_counts():
    huge = np.empty(2**31, "i1")  # never touched, so it takes no memory
    with pytest.raises(LaunchError, match="argument x has 2147483648 elements; an int index of a kernel counts to"):
        Kernel("__global__ void k(signed char* x) {}", "k").plan(huge)


def test_wrong_number_of_arguments():
    with pytest.raises(LaunchError, match=r"add takes 5 arguments \(const float\* a, .*, 1 were given"):
        Kernel(SOURCE, "add").plan(np.zeros(4, "f4"))


def test_an_output_that_is_an_input_is_refused_and_two_inputs_may_be_one():
    x = np.zeros(8, "f4")
    with pytest.raises(LaunchError, match="a and c share memory, and the kernel writes to c"):
        plan(a=x, c=x)
    with pytest.raises(LaunchError, match="share memory"):
        plan(a=x[:5], c=x[4:])
    plan(a=x, b=x)
    plan(a=x[:4], c=x[4:])


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    plan(a=torch.zeros(4), n=torch.tensor(4))
    with pytest.raises(LaunchError, match="argument a is float16"):
        plan(a=torch.zeros(4, dtype=torch.float16))
    with pytest.raises(LaunchError, match="not contiguous"):
        plan(a=torch.zeros(4, 4).T)
    with pytest.raises(LaunchError, match="lives on 'meta'"):
        plan(a=torch.zeros(4, device="meta"))


@pytest.mark.parametrize(
    ("source", "name", "parameters"),
    [
        ("extern \"C\" __global__ void k(const float* __restrict__ A, float *B, int M) {", "k", "const float* A, float* B, int M"),
        ("__global__ void __launch_bounds__(16 * (4)) k ( float * const p , unsigned long long n ) {", "k", "float* p, unsigned long long n"),
        ("template <typename T, int N>\n__global__ void k(T* x, const T y[4]) {", "k<half, 3>", "half* x, const half* y"),
        ("// __global__ void k(int a)\n/* k( */ __global__ void k(void) {", "k", ""),
        ("__global__ void first(int a) {} __global__ static void k(const __nv_bfloat16* b, float4* v) {", "k", "const __nv_bfloat16* b, float4* v"),
    ],
)  # fmt: skip
def test_parameters_are_read_from_the_source(source, name, parameters):
    assert ", ".join(map(str, signature(source, name))) == parameters


def test_a_kernel_that_is_not_there():
    assert kernels_in("__global__ void a(int x) {} __global__ void __launch_bounds__(8) b() {}") == ["a", "b"]
    with pytest.raises(BuildError, match="has no kernel 'c'; it has a, b"):
        Kernel("__global__ void a(int x) {} __global__ void b() {}", "c")
    with pytest.raises(BuildError, match="no __global__ function at all"):
        Kernel("void a() {}", "a")
    with pytest.raises(BuildError, match="backend 'gcc' is none of"):
        Kernel(SOURCE, "add", backend="gcc")
