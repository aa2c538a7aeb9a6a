"""The same CUDA C++ runs on the CPU: blocks, barriers, shared memory, warps, atomics, small floats."""

import shutil

import numpy as np
import pytest

from tilelab.cudacpp.errors import BuildError, KernelFault, LaunchError
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.launch import ceil_div
from tilelab.cudacpp.processes import Finished, Task, run_here, use_runner

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")


def launch(source, name, *arguments, **rule):
    kernel = Kernel(source, name, **rule)
    kernel(*arguments)
    return kernel


def test_one_thread_an_element():
    source = "__global__ void add(const float* a, const float* b, float* c, int n) {"
    source += "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }"
    a, b, c = np.arange(100, dtype="f4"), np.ones(100, "f4"), np.full(100, np.nan, "f4")
    launch(source, "add", a, b, c, 100, grid=lambda p: ceil_div(p.n, 32), block=32)
    np.testing.assert_array_equal(c, np.arange(100) + 1)


def test_three_dimensional_grids_and_blocks():
    source = """__global__ void where(int* out) {
        int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
    }"""
    out = np.full(2 * 3 * 2 * 4 * 2 * 3, -1, "i4")
    launch(source, "where", out, grid=(2, 3, 2), block=(4, 2, 3))
    np.testing.assert_array_equal(out.reshape(12, 24), np.arange(12)[:, None] * 1000 + np.arange(24))


SUM = """extern "C" __global__ void total(const float* x, float* out) {
    extern __shared__ float part[];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * blockDim.x + t];
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (t < step) part[t] += part[t + step];
    }
    if (t == 0) out[blockIdx.x] = part[0];
}"""


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"])
def test_a_right_kernel_does_not_notice_the_order_of_threads(order):
    x, out = np.arange(512, dtype="f4"), np.full(4, np.nan, "f4")
    kernel = Kernel(SUM, "total", grid=4, block=128, shared=512)
    kernel.emulate(x, out, order=order, seed=3)
    np.testing.assert_array_equal(out, x.reshape(4, 128).sum(1))
    kernel.check(x, out)


def test_warp_operations():
    source = """__global__ void warp(int* out) {
        int lane = threadIdx.x;
        int sum = lane;
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
        out[lane] = __shfl_sync(0xffffffffu, sum, 0);
        out[32 + lane] = __shfl_xor_sync(0xffffffffu, lane, 1);
        out[64 + lane] = __shfl_up_sync(0xffffffffu, lane, 1);
        out[96 + lane] = __shfl_sync(0xffffffffu, lane, 3, 8);
        out[128 + lane] = (int)__ballot_sync(0xffffffffu, lane % 2);
        out[160 + lane] = __all_sync(0xffffffffu, lane < 32) * 2 + __any_sync(0xffffffffu, lane == 40);
        out[192 + lane] = __reduce_add_sync(0xffffffffu, 2);
        if (lane < 8) out[224 + lane] = __shfl_sync(0xffu, lane * 10, 7 - lane);
        else out[224 + lane] = __popc(__match_any_sync(0xffffff00u, lane / 16));
    }"""
    out = np.full(256, -1, "i4")
    launch(source, "warp", out, block=32)
    lane = np.arange(32)
    expected = [
        np.full(32, 496), lane ^ 1, np.maximum(lane - 1, 0), lane // 8 * 8 + 3, np.full(32, 0xAAAAAAAA - 2**32),
        np.full(32, 2), np.full(32, 64), np.where(lane < 8, (7 - lane) * 10, np.where(lane < 16, 8, 16)),
    ]  # fmt: skip
    np.testing.assert_array_equal(out.reshape(8, 32), np.array(expected))


def test_votes_of_a_block():
    source = """__global__ void votes(int* out) {
        int t = threadIdx.x;
        int n = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(t < 100), any = __syncthreads_or(t == 1000);
        if (t == 0) out[0] = n, out[1] = all, out[2] = any;
    }"""
    out = np.zeros(3, "i4")
    launch(source, "votes", out, block=100)
    assert out.tolist() == [34, 1, 0]


