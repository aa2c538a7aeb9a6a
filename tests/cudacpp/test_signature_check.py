"""Parameters as the compiler reads them: names that stand for types, branches that are not taken, and mismatches."""

import numpy as np
import pytest

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.errors import BuildError, LaunchError
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.signature_check import checks
from tilelab.cudacpp.source import declaration, signature


def value_of(source, *scalars, name="k", **options):
    x = np.zeros(1, options.pop("dtype", "f4"))
    Kernel(source, name, **options)(*scalars, x)
    return x[0]


@pytest.mark.parametrize(
    ("head", "ctype", "options"),
    [
        ("typedef double real;", "real", {}),
        ("using real = double;", "real", {}),
        ("using inner = double; typedef inner real;", "real", {}),
        ("#define real double\n", "real", {}),
        ("", "T", {"defines": {"T": "double"}}),
        ("template <class T = double>", "T", {"name": "k<>"}),
        ("template <class T>", "T", {"name": "k<double>"}),
        ("#include <cstdint>\n", "double", {}),
    ],
)
def test_a_scalar_whose_type_has_another_name(head, ctype, options):
    assert value_of(f"{head} __global__ void k({ctype} a, float* x) {{ x[0] = a; }}", 2.5, **options) == 2.5


@pytest.mark.parametrize("ctype", ["std::int64_t", "long int", "long long int", "::std::int64_t"])
def test_whole_types_by_all_their_names(ctype):
    source = f"#include <cstdint>\n__global__ void k({ctype} a, float* x) {{ x[0] = a >> 33; }}"
    assert value_of(source, 5 << 33) == 5


def test_a_scalar_of_unknown_type_is_refused():
    for source in (
        "struct real { double v; }; __global__ void k(real a, float* x) { x[0] = a.v; }",
        "template <class T> struct same { using type = T; };"
        "__global__ void k(typename same<double>::type a, float* x) { x[0] = a; }",
        "namespace a { typedef float real; } namespace b { typedef double real; } using namespace b;"
        "__global__ void k(real a, float* x) { x[0] = a; }",
    ):
        with pytest.raises(LaunchError, match=r"argument a has type .* write the type itself \(float, double"):
            value_of(source, 2.5)


OLD = """#ifdef OLD
__global__ void k(float* x, int a) { x[0] = a; }
#else
__global__ void k(float* x, float a) { x[0] = a; }
#endif
"""


def test_branches_that_are_not_taken_are_not_read():
    assert str(signature(OLD, "k")[1]) == "float a"
    assert str(signature(OLD, "k", ["OLD=1"])[1]) == "int a"
    x = np.zeros(1, "f4")
    Kernel(OLD, "k")(x, 2.5)
    assert x[0] == 2.5
    Kernel(OLD, "k", defines={"OLD": 1})(x, 7)
    assert x[0] == 7
    source = "#if 0\n__global__ void k(double old, int b) {}\n#endif\n__global__ void k(float* x) { x[0] = 1; }"
    assert value_of(source) == 1
    nested = "#define NEW 1\n#if NEW\n#ifndef OLD\n" + source + "\n#elif 1\n#error no\n#endif\n#endif"
    assert value_of(nested) == 1


@pytest.mark.parametrize(
    "source",
    [
        "#if 2 + 2 == 5\n__global__ void k(int a, float* x) { x[0] = a; }\n#else\n"
        "__global__ void k(float a, float* x) { x[0] = a; }\n#endif",
        "#define float int\n__global__ void k(float a, int* x) { x[0] = a; }",
        "#if 2 + 2 == 5\n__global__ void k(float* x) {}\n#else\n__global__ void k(float a, float* x) {}\n#endif",
        "#if 2 + 2 == 5\n__global__ void k(float a, float* x) {}\n"
        "#else\n__global__ void k(float a, double* x) {}\n#endif",
        "__global__ void k(float& a, float* x) { x[0] = a; }",
    ],
)
def test_what_the_compiler_reads_otherwise_is_an_error_at_the_kernel(source):
    with pytest.raises(
        (BuildError, LaunchError),
        match=r"line \d: (?s:.*)is read as|by reference|has type|whole number|takes 1 arguments",
    ):
        value_of(source, 3.0)


KINDS = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T, int N> __global__ void t(const T* __restrict__ a, T b, int c) {}
__global__ void k(const float* a, const double* const b, __half* c, __nv_bfloat162* d, const float4* e,
                  unsigned char* f,
                  bool g, long long h, unsigned long i, size_t j, char k, void* l, const int m[3], signed n,
                  short int o) {}
"""


@pytest.mark.parametrize("name", ["k", "t<float, 3>", "t<__half, 3>", "t<unsigned, 3>"])
def test_all_kinds_agree_here_and_with_the_compiler_for_a_gpu(name):
    Kernel(KINDS, name).build()
    try:
        nvcc.find()
    except BuildError as reason:
        pytest.skip(str(reason))
    nvcc.compile_cubin(KINDS + checks(declaration(KINDS, name)), "sm_90")


def test_the_compiler_for_a_gpu_sees_a_mismatch_too():
    try:
        nvcc.find()
    except BuildError as reason:
        pytest.skip(str(reason))
    wrong = "__global__ void k(float a, float* x) {}"
    right = "__global__ void k(int a, float* x) {}"
    with pytest.raises(BuildError, match=r"line 1: .*\n.*parameter 1 is read as float a, but is something else"):
        nvcc.compile_cubin(f"{right}\n{checks(declaration(wrong, 'k'))}", "sm_90")


def test_names_of_a_source_mean_nothing_in_our_header():
    source = "__global__ void k(T a, T* x) { x[0] = a + min(P, F) + I; __syncthreads(); }"
    names = dict.fromkeys(("A", "B", "P", "F", "I", "N", "value", "at", "bits", "lane", "warp", "count", "of"), 1)
    assert value_of(source, 2.5, dtype="f8", defines={"T": "double"} | names) == 4.5


@pytest.mark.parametrize("source", ["template <class T = double> __global__ void k(T a) {}"])
def test_a_template_without_arguments(source):
    with pytest.raises(BuildError, match=r"k is a template: name it with its arguments, such as k<double>"):
        Kernel(source, "k")


def test_quotes_in_characters():
    source = "__device__ char q() { return '\"'; } __global__ void k(float* x) { x[0] = q() + '\\'' + '\\\\'; } // '"
    assert value_of(source) == ord('"') + ord("'") + ord("\\")


@pytest.mark.parametrize(
    ("source", "name", "options"),
    [
        ("__global__ void __launch_bounds__(64) k(float* x) {}", "k", {}),
        ("constexpr int T = 64; __global__ __launch_bounds__(T, 2) void k(float* x) {}", "k", {}),
        ("template <int T> __global__ void __launch_bounds__((T) * 2) k(float* x) {}", "k<32>", {}),
        ("__global__ void __launch_bounds__(T) k(float* x) {}", "k", {"defines": {"T": 64}}),
    ],
)
def test_launch_bounds_hold(source, name, options):
    Kernel(source, name, block=64, **options)(np.zeros(1, "f4"))
    with pytest.raises(LaunchError, match=r"128 threads a block, but .* __launch_bounds__\(64\)"):
        Kernel(source, name, block=128, **options)(np.zeros(1, "f4"))
