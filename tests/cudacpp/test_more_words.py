"""What the emulator says of atomics beside plain reads, locks, deep recursion, odd arguments and odd arithmetic."""

from dataclasses import replace

import numpy as np
import pytest

import tilelab.cudacpp
from tilelab.cudacpp.errors import KernelFault, LaunchError, brief
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.processes import run_here, use_runner
from tilelab.kernels.ladder import rung


@pytest.mark.parametrize("launch", [{"block": 4}, {"block": 64}, {"grid": 4}, {"grid": 2, "block": 2}])
@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(&y[0], 1); y[1 + threadIdx.x + blockIdx.x * blockDim.x] = y[0];",
        "atomicAdd(&y[0], 1); if (threadIdx.x + blockIdx.x * blockDim.x == 3) y[1] = y[0];",
        "int a = y[0]; atomicAdd(&y[0], 1); y[1 + threadIdx.x + blockIdx.x * blockDim.x] = a;",
    ],
)
def test_a_plain_read_beside_atomics_races(body, launch):
    with pytest.raises(KernelFault, match="race"):
        Kernel(f"__global__ void k(int* y) {{ {body} }}", "k", **launch).check(np.zeros(70, "i4"))


def test_atomics_alone_and_a_read_behind_a_barrier_do_not_race():
    source = "__global__ void k(int* y) { atomicAdd(&y[0], 1); __syncthreads(); y[1 + threadIdx.x] = y[0]; }"
    y = np.zeros(70, "i4")
    Kernel(source, "k", block=64).check(y)
    assert (y[:65] == 64).all()
    Kernel("__global__ void k(int* y) { atomicAdd(&y[0], 1); atomicMax(&y[0], 3); }", "k", grid=3, block=64).check(y)


def test_a_lock_that_does_not_hold_is_told_how_locks_do():
    source = """__global__ void k(int* lock, float* x) {
        while (atomicCAS(lock, 0, 1)) {}
        atomicExch(lock, 0);
        *x += 1;
    }"""
    with pytest.raises(
        KernelFault, match=r"race: .* no barrier between: let both hold the same lock, from the atomicCAS"
    ):
        Kernel(source, "k", block=2).check(np.zeros(1, "i4"), np.zeros(1, "f4"))


@pytest.mark.parametrize("block", [1, 64])
def test_deep_recursion_is_called_that(block):
    source = """__device__ __noinline__ int down(int n) { volatile int here[8]; here[n & 7] = n;
        return n ? down(n - 1) + here[n & 7] : 0; }
    __global__ void k(int* x) { if (threadIdx.x == blockDim.x - 1) x[0] = down(x[1]); }"""
    kernel = Kernel(source, "k", block=block)
    x = np.array([0, 10], "i4")
    kernel(x)
    assert x[0] == 55
    with pytest.raises(KernelFault, match="runs out of its stack: functions that call themselves"):
        kernel(np.array([0, 100_000], "i4"))


@pytest.mark.parametrize("value", [[0.0] * 1_000_000, "x" * 100_000, np.ma.zeros(10**6), 2 + 1j, None])
def test_errors_quote_in_a_few_words(value):
    kernel = Kernel("__global__ void k(float* x, int n) {}", "k")
    for arguments in ((value, 1), (np.zeros(1, "f4"), value)):
        with pytest.raises(LaunchError) as error:
            kernel(*arguments)
        assert len(str(error.value)) < 300
    assert len(brief(value)) <= 80


def test_a_changed_constant_is_seen_without_the_checker_too():
    source = "__constant__ int first, weight[2] = {1, 2}; __global__ void k(int* x) { x[0] = first; weight[x[1]] = 3; }"
    with pytest.raises(KernelFault, match=r"the kernel wrote to weight\[1\], which is __constant__: .* names the line"):
        Kernel(source, "k")(np.ones(2, "i4"))


def test_more_memory_than_can_be_checked_is_refused_and_untouched_memory_is_free():
    def small(task):
        return run_here(replace(task, limits=replace(task.limits, memory=1200 * 2**20)))

    kernel = Kernel("__global__ void k(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = 1; }", "k")
    kernel.build(checked=True)
    with use_runner(small):
        kernel.check(np.zeros(2_000_000, "f4"), 1000)
        with pytest.raises(
            KernelFault, match=r"more memory than the checker can keep records of, 196 bytes for each word"
        ):
            kernel.check(np.zeros(2_000_000, "f4"), 2_000_000)


def test_truth_is_no_length():
    with pytest.raises(LaunchError, match=r"argument n is True, but .* pass a whole number"):
        Kernel("__global__ void k(float* x, int n) {}", "k")(np.zeros(1, "f4"), True)
    x = np.zeros(1, "f4")
    Kernel("__global__ void k(float* x, bool n) { x[0] = n; }", "k")(x, True)
    assert x[0] == 1


@pytest.mark.parametrize("sizes", [("5", 3, 7), (5, 3, 1j), (5, 3.0, 7), (5, None, 7)])
def test_the_last_rung_takes_whole_numbers(sizes):
    A, B, C = np.ones((5, 7), "f4"), np.ones((7, 3), "f4"), np.ones((5, 3), "f4")
    with pytest.raises(LaunchError, match=r"[MNK] is .*: pass a whole number"):
        rung("warp_tiled")(A, B, C, *sizes)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("max(x[1], 0.f)", 0.0),
        ("max(0.f, x[1])", 0.0),
        ("min(x[1], 2.f)", 2.0),
        ("min(2.f, x[1])", 2.0),
        ("max(3, 2) + min(1u, 2u)", 4.0),
        ("__float2int_rn(3e9f) == 2147483647", 1.0),
        ("__float2int_rz(-3e9f) == -2147483647 - 1", 1.0),
        ("__float2int_rn(x[1])", 0.0),
        ("__float2uint_rz(-1.f)", 0.0),
        ("__float2int_ru(1.2f) + __float2int_rd(-1.2f)", 0.0),
        ("__float2int_rn(2.5f)", 2.0),
        ("__umul24(0x1000003u, 5u)", 15.0),
        ("(float)__hmax(__half(1.5f), __half(2.f)) + (float)__hmin(__half(1.f), __half(2.f))", 3.0),
    ],
)
def test_arithmetic_of_a_gpu(expression, value):
    x = np.array([-7, np.nan], "f4")
    Kernel(f"__global__ void k(float* x) {{ x[0] = {expression}; }}", "k")(x)
    assert x[0] == value


def test_a_huge_grid_is_named():
    with pytest.raises(KernelFault, match=r"or launch fewer than 2147483647 blocks"):
        Kernel("__global__ void k(float* x) {}", "k", grid=2**31 - 1).emulate(np.zeros(1, "f4"), seconds=1)


def test_the_package_names_what_is_public():
    assert tilelab.cudacpp.Kernel is Kernel
    assert tilelab.cudacpp.LaunchError is LaunchError
    with pytest.raises(AttributeError, match="has no attribute 'Kernle'; it has Kernel"):
        _ = tilelab.cudacpp.Kernle
