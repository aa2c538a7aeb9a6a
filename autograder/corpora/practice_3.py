"""Practice 3: the missing barrier."""

from kernels import DECOY, INNER, NAIVE, SIMULATED, TILED, changed

from tilelab.grading.problems.practice_3 import BROKEN

RIGHT = {
    "always_right": {8: True, 16: True, 17: False, 32: False, 1000: False},
    "racing": [(21, 17), (21, 18)],
    "mended": SIMULATED,
}

WRONG = {
    "left as it was given": (
        {"always_right": dict.fromkeys((8, 16, 17, 32, 1000)), "racing": [], "mended": BROKEN},
        {"prediction": 0, "lines": 0, "mended": 0},
    ),
    "multiples of the tile are safe": (
        {"always_right": {8: False, 16: True, 17: False, 32: True, 1000: False}},
        {"prediction": 0.4},
    ),
    "small sizes are safe": (
        {"always_right": {8: True, 16: True, 17: True, 32: True, 1000: False}},
        {"prediction": 0.4},
    ),
    "never right": ({"always_right": dict.fromkeys((8, 16, 17, 32, 1000), False)}, {"prediction": 0.4}),
    "only one of the tiles": ({"racing": [(17, 21)]}, {"lines": 2}),
    "the two writes": ({"racing": [(17, 18)]}, {"lines": 0}),
    "every pair of the three lines": ({"racing": [(17, 18), (17, 21), (18, 21)]}, {"lines": 2}),
    "the barrier's own line": ({"racing": [(19, 21)]}, {"lines": 0}),
    "lines counted from 0": ({"racing": [(20, 16), (20, 17)]}, {"lines": 0}),
    "a list of lines": ({"racing": [17, 18, 21]}, {"lines": 0}),
    "three lines in one pair": ({"racing": [(17, 18, 21)]}, {"lines": 0}),
    "the first barrier's line with each write": ({"racing": [(17, 19), (18, 19)]}, {"lines": 0}),
    "sizes as 0 and 1": ({"always_right": {8: 1, 16: 1, 17: 0, 32: 0, 1000: 0}}, {"prediction": 0}),
    "a fence for the barrier": (
        {"mended": changed(SIMULATED, ("syncthreads()  # second", "threadfence_block()"))},
        {"mended": 0},
    ),
    "a barrier every other step": (
        {"mended": changed(BROKEN, (INNER, f"{INNER}        if p % 2 == 1:\n            cuda.syncthreads()\n"))},
        {"mended": 0},
    ),
    "a barrier for the first row alone": (
        {"mended": changed(BROKEN, (INNER, f"{INNER}        if ti == 0:\n            cuda.syncthreads()\n"))},
        {"mended": 0},
    ),
    "the steps rounded down on the way": (
        {"mended": changed(SIMULATED, ("(K + TILE - 1) // TILE", "K // TILE"))},
        {"mended": 0},
    ),
    "the barrier inside the inner loop": (
        {"mended": changed(BROKEN, (INNER, f"            cuda.syncthreads()\n{INNER}"))},
        {"mended": 0},
    ),
    "the barrier inside a condition": (
        {
            "mended": changed(
                SIMULATED,
                (
                    "        cuda.syncthreads()  # second",
                    "        if row < M and col < N:\n            cuda.syncthreads()",
                ),
            )
        },
        {"mended": 0},
    ),
    "the first barrier moved instead": (
        {"mended": changed(SIMULATED, ("        cuda.syncthreads()\n        for k", "        for k"))},
        {"mended": 0},
    ),
    "a barrier after the loop": (
        {
            "mended": changed(
                BROKEN,
                (
                    "    if row < M and col < N:\n        C",
                    "    cuda.syncthreads()\n    if row < M and col < N:\n        C",
                ),
            )
        },
        {"mended": 0},
    ),
    "only a warp's barrier": ({"mended": changed(SIMULATED, ("syncthreads()  # second", "syncwarp()"))}, {"mended": 0}),
    "another kernel, without any tile": ({"mended": NAIVE}, {"mended": 1}),
    "another kernel, beside a tile that nobody needs": ({"mended": DECOY}, {"mended": 1}),
    "the tiles filled, and everything read from A and B": (
        {
            "mended": changed(
                SIMULATED,
                ("for k in range(TILE):", "for k in range(min(TILE, K - p * TILE) if row < M and col < N else 0):"),
                ("shA[ti, k] * shB[k, tj]", "A[row, p * TILE + k] * B[p * TILE + k, col]"),
            )
        },
        {"mended": 1},
    ),
    "only the function, without what it needs": (
        {"mended": SIMULATED[SIMULATED.index("@cuda.jit") :]},
        {"mended": 0},
    ),
}

UNUSUAL = {
    "in CUDA C++": {"mended": TILED},
    "the barrier at the beginning of the step": {
        "mended": changed(BROKEN, ("        aCol =", "        cuda.syncthreads()\n        aCol ="))
    },
    "pairs the other way round, and twice": {"racing": [(17, 21), (18, 21), (21, 17)]},
    "pairs as sets": {"racing": [{17, 21}, frozenset({18, 21})]},
    "a set of pairs": {"racing": {(21, 17), (18, 21)}},
    "pairs by the names of the tiles": {"racing": {"shA": (21, 17), "shB": (21, 18)}},
    "two pairs of tiles in turn, one barrier a step": {
        "mended": changed(
            BROKEN,
            ("array((TILE, TILE)", "array((2, TILE, TILE)"),
            ("shA[", "shA[p % 2, "),
            ("shB[", "shB[p % 2, "),
        )
    },
    "no barrier after the last step": {
        "mended": changed(
            BROKEN, (INNER, f"{INNER}        if p + 1 < (K + TILE - 1) // TILE:\n            cuda.syncthreads()\n")
        )
    },
    "a barrier in every round of the inner loop too": {
        "mended": changed(BROKEN, (INNER, f"{INNER}            cuda.syncthreads()\n"))
    },
    "with numba's names, and names for what is read": {
        "mended": changed(
            SIMULATED,
            ("from tilelab.simt import", "from numba import"),
            (INNER, "            x, y = shA[ti, k], shB[k, tj]\n            acc += x * y\n"),
        )
    },
    "zeros first, in one statement for both tiles": {
        "mended": changed(
            SIMULATED,
            (
                "        shA[ti, tj] = A[row, aCol] if row < M and aCol < K else float32(0)\n",
                "        shA[ti, tj] = shB[ti, tj] = float32(0)\n        if row < M and aCol < K:\n            shA[ti, tj] = A[row, aCol]\n",
            ),
        )
    },
    "lines as floats, sizes as text": {
        "racing": [[17.0, 21.0], [18.0, 21.0]],
        "always_right": {"8": True, "16": True, "17": False, "32": False, "1000": False},
    },
    "a barrier that answers": {"mended": changed(SIMULATED, ("syncthreads()  # second", "syncthreads_count(1)"))},
}
