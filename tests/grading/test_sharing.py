"""A kernel uses shared memory where its threads read each other's elements there, however it is declared."""

import sys
from pathlib import Path

import pytest

from tilelab.grading.cuda_answers import read_cuda, try_all
from tilelab.grading.sharing import _private, shares_a_tile

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "corpora"))

from kernels import DECOY, FLAT, FLAT_TILES, NAIVE, SIMULATED, TILED, TILES, changed
from practice_5 import DYNAMIC

SHAPE = (20, 18, 40)
A, B = "    __shared__ float shA[TILE][TILE];\n", "    __shared__ float shB[TILE][TILE];\n"
BYTES = {**TILES, "shared": "2 * TILE * TILE * sizeof(float)"}
IN_A_STRUCT = "    __shared__ struct { float a[TILE][TILE], b[TILE][TILE]; } both;\n"

SHARING = {
    "as the course writes it": (TILED, TILES),
    "in Python": (SIMULATED, TILES),
    "a flat pointer into one array": (FLAT, FLAT_TILES),
    "outside the function": (changed(TILED, (A, ""), (B, ""), ("__global__", f"{A}{B}__global__")), TILES),
    "in a structure": (
        changed(TILED, (A, IN_A_STRUCT), (B, "    auto &shA = both.a, &shB = both.b;\n")),
        TILES,
    ),
    "by a macro": (
        changed(TILED, (A + B, "#define TWO __shared__ float shA[TILE][TILE], shB[TILE][TILE]\n    TWO;\n")),
        TILES,
    ),
    "dynamic": (changed(DYNAMIC, (", int TILE)", ")"), ("__global__", "#define TILE 16\n__global__")), BYTES),
    "dynamic, declared outside the function": (
        changed(
            DYNAMIC,
            (", int TILE)", ")"),
            ("    extern __shared__ float buf[];\n", ""),
            ("__global__", "#define TILE 16\nextern __shared__ float buf[];\n__global__"),
        ),
        BYTES,
    ),
    "aligned, and read as bytes": (
        changed(
            DYNAMIC,
            (", int TILE)", ")"),
            (
                "extern __shared__ float buf[];",
                "extern __shared__ __align__(16) unsigned char raw[]; float* buf = (float*)raw;",
            ),
            ("__global__", "#define TILE 16\n__global__"),
        ),
        BYTES,
    ),
    "one of the tiles": (
        changed(
            TILED,
            (B, ""),
            ("        shB[ti][tj] = (bRow < K && col < N) ? B[bRow * N + col] : 0.0f;\n", ""),
            ("        int bRow = p * TILE + ti;\n", ""),
            ("shB[k][tj]", "(p * TILE + k < K && col < N ? B[(p * TILE + k) * N + col] : 0.0f)"),
        ),
        TILES,
    ),
}
ALONE = {
    "no shared memory": (NAIVE, TILES),
    "bytes asked for": (NAIVE, BYTES),
    "an array that nobody needs": (DECOY, TILES),
    "an array in Python that nobody needs": (
        changed(
            SIMULATED,
            ("for k in range(TILE):", "for k in range(min(TILE, K - p * TILE) if row < M and col < N else 0):"),
            ("shA[ti, k] * shB[k, tj]", "A[row, p * TILE + k] * B[p * TILE + k, col]"),
        ),
        TILES,
    ),
    "an array for each thread's own sum": (
        changed(
            NAIVE,
            (
                "    float acc = 0.0f;\n",
                "    __shared__ float sums[16][16];\n    float& acc = sums[threadIdx.y][threadIdx.x];\n    acc = 0;\n",
            ),
        ),
        TILES,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "launch", "shares"),
    [
        *(pytest.param(*answer, True, id=name) for name, answer in SHARING.items()),
        *(pytest.param(*answer, False, id=name) for name, answer in ALONE.items()),
    ],
)
def test_a_kernel_shares_where_its_threads_need_each_others_elements(source, launch, shares):
    answer = read_cuda(source, launch)
    (trial,) = try_all(answer, [SHAPE])
    assert trial.ok, trial.words
    assert shares_a_tile(answer, SHAPE) is shares


@pytest.mark.timeout(120)  # once it was hours
@pytest.mark.parametrize(
    "piece", ["extern __shared__ " + "a " * 20_000, "extern __shared__ __align__(" * 1700, "static " * 7000]
)
def test_a_source_decides_no_running_time(piece):
    _private(read_cuda(f"{NAIVE}\n// {piece}"[:50_000], TILES), SHAPE)


def test_rows_of_an_array_of_the_launch_are_kept():
    (line,) = _private(read_cuda(f"{NAIVE}\nextern __shared__ float t[][16];", BYTES), SHAPE).source.splitlines()[-1:]
    assert line == "alignas(16) float t[(2048 + sizeof(float) - 1) / sizeof(float)][16];"


@pytest.mark.parametrize(
    "declared", ["static __shared__ float t[4];", "__shared__ static float t[4];", "__shared__ float t[4];"]
)
def test_an_array_of_a_threads_own_is_not_static(declared):
    private = _private(read_cuda(f"{NAIVE}\n{declared}", TILES), SHAPE)
    assert private.source.splitlines()[-1].strip() == "float t[4];"
