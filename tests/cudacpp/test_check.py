"""The checking mode names what is wrong with a kernel, at the line; and is silent about right ones."""

import shutil

import numpy as np
import pytest

from tilelab.cudacpp.errors import KernelFault
from tilelab.cudacpp.kernel import Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")


def kinds(source, name, *arguments, **rule):
    """What the checker finds: (kind, line) of each."""
    try:
        findings = Kernel(source, name, **rule).emulate(*arguments, checked=True, seconds=120).findings
    except KernelFault as fault:
        findings = fault.findings
    return [(finding.kind, finding.line) for finding in findings]


def test_a_race_names_both_lines_and_threads():
    source = """__global__ void k(float* x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}"""
    with pytest.raises(KernelFault) as caught:
        Kernel(source, "k", block=64).check(np.zeros(64, "f4"))
    first = next(f for f in caught.value.findings if f.kind == "race" and f.line == 4)
    assert first.other_line == 3
    assert "thread (32,0,0) of block (0,0,0) reads shared s, element 31, which thread (31,0,0)" in first.message
    assert "put __syncthreads() between the two" in first.message


def test_a_warp_barrier_orders_a_warp_and_no_more():
    source = """__global__ void k(float* x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    x[threadIdx.x] = s[threadIdx.x ^ FLIP];
}"""
    x = np.zeros(64, "f4")
    assert kinds(source, "k", x, block=64, defines={"FLIP": 1}) == []
    assert ("race", 5) in kinds(source, "k", x, block=64, defines={"FLIP": 32})


def test_views_of_dynamic_memory_that_overlap_race():
    source = """__global__ void k(const float* x, float* y) {
    extern __shared__ float a[];
    extern __shared__ float b[];
    int t = threadIdx.x;
    a[t] = x[t];
    b[31 - t] = x[t];
    __syncthreads();
    y[t] = a[t] + b[t];
}"""
    assert ("race", 6) in kinds(source, "k", np.ones(32, "f4"), np.ones(32, "f4"), block=32, shared=256)


def test_blocks_that_write_the_same_element_race_unless_by_atomics():
    source = "__global__ void k(float* x) {\n  OPERATION;\n}"
    x = np.zeros(1, "f4")
    assert kinds(source, "k", x, grid=2, defines={"OPERATION": "x[0]+=1"}) == [("race", 2)] * 3
    assert kinds(source, "k", x, grid=2, defines={"OPERATION": "atomicAdd(x,1)"}) == []


def test_the_last_block_may_read_what_the_others_wrote():
    source = """__global__ void k(float* part, unsigned* done, float* out) {
    __shared__ bool last;
    part[blockIdx.x] = blockIdx.x;
    __threadfence();
    if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) for (int i = 0; i < gridDim.x; ++i) out[0] += part[i];
}"""
    out = np.zeros(1, "f4")
    assert kinds(source, "k", np.zeros(4, "f4"), np.zeros(1, "u4"), out, grid=4, block=1) == []
    assert out[0] == 6


@pytest.mark.parametrize("index", ["n", "-1", "n + 3"])
def test_global_indices_out_of_bounds(index):
    source = f"__global__ void k(const float* x, float* y, int n) {{\n  y[0] = x[{index}];\n}}"
    with pytest.raises(KernelFault, match=r"line 2: y\[0\] = x.*\n.* reads x\[.*\], outside its 5 elements"):
        Kernel(source, "k").check(np.zeros(5, "f4"), np.zeros(5, "f4"), 5)


def test_a_stray_write_is_seen_without_the_checker_too():
    source = "__global__ void k(float* x, int i) { x[i] = 1; }"
    for index, message in [(5, r"x\[5\], past its end"), (-2, r"x\[-2\], before its start")]:
        with pytest.raises(KernelFault, match=message):
            Kernel(source, "k")(np.zeros(5, "f4"), index)


def test_static_arrays_and_local_ones_have_bounds():
    source = """__global__ void k(float* x, int i) {
    __shared__ float s[4][8];
    float local[3];
    local[i] = 1;
    s[0][i + 5] = local[i];
    x[0] = s[0][i + 5];
}"""
    assert {("index", 4), ("index", 5)} <= set(kinds(source, "k", np.zeros(1, "f4"), 3))


def test_dynamic_memory_ends_where_the_launch_says():
    source = "__global__ void k(float* x) {\n  extern __shared__ float s[];\n  s[threadIdx.x] = 1;\n}"
    assert kinds(source, "k", np.zeros(1, "f4"), block=32, shared=128) == []
    assert kinds(source, "k", np.zeros(1, "f4"), block=32, shared=124) == [("bounds", 3)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if (threadIdx.x < 16) __syncthreads();", "has ended"),
        ("if (threadIdx.x < 16) return; __syncthreads();", "has ended"),
        ("if (threadIdx.x < 16) __syncthreads();\nelse __syncthreads();", "waits at line"),
        ("if (threadIdx.x < 16) __syncthreads(); else __syncthreads();", "waits at line 2, at another one"),
        ("if (threadIdx.x < 16) __syncthreads(); else __syncwarp(0xffff0000u), __syncthreads();", "at another one"),
    ],
)
def test_barrier_divergence(body, reason):
    with pytest.raises(KernelFault, match=f"barrier divergence: .*{reason}"):
        Kernel(f"__global__ void k(float* x) {{\n{body}\n}}", "k", block=32)(np.zeros(1, "f4"))


