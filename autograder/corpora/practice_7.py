"""Practice 7: register tiling."""

from kernels import DECOY, EMPTY, NAIVE, TILED, TILES, changed

PATCH = r"""
#define TK 16

__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float shA[32][TK];
    __shared__ float shB[TK][32];
    int ty = threadIdx.y, tx = threadIdx.x;
    int row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int k0 = 0; k0 < K; k0 += TK) {
        for (int i = 0; i < 2; ++i) {
            int r = ty + 16 * i, c = tx + 16 * i;
            shA[r][tx] = (row0 + r < M && k0 + tx < K) ? A[(row0 + r) * K + k0 + tx] : 0.0f;
            shB[ty][c] = (k0 + ty < K && col0 + c < N) ? B[(k0 + ty) * N + col0 + c] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TK; ++k)
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) acc[i][j] += shA[ty + 16 * i][k] * shB[k][tx + 16 * j];
        __syncthreads();  // second
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N) C[row * N + col] = acc[i][j];
        }
}
"""
LAUNCH = {"grid": "ceil_div(N, 32), ceil_div(M, 32)", "block": "16, 16"}

RIGHT = {"kernel": PATCH, "launch": LAUNCH, "tiled": TILED, "tiled_launch": TILES}
PENDING = {"timed": 8}

STRIP = r"""
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float b[8][32];
    int col = blockIdx.x * 32 + threadIdx.x, row0 = blockIdx.y * 32 + threadIdx.y;
    float sums[4] = {0, 0, 0, 0};
    for (int k0 = 0; k0 < K; k0 += 8) {
        b[threadIdx.y][threadIdx.x] = k0 + threadIdx.y < K && col < N ? B[(k0 + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
        for (int r = 0; r < 4; ++r)
            if (row0 + 8 * r < M)
                for (int k = 0; k < 8 && k0 + k < K; ++k) sums[r] += A[(row0 + 8 * r) * K + k0 + k] * b[k][threadIdx.x];
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        if (row0 + 8 * r < M && col < N) C[(row0 + 8 * r) * N + col] = sums[r];
}
"""

WRONG = {
    "the tiled kernel again": ({"kernel": TILED, "launch": TILES}, {"correct": 2, "timed": 0}),
    "the grid left at 16": (
        {"launch": {**LAUNCH, "grid": "ceil_div(N, 16), ceil_div(M, 16)"}},
        {"correct": 2, "timed": 0},
    ),
    "one element loaded a thread": (
        {
            "kernel": changed(
                PATCH, ("int i = 0; i < 2; ++i) {\n            int r", "int i = 0; i < 1; ++i) {\n            int r")
            )
        },
        {"correct": 0, "timed": 0},
    ),
    "one accumulator for four": (
        {"kernel": changed(PATCH, ("acc[i][j] += ", "acc[0][0] += "))},
        {"correct": 1, "timed": 0},
    ),
    "the second barrier lost": (
        {"kernel": changed(PATCH, ("__syncthreads();  // second", ""))},
        {"correct": 1, "timed": 0},
    ),
    "columns not guarded": (
        {"kernel": changed(PATCH, ("if (row < M && col < N)", "if (row < M)"))},
        {"correct": 1, "timed": 0},
    ),
    "C's patch written transposed": (
        {"kernel": changed(PATCH, ("= acc[i][j];", "= acc[j][i];"))},
        {"correct": 1, "timed": 0},
    ),
    "rows beside each other when reading, apart when writing": (
        {"kernel": changed(PATCH, ("shA[ty + 16 * i][k]", "shA[2 * ty + i][k]"))},
        {"correct": 1, "timed": 0},
    ),
    "no tiled kernel to compare with": ({"tiled": None}, {"timed": 0}),
    "a tiled kernel that is wrong": (
        {"tiled": changed(TILED, ("__syncthreads();", ""))},
        {"timed": 0},
    ),
    "sums without a first value": (
        {"kernel": changed(PATCH, (" = {{0.0f, 0.0f}, {0.0f, 0.0f}}", ""))},
        {"correct": 0, "timed": 0},
    ),
    "a thread for each element of the tile": ({"launch": {**LAUNCH, "block": "32, 32"}}, {"correct": 0, "timed": 0}),
    "sums exchanged while adding": (
        {"kernel": changed(PATCH, ("acc[i][j] +=", "acc[j][i] +="))},
        {"correct": 1, "timed": 0},
    ),
    "columns beside each other when reading, apart when writing": (
        {"kernel": changed(PATCH, ("shB[k][tx + 16 * j]", "shB[k][2 * tx + j]"))},
        {"correct": 1, "timed": 0},
    ),
    "a naive kernel to compare with": ({"tiled": NAIVE}, {"timed": 0}),
    "a naive kernel beside a tile that nobody needs, to compare with": ({"tiled": DECOY}, {"timed": 0}),
    "left as it was given": ({"kernel": EMPTY, "tiled": None}, {"correct": 0, "timed": 0}),
}

#: Right, with four elements of C a thread, and no tile: the report says what that costs.
UNTILED = r"""
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * 32 + threadIdx.x;
    for (int row = blockIdx.y * 32 + threadIdx.y; row < min(M, int(blockIdx.y + 1) * 32); row += 8) {
        float sum = 0.0f;
        if (col < N) {
            for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
            C[row * N + col] = sum;
        }
    }
}
"""

UNUSUAL = {
    "four elements a thread, one after the other, without a tile": {
        "kernel": UNTILED,
        "launch": {**LAUNCH, "block": "32, 8"},
    },
    "four rows a thread, A straight from global memory": {"kernel": STRIP, "launch": {**LAUNCH, "block": "32, 8"}},
    "a patch of neighbours": {
        "kernel": changed(
            PATCH,
            ("shA[ty + 16 * i][k] * shB[k][tx + 16 * j]", "shA[2 * ty + i][k] * shB[k][2 * tx + j]"),
            ("row0 + ty + 16 * i, col = col0 + tx + 16 * j", "row0 + 2 * ty + i, col = col0 + 2 * tx + j"),
        )
    },
    "compared with a tile of 32": {
        "tiled": changed(TILED, ("TILE 16", "TILE 32")),
        "tiled_launch": {**TILES, "TILE": 32},
    },
    "A's tile stored transposed and padded": {
        "kernel": changed(
            PATCH,
            ("shA[32][TK]", "shA[TK][33]"),
            ("shA[r][tx]", "shA[tx][r]"),
            ("shA[ty + 16 * i][k]", "shA[k][ty + 16 * i]"),
        )
    },
    "one rounding by fma": {
        "kernel": changed(
            PATCH,
            (
                "acc[i][j] += shA[ty + 16 * i][k] * shB[k][tx + 16 * j]",
                "acc[i][j] = __fmaf_rn(shA[ty + 16 * i][k], shB[k][tx + 16 * j], acc[i][j])",
            ),
        )
    },
    "one-dimensional blocks": {
        "kernel": changed(
            PATCH, ("ty = threadIdx.y, tx = threadIdx.x", "ty = threadIdx.x / 16, tx = threadIdx.x % 16")
        ),
        "launch": {**LAUNCH, "block": 256},
    },
}
