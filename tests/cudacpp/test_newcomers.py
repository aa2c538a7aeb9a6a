"""What people write who have just begun: each refused in words that help, or run as CUDA would run it."""

import shutil

import numpy as np
import pytest

from tilelab.cudacpp.errors import BuildError, KernelFault, LaunchError
from tilelab.cudacpp.kernel import Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")
PLAIN = "__global__ void k(float* x) { x[0] = 1; }"


def kernel(body, parameters="float* x", **rule):
    return Kernel(f"__global__ void k({parameters}) {{\n{body}\n}}", "k", **rule)


def x(dtype="f4"):
    return np.arange(8).astype(dtype)


# ---- refused before anything is built


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"defines": ["A=1"]}, r"defines is \['A=1'\]; a dict is needed"),
        ({"defines": {"2A": 3}}, "defines has '2A', which cannot be the name of a macro"),
        ({"defines": {3: 3}}, "defines has 3, which"),
        ({"defines": {"int": "float"}}, "defines has 'int', which"),
        ({"defines": {"A": "1\n2"}}, r"defines gives A the value '1\\n2'; a macro has one line"),
        ({"options": "--use_fast_math"}, "options is '--use_fast_math'; a list of texts"),
        ({"options": [3]}, r"options is \[3\]; a list of texts"),
        ({"alignment": 0}, "alignment is 0; a whole number of bytes from 1 on"),
        ({"alignment": "16"}, "alignment is '16'; a whole number"),
        ({"device": "H300"}, "device='H300': nothing is known of 'H300'; known: V100"),
    ],
)
def test_odd_rules_are_refused_when_the_kernel_is_made(given, said):
    with pytest.raises((BuildError, LaunchError), match=said):
        Kernel(PLAIN, "k", **given)


def test_a_macro_may_take_arguments():
    a = x()
    kernel("x[0] = TWICE(x[3]);", defines={"TWICE(a)": "(2 * (a))"})(a)
    assert a[0] == 6


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "\n__global__ void k(float** x) {}",
            r"line 2: __global__ .*\nk takes float\*\* x as a pointer to pointers: give it one flat array",
        ),
        ("__global__ void k(float& x) {}", "k takes float& x by reference: a number is given by value"),
        (
            PLAIN + "\n__global__ void k(int* x) { x[0] = 1; }",
            "two kernels are called k, in line 1 and line 2: give each its own name",
        ),
        (PLAIN + "\n__global__ void k() {}", "two kernels are called k"),
    ],
)
def test_parameters_that_no_launch_can_give(source, said):
    with pytest.raises(BuildError, match=said):
        Kernel(source, "k")


@pytest.mark.parametrize("source", ["\ufeff" + PLAIN, PLAIN + "// \ud800"], ids=["mark", "surrogate"])
def test_texts_that_were_read_wrongly(source):
    with pytest.raises(BuildError, match=r"a byte order mark, or characters .*read_text\(encoding=.utf-8-sig"):
        Kernel(source, "k")


def test_a_kernel_that_is_declared_first_is_one_kernel():
    a = x()
    Kernel("__global__ void k(float* y);\n" + PLAIN, "k")(a)
    assert a[0] == 1


# ---- refused with the line at fault


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("__global__ void k(flaot* x) {\n}", "line 1: .*\n.flaot. was not declared"),
        (
            "__global__ void k(float* x) {\n  int small[3];\n  int big[100][10000];\n"
            "  big[(int)x[0]][0] = small[(int)x[1]] = 1;\n  x[1] = big[(int)x[2]][1] + small[2];\n}",
            r"line 3: int big\[100\]\[10000\];\nlocal arrays of 40000\d\d bytes a thread",
        ),
        (
            "__global__ void k(float* x) {\n  __shared__ float s = 3;\n}",
            "line 2: .*\na __shared__ variable cannot have a first value",
        ),
        ("__global__ void k(float* x) {\n  throw 3;\n}", "line 2: throw 3;\nnot emulated: exceptions"),
        ("__managed__ int q;\n" + PLAIN, "line 1: .*\nnot emulated: managed variables"),
        ("texture<float> t;\n" + PLAIN, "line 1: .*\nnot emulated: textures"),
        (
            "__global__ void k(float* x) {\n  x[0] = __shfl_down(x[1], 1);\n}",
            r"line 2: .*\nnot emulated: shuffles and votes without _sync.*__shfl_down_sync\(0xffffffff",
        ),
    ],
)
def test_the_line_comes_first_and_then_what_to_do(source, said):
    with pytest.raises(BuildError, match=said):
        Kernel(source, "k")(x())


