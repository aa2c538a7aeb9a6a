"""Practice 4: edges."""

from kernels import FLAT, FLAT_TILES, SIMULATED, TILED, TILES, changed

RIGHT = {"kernel": TILED, "launch": TILES}

GUARD_A, GUARD_B = "(row < M && aCol < K) ? ", "(bRow < K && col < N) ? "
STORE = "if (row < M && col < N) C[row * N + col] = acc;"

WRONG = {
    "the untouched kernel": (
        {
            "kernel": changed(
                TILED,
                ("(K + TILE - 1) / TILE", "K / TILE"),
                (f"{GUARD_A}A[row * K + aCol] : 0.0f", "A[row * K + aCol]"),
                (f"{GUARD_B}B[bRow * N + col] : 0.0f", "B[bRow * N + col]"),
                (STORE, "C[row * N + col] = acc;"),
            ),
            "launch": {**TILES, "grid": "N / TILE, M / TILE"},
        },
        {"edges": 0},
    ),
    "the loop rounded up, no bounds": (
        {
            "kernel": changed(
                TILED,
                (f"{GUARD_A}A[row * K + aCol] : 0.0f", "A[row * K + aCol]"),
                (f"{GUARD_B}B[bRow * N + col] : 0.0f", "B[bRow * N + col]"),
            )
        },
        {"edges": 0},
    ),
    "A guarded by its row alone": ({"kernel": changed(TILED, (GUARD_A, "(row < M) ? "))}, {"edges": 0}),
    "the loop rounded down": ({"kernel": changed(TILED, ("(K + TILE - 1) / TILE", "K / TILE"))}, {"edges": 0}),
    "returns before the barrier": (
        {"kernel": changed(TILED, ("float acc", "if (row >= M || col >= N) return;\n    float acc"))},
        {"edges": 1},
    ),
    "the barrier inside the guard": (
        {
            "kernel": changed(
                TILED,
                ("__syncthreads();\n        for", "if (row < M && col < N) __syncthreads();\n        for"),
            )
        },
        {"edges": 1},
    ),
    "the store not guarded": ({"kernel": changed(TILED, (STORE, "C[row * N + col] = acc;"))}, {"edges": 1}),
    "the grid rounded down": ({"launch": {**TILES, "grid": "N / TILE, M / TILE"}}, {"edges": 1}),
    "the grid of a square": ({"launch": {**TILES, "grid": "ceil_div(M, TILE), ceil_div(M, TILE)"}}, {"edges": 2.5}),
    "A's index in a short": (
        {"kernel": changed(TILED, ("A[row * K + aCol]", "A[(short)(row * K + aCol)]"))},
        {"edges": 7},
    ),
    "B's index in a short": (
        {"kernel": changed(TILED, ("B[bRow * N + col]", "B[(short)(bRow * N + col)]"))},
        {"edges": 7},
    ),
    "rows and columns exchanged in A's bound": (
        {"kernel": changed(TILED, ("(row < M && aCol < K)", "(row < N && aCol < K)"))},
        {"edges": 2},
    ),
    "one column too many": ({"kernel": changed(TILED, ("aCol < K", "aCol <= K"))}, {"edges": 0}),
    "stored where one of the two is inside": (
        {"kernel": changed(TILED, ("if (row < M && col < N)", "if (row < M || col < N)"))},
        {"edges": 1},
    ),
    "B guarded by its row alone": ({"kernel": changed(TILED, (GUARD_B, "(bRow < K) ? "))}, {"edges": 2}),
    "a break where A ends": (
        {"kernel": changed(TILED, ("        int aCol", "        if (p * TILE + tj >= K) break;\n        int aCol"))},
        {"edges": 0},
    ),
    "in Python, with a slip in a name": (
        {"kernel": changed(SIMULATED, ("cuda.syncthreads()  # second", "cuda.syncthread()"))},
        {"edges": 0},
    ),
    "a billion blocks": ({"launch": {**TILES, "grid": "1000000000, 1"}}, {"edges": 0}),
    "the second barrier lost on the way": (
        {"kernel": changed(TILED, ("__syncthreads();  // second", ""))},
        {"edges": 0.5},
    ),
    "in Python, without bounds for A": (
        {"kernel": changed(SIMULATED, ("A[row, aCol] if row < M and aCol < K else float32(0)", "A[row, aCol]"))},
        {"edges": 0},
    ),
    "in Python, without the second barrier": (
        {"kernel": changed(SIMULATED, ("cuda.syncthreads()  # second", "pass"))},
        {"edges": 0.5},
    ),
    "the launch as Python code": (
        {"launch": {**TILES, "grid": "__import__('os').system('true'), 1"}},
        {"edges": 0},
    ),
    "left blank": ({"kernel": None, "launch": None}, {"edges": 0}),
}

UNUSUAL = {
    "in Python, on the simulated GPU": {"kernel": SIMULATED},
    "in Python, with numba's names": {
        "kernel": changed(SIMULATED, ("from tilelab.simt import cuda", "from numba import cuda"))
    },
    "the launch as in a C++ program": {
        "launch": {"grid": "dim3((N + 15) / 16, (M + 15) / 16)", "block": "dim3(16, 16)"},
    },
    "flat tiles of 8, one-dimensional launch": {"kernel": FLAT, "launch": FLAT_TILES},
    "bounds by clamping and masking": {
        "kernel": changed(
            TILED,
            (f"{GUARD_A}A[row * K + aCol] : 0.0f", "A[min(row, M - 1) * K + min(aCol, K - 1)] * (row < M && aCol < K)"),
        )
    },
    "ones for what A lacks": {"kernel": changed(TILED, ("A[row * K + aCol] : 0.0f", "A[row * K + aCol] : 1.0f"))},
    "the inner loop cut short": {"kernel": changed(TILED, ("k < TILE", "k < min(TILE, K - p * TILE)"))},
    "returns after the last barrier": {
        "kernel": changed(TILED, (STORE, "if (row >= M || col >= N) return;\n    C[row * N + col] = acc;"))
    },
    "in Python, zeros first in one statement": {
        "kernel": changed(
            SIMULATED,
            ("        shA[ti, tj] = A", "        shA[ti, tj] = shB[ti, tj] = float32(0)\n        shA[ti, tj] = A"),
        )
    },
    "the launch as in Python": {"launch": {**TILES, "grid": "-(-N // TILE), -(-M // TILE)"}},
    "TILE 32 by a constant": {
        "kernel": changed(TILED, ("#define TILE 16", "constexpr int TILE = 32;")),
        "launch": {**TILES, "TILE": 32},
    },
    "one block more than needed": {"launch": {**TILES, "grid": "N / TILE + 1, M / TILE + 1"}},
}
