"""Practice 3: the tiled kernel without its second barrier: where it stays right, what races, and how to mend it."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer, look_at_kernel, read_cuda
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.values import statements_fault, whole

#: The kernel as it is given. Line numbers count from 1; a learner names lines of this text.
BROKEN = """\
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
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
"""
LAUNCH = {"grid": "ceil_div(N, TILE), ceil_div(M, TILE)", "block": "TILE, TILE", "TILE": 16}
SIZES = ("8", "16", "17", "32", "1000")
PUBLIC = ((17, 19, 40),)


def line_of(piece: str) -> int:
    """Return the number of the one line of `BROKEN` that has a piece of text in it."""
    (number,) = (number for number, line in enumerate(BROKEN.splitlines(), 1) if piece in line)
    return number


def pairs(racing: object) -> set[frozenset[int]] | str:
    """Return pairs of lines without their order, or say why they cannot be read."""
    if not isinstance(racing, list):
        return f"racing is a list of pairs of line numbers, not {racing!r:.60}"
    found = set()
    for pair in racing:
        if not isinstance(pair, list) or len(pair) != 2 or None in (numbers := [whole(line) for line in pair]):
            return f"a pair is two line numbers, not {pair!r:.60}"
        found.add(frozenset(number for number in numbers if number is not None))
    return found


def answer(answers: Mapping[str, Any]) -> CudaAnswer:
    """Read the mended kernel; its launch is the one of the listing."""
    return read_cuda(answers.get("mended"), LAUNCH)


def look_at_prediction(answers: Mapping[str, Any]) -> Finding:
    """Form, and whether it is at all like a threshold."""
    if fault := statements_fault(answers["always_right"], SIZES):
        return Finding(False, fault)
    told = [answers["always_right"][size] for size in SIZES]
    if told != sorted(told, reverse=True):
        return Finding(False, "by this a smaller K can go wrong where a larger one cannot: what would save the larger?")
    return Finding(True, "readable, and in itself consistent")


def look_at_lines(answers: Mapping[str, Any]) -> Finding:
    """Which lines of the pairs touch shared memory at all; not which pairs are right."""
    found = pairs(answers["racing"])
    if isinstance(found, str):
        return Finding(False, found)
    if not found:
        return Finding(False, "no pair is named yet")
    lines = BROKEN.splitlines()
    for line in sorted({line for pair in found for line in pair}):
        if not 1 <= line <= len(lines):
            return Finding(False, f"the listing has the lines 1 to {len(lines)}, not {line}")
        text = lines[line - 1].strip()
        if "sh" not in text.replace("__shared__", "").replace("__syncthreads", "") or text.startswith("__shared__"):
            return Finding(False, f"line {line} neither reads nor writes shared memory: {text}")
    if any(len(pair) == 1 for pair in found):
        return Finding(False, "a line does not race with itself here: each thread has its own element to write")
    return Finding(True, f"pairs of lines that touch shared memory: {len(found)}; does the report name each of them?")


def look_at_mended(answers: Mapping[str, Any]) -> Finding:
    """Try the kernel under the checker."""
    return Finding(*look_at_kernel(lambda: answer(answers), PUBLIC))


def picture(answers: Mapping[str, Any]) -> object | None:
    """Where the mended kernel's product is right."""
    from tilelab.grading.pictures import product_picture

    return product_picture(lambda: answer(answers), PUBLIC[-1]) if "mended" in answers else None


PROBLEM = Problem(
    name="practice_3",
    assignment="practice",
    parts=(
        Part("prediction", 2, look_at_prediction, ("always_right",)),
        Part("lines", 4, look_at_lines, ("racing",)),
        Part("mended", 2, look_at_mended),
    ),
    picture=picture,
)