def test_shared_arrays_whose_lengths_compare_have_no_first_value():
    a = x()
    kernel("__shared__ float s[2 >= 1 ? 4 : 1]; s[1] = 5; x[0] = s[1];")(a)
    assert a[0] == 5


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "__global__ void k(float* x) {\n  int i = threadIdx.x\n  x[i] = 1;\n}",
            r"line 2: int i = threadIdx.x\nexpected a",
        ),
        ("__global__ void k(flaot* x) {\n}", 'line 1: .*\nidentifier "flaot" is undefined'),
        (
            '__global__ void k(float* x) {\n  asm volatile("foo.bar;");\n  asm volatile("bar.sync 0;");\n}',
            r"line 2: asm volatile\(.*\n.*'.*' \[ptxas, in inline PTX\]",
        ),
        (
            "__device__ float other(float);\n__global__ void k(float* x) { x[0] = other(x[1]); }",
            "the source uses other, which",
        ),
        ('#include "helper.cuh"\n' + PLAIN, "line 1: .*\nthe header helper.cuh was not found: a kernel is one text"),
    ],
)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA toolkit here")
def test_nvcc_is_read_the_same_way(source, said):
    from tilelab.cudacpp import nvcc

    with pytest.raises(BuildError, match=said):
        nvcc.compile_cubin(source, "sm_90")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"order": "shuffled", "seed": "a"}, "seed is 'a'; a whole number"),
        ({"seconds": 0}, "seconds is 0; a number above 0"),
        ({"seconds": float("nan")}, "seconds is nan; a number above 0"),
        ({"seconds": "3"}, "seconds is '3'; a number above 0"),
        ({"order": "backward"}, "order 'backward' is none of forward, reverse, shuffled"),
    ],
)
def test_odd_choices_of_a_run(given, said):
    with pytest.raises(LaunchError, match=said):
        Kernel(PLAIN, "k").emulate(x(), **given)


# ---- run


def test_a_kernel_without_parameters(capfd):
    kernel('printf("hello from %d\\n", threadIdx.x);', "", block=2)()
    assert capfd.readouterr().out == "hello from 0\nhello from 1\n"


@pytest.mark.parametrize(
    ("body", "due"),
    [
        ("extern __shared__ float s[][4]; s[1][2] = x[3]; x[0] = ((float*)s)[6];", 3),
        ("extern __shared__ __align__(16) float s[][2][2]; s[1][1][0] = x[3]; x[0] = ((float*)s)[6];", 3),
        ("float* p = new float[4]; p[2] = x[5]; x[0] = p[2]; delete[] p;", 5),
        ("long long start = clock64(); while (clock64() - start < 2000) {} x[0] = clock() > 0;", 1),
        ("__nanosleep(10); __builtin_assume(x[1] > 0); x[0] = 4;", 4),
        ("x[0] = __half2float(hsqrt(__float2half(x[4]))) + __bfloat162float(hexp(__float2bfloat16(0.f)));", 3),
        ("x[0] = __dp4a(0x01fe0203, 0x01010102, 10);", 10 + 1 - 2 + 2 + 6),
        ("x[0] = -CUDART_INF_F; x[0] = x[0] < -3e38f && CUDART_PI_F > 3.14f && isnan(CUDART_NAN);", 1),
    ],
)
def test_what_cuda_has(body, due):
    a = x()
    Kernel(f"#include <math_constants.h>\n__global__ void k(float* x) {{ {body} }}", "k", shared=64)(a)
    assert a[0] == due


@pytest.mark.parametrize("name", ["phase", "job", "fibre_now", "entry", "time", "timezone", "environ"])
def test_names_of_the_emulator_and_of_the_system_are_free(name):
    body = f"{name} = 7; __syncthreads(); x[threadIdx.x] = {name};"
    a = x()
    Kernel(f"__device__ int {name}; __global__ void k(float* x) {{ {body} }}", "k", block=8)(a)
    assert (a == 7).all()


def test_a_kernel_in_a_namespace():
    a = x()
    Kernel(f"namespace ours {{ {PLAIN} }}", "ours::k")(a)
    assert a[0] == 1


# ---- stopped


@pytest.mark.parametrize("shared", [0, 28])
def test_dynamic_shared_memory_that_the_launch_does_not_give(shared):
    body = "extern __shared__ float s[]; int t = threadIdx.x; s[t] = x[t]; __syncthreads(); x[t] = s[t];"
    said = rf"block \(0,0,0\) wrote past the {shared} bytes of dynamic shared memory that the launch gives it"
    with pytest.raises(KernelFault, match=said):
        kernel(body, block=8, shared=shared)(x())
    kernel(body, block=8, shared=32)(x())
