"""Practice 2: how large a tile."""

import numpy as np
from kernels import TILED, TILES, changed

ROWS = r"""
#define TILE 64
#define ROWS 16

__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float shA[TILE][TILE];
    __shared__ float shB[TILE][TILE];
    int ti = threadIdx.y, tj = threadIdx.x;
    int row0 = blockIdx.y * TILE;
    int col = blockIdx.x * TILE + tj;
    float acc[TILE / ROWS] = {};
    for (int p = 0; p < (K + TILE - 1) / TILE; ++p) {
        for (int i = ti; i < TILE; i += ROWS) {
            int row = row0 + i, aCol = p * TILE + tj, bRow = p * TILE + i;
            shA[i][tj] = (row < M && aCol < K) ? A[row * K + aCol] : 0.0f;
            shB[i][tj] = (bRow < K && col < N) ? B[bRow * N + col] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            for (int r = 0; r < TILE / ROWS; ++r) acc[r] += shA[ti + r * ROWS][k] * shB[k][tj];
        __syncthreads();  // second
    }
    for (int r = 0; r < TILE / ROWS; ++r) {
        int row = row0 + ti + r * ROWS;
        if (row < M && col < N) C[row * N + col] = acc[r];
    }
}
"""
LAUNCH = {"grid": "ceil_div(N, TILE), ceil_div(M, TILE)", "block": "TILE, 16", "TILE": 64}


def table(**changes):
    """The right table, with some columns changed: name to one value a tile."""
    columns = {
        "shared": (512, 2048, 8192, 32768),
        "threads": (64, 256, 1024, 4096),
        "occupancy": (67, 100, 67, 0),
        "ms": (0.446, 0.288, 0.248, None),
        **changes,
    }
    return {
        tile: {name: values[place] for name, values in columns.items()} for place, tile in enumerate((8, 16, 32, 64))
    }


RIGHT = {
    "table": table(),
    "kernel": ROWS,
    "launch": LAUNCH,
    "conclusion": {"a": False, "b": True, "c": False, "d": True, "e": True},
}
PENDING = {"table": 1}

WRONG = {
    "one tile counted": ({"table": table(shared=(256, 1024, 4096, 16384))}, {"table": 2}),
    "elements instead of bytes": ({"table": table(shared=(128, 512, 2048, 8192))}, {"table": 2}),
    "blocks without a limit": ({"table": table(occupancy=(100, 100, 67, 0))}, {"table": 2.75}),
    "64 said to run": ({"table": table(occupancy=(67, 100, 67, 67))}, {"table": 2.75}),
    "occupancy of 1536 threads, no limit of blocks": ({"table": table(occupancy=(33, 67, 67, 0))}, {"table": 2.5}),
    "occupancy as a share": ({"table": table(occupancy=(0.67, 1.0, 0.67, 0))}, {"table": 2.25}),
    "warps instead of threads": ({"table": table(threads=(2, 8, 32, 128))}, {"table": 2}),
    "kilobytes": ({"table": table(shared=(0.5, 2, 8, 32))}, {"table": 2}),
    "a block of 64 cut to 1024 threads": ({"table": table(threads=(64, 256, 1024, 1024))}, {"table": 2.75}),
    "no times": ({"table": table(ms=(None, None, None, None))}, {"table": 3}),
    "the launch as it was given": (
        {"kernel": changed(TILED, ("TILE 16", "TILE 64")), "launch": {**TILES, "TILE": 64}},
        {"tile_64": 0},
    ),
    "a smaller tile instead": (
        {"kernel": changed(TILED, ("TILE 16", "TILE 32")), "launch": {**TILES, "TILE": 32}},
        {"tile_64": 1.5},
    ),
    "the block cut, the kernel left": (
        {"kernel": changed(TILED, ("TILE 16", "TILE 64"))},
        {"tile_64": 0},
    ),
    "only a quarter of the rows stored": (
        {
            "kernel": changed(
                ROWS,
                (
                    "for (int r = 0; r < TILE / ROWS; ++r) {\n        int row",
                    "for (int r = 0; r < 1; ++r) {\n        int row",
                ),
            )
        },
        {"tile_64": 0.6},
    ),
    "the second barrier lost": ({"kernel": changed(ROWS, ("__syncthreads();  // second", ""))}, {"tile_64": 1.2}),
    "times as text": ({"table": table(ms=("0.4", "0.3", "0.2", None))}, {"table": 3}),
    "rows without their tiles": ({"table": list(table().values())}, {"table": 0}),
    "statements as 0 and 1": ({"conclusion": {"a": 0, "b": 1, "c": 0, "d": 1, "e": 1}}, {"conclusion": 0}),
    "one statement forgotten": ({"conclusion": {"a": False, "b": True, "c": False, "d": True}}, {"conclusion": 2.4}),
    "occupancy decides": (
        {"conclusion": {"a": True, "b": True, "c": True, "d": True, "e": True}},
        {"conclusion": 0.6},
    ),
    "left blank": (
        {"table": table(**dict.fromkeys(("shared", "threads", "occupancy", "ms"), (None,) * 4))}
        | {"kernel": None, "launch": None, "conclusion": dict.fromkeys("abcde")},
        {"table": 0, "tile_64": 0, "conclusion": 0},
    ),
}
WRONG_PENDING = {name: {"table": 1} for name in list(WRONG)[:9]}

UNUSUAL = {
    "exact percentages": {"table": table(occupancy=(66.7, 100.0, 66.7, 0.0))},
    "a thin K tile, 16 × 16 threads with 4 × 4 outputs": {
        "kernel": r"""
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[64][9], b[8][64];
    const int t = threadIdx.x, x = t % 16, y = t / 16, i0 = blockIdx.y * 64, j0 = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
        for (int e = t; e < 512; e += 256) {
            a[e / 8][e % 8] = i0 + e / 8 < M && k0 + e % 8 < K ? A[(i0 + e / 8) * K + k0 + e % 8] : 0.0f;
            b[e / 64][e % 64] = k0 + e / 64 < K && j0 + e % 64 < N ? B[(k0 + e / 64) * N + j0 + e % 64] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 8; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += a[y + 16 * i][k] * b[k][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            if (i0 + y + 16 * i < M && j0 + x + 16 * j < N) C[(i0 + y + 16 * i) * N + j0 + x + 16 * j] = sum[i][j];
}
""",
        "launch": {"grid": ["ceil_div(N, 64)", "ceil_div(M, 64)"], "block": 256},
    },
    "percentages rounded down, a time for 64 too": {
        "table": table(occupancy=(66, 100, 66, 0), ms=(0.4, 0.3, 0.2, 0.1))
    },
    "numbers of NumPy": {
        "table": table(shared=np.array([512, 2048, 8192, 32768]), occupancy=np.float32([66.7, 100, 66.7, 0])),
        "conclusion": {name: np.bool_(name in "bde") for name in "abcde"},
    },
    "numbers of 64 as text keys": {"table": {str(tile): cells for tile, cells in table().items()}},
}
