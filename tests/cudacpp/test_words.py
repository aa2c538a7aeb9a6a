"""What goes wrong is said in the learner's terms: the line, what it is, and what to do."""
# ruff: noqa: E501

import shutil

import numpy as np
import pytest

from tilelab.cudacpp import guards
from tilelab.cudacpp.errors import BuildError, KernelFault, LaunchError
from tilelab.cudacpp.kernel import Kernel

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")


def source(body, head=""):
    return f"{head}\n__global__ void k(float* x, int n) {{\n{body}\n}}"


# ---- what is not emulated

GPU = "give the kernel arrays on a GPU .*#ifndef TILELAB_EMULATION"


@needs_gcc
@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("", 'asm volatile("mov.u32 %0, %%laneid;" : "=r"(n));', rf"^line 3: asm .*\nnot emulated: inline PTX.*{GPU}"),
        ("", '__asm__("nanosleep.u32 5;");', rf"^line 3: .*\nnot emulated: inline PTX.*{GPU}"),
        ("#include <mma.h>", "", rf"^line 1: .*\nnot emulated: tensor cores.*{GPU}"),
        ("", "nvcuda::wmma::fragment<float> f;", rf"^line 3: .*\nnot emulated: tensor cores.*{GPU}"),
        ("#include <cuda.h>", "", rf"^line 1: .*\nnot emulated: the tensor memory accelerator.*{GPU}"),
        (
            "__global__ void t(const __grid_constant__ CUtensorMap m) {}",
            "",
            rf"^line 1: .*\nnot emulated: the tensor memory.*{GPU}",
        ),
        ("#include <cooperative_groups.h>", "", r"^line 1: .*\nnot emulated: cooperative groups; __syncthreads"),
        ("namespace cg = cooperative_groups;", "", r"^line 1: .*\nnot emulated: cooperative groups; __syncthreads"),
        ("#include <cuda/barrier>", "", r"^line 1: .*\nnot emulated: the library libcu\+\+.*__pipeline_memcpy_async"),
        ("#include <cute/tensor.hpp>", "", r'^line 1: .*\nnot emulated: CuTe; .*backend="nvcc"'),
        (
            "#include <torch/extension.h>",
            "",
            r"^line 1: .*\nnot emulated: PyTorch host code; give Kernel the __global__",
        ),
        ("#include <iostream>", "", r"^line 1: .*\nnot emulated: <iostream>.*print from a kernel with printf"),
        (
            "void run(float* x) { k<<<1, 1>>>(x, 1); }",
            "",
            r"^line 1: .*\nnot emulated: host code; keep the __global__ function alone",
        ),
        (
            "int main() { cudaDeviceSynchronize(); }",
            "",
            r"^line 1: .*\nnot emulated: host code; keep the __global__ function alone",
        ),
    ],
)
def test_what_emulation_cannot_do_is_named_with_what_to_do(head, body, said):
    with pytest.raises(BuildError, match=said):
        Kernel(source(body, head), "k").build()


@needs_gcc
def test_lines_for_the_gpu_alone_are_left_out():
    body = '#ifndef TILELAB_EMULATION\nasm volatile("nanosleep.u32 5;");\n#else\nx[0] = n;\n#endif'
    x = np.zeros(1, "f4")
    Kernel(source(body, "#ifndef TILELAB_EMULATION\n#include <mma.h>\n#endif"), "k")(x, 7)
    assert x[0] == 7


# ---- what does not compile


@needs_gcc
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "__global__ void k(float* x) {\n    if (x[0] > 1) {\n        x[0] = 1;\n    x[1] = 2;\n}\n",
            "line 2: if (x[0] > 1) {\nthe { of this line is never closed",
        ),
        (
            "__global__ void k(float* x) {\n    x[0] = 1;\n",
            "line 1: __global__ void k(float* x) {\nthe { of this line is never closed",
        ),
        ("__global__ void k(float* x) {\n    x[0] = 1; }\n}\n", "line 3: }\nthis } closes nothing"),
        (
            "__global__ void k(float* x) {\n    for (int i = 0; i < 3; ++i)\n        x[i] = 1;\n    }\n}\n__global__ void z() {}",
            "line 5: }\nthis } closes nothing",
        ),
    ],
)
def test_a_missing_brace_is_found_where_it_was_forgotten(text, said):
    with pytest.raises(BuildError) as caught:
        Kernel(text, "k").build()
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((None, "k"), "the source is None; Kernel takes the text of a CUDA C\\+\\+ source"),
        ((b"__global__ void k() {}", "k"), "the source is b"),
        (("__global__ void k() {}", None), "the name is None"),
        (("", "k"), "no __global__ function at all"),
    ],
)
def test_what_is_no_source(given, said):
    with pytest.raises(BuildError, match=said):
        Kernel(*given)


# ---- what does not launch


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            {"grid": lambda p: p.n / 2},
            r"grid is 2\.5; one to three whole numbers are needed, x first; / gives fractions, so divide with ceil_div",
        ),
        ({"block": lambda p: (16.0, 16)}, r"block is \(16\.0, 16\); .*ceil_div"),
        ({"grid": "4"}, "grid is '4'; one to three whole numbers"),
        ({"grid": None}, "grid is None; one to three whole numbers"),
        ({"grid": lambda p: p.n // 0}, "the rule for grid fails: ZeroDivisionError: "),
        ({"shared": lambda p: p.n * 4.0}, r"shared is 20\.0; a whole number of bytes"),
        ({"shared": -4}, "shared is -4; a whole number of bytes"),
    ],
)
def test_launch_rules_that_give_no_whole_numbers(rule, said):
    with pytest.raises(LaunchError, match=said):
        Kernel(source("x[0] = n;"), "k", **rule).plan(np.zeros(5, "f4"), 5)


