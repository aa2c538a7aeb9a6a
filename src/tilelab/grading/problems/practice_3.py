"""Practice 3: the tiled kernel without its second barrier: where it stays right, what races, and how to mend it."""

import linecache
import textwrap
from collections.abc import Mapping
from typing import Any

from tilelab.grading.answers import SET
from tilelab.grading.cuda_answers import CudaAnswer, look_at_kernel, read_cuda
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.sharing import NOTHING_SHARED, shares_a_tile
from tilelab.grading.values import statements_fault, whole

TILE = 16
#: The kernel as it is given. Line numbers count from 1; a learner names lines of this text.
BROKEN = """\
from tilelab.simt import cuda, float32

TILE = 16


@cuda.jit
def matmul(A, B, C, M, N, K):
    shA = cuda.shared.array((TILE, TILE), float32)
    shB = cuda.shared.array((TILE, TILE), float32)
    ti, tj = cuda.threadIdx.y, cuda.threadIdx.x
    row = cuda.blockIdx.y * TILE + ti
    col = cuda.blockIdx.x * TILE + tj
    acc = float32(0)
    for p in range((K + TILE - 1) // TILE):
        aCol = p * TILE + tj
        bRow = p * TILE + ti
        shA[ti, tj] = A[row, aCol] if row < M and aCol < K else float32(0)
        shB[ti, tj] = B[bRow, col] if bRow < K and col < N else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += shA[ti, k] * shB[k, tj]
    if row < M and col < N:
        C[row, col] = acc
"""
LAUNCH = {"grid": "ceil_div(N, TILE), ceil_div(M, TILE)", "block": "TILE, TILE", "TILE": 16}
SIZES = ("8", "16", "17", "32", "1000")
PUBLIC = ((17, 19, 40),)
NO_TILE = f"right, but it {NOTHING_SHARED}: the tiled kernel is to be mended, not replaced"
#: The largest extent that `races` tries: the simulated GPU takes its time.
LARGEST = 1024


def line_of(piece: str) -> int:
    """Return the number of the one line of `BROKEN` that has a piece of text in it."""
    (number,) = (number for number, line in enumerate(BROKEN.splitlines(), 1) if piece in line)
    return number


def pairs(racing: object) -> set[frozenset[int]] | str:
    """Return pairs of lines without their order, or say why they cannot be read."""
    if isinstance(racing, Mapping):
        racing = _members(racing) or list(racing.values())  # of a set; or by the names of the tiles, say
    if not isinstance(racing, list):
        return f"racing is a list of pairs of line numbers, not {racing!r:.60}"
    found = set()
    for pair in map(_members, racing):
        if not isinstance(pair, list) or len(pair) != 2 or None in (numbers := [whole(line) for line in pair]):
            return f"a pair is two line numbers, not {pair!r:.60}"
        found.add(frozenset(number for number in numbers if number is not None))
    return found


def _members(value: Any) -> Any:
    """Return the list of a recorded set's members, and anything else as it is."""
    if isinstance(value, Mapping):
        return value[SET] if list(value) == [SET] else None
    return value


def answer(answers: Mapping[str, Any]) -> CudaAnswer:
    """Read the mended kernel; its launch is the one of the listing."""
    return read_cuda(answers.get("mended"), LAUNCH)


def races(source: str, K: int, M: int = TILE, N: int = TILE) -> None:
    """Run the text of a kernel on the simulated GPU, and print what races and how far the result is from right.

    Parameters
    ----------
    source : str
        The text of a module with a ``@cuda.jit`` function ``matmul``. The lines in the report are those of the text.
    K, M, N : int
        The product's shape.
    """
    import numpy as np

    from tilelab.grading.python_answers import python_fault
    from tilelab.grading.python_kernels import numba_simulated
    from tilelab.simt import SimtError, cuda

    for name, extent in (("K", K), ("M", M), ("N", N)):
        if not 1 <= (whole(extent) or 0) <= LARGEST:
            print(f"{name} is a whole number from 1 to {LARGEST}, not {extent!r:.40}")
            return
    if fault := python_fault(source, "matmul"):
        print(f"{fault}. This runs kernels in Python; check() tries CUDA C++ too")
        return
    file = f"<kernel {hash(source)}>"  # the simulator reads a kernel's own lines
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names: dict[str, Any] = {}
    random = np.random.default_rng(0)
    a, b = random.random((M, K), np.float32), random.random((K, N), np.float32)
    c = np.zeros((M, N), np.float32)
    try:
        with numba_simulated():
            exec(compile(source, file, "exec"), names)
        simulated = cuda.inspect(names["matmul"])
        report = simulated[(-(-N // TILE), -(-M // TILE)), (TILE, TILE)](a, b, c, M, N, K)
    except (SimtError, NameError, ImportError, AttributeError, TypeError) as error:
        print(f"{type(error).__name__}: {error}")
        return
    print(f"K = {K}: {'nothing races' if not report.findings else ''}".rstrip())
    for finding in report.findings:
        print(textwrap.fill(f"{finding.kind}: {finding.message}", 100, initial_indent="  ", subsequent_indent="    "))
    print(f"  largest difference from the right result, in this run: {abs(c - a @ b).max():.2g}\n")


def look_at_prediction(answers: Mapping[str, Any]) -> Finding:
    """Form, and whether it is at all like a threshold."""
    if fault := statements_fault(answers["always_right"], SIZES):
        return Finding(False, fault)
    told = [answers["always_right"][size] for size in SIZES]
    if told != sorted(told, reverse=True):
        return Finding(False, "by this a smaller K can go wrong where a larger one cannot: what would save the larger?")
    return Finding.undecided("in itself consistent")


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
        if "shA[" not in text and "shB[" not in text:
            return Finding(False, f"line {line} neither reads nor writes shared memory: {text}")
    if any(len(pair) == 1 for pair in found):
        return Finding(False, "a line does not race with itself here: each thread has its own element to write")
    for pair in map(sorted, found):
        if all("acc +=" not in lines[line - 1] for line in pair):
            return Finding(
                False, f"lines {pair[0]} and {pair[1]} both write; a pair is one line that reads and one that writes"
            )
    return Finding.undecided(
        f"pairs of lines that touch shared memory: {len(found)}; does the report name each of them?"
    )


def look_at_mended(answers: Mapping[str, Any]) -> Finding:
    """Try the kernel under the checker."""
    found = look_at_kernel(lambda: answer(answers), PUBLIC)
    if found.ok and found.decided and not shares_a_tile(answer(answers), PUBLIC[0]):
        return Finding(False, NO_TILE)
    return found


def picture(answers: Mapping[str, Any]) -> object | None:
    """Where the mended kernel's product is right; nothing where it races, as there is no one product."""
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
