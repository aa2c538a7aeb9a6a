"""Kernels that the corpora share, and one change at a time to them."""

from tilelab.grading.problems.practice_3 import BROKEN, LAUNCH


def changed(source: str, *pairs: tuple[str, str]) -> str:
    """Return a source with some pieces replaced, each of which must be there."""
    for old, new in pairs:
        assert old in source, old
        source = source.replace(old, new)
    return source


TILED = r"""
#define TILE 16

__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float shA[TILE][TILE];
    __shared__ float shB[TILE][TILE];
    int ti = threadIdx.y, tj = threadIdx.x;
    int row = blockIdx.y * TILE + ti;
    int col = blockIdx.x * TILE + tj;
    float acc = 0.0f;
    for (int p = 0; p < (K + TILE - 1) / TILE; ++p) {
        int aCol = p * TILE + tj;
        int bRow = p * TILE + ti;
        shA[ti][tj] = (row < M && aCol < K) ? A[row * K + aCol] : 0.0f;
        shB[ti][tj] = (bRow < K && col < N) ? B[bRow * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) acc += shA[ti][k] * shB[k][tj];
        __syncthreads();  // second
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
"""
TILES = LAUNCH

NAIVE = r"""
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float acc = 0.0f;
    for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
    C[row * N + col] = acc;
}
"""

#: A tile that is filled and of which every thread reads its own element alone, so that nothing comes of it.
DECOY = changed(
    NAIVE,
    ("    float acc = 0.0f;\n", "    __shared__ float tile[16][16];\n    float acc = 0.0f;\n"),
    (
        "    for (int k = 0;",
        "    tile[threadIdx.y][threadIdx.x] = A[row * K];\n    __syncthreads();\n"
        "    if (tile[threadIdx.y][threadIdx.x] > 1e30f) acc = 1.0f;\n    for (int k = 0;",
    ),
    (
        "    if (row >= M || col >= N) return;\n",
        "    bool mine = row < M && col < N;\n    row = min(row, M - 1), col = min(col, N - 1);\n",
    ),
    ("    C[row * N + col] = acc;", "    if (mine) C[row * N + col] = acc;"),
)

FLAT = r"""
template <int T>
__device__ float element(const float* X, int i, int j, int rows, int columns) {
    return i < rows && j < columns ? X[i * columns + j] : 0.0f;
}

__global__ void matmul(const float* __restrict__ A, const float* __restrict__ B, float* C, int M, int N, int K) {
    constexpr int T = 8;
    __shared__ float tiles[2 * T * (T + 1)];
    float *a = tiles, *b = tiles + T * (T + 1);
    const int i = threadIdx.x / T, j = threadIdx.x % T;
    const int blocks = (N + T - 1) / T, row = blockIdx.x / blocks * T + i, col = blockIdx.x % blocks * T + j;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += T) {
        __syncthreads();
        a[i * (T + 1) + j] = element<T>(A, row, k0 + j, M, K);
        b[i * (T + 1) + j] = element<T>(B, k0 + i, col, K, N);
        __syncthreads();
        for (int k = 0; k < T; ++k) sum = fmaf(a[i * (T + 1) + k], b[k * (T + 1) + j], sum);
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
"""
FLAT_TILES = {"grid": "(N + TILE - 1) / TILE * ((M + TILE - 1) / TILE)", "block": "TILE * TILE", "TILE": 8}

#: Practice 3 gives the kernel in Python without its second barrier, after the inner product.
INNER = "            acc += shA[ti, k] * shB[k, tj]\n"
SIMULATED = changed(BROKEN, (INNER, f"{INNER}        cuda.syncthreads()  # second\n"))

EMPTY = r"""
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    // your kernel
}
"""
