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
}