def test_atomics_from_all_blocks():
    source = """__global__ void count(unsigned* n, float* sum, int* most, unsigned long long* wide, int* lock) {
        atomicAdd(n, 1);
        atomicAdd(sum, 0.5f);
        atomicMax(most, (int)(threadIdx.x * blockIdx.x));
        atomicAdd(wide, 1ull << 32);
        atomicCAS(lock, 0, (int)threadIdx.x + 7);
    }"""
    n, total, most = np.zeros(1, "u4"), np.zeros(1, "f4"), np.zeros(1, "i4")
    wide, lock = np.zeros(1, "u8"), np.zeros(1, "i4")
    kernel = launch(source, "count", n, total, most, wide, lock, grid=5, block=64)
    assert (n[0], total[0], most[0], wide[0], lock[0]) == (320, 160, 4 * 63, 320 << 32, 7)
    kernel.check(n, total, most, wide, lock)


def test_small_floats_round_as_on_a_gpu():
    torch = pytest.importorskip("torch")
    source = """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void small(const float* x, half* h, __nv_bfloat16* b, half* sum, int n) {
        int i = threadIdx.x + blockIdx.x * blockDim.x;
        if (i >= n) return;
        h[i] = __float2half(x[i]);
        b[i] = __float2bfloat16(x[i]);
        sum[i] = h[i] * h[i] + __float2half(0.1f);
    }"""
    rng = np.random.default_rng(0)
    edges = [
        0.0,
        -0.0,
        1e-8,
        6e-8,
        5.96e-8,
        6.1e-5,
        65504,
        65519,
        65520,
        1e30,
        np.inf,
        -np.inf,
        1.0009765,
        2049.0,
        3e-39,
    ]
    values = np.concatenate([edges, rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 6, 2000)]).astype("f4")
    x = torch.from_numpy(values)
    h, b, s = (torch.zeros(len(x), dtype=t) for t in (torch.float16, torch.bfloat16, torch.float16))
    launch(source, "small", x, h, b, s, len(x), grid=lambda p: ceil_div(p.n, 128), block=128)
    assert torch.equal(h, x.half())
    assert torch.equal(b, x.bfloat16())
    square = (x.half().float() ** 2).half()
    due = (square.float() + torch.tensor(0.1).half().float()).half()
    assert torch.equal(s.view(torch.int16), due.view(torch.int16))


def test_a_wider_type_of_a_template_and_of_a_macro():
    source = "template <class T, int N> __global__ void scale(T* x) { x[threadIdx.x] *= N + EXTRA; }"
    x = np.ones(4)
    launch(source, "scale<double, 3>", x, block=4, defines={"EXTRA": 2})
    np.testing.assert_array_equal(x, 5)


def test_shared_memory_does_not_outlive_its_block():
    source = """__global__ void leak(float* out) {
        __shared__ float kept;
        if (blockIdx.x == 0) kept = 42.0f;
        out[blockIdx.x] = kept;
    }"""
    out = np.zeros(2, "f4")
    launch(source, "leak", out, grid=2)
    assert out[0] == 42
    assert np.isnan(out[1])


def test_static_shared_arrays_of_templates_are_poisoned_too():
    source = """template <int N> __device__ float peek() { __shared__ float box[N]; return box[N / 2]; }
    __shared__ float outside[3];
    __global__ void look(float* out) { out[0] = peek<8>(); out[1] = outside[1]; }"""
    out = np.zeros(2, "f4")
    kernel = launch(source, "look", out)
    assert np.isnan(out).all()
    assert sorted(kernel.build().shared, key=lambda one: one[2])[0][0::2] == ("outside", 12)
    assert kernel.build().static_shared == 44


def test_device_globals_and_constants_keep_their_values():
    source = """__constant__ float weight[2] = {2.0f, 3.0f};
    __device__ int calls;
    __global__ void use(float* out) { out[threadIdx.x] = weight[threadIdx.x] + calls; }"""
    out = np.zeros(2, "f4")
    launch(source, "use", out, block=2)
    assert out.tolist() == [2, 3]


def test_asynchronous_copies_arrive_at_the_wait_and_not_before():
    source = """#include <cuda_pipeline_primitives.h>
    __global__ void copy(const float4* from, float4* early, float4* late) {
        __shared__ float4 tile[32];
        int t = threadIdx.x;
        __pipeline_memcpy_async(&tile[t], &from[t], 16, t == 3 ? 8 : 0);
        __pipeline_commit();
        early[t] = tile[t];
        __pipeline_wait_prior(0);
        late[t] = tile[t];
    }"""
    source_data = np.arange(128, dtype="f4")
    early, late = np.zeros(128, "f4"), np.zeros(128, "f4")
    kernel = launch(source, "copy", source_data, early, late, block=32)
    due = source_data.copy()
    due[14:16] = 0
    assert np.isnan(early).all()
    np.testing.assert_array_equal(late, due)
    with pytest.raises(KernelFault, match="asynchronous copy to it is under way"):
        kernel.check(source_data, early, late)


