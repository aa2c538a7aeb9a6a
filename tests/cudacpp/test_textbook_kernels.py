"""Kernels of the kind that textbooks and forums show, and mistakes that learners make in them."""

import shutil

import numpy as np
import pytest

from tilelab.cudacpp.errors import BuildError, KernelFault, LaunchError
from tilelab.cudacpp.kernel import Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")


# ---- who is active


def test_one_atomic_for_all_lanes_that_are_active():
    """The last block's lanes from 4 on have not ended yet when its first lane asks who is active."""
    source = """
    __device__ int next_place(int* count) {
        unsigned active = __activemask();
        int leader = __ffs(active) - 1, place;
        unsigned rank = __popc(active & ((1u << (threadIdx.x % 32)) - 1));
        if (rank == 0) place = atomicAdd(count, __popc(active));
        return __shfl_sync(active, place, leader) + rank;
    }
    __global__ void filter(int* kept, int* count, const int* values, int n) {
        int i = threadIdx.x + blockIdx.x * blockDim.x;
        if (i >= n) return;
        if (values[i] > 50) kept[next_place(count)] = values[i];
    }"""
    kernel = Kernel(source, "filter", grid=4, block=32)
    for run in (kernel, kernel.check):
        kept, count = np.zeros(100, np.int32), np.zeros(1, np.int32)
        run(kept, count, np.arange(100, dtype=np.int32), 100)
        assert count[0] == 49
        assert sorted(kept) == [0] * 51 + list(range(51, 100))


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"])
def test_active_are_the_lanes_at_one_place(order):
    source = """__global__ void k(unsigned* mask) {
        if (threadIdx.x % 3 == 0) mask[threadIdx.x] = __activemask();
        else mask[threadIdx.x] = __activemask();
        __syncthreads();
        mask[threadIdx.x + blockDim.x] = __activemask();
    }"""
    mask = np.zeros(96, np.uint32)
    Kernel(source, "k", block=48).emulate(mask, order=order)
    lanes = np.arange(48)
    third = {w: sum(1 << i % 32 for i in lanes if i // 32 == w and i % 3 == 0) for w in (0, 1)}
    whole = {0: 0xFFFFFFFF, 1: 0xFFFF}
    assert list(mask[:48]) == [third[i // 32] if i % 3 == 0 else whole[i // 32] - third[i // 32] for i in lanes]
    assert list(mask[48:]) == [whole[i // 32] for i in lanes]


def test_active_lanes_wait_for_nobody_who_waits_for_them():
    source = """__device__ int lock;
    __global__ void k(int* x) {
        bool done = false;
        while (!done)
            if (atomicCAS(&lock, 0, 1) == 0) {
                x[0] += __popc(__activemask());
                __threadfence();
                atomicExch(&lock, 0);
                done = true;
            }
    }"""
    x = np.zeros(1, np.int32)
    Kernel(source, "k", block=64)(x)
    assert x[0] == 64
    source = """__global__ void k(int* x) {
        int v = threadIdx.x;
        if (v < 16) v = __popc(__activemask());
        x[threadIdx.x] = __shfl_xor_sync(~0u, v, 16);
    }"""
    x = np.zeros(32, np.int32)
    Kernel(source, "k", block=32)(x)
    assert list(x) == [*range(16, 32), *[16] * 16]


# ---- packed bytes


def test_dot_products_of_four_bytes():
    source = """__global__ void k(const char4* a, const uchar4* b, int* x) {
        int i = threadIdx.x;
        x[i] = __dp4a(a[i], a[i], 1);
        x[i + 8] = __dp4a(b[i], b[i], 2u);
        x[i + 16] = __dp4a(((const int*)a)[i], ((const int*)a)[i], 3);
        x[i + 24] = __dp4a(((const unsigned*)b)[i], ((const unsigned*)b)[i], 4u);
    }"""
    a, b = np.arange(-16, 16, dtype=np.int8), np.arange(224, 256, dtype=np.uint8)
    x = np.zeros(32, np.int32)
    Kernel(source, "k", block=8)(a, b, x)
    for k, bytes_ in enumerate((a, b, a, b)):
        assert list(x[8 * k : 8 * k + 8]) == list((bytes_.astype(int) ** 2).reshape(8, 4).sum(1) + k + 1)


# ---- arguments


@pytest.mark.parametrize("ctype", ["float2", "float3", "float4", "int2", "uint4", "double2", "half2"])
@pytest.mark.parametrize("alias", [False, True])
def test_a_vector_is_not_a_number(ctype, alias):
    head = "#include <cuda_fp16.h>\n" + (f"using vec = {ctype};\n" if alias else "")
    kernel = Kernel(f"{head}__global__ void k(float* x, {'vec' if alias else ctype} v) {{ x[0] = 1; }}", "k")
    with pytest.raises(LaunchError, match=f"argument v has type {ctype}, which cannot be passed by value"):
        kernel(np.zeros(4, np.float32), 5)


def test_a_struct_is_not_a_number():
    kernel = Kernel("struct P { int n; };\n__global__ void k(float* x, P p) { x[0] = p.n; }", "k")
    with pytest.raises(LaunchError, match=r"argument p has type P.*of a struct pass the members one by one"):
        kernel(np.zeros(4, np.float32), 5)


def test_numpy_has_no_bfloat16():
    source = "#include <cuda_bf16.h>\n__global__ void k(__nv_bfloat16* x) { x[0] = __float2bfloat16(1.f); }"
    with pytest.raises(LaunchError, match=r"x is uint16, .* which is bfloat16: numpy has none, so pass a torch\."):
        Kernel(source, "k")(np.zeros(4, np.uint16))


# ---- what a compiler says of it


WRONG = [
    ("__global__ void k(float* x) {\n  printf(“hi”);\n}", "k", r"line 2: .*\nthe character U\+201C \(left double quot"),
    (
        "__global__ void k(float* x) {\n  int\N{NO-BREAK SPACE}i = 0;\n  x[i] = 1;\n}",
        "k",
        r"line 2: .*\nthe character U\+00A0 \(no-break space\) has no place in C\+\+: type it anew",
    ),
    (
        "__global__ void k(float* x) {\n  /* x[1] = 0;\n  x[0] = 1;\n}\n",
        "k",
        r"line 2: .*\nthis /\* is never closed: a",
    ),
    (
        "/* one */\n__global__ void k(float* x) {\n  x[0] = 1;\n}\n/* two\n",
        "k",
        r"line 5: /\* two\nthis /\* is never closed: a",
    ),
    (
        "__global__ void k(float* x, int n) {\n  __shared__ float s[n];\n  x[0] = s[0];\n}",
        "k",
        r"line 2: .*\nthe length of a __shared__ array has to be a constant .*extern __shared__ float s\[\];",
    ),
]


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        *WRONG,
        (
            "template <int T>\n__global__ void k(float* x) {\n  x[0] = T;\n}",
            "k<float>",
            "line 2: .*\nthe arguments given in Kernel's name do not fit this template",
        ),
        (
            "__global__ void k(float* x) {\n  __syncthreads;\n  x[0] = 1;\n}",
            "k",
            r"line 2: .*\n__syncthreads does nothing by its name alone: call it, __syncthreads\(…\)$",
        ),
        (
            "__global__ void k(float* x) {\n  __synchthreads();\n  x[0] = 1;\n}",
            "k",
            r"line 2: .*\n__synchthreads is declared nowhere; did you mean __syncthreads\?$",
        ),
        (
            "__global__ void k(float* x) {\n  __syncthread();\n  x[0] = 1;\n}",
            "k",
            r"line 2: .*\n__syncthread is declared nowhere; did you mean __syncthreads\?$",
        ),
        (
            "__global__ void k(float* x) {\n  x[0] = __shfl_dwn_sync(~0u, x[1], 2);\n}",
            "k",
            r"line 2: .*\n__shfl_dwn_sync is declared nowhere; did you mean __shfl_down_sync\?$",
        ),
        (
            "#include <cub/cub.cuh>\n__global__ void k(float* x) {\n  x[0] = 1;\n}",
            "k",
            "line 1: .*\nnot emulated: the libraries CUB and Thrust; write",
        ),
        (
            "#include <curand_kernel.h>\n__global__ void k(float* x) {\n  x[0] = 1;\n}",
            "k",
            "line 1: .*\nnot emulated: cuRAND; give the kernel an array of random numbers",
        ),
    ],
)
def test_the_line_at_fault_and_what_it_means(source, name, said):
    numbers = [3] if "int n" in source else []
    with pytest.raises(BuildError, match=said):
        Kernel(source, name)(np.zeros(4, np.float32), *numbers)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA toolkit here")
@pytest.mark.parametrize(("source", "said"), [(source, said) for source, _, said in WRONG])
def test_nvcc_says_the_same(source, said):
    from tilelab.cudacpp import nvcc

    with pytest.raises(BuildError, match=said):
        nvcc.compile_cubin(source, "sm_90")


# ---- what the checker says


def test_a_race_of_a_line_with_itself_needs_more_than_a_barrier():
    kernel = Kernel("__global__ void k(const float* a, float* b) {\n  b[0] += a[threadIdx.x];\n}", "k", block=32)
    with pytest.raises(
        KernelFault, match=r"line 2: .*\nrace: .*let each thread write elements of its own, use an atomic"
    ):
        kernel.check(np.ones(32, np.float32), np.zeros(1, np.float32))


def test_one_fault_that_shows_at_many_lines_fills_no_pages():
    """Sums within a warp without __syncwarp(), as they were written for GPUs before sm_70."""
    steps = "\n".join(f"  s[t] += s[t + {d}];" for d in (32, 16, 8, 4, 2, 1))
    start = "extern __shared__ int s[]; int t = threadIdx.x; s[t] = a[t]; __syncthreads(); if (t >= 32) return;"
    source = f"__global__ void k(const int* a, int* b) {{\n  {start}\n{steps}\n  if (t == 0) b[0] = s[0];\n}}"
    with pytest.raises(KernelFault, match=r"\(\d+ more; \.findings of this error holds them all\)$") as caught:
        Kernel(source, "k", block=64, shared=256).check(np.ones(64, np.int32), np.zeros(1, np.int32))
    assert str(caught.value).count("race: ") == 8 < len(caught.value.findings)


def test_dynamic_shared_memory_that_is_too_short_may_be_given_more():
    source = "__global__ void k(float* x) {\n  extern __shared__ float s[];\n  s[threadIdx.x] = x[threadIdx.x];\n}"
    with pytest.raises(
        KernelFault, match=r"line 3: .*\n.*outside its 0 bytes: guard .* or give the launch more: Kernel\("
    ):
        Kernel(source, "k", block=32).check(np.zeros(32, np.float32))


TWO_NAMES = """__global__ void k(const float* a, float* b) {
  extern __shared__ float As[];
  extern __shared__ float Bs[];
  int t = threadIdx.x;
  As[t] = a[t];
  BETWEEN
  Bs[t] = 2 * a[t];
  __syncthreads();
  b[t] = As[31 - t] + Bs[t];
}"""


def test_two_names_of_dynamic_shared_memory_are_one_array():
    """No race, for each thread writes its own element twice; the result is wrong on a GPU too."""
    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    kernel = Kernel(TWO_NAMES.replace("BETWEEN", ""), "k", block=32, shared=256)
    with pytest.raises(
        KernelFault, match=r"line 7: .*\n.* over what it wrote to As at line 5 .*: As and Bs start at"
    ) as caught:
        kernel.check(a, b)
    assert [one.kind for one in caught.value.findings] == ["overlap"]
    kernel(a, b)
    assert list(b) == [2 * (31 - t) + 2 * t for t in range(32)]


@pytest.mark.parametrize("between", ["__syncthreads();", "As[t] = 1; __syncthreads();"])
def test_one_memory_may_be_used_twice(between):
    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    Kernel(TWO_NAMES.replace("BETWEEN", between), "k", block=32, shared=256).check(a, b)


def test_two_names_for_two_parts_of_one_array():
    source = """__global__ void k(const float* a, float* b) {
  extern __shared__ float4 wide[];
  extern __shared__ float s[];
  int t = threadIdx.x;
  s[t] = 0;
  s[t] = a[t];
  __syncthreads();
  if (t < 8) wide[t + 8] = wide[t];
  __syncthreads();
  b[t] = s[t + 32];
}"""
    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    Kernel(source, "k", block=32, shared=256).check(a, b)
    assert list(b) == list(range(32))


# ---- what stops a thread


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("index", ["threadIdx.x - 1", "threadIdx.x - blockDim.x"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_an_index_below_zero_that_was_unsigned(index, dtype, checked):
    source = f"__global__ void k({dtype}* x, const {dtype}* a) {{\n  x[threadIdx.x] = a[{index}];\n}}"
    x = np.zeros(32, dtype.replace("float", "f4").replace("double", "f8"))
    wrapped = 1 if index.endswith("1") else 32
    said = rf"line 2: .*\n.* uses index {2**32 - wrapped} of a, which is -{wrapped} as an unsigned number: threadIdx"
    with pytest.raises(KernelFault, match=said):
        Kernel(source, "k", block=32).emulate(x, x.copy(), checked=checked)


def test_an_index_past_a_local_array_is_no_recursion():
    source = """__global__ void k(float* x, int n) {
  float v[4] = {1, 2, 3, 4};
  for (int i = 0; i < n; ++i) v[(i + n) % 4] += x[i];
  x[threadIdx.x] = v[threadIdx.x * 1000];
}"""
    with pytest.raises(
        KernelFault, match=r"line 4: .*\n.* reaches past its own local memory: keep the index of a local"
    ):
        Kernel(source, "k", block=32)(np.zeros(32, np.float32), 32)
