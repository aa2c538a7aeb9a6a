"""Practice 5: dynamic shared memory."""

from kernels import DECOY, NAIVE, TILED, changed

DYNAMIC = changed(
    TILED,
    ("#define TILE 16\n", ""),
    ("int K)", "int K, int TILE)"),
    ("__shared__ float shA[TILE][TILE];", "extern __shared__ float buf[];"),
    ("__shared__ float shB[TILE][TILE];", "float *shA = buf, *shB = buf + TILE * TILE;"),
    ("shA[ti][tj]", "shA[ti * TILE + tj]"),
    ("shB[ti][tj]", "shB[ti * TILE + tj]"),
    ("shA[ti][k]", "shA[ti * TILE + k]"),
    ("shB[k][tj]", "shB[k * TILE + tj]"),
)
LAUNCH = {
    "grid": "ceil_div(N, TILE), ceil_div(M, TILE)",
    "block": "TILE, TILE",
    "shared": "2 * TILE * TILE * sizeof(float)",
}
PADDED = changed(
    DYNAMIC,
    ("buf + TILE * TILE", "buf + TILE * (TILE + 1)"),
    ("[ti * TILE + tj]", "[ti * (TILE + 1) + tj]"),
    ("shA[ti * TILE + k]", "shA[ti * (TILE + 1) + k]"),
    ("shB[k * TILE + tj]", "shB[k * (TILE + 1) + tj]"),
)

RIGHT = {"kernel": DYNAMIC, "launch": LAUNCH}

WRONG = {
    "elements instead of bytes": ({"launch": {**LAUNCH, "shared": "2 * TILE * TILE"}}, {"correct": 0, "byte_rule": 1}),
    "one tile counted": ({"launch": {**LAUNCH, "shared": "TILE * TILE * 4"}}, {"correct": 0, "byte_rule": 1}),
    "bytes for TILE 16 only": ({"launch": {**LAUNCH, "shared": 2048}}, {"correct": 3, "byte_rule": 0}),
    "rows counted, not elements": ({"launch": {**LAUNCH, "shared": "2 * TILE * 4"}}, {"correct": 0, "byte_rule": 0}),
    "doubles counted": (
        {"launch": {**LAUNCH, "shared": "2 * TILE * TILE * sizeof(double)"}},
        {"correct": 0, "byte_rule": 0},
    ),
    "TILE as a macro still": (
        {"kernel": "#define TILE 16\n" + changed(DYNAMIC, (", int TILE)", ")"))},
        {"correct": 0},
    ),
    "the second tile a row behind the first": (
        {"kernel": changed(DYNAMIC, ("buf + TILE * TILE", "buf + TILE"))},
        {"correct": 0},
    ),
    "the second tile's place in bytes": (
        {"kernel": changed(DYNAMIC, ("buf + TILE * TILE", "buf + TILE * TILE * sizeof(float)"))},
        {"correct": 0},
    ),
    "48 KiB, to be safe": ({"launch": {**LAUNCH, "shared": 49152}}, {"byte_rule": 1.5}),
    "no shared bytes at all": ({"launch": {**LAUNCH, "shared": None}}, {"correct": 0, "byte_rule": 0}),
    "both tiles begin at the same place": (
        {"kernel": changed(DYNAMIC, ("buf + TILE * TILE", "buf"))},
        {"correct": 0},
    ),
    "two extern arrays": (
        {
            "kernel": changed(
                DYNAMIC,
                ("extern __shared__ float buf[];", "extern __shared__ float shA[];"),
                ("float *shA = buf, *shB = buf + TILE * TILE;", "extern __shared__ float shB[];"),
            )
        },
        {"correct": 0},
    ),
    "still a static tile of 16": (
        {"kernel": TILED, "launch": {**LAUNCH, "shared": 0}},
        {"correct": 0, "byte_rule": 0},
    ),
    "indexed as before": ({"kernel": changed(DYNAMIC, ("shA[ti * TILE + k]", "shA[ti][k]"))}, {"correct": 0}),
    "a pitch of 16 everywhere": (
        {"kernel": changed(DYNAMIC, ("shB[k * TILE + tj]", "shB[k * 16 + tj]"))},
        {"correct": 2},
    ),
    "the second barrier lost": ({"kernel": changed(DYNAMIC, ("__syncthreads();  // second", ""))}, {"correct": 1}),
    "both tiles in a static array that is large enough": (
        {"kernel": changed(DYNAMIC, ("extern __shared__ float buf[];", "__shared__ float buf[2048];"))},
        {"correct": 2.5},
    ),
    "one of the tiles in a static array": (
        {
            "kernel": changed(
                DYNAMIC,
                ("*shB = buf + TILE * TILE;", "*shB = other;"),
                ("    extern", "    __shared__ float other[1024];\n    extern"),
            )
        },
        {"correct": 2.5},
    ),
    "a naive kernel, and the bytes asked for all the same": (
        {"kernel": changed(NAIVE, ("int K)", "int K, int TILE)"))},
        {"correct": 2.5},
    ),
    "a naive kernel, and a tile of the size asked for that nobody needs": (
        {
            "kernel": changed(
                DECOY,
                ("int K)", "int K, int TILE)"),
                ("__shared__ float tile[16][16];", "extern __shared__ float tile[];"),
                ("tile[threadIdx.y][threadIdx.x] =", "tile[2 * TILE * TILE - 1 - threadIdx.y * TILE - threadIdx.x] ="),
                ("tile[threadIdx.y][threadIdx.x] >", "tile[2 * TILE * TILE - 1 - threadIdx.y * TILE - threadIdx.x] >"),
            )
        },
        {"correct": 2.5},
    ),
    "left blank": ({"kernel": None, "launch": None}, {"correct": 0, "byte_rule": 0}),
}

UNUSUAL = {
    "a power in the rule": {"launch": {**LAUNCH, "shared": "2 * TILE**2 * sizeof(float);"}},
    "a sum of both tiles": {"launch": {**LAUNCH, "shared": "(TILE * TILE + TILE * TILE) * sizeof(float)"}},
    "B's tile first": {
        "kernel": changed(DYNAMIC, ("*shA = buf, *shB = buf + TILE * TILE", "*shB = buf, *shA = buf + TILE * TILE"))
    },
    "one array, indexed beyond the first tile": {
        "kernel": changed(
            DYNAMIC,
            ("float *shA = buf, *shB = buf + TILE * TILE;", ""),
            ("shA[", "buf["),
            ("shB[", "buf[TILE * TILE + "),
        )
    },
    "the numbers instead of sizeof": {"launch": {**LAUNCH, "shared": "8 * TILE * TILE"}},
    "padded rows, and a rule for them": {
        "kernel": PADDED,
        "launch": {**LAUNCH, "shared": "2 * TILE * (TILE + 1) * 4"},
    },
    "a buffer of bytes": {
        "kernel": changed(
            DYNAMIC,
            ("extern __shared__ float buf[];", "extern __shared__ char bytes[]; float* buf = (float*)bytes;"),
        )
    },
    "one-dimensional blocks": {
        "kernel": changed(
            DYNAMIC, ("ti = threadIdx.y, tj = threadIdx.x", "ti = threadIdx.x / TILE, tj = threadIdx.x % TILE")
        ),
        "launch": {**LAUNCH, "block": "TILE * TILE"},
    },
}
