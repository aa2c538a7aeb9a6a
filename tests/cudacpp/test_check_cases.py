"""Wrong kernels that once passed the checker, and right ones beside them that must go on passing."""

import shutil
from dataclasses import dataclass, field

import numpy as np
import pytest

from tilelab.cudacpp.errors import KernelFault
from tilelab.cudacpp.kernel import Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")


@dataclass(frozen=True)
class Case:
    """A kernel ``k``, the lengths of its arrays, its launch, and what the checker has to find: kinds with lines."""

    source: str
    found: set[tuple[str, int]]
    grid: int = 1
    block: int = 1
    lengths: tuple[int, ...] = (64,)
    shared: int = 0
    words: str = ""
    dtype: str = "f4"
    defines: dict[str, object] = field(default_factory=dict)


LOCK = """__global__ void k(float* x) {
    int* lock = (int*)x;
    while (atomicCAS(lock, 0, 1)) {}
    BODY
    __threadfence();
    atomicExch(lock, 0);
}"""
PIPELINE = "#include <cuda_pipeline_primitives.h>\n"
CASES = {
    # ---- blocks: the reader that counts is not always the latest one
    "a later reader hides the first": Case(
        """__global__ void k(float* x) {
    if (blockIdx.x < 2) x[8 + blockIdx.x] = x[0];
    if (blockIdx.x == 1) x[0] = 1;
}""",
        {("race", 3)},
        grid=2,
        words="race: thread (0,0,0) of block (1,0,0) writes x[0], which thread (0,0,0) of block (0,0,0) read at line 2",
    ),
    "every block reads its own element alone": Case(
        "__global__ void k(float* x) {\n    x[blockIdx.x] = x[blockIdx.x] + 1;\n}", set(), grid=4
    ),
    "plain initialisation beside atomics": Case(
        """__global__ void k(float* x) {
    if (blockIdx.x == 0 && threadIdx.x == 0) x[0] = 0;
    __syncthreads();
    atomicAdd(x, 1.0f);
}""",
        {("race", 4)},
        grid=2,
        block=32,
        words="blocks run in no order",
    ),
    "plain initialisation behind atomics": Case(
        """__global__ void k(float* x) {
    if (blockIdx.x == 1) x[0] = 0;
    else atomicAdd(x, 1.0f);
}""",
        {("race", 2)},
        grid=2,
        words="changed by an atomic at line 3",
    ),
    "an atomic on something else orders nothing": Case(
        """__global__ void k(float* x) {
    atomicAdd(x, 1.0f);
    x[1] += 1;
}""",
        {("race", 3)},
        grid=2,
    ),
    "a ticket, and the whole last block reads": Case(
        """__global__ void k(float* x) {
    __shared__ bool last;
    x[2 + blockIdx.x * 32 + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(x, 1.0f) == gridDim.x - 1;
    __syncthreads();
    if (last) atomicAdd(x + 1, x[2 + threadIdx.x] + x[34 + threadIdx.x]);
}""",
        set(),
        grid=2,
        block=32,
        lengths=(66,),
    ),
    "a lock": Case(
        """__global__ void k(float* x) {
    int* lock = (int*)x;
    while (atomicCAS(lock, 0, 1)) {}
    x[1] += 1;
    __threadfence();
    atomicExch(lock, 0);
}""",
        set(),
        grid=4,
    ),
    "a lock within a block": Case(
        LOCK.replace("BODY", "x[1] += 1;"),
        set(),
        block=40,
    ),
    "a lock over warps and blocks": Case(
        LOCK.replace("BODY", "x[1] += 1;"),
        set(),
        grid=3,
        block=40,
    ),
    "a lock that one lane holds for its warp": Case(
        """__global__ void k(float* x) {
    int* lock = (int*)x;
    if (threadIdx.x % 32 == 0) while (atomicCAS(lock, 0, 1)) {}
    __syncwarp();
    x[1 + threadIdx.x % 32] += 1;
    __syncwarp();
    if (threadIdx.x % 32 == 0) __threadfence(), atomicExch(lock, 0);
}""",
        set(),
        grid=2,
        block=96,
    ),
    "a lock in shared memory": Case(
        """__global__ void k(float* x) {
    __shared__ int lock;
    if (threadIdx.x == 0) lock = 0;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1)) {}
    x[1] += 1;
    __threadfence_block();
    atomicExch(&lock, 0);
}""",
        set(),
        block=64,
    ),
    "a flag that another thread waits for": Case(
        """__global__ void k(float* x) {
    int* flag = (int*)x;
    if (threadIdx.x == 40) { x[1] = 5; __threadfence(); atomicExch(flag, 1); }
    if (threadIdx.x == 0) { while (!atomicAdd(flag, 0)) {} x[2] = x[1]; }
}""",
        set(),
        block=64,
    ),
    "a lock given back too early": Case(
        LOCK.replace("BODY", "").replace("0);\n}", "0);\n    x[1] += 1;\n}"),
        {("race", 7)},
        block=2,
    ),
    "a lock that readers do not take": Case(
        LOCK.replace("BODY", "x[1] += 1;").replace(
            "(int*)x;", "(int*)x;\n    if (threadIdx.x == 1) { x[2] = x[1]; return; }"
        ),
        {("race", 5)},
        block=2,
    ),
    "two locks for one element": Case(
        LOCK.replace("BODY", "x[2] += 1;").replace("(int*)x;", "(int*)x + threadIdx.x % 2;"),
        {("race", 4)},
        block=2,
    ),
    "atomics before and behind that lock nothing": Case(
        """__global__ void k(float* x) {
    atomicAdd(x, 1.0f);
    x[1] += 1;
    atomicAdd(x, 1.0f);
}""",
        {("race", 3)},
        block=2,
    ),
    "a loop of atomicCAS that begins with a plain read": Case(
        """__device__ double add(double* at, double value) {
    unsigned long long *p = (unsigned long long*)at, old = *p, assumed;
    do {
        assumed = old;
        old = atomicCAS(p, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
__global__ void k(double* x) { add(x, x[1 + blockIdx.x]); }""",
        set(),
        grid=3,
        block=40,
        dtype="f8",
    ),
    "a plain read that no atomicCAS checks": Case(
        """__global__ void k(int* x) {
    int old = x[0];
    if (old < 5) atomicAdd(x, 1);
}""",
        {("race", 2)},
        block=40,
        dtype="i4",
    ),
    "a plain read, and an atomicCAS of something else": Case(
        """__global__ void k(int* x) {
    atomicAdd(x, 1);
    int old = x[0];
    atomicCAS(x + 1, old, 1);
}""",
        {("race", 2)},
        grid=2,
        dtype="i4",
    ),
    "bytes of one word by several threads": Case(
        """__global__ void k(unsigned char* x) {
    __shared__ unsigned s[16];
    ((unsigned char*)s)[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    if (threadIdx.x < 16) ((unsigned*)x)[threadIdx.x] = s[threadIdx.x];
}""",
        {("race", 5)},
        block=64,
        dtype="u1",
        words="reads shared s, element 8, which thread (32,0,0)",
    ),
    "bytes of one word, each thread its own": Case(
        "__global__ void k(unsigned char* x) {\n    x[threadIdx.x] += 1;\n}", set(), block=64, dtype="u1"
    ),
    # ---- variables outside functions
    "a constant, written through a pointer": Case(
        """__constant__ const float other = 4;
namespace ours { __constant__ float weight[3] = {1, 2, 3}; }
__global__ void k(float* x) {
    float* p = ours::weight;
    p[2] = x[0];
    x[1] = p[1] + other;
}""",
        {("constant", 5)},
        words="writes weight[2], which is __constant__: a kernel may only read it",
    ),
    "a device variable": Case(
        """__device__ float total;
__global__ void k(float* x) {
    total += x[threadIdx.x];
    if (threadIdx.x == 0) x[0] = total;
}""",
        {("race", 3)},
        block=32,
        words="reads total, which thread (0,0,0)",
    ),
    "a device array in a namespace, by blocks": Case(
        """namespace ours { __device__ int seen[4]; }
__global__ void k(float* x) {
    ours::seen[1] = blockIdx.x;
}""",
        {("race", 3)},
        grid=2,
        words="seen[1]",
    ),
    "constants are read by all": Case(
        """__constant__ float weight[2] = {2, 3};
__global__ void k(float* x) {
    x[threadIdx.x] *= weight[1];
}""",
        set(),
        block=32,
    ),
    # ---- asynchronous copies
    "a store to the target of a copy under way": Case(
        PIPELINE
        + """__global__ void k(float* x) {
    __shared__ float s[32];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    s[threadIdx.x] = 0;
    __pipeline_wait_prior(0);
    x[32 + threadIdx.x] = s[threadIdx.x];
}""",
        {("pending", 6)},
        block=32,
        words="writes shared s, element 0 while an asynchronous copy to it is under way",
    ),
    "a store to the source of a copy under way": Case(
        PIPELINE
        + """__global__ void k(float* x) {
    __shared__ float s[32];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    x[threadIdx.x] = 0;
    __pipeline_wait_prior(0);
    x[32 + threadIdx.x] = s[threadIdx.x];
}""",
        {("pending", 6)},
        block=32,
        words="writes x[0] while an asynchronous copy from it is under way",
    ),
    "a second copy to where the first still goes": Case(
        PIPELINE
        + """__global__ void k(float* x) {
    __shared__ float s[32];
    for (int i = 0; i < 2; ++i) {
        __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(0);
}""",
        {("pending", 5)},
        block=32,
    ),
    "stores once the copies have arrived": Case(
        PIPELINE
        + """__global__ void k(float* x) {
    __shared__ float s[32];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    s[threadIdx.x] += 1;
    x[threadIdx.x] = s[threadIdx.x];
}""",
        set(),
        block=32,
    ),
    "a copy that nobody waits for ends with its block": Case(
        PIPELINE
        + """__global__ void k(float* x) {
    __shared__ float s[32];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[blockIdx.x * 32 + threadIdx.x], 4);
    __pipeline_commit();
}""",
        set(),
        grid=2,
        block=32,
    ),
    # ---- warps
    "the value of a lane that has ended": Case(
        """__global__ void k(float* x) {
    if (threadIdx.x >= 20) return;
    x[threadIdx.x] += __shfl_down_sync(0xffffffffu, x[threadIdx.x], 4);
}""",
        {("absent", 3)},
        block=32,
        words="thread (16,0,0) of block (0,0,0) takes the value of lane 20, which has ended",
    ),
    "a vote of the lanes that are left": Case(
        """__global__ void k(float* x) {
    if (threadIdx.x >= 20) return;
    x[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
}""",
        set(),
        block=32,
    ),
    "two shuffles in the two arms of one line": Case(
        """__global__ void k(float* x) {
    int t = threadIdx.x;
    x[t] = t < 16 ? __shfl_sync(0xffffffffu, x[t], 0) : __shfl_sync(0xffffffffu, x[t], 1);
}""",
        {("stopped", 3)},
        block=32,
        words="waits at line 3, at another operation",
    ),
    # ---- arrays
    "out of one shared array into the next": Case(
        """__global__ void k(float* x) {
    __shared__ float a[32], b[32];
    a[threadIdx.x] = b[threadIdx.x] = 0;
    __syncthreads();
    float* p = a;
    x[threadIdx.x] = p[threadIdx.x + 1];
}""",
        {("bounds", 6)},
        block=32,
        words="reads shared a, element 32, outside its 32 elements",
    ),
    "before a shared array of a template": Case(
        """template <int N> __device__ float* box() { __shared__ float a[N]; return a; }
__global__ void k(float* x) {
    __shared__ float last[32];
    last[0] = 0;
    box<1024>()[(int)threadIdx.x - 1] = last[0];
}""",
        {("bounds", 5)},
        words="writes shared a, element -1, outside its 1024 elements",
    ),
    "a local array that nobody sets": Case(
        """__global__ void k(float* x) {
    float sum[2][2], used;
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 4; ++j) sum[j / 2][j % 2] += x[i];
    for (int j = 0; j < 4; ++j) x[j] = sum[j / 2][j % 2];
}""",
        {("unset", 2)},
        words="sum is read before anything is stored in it",
    ),
    "a local array that is set by a loop": Case(
        """__global__ void k(float* x) {
    float sum[4];
    for (int j = 0; j < 4; ++j) sum[j] = 0;
    for (int i = 0; i < 8; ++i) sum[i % 4] += x[i];
    for (int j = 0; j < 4; ++j) x[j] = sum[j];
}""",
        set(),
    ),
    "half in shared memory": Case(
        """__global__ void k(__half* x) {
    __shared__ __half s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[31 - threadIdx.x];
}""",
        set(),
        block=32,
        dtype="f2",
    ),
    "the compiler's own atomics": Case(
        """__global__ void k(int* x) {
    __atomic_fetch_add(x, 1, __ATOMIC_SEQ_CST);
    int due = 5;
    __atomic_compare_exchange_n(x + 1, &due, 7, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    __atomic_store_n(x + 2, __atomic_load_n(x, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}""",
        set(),
        block=32,
        dtype="i4",
    ),
    # ---- far away and askew
    "an index far from every array": Case(
        "__global__ void k(float* x) {\n    x[threadIdx.x * 1000000] = 1;\n}",
        {("bounds", 2), ("crash", 2)},
        block=2,
        words="thread (1,0,0) of block (0,0,0) writes x[1000000], outside its 64 elements",
    ),
    "a misaligned float4": Case(
        "__global__ void k(float* x) {\n    *(float4*)(x + 1) = make_float4(1, 2, 3, 4);\n}",
        {("misaligned", 2)},
        words="an access of 16 bytes at x[1], not at a multiple of 16",
    ),
    "a misaligned float2 in shared memory": Case(
        """__global__ void k(float* x) {
    __shared__ float s[8];
    s[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) x[0] = ((float2*)(s + 1))->x;
}""",
        {("misaligned", 5)},
        block=8,
        words="shared s, element 1, not at a multiple of 8",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_checker_finds_what_is_wrong_and_nothing_else(name):
    case = CASES[name]
    arrays = [np.zeros(length, case.dtype) for length in case.lengths]
    kernel = Kernel(case.source, "k", case.grid, case.block, case.shared, case.defines)
    try:
        findings = kernel.emulate(*arrays, checked=True, seconds=120).findings
        text = "\n".join(map(str, findings))
    except KernelFault as fault:
        findings, text = fault.findings, str(fault) + "\n".join(map(str, fault.findings))
    assert bool(text) == bool(case.found), text
    kinds = {(finding.kind, finding.line) for finding in findings}
    assert kinds >= case.found, text
    # A race shows in several pairs of accesses; other kinds of finding are exactly those that are due.
    assert {kind for kind, _ in kinds} <= {kind for kind, _ in case.found} | {"crash"}, text
    assert case.words in text
