"""Practice 1: naive against tiled."""

from kernels import DECOY, EMPTY, FLAT, FLAT_TILES, NAIVE, TILED, TILES, changed

RIGHT = {
    "traffic_ratio": 16,
    "time_ratio": 1.5,
    "kernel": TILED,
    "launch": TILES,
    "explanation": {"a": False, "b": True, "c": True, "d": False},
    "measured_ratio": 1.5,
}
PENDING = {"timed": 3, "explanation": 1}

WRONG = {
    "no second barrier": (
        {"kernel": changed(TILED, ("__syncthreads();  // second", ""))},
        {"correct": 0.67, "timed": 0},
    ),
    "no barrier at all": ({"kernel": changed(TILED, ("__syncthreads();", ""))}, {"correct": 0, "timed": 0}),
    "the naive kernel again": ({"kernel": NAIVE}, {"correct": 2, "timed": 0}),
    "the naive kernel beside a tile that nobody needs": ({"kernel": DECOY}, {"correct": 2, "timed": 0}),
    "no edges": (
        {
            "kernel": changed(
                TILED,
                ("(row < M && aCol < K) ? A[row * K + aCol] : 0.0f", "A[row * K + aCol]"),
                ("(bRow < K && col < N) ? B[bRow * N + col] : 0.0f", "B[bRow * N + col]"),
            )
        },
        {"correct": 1.33, "timed": 0},
    ),
    "returns before the barrier": (
        {"kernel": changed(TILED, ("float acc", "if (row >= M || col >= N) return;\n    float acc"))},
        {"correct": 2, "timed": 0},
    ),
    "rows and columns of the grid exchanged": (
        {"launch": {**TILES, "grid": "ceil_div(M, TILE), ceil_div(N, TILE)"}},
        {"correct": 1.33, "timed": 0},
    ),
    "B's tile read transposed": (
        {"kernel": changed(TILED, ("shB[k][tj]", "shB[tj][k]"))},
        {"correct": 0.67, "timed": 0},
    ),
    "forgets the step's sum: acc = 0 each step": (
        {"kernel": changed(TILED, ("int aCol", "acc = 0.0f;\n        int aCol"))},
        {"correct": 0.67, "timed": 0},
    ),
    "a sum without a first value": ({"kernel": changed(TILED, ("acc = 0.0f", "acc"))}, {"correct": 0, "timed": 0}),
    "the second barrier in the first step alone": (
        {"kernel": changed(TILED, ("__syncthreads();  // second", "if (p == 0) __syncthreads();"))},
        {"correct": 1.33, "timed": 0},
    ),
    "a warp's barrier for the second": (
        {"kernel": changed(TILED, ("__syncthreads();  // second", "__syncwarp();"))},
        {"correct": 0.67, "timed": 0},
    ),
    "A's rows as long as B's": (
        {"kernel": changed(TILED, ("A[row * K + aCol]", "A[row * N + aCol]"))},
        {"correct": 1.33, "timed": 0},
    ),
    "nothing stored where A ends": (
        {
            "kernel": changed(
                TILED,
                (
                    "shA[ti][tj] = (row < M && aCol < K) ? A[row * K + aCol] : 0.0f",
                    "if (row < M && aCol < K) shA[ti][tj] = A[row * K + aCol]",
                ),
            )
        },
        {"correct": 2, "timed": 0},
    ),
    "added to C by atomics": (
        {"kernel": changed(TILED, ("C[row * N + col] = acc", "atomicAdd(&C[row * N + col], acc)"))},
        {"correct": 0, "timed": 0},
    ),
    "does not compile": (
        {"kernel": changed(TILED, ("float acc = 0.0f;", "float acc = 0.0f"))},
        {"correct": 0, "timed": 0},
    ),
    "the kernel left as it was given": ({"kernel": EMPTY}, {"correct": 0, "timed": 0}),
    "says 100 times faster": ({"traffic_ratio": 1024, "time_ratio": 100}, {"prediction": 0}),
    "everything from DRAM, and at the peak": (
        {"explanation": {"a": True, "b": False, "c": True, "d": True}, "measured_ratio": 1.5},
        {"explanation": 0},
    ),
    "left blank": (
        {
            "traffic_ratio": None,
            "time_ratio": None,
            "kernel": EMPTY,
            "explanation": dict.fromkeys("abcd"),
            "measured_ratio": None,
        },
        {"prediction": 0, "correct": 0, "timed": 0, "explanation": 0},
    ),
}
WRONG_PENDING = {"everything from DRAM, and at the peak": {"explanation": 1}}

UNUSUAL = {
    "flat tiles, padded, TILE 8, one-dimensional launch": {"kernel": FLAT, "launch": FLAT_TILES},
    "TILE from the launch rule": {"kernel": changed(TILED, ("#define TILE 16\n", "")), "launch": {**TILES, "TILE": 32}},
    "the launch rule as in C": {
        "launch": {"grid": ["(N + 15) / 16", "(M + 15) / 16", 1], "block": [16, 16], "shared": 0},
    },
    "a bolder prediction": {"time_ratio": 6},
    "columns by threadIdx.y": {
        "kernel": changed(TILED, ("ti = threadIdx.y, tj = threadIdx.x", "ti = threadIdx.x, tj = threadIdx.y"))
    },
    "B's tile stored transposed": {
        "kernel": changed(TILED, ("shB[ti][tj] =", "shB[tj][ti] ="), ("shB[k][tj]", "shB[tj][k]"))
    },
    "two pairs of tiles in turn, one barrier a step": {
        "kernel": changed(
            TILED,
            ("shA[TILE]", "shA[2][TILE]"),
            ("shB[TILE]", "shB[2][TILE]"),
            ("shA[ti]", "shA[p & 1][ti]"),
            ("shB[ti]", "shB[p & 1][ti]"),
            ("shB[k]", "shB[p & 1][k]"),
            ("        __syncthreads();  // second\n", ""),
        )
    },
    "one block that goes over all tiles": {
        "kernel": changed(
            TILED,
            (
                "int row = blockIdx.y * TILE + ti;",
                "for (int t = 0; t < ((M + TILE - 1) / TILE) * ((N + TILE - 1) / TILE); ++t) {",
            ),
            (
                "int col = blockIdx.x * TILE + tj;",
                "int w = (N + TILE - 1) / TILE, row = t / w * TILE + ti, col = t % w * TILE + tj;",
            ),
            ("C[row * N + col] = acc;", "C[row * N + col] = acc;\n    }"),
        ),
        "launch": {**TILES, "grid": 1},
    },
    "a tile swizzled by exclusive or": {
        "kernel": changed(TILED, ("shB[ti][tj] =", "shB[ti][tj ^ ti] ="), ("shB[k][tj]", "shB[k][tj ^ k]"))
    },
}