def test_whole_numbers_of_numpy_are_whole_numbers():
    rule = {"grid": lambda p: np.int64(p.n), "block": (np.int32(2), 3), "shared": np.uint8(4)}
    launch = Kernel(source("x[0] = n;"), "k", **rule).plan(np.zeros(5, "f4"), 5)[1]
    assert (launch.grid, launch.block, launch.shared) == ((5, 1, 1), (2, 3, 1), 4)


@needs_gcc
def test_read_only_arrays():
    x = np.zeros(5, "f4")
    x.flags.writeable = False
    with pytest.raises(LaunchError, match=r"argument x is a read-only array, but the kernel declares float\* x"):
        Kernel(source("x[0] = n;"), "k")(x, 1)
    reads = "__global__ void k(const float* x, float* y) { y[0] = x[0] + 1; }"
    y = np.zeros(1, "f4")
    Kernel(reads, "k")(x, y)
    assert y[0] == 1
    with pytest.raises(KernelFault, match="the kernel wrote to x, which may only be read"):
        Kernel(reads.replace("y[0] =", "((float*)x)[1] ="), "k")(x, y)
    assert not x.any()


# ---- what stops on its way


@needs_gcc
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("how", ["exit(0)", "_exit(0)", "exit(7)"])
def test_a_kernel_that_ends_the_process_has_not_succeeded(how, checked):
    kernel = Kernel(source(f"x[0] = 1;\n{how};", "#include <stdlib.h>\n#include <unistd.h>"), "k")
    x = np.zeros(1, "f4")
    with pytest.raises(BuildError, match=r"uses _?exit, which no device code has"):
        kernel.emulate(x, 1, checked=checked)
    assert x[0] == 0


@needs_gcc
@pytest.mark.parametrize("head", ["", "#include <assert.h>", "#include <cassert>"])
def test_a_failed_assertion_says_its_line_and_thread(head):
    kernel = Kernel(source("    assert(threadIdx.x < 3);\n    x[threadIdx.x] = 1;", head), "k", grid=2, block=4)
    with pytest.raises(
        KernelFault,
        match=r"line 3: assert\(threadIdx.x < 3\);\nthread \(3,0,0\) of block \(0,0,0\): assert\(.* < 3\) failed",
    ):
        kernel(np.zeros(4, "f4"), 1)
    Kernel(source("    assert(threadIdx.x < 3);", f"#define NDEBUG\n{head or '#include <assert.h>'}"), "k", block=4)(
        np.zeros(4, "f4"), 1
    )


@needs_gcc
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("__trap();", r"line 3: __trap\(\);\nthread \(0,0,0\) of block \(0,0,0\): __trap\(\) was called"),
        ("x[n * 10000000] = 1;", r"line 3: .*\nthread .* reaches for x\[10000000\], far outside its 5 elements"),
        ("x[-n * 10000000] = 1;", r"reaches for x\[-10000000\], far outside its 5 elements"),
        ("*(volatile int*)16 = n;", "a wild pointer, which leads to no array"),
        ("x[0] = (int)x[1] % (n - 1);", r"line 3: .*\nthread .* divides by zero"),
        ("__pipeline_memcpy_async(x, x + 1, 16);", "an access of 16 bytes at x\\[1\\], not at a multiple of 16"),
        ('__builtin_printf("%p", malloc(5));', ""),
        ("missing(x);", "the source uses missing\\(float\\*\\), which no device code has"),
    ],
)
def test_crashes_are_explained(body, said):
    kernel = Kernel(source(body, 'extern void missing(float*); extern "C" void* malloc(size_t);'), "k")
    if not said:
        kernel(np.zeros(5, "f4"), 1)
        return
    with pytest.raises((BuildError, KernelFault), match=said):
        kernel(np.zeros(5, "f4"), 1)


@needs_gcc
def test_a_misaligned_vector_under_the_checker_is_shown_before_the_crash_it_causes():
    body = "    ((volatile float4*)(x + 1))->x = n;\n    *(float4*)(x + 1) = make_float4(n, n, n, n);"
    with pytest.raises(
        KernelFault, match=r"^line [34]: .*\nthread .* makes an access of 16 bytes at x\[1\], not at a multiple of 16"
    ):
        Kernel(source(body), "k").check(np.zeros(8, "f4"), 1)


# ---- guards


@needs_gcc
@pytest.mark.parametrize(
    "value", ["NAN", "-NAN", "__int_as_float(-1)", "__int_as_float(0x7fffffff)", "x[n]", "INFINITY"]
)
def test_nobody_writes_what_the_guard_holds_already(value):
    for at, where in ((8, "past its end"), (-1, "before its start")):
        with pytest.raises(KernelFault, match=rf"x\[{at}\], {where}"):
            Kernel(source(f"x[{at}] = {value};"), "k")(np.zeros(8, "f4"), 9)


def test_guards_are_nan_in_every_format_and_never_twice_the_same():
    one, other = guards.pattern(4096), guards.pattern(4096)
    assert one != other
    for dtype in ("f2", "f4", "f8"):
        assert np.isnan(np.frombuffer(one, dtype)).all()
    as_bfloat = np.frombuffer(one, "u2").astype("u4") << 16
    assert np.isnan(as_bfloat.view("f4")).all()
    words = np.frombuffer(one, "u4")
    assert not np.isin(words, [0xFFFFFFFF, 0x7FFFFFFF, 0x7FC00000, 0xFFC00000]).any()
    assert len(set(words.tolist())) > 400
    assert len(guards.pattern(7)) == 7