def test_printf_is_passed_on(capfd):
    launch('__global__ void say(int n) { printf("thread %d of %d\\n", threadIdx.x, n); }', "say", 7, block=2)
    assert capfd.readouterr().out == "thread 0 of 7\nthread 1 of 7\n"


def test_torch_arrays_change_in_place():
    torch = pytest.importorskip("torch")
    x = torch.arange(6).reshape(2, 3)
    launch("__global__ void twice(long long* x) { x[threadIdx.x] *= 2; }", "twice", x, block=6)
    assert x.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_an_endless_kernel_ends_its_own_process_only():
    kernel = Kernel("__global__ void spin(volatile int* x) { while (x[0] == 0) {} }", "spin")
    with pytest.raises(KernelFault, match=r"did not end within 0\.5 s"):
        kernel.emulate(np.zeros(1, "i4"), seconds=0.5)


def test_a_crash_names_line_and_thread():
    source = "__global__ void crash(int* x) {\n    if (threadIdx.x == 2)\n        *(volatile int*)16 = 1;\n}"
    with pytest.raises(KernelFault, match=r"line 3: .*\nthread \(2,0,0\) of block \(0,0,0\) crashed \(SIGSEGV"):
        launch(source, "crash", np.zeros(1, "i4"), block=4)


def test_local_arrays_that_outgrow_a_fibres_stack_are_refused():
    source = "__global__ void k(float* x, int n) {\n  volatile float big[SIZE];\n  big[n] = 1;\n  x[0] = big[n];\n}"
    x = np.zeros(1, "f4")
    launch(source, "k", x, 5, block=64, defines={"SIZE": 20_000})
    with pytest.raises(BuildError, match=r"local arrays of .* bytes a thread; emulation has room for 98304"):
        launch(source, "k", x, 5, defines={"SIZE": 30_000})


def test_a_failed_build_is_tried_again():
    calls = []

    def counting(task: Task) -> Finished:
        calls.append(task.argv[0])
        return run_here(task)

    broken = Kernel("__global__ void k(int* x) { x[0] = ; }", "k")
    with use_runner(counting):
        for _ in range(2):
            with pytest.raises(BuildError):
                broken.build()
    assert calls.count(calls[-1]) >= 2
    assert len(calls) in (2, 3)  # the emulator itself may have been built as well


def test_every_process_goes_through_the_runner(tmp_path, monkeypatch):
    monkeypatch.setenv("TILELAB_CACHE", str(tmp_path))
    programs = []

    def watching(task: Task) -> Finished:
        programs.append(task.argv[0].rsplit("/", 1)[-1])
        return run_here(task)

    x, out = np.arange(128, dtype="f4"), np.zeros(1, "f4")
    kernel = Kernel(SUM, "total", block=128, shared=512)
    with use_runner(watching):
        kernel(x, out)
        kernel(x, out)
    assert programs == ["g++", "sh", "nm", "runtime", "runtime"]


def test_limits_hold_before_anything_runs():
    source = "__global__ void k(float* x) { __shared__ float s[16][16]; s[0][0] = x[0]; }"
    x = np.zeros(1, "f4")
    for rule, message in [
        ({"block": (64, 64)}, "4096 threads a block"),
        ({"shared": 250_000}, "251024 bytes of shared memory a block, but sm_90 allows 232448"),
        ({"shared": 102_000, "device": "sm_86"}, "sm_86 allows 101376"),
        ({"grid": 0}, "extent x = 0"),
        ({"grid": (1, 70_000)}, "extent y = 70000"),
        ({"block": ()}, "one to three whole numbers"),
        ({"grid": lambda p: p.M}, "asks for 'M'; the kernel's arguments are x"),
    ]:
        with pytest.raises(LaunchError, match=message):
            launch(source, "k", x, **rule)
    launch(source, "k", x, shared=231_424)


def test_more_than_48_kib_of_static_shared_memory_is_refused():
    with pytest.raises(LaunchError, match="49664 bytes of static shared memory"):
        launch("__global__ void k(float* x) { __shared__ float s[97][128]; s[0][0] = x[0]; }", "k", np.zeros(1, "f4"))
    launch("__global__ void k(float* x) { __shared__ float s[96][128]; s[0][0] = x[0]; }", "k", np.zeros(1, "f4"))
