"""Kernels that wait, or never end: who waits for another thread gets what it waits for, and who waits in vain is told where."""
# ruff: noqa: E501

import re
import shutil

import numpy as np
import pytest

from tilelab.cudacpp.errors import BuildError, KernelFault
from tilelab.cudacpp.kernel import Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")


def kernel(body, head="", **launch):
    return Kernel(f"{head}\n__global__ void k(float* x, int n) {{\n{body}\n}}", "k", **({"block": 32} | launch))


SPINS = {
    "shared": (
        "",
        "__shared__ volatile int flag; if (threadIdx.x == 0) flag = 0; __syncthreads();\n"
        "if (threadIdx.x == 31) flag = 1;\nwhile (flag == 0) {}\nx[threadIdx.x] = 1;",
    ),
    "of the device": (
        "__device__ volatile int flag;",
        "if (threadIdx.x == 0) { while (flag == 0); } else if (threadIdx.x == 1) flag = 1;\nx[threadIdx.x] = 1;",
    ),
    "through a cast": (
        "",
        "if (threadIdx.x < 31) while (*(volatile float*)&x[31] == 0) {}\nx[threadIdx.x] = 1;",
    ),
}


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"])
@pytest.mark.parametrize("what", SPINS)
def test_a_volatile_read_sees_what_another_thread_stores(what, order):
    head, body = SPINS[what]
    x = np.zeros(32, "f4")
    kernel(body, head).emulate(x, 1, order=order, seconds=120)
    np.testing.assert_array_equal(x, 1)


@pytest.mark.parametrize("what", SPINS)
def test_the_checker_calls_such_a_wait_a_race_and_comes_to_its_end(what):
    head, body = SPINS[what]
    x = np.zeros(32, "f4")
    found = kernel(body, head).emulate(x, 1, checked=True, seconds=120).findings
    np.testing.assert_array_equal(x, 1)
    assert {one.kind for one in found} == {"race"}


def test_a_whole_block_may_wait_for_its_last_thread():
    x = np.zeros(1024, "f4")
    body = SPINS["shared"][1].replace("31", "1023")
    kernel(body, block=1024).emulate(x, 1, checked=True, seconds=120)
    np.testing.assert_array_equal(x, 1)


def test_atomics_stay_whole_when_threads_are_stopped_anywhere():
    """Each thread computes for long between its atomics, so that it is stopped again and again."""
    body = "for (int i = 0; i < n; ++i) { for (volatile int j = 0; j < 3000000; ++j); atomicAdd(x, 1.f); atomicCAS((int*)x + 1, i, i + 1); }"
    x = np.zeros(2, "f4")
    kernel(body, block=4).emulate(x, 5, seconds=200)
    assert x[0] == 20


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("head", "body", "line", "said"),
    [
        ("", "while (true) {}", (2, 3), "volatile"),
        ("", "int i = 0;\nwhile (i < n) x[threadIdx.x] += 1;", 4, "volatile"),
        ("", "for (unsigned i = 10; i >= 0; --i)\nx[threadIdx.x] = i;", (3, 4), "volatile"),
        ("__device__ int flag;", "if (threadIdx.x == 0)\nwhile (flag == 0);\nelse flag = 1;", 4, "volatile"),
        ("__device__ int forever(int n) { return forever(n + 1) + n; }", "x[0] = forever(n);", (1, 3), "volatile"),
        ("__device__ int flag;", "if (blockIdx.x == 0)\nwhile (atomicAdd(&flag, 0) == 0);\nelse atomicExch(&flag, 1);", 4, "one block runs after another"),
        ("__device__ volatile int flag;", "if (blockIdx.x == 0)\nwhile (flag == 0);\nelse flag = 1;", 4, "one block runs after another"),
    ],
)  # fmt: skip
def test_what_never_ends_is_told_with_its_line(head, body, line, said, checked):
    launch = {"grid": 2, "block": 1} if "block" in said else {}
    with pytest.raises(
        KernelFault, match=r"^line \d+: .*\nthe kernel did not end within 1 s, and thread .*" + said
    ) as caught:
        kernel(body, head, **launch).emulate(np.zeros(32, "f4"), 5, checked=checked, seconds=1)
    lines = line if isinstance(line, tuple) else (line,)
    assert int(re.match(r"line (\d+)", str(caught.value))[1]) in lines