def test_a_warp_operation_that_lanes_miss():
    source = "__global__ void k(int* x) {\n  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(0xffffffffu, 1, BAD);\n"
    source += "  else __syncthreads();\n}"
    with pytest.raises(KernelFault, match="waits"):
        Kernel(source, "k", block=32, defines={"BAD": 0})(np.zeros(32, "i4"))


def test_misaligned_vectors():
    source = "__global__ void k(float* x) {\n  *(float4*)(x + 1) = make_float4(1, 2, 3, 4);\n}"
    assert ("misaligned", 2) in kinds(source, "k", np.zeros(8, "f4"))


def test_a_sum_that_starts_from_nothing():
    source = "__global__ void k(const float* x, float* y, int n) {\n  float sum;\n  for (int i = 0; i < n; ++i) sum += x[i];\n"
    source += "  y[0] = sum;\n}"
    assert kinds(source, "k", np.ones(4, "f4"), np.ones(1, "f4"), 4) == [("unset", 2)]


# ---- wrong versions of the tiled matrix product: every one is caught, by the checker or by its result

# ruff: noqa: E501
MUTANTS = {
    "no first barrier": ("__syncthreads();  // the tiles are complete", "", {"race", "unwritten"}),
    "no second barrier": ("__syncthreads();  // nobody reads them any more", "", {"race"}),
    "guarded barrier": ("__syncthreads();  // the tiles", "if (row < M) __syncthreads();  // the tiles", {"divergence"}),
    "no guard on rows of A": ("row < M && start + tx < K ?", "start + tx < K ?", {"bounds"}),
    "no guard on K": ("start + ty < K && column < N ?", "column < N ?", {"bounds"}),
    "no guard on the output": ("if (row < M && column < N) C", "C", {"bounds"}),
    "swapped index": ("tileB[k][tx]", "tileB[tx][k]", set()),
    "one step too far": ("k < TILE; ++k", "k <= TILE; ++k", {"index"}),
    "one step too few": ("k < TILE; ++k", "k < TILE - 1; ++k", set()),
    "no first value": ("float sum = 0.0f;", "float sum;", {"unset"}),
    "one tile only": ("start < K; start += TILE", "start < TILE; start += TILE", set()),
    "wrong pitch": ("A[(size_t)row * K + start + tx]", "A[(size_t)row * N + start + tx]", set()),
    "flat guard": ("if (row < M && column < N) C", "if (row * N + column < M * N) C", {"race"}),
    "output transposed": ("C[(size_t)row * N + column] = sum", "C[(size_t)column * M + row] = sum", set()),
    "barrier after return": ("    float sum = 0.0f;", "    if (row >= M) return;\n    float sum = 0.0f;", {"divergence"}),
    "overwrites instead of adding": ("sum += tileA", "sum = tileA", set()),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_wrong_version_is_caught(mutant):
    from tilelab.kernels.ladder import rung
    from tilelab.kernels.verify import check_product

    right = rung("tiled_16")
    old, new, expected = MUTANTS[mutant]
    assert right.source.count(old) == 1
    source = right.source.replace(old, new)
    M, N, K = 20, 18, 37
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((M, K), "f4"), rng.standard_normal((K, N), "f4")
    C = np.full((M, N), np.nan, "f4")
    kernel = Kernel(source, "matmul", right.grid, right.block, defines=right.defines)
    found = set()
    try:
        found = {f.kind for f in kernel.emulate(A, B, C, M, N, K, checked=True).findings}
    except KernelFault as fault:
        found = {f.kind for f in fault.findings}
    assert expected <= found
    assert found or not check_product(C, A, B)


def test_a_missing_second_barrier_is_found_although_the_result_may_be_right():
    from tilelab.kernels.ladder import rung

    right = rung("tiled_16")
    source = right.source.replace(MUTANTS["no second barrier"][0], "")
    kernel = Kernel(source, "matmul", right.grid, right.block, defines=right.defines)
    one_tile = [np.ones((16, 16), "f4") for _ in range(3)]
    assert kernel.emulate(*one_tile, 16, 16, 16, checked=True).findings == ()
    two_tiles = [np.ones((16, 32), "f4"), np.ones((32, 16), "f4"), np.ones((16, 16), "f4")]
    for order in ("forward", "reverse", "shuffled"):
        findings = kernel.emulate(*two_tiles, 16, 16, 32, checked=True, order=order).findings
        assert any(f.kind == "race" for f in findings)
