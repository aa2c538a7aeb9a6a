"""Practice 3: the missing barrier."""

from kernels import INNER, SIMULATED, TILED, changed

from tilelab.grading.problems.practice_3 import BROKEN

RIGHT = {
    "always_right": {8: True, 16: True, 17: False, 32: False, 1000: False},
    "racing": [(17, 14), (17, 15)],
    "mended": TILED,
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
    "only one of the tiles": ({"racing": [(14, 17)]}, {"lines": 2}),
    "the two writes": ({"racing": [(14, 15)]}, {"lines": 0}),
    "every pair of the three lines": ({"racing": [(14, 15), (14, 17), (15, 17)]}, {"lines": 2}),
    "the barrier's own line": ({"racing": [(16, 17)]}, {"lines": 0}),
    "lines counted from 0": ({"racing": [(16, 13), (16, 14)]}, {"lines": 0}),
    "the barrier inside the inner loop's condition": (
        {"mended": changed(BROKEN, (INNER, f"{INNER}\n        if (row < M && col < N) __syncthreads();"))},
        {"mended": 0},
    ),
    "the first barrier moved instead": (
        {"mended": changed(BROKEN, ("        __syncthreads();\n", ""), (INNER, f"{INNER}\n        __syncthreads();"))},
        {"mended": 0},
    ),
    "a barrier after the loop": (
        {"mended": changed(BROKEN, ("    if (row < M", "    __syncthreads();\n    if (row < M"))},
        {"mended": 0},
    ),
    "only a warp's barrier": ({"mended": changed(BROKEN, (INNER, f"{INNER}\n        __syncwarp();"))}, {"mended": 0}),
}

UNUSUAL = {
    "in Python, on the simulated GPU": {"mended": SIMULATED},
    "the barrier at the beginning of the step": {
        "mended": changed(BROKEN, ("        int aCol", "        __syncthreads();\n        int aCol"))
    },
    "pairs the other way round, and twice": {"racing": [(14, 17), (15, 17), (17, 14)]},
    "two pairs of tiles in turn, one barrier a step": {
        "mended": changed(
            BROKEN,
            ("shA[TILE][TILE];", "shA2[2][TILE][TILE];"),
            ("shB[TILE][TILE];", "shB2[2][TILE][TILE];"),
            (
                "        int aCol",
                "        float (*shA)[TILE] = shA2[p % 2], (*shB)[TILE] = shB2[p % 2];\n        int aCol",
            ),
        )
    },
    "a barrier that answers": {
        "mended": changed(BROKEN, (INNER, f"{INNER}\n        __syncthreads_count(1);")),
    },
}