def test_a_crash_inside_a_called_function_has_its_line_too():
    with pytest.raises(KernelFault, match=r'^line 3: printf\("%s", n\);'):
        kernel('printf("%s", n);\nx[0] = 1;')(np.zeros(32, "f4"), 5)


def test_lanes_outside_the_mask_are_called_that():
    body = "float v = x[threadIdx.x];\nif (threadIdx.x < 16) v += __shfl_down_sync(0xffff, v, 8);\nx[threadIdx.x] = v;"
    with pytest.raises(
        KernelFault, match=r"line 4: .*\n.*lane 16, which has ended, or is not in the mask or the block"
    ):
        kernel(body).check(np.zeros(32, "f4"), 1)


# ---- what nvcc takes, or does not


def test_atomics_of_every_scope_and_width():
    body = """atomicAdd_block(&x[0], 1.f); atomicAdd_system((int*)&x[1], 1); atomicMax_block((int*)&x[2], (int)threadIdx.x);
    atomicAdd((float2*)&x[4], make_float2(1, 2)); atomicAdd((float4*)&x[8], make_float4(1, 2, 3, 4));"""
    x = np.zeros(32, "f4")
    kernel(body).check(x, 1)
    assert [x[0], *x[1:3].view("i4"), *x[4:6], *x[8:12]] == [32, 32, 31, 32, 64, 32, 64, 96, 128]
    for kind, dtype in (("half", "f2"), ("half2", "f2")):
        y = np.zeros(4, dtype)
        Kernel(
            f"__global__ void k({kind}* x) {{ atomicAdd(x, {kind}{{1.f{', 1.f' * (kind[-1] == '2')}}}); }}",
            "k",
            block=32,
        ).check(y)
        assert y[0] == 32


def test_the_standard_is_the_one_of_the_options():
    head = "template <class T> concept Small = sizeof(T) <= 8;\ntemplate <Small T> __device__ T twice(T v) { return v * 2; }"
    x = np.ones(32, "f4")
    kernel("x[threadIdx.x] = twice(x[threadIdx.x]);", head, options=["--std=c++20"])(x, 1)
    assert (x == 2).all()
    with pytest.raises(BuildError, match=r"^line 1: .*\n.*C\+\+20 .*options=\['-std=c\+\+20'\]"):
        kernel("x[threadIdx.x] = twice(x[threadIdx.x]);", head).build()


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("#include <vector>", "std::vector<float> v(3); x[0] = v[0];", "line 3: .*\nstd::vector is host code, which no kernel can call"),
        ("#include <string>", 'std::string s = "a"; x[0] = s.size();', "line 3: .*\nstd::string is host code"),
        ("__device__ float g(float v) { v * 2; }", "x[0] = g(1);", "line 1: .*\nno return statement in function returning non-void"),
        ("", "float v[n]; v[0] = 1; x[0] = v[0];", "line 3: .*\nvariable length array .v. is used"),
    ],
)  # fmt: skip
def test_what_only_a_hosts_compiler_takes(head, body, said):
    with pytest.raises(BuildError, match=said):
        kernel(body, head).build()


def test_host_code_that_the_emulation_leaves_out_may_use_the_hosts_library():
    x = np.zeros(32, "f4")
    kernel("x[threadIdx.x] = 1;", "#ifndef TILELAB_EMULATION\n#include <vector>\nstd::vector<float> v;\n#endif")(x, 1)
    assert (x == 1).all()


def test_a_kernel_returns_nothing():
    with pytest.raises(
        BuildError, match=r"^line 1: .*\na __global__ function returns nothing: declare it void \[g\+\+\]"
    ):
        Kernel("__global__ int k(float* x) { return 1; }", "k").build()
