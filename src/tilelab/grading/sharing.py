"""Whether the threads of a kernel share through shared memory, or merely declare some.

A change of the source decides it: every thread gets an array of its own where the block has one. A kernel that is right
all the same has never used what another thread put there, whatever it declares, writes and reads.
"""

import ast
import re
from dataclasses import replace

from tilelab.cudacpp.errors import READING
from tilelab.cudacpp.shared import Unsized, rewrite_shared, unsized_shared
from tilelab.grading.cuda_answers import CudaAnswer, Shape, try_all
from tilelab.grading.errors import GradingError
from tilelab.grading.rules import number_of

#: What is said of a kernel that shares nothing.
NOTHING_SHARED = "keeps nothing in shared memory that another thread reads"
_IN_PYTHON = re.compile(r"\bshared(\s*+\.\s*+array\b)")


def shares_a_tile(answer: CudaAnswer, shape: Shape) -> bool:
    """Whether a kernel that is right for a shape would be wrong if its threads could not read each other's tiles.

    Parameters
    ----------
    answer : CudaAnswer
        The kernel.
    shape : tuple of int
        M, N, K, for which a block has several threads, and an output takes several products.

    Returns
    -------
    bool
        ``False`` only where that is certain: the kernel has no shared memory at all, or does not need to share it.
    """
    from tilelab.cudacpp.errors import CudaError

    try:
        kept = _kept(answer, shape)
        if not kept:
            return False
        private = _private(answer, shape)
        (trial,) = try_all(private, [shape])
        # An array outside the function cannot be each thread's own: then nothing is known.
        return not trial.ok or bool(kept & _kept_by_all(private, shape))
    except (CudaError, GradingError, *READING):
        return True


def right_with(answer: CudaAnswer, shape: Shape, shared: int) -> bool:
    """Whether the kernel is right too where a block has only so many bytes of dynamic shared memory."""
    (trial,) = try_all(replace(answer, launch={**answer.launch, "shared": shared}), [shape])
    return trial.ok


def _kept(answer: CudaAnswer, shape: Shape) -> set[str]:
    """Names of the arrays that a block has in shared memory."""
    if answer.in_python:
        called = (ast.unparse(node.func) for node in ast.walk(ast.parse(answer.source)) if isinstance(node, ast.Call))
        return {name for name in called if name.endswith("shared.array")}
    kernel = answer.kernel(shape)
    dynamic = {"dynamic", *(array.name for array in unsized_shared(answer.source))} if kernel.shared else set()
    return dynamic | {name for name, _, _ in kernel.build(checked=True).shared}


def _kept_by_all(answer: CudaAnswer, shape: Shape) -> set[str]:
    """Names of everything that outlives a thread: shared arrays, and variables of the device."""
    if answer.in_python:
        return _kept(answer, shape)
    library = answer.kernel(shape).build(checked=True)
    return {name for name, _, _ in (*library.shared, *library.device)}


def _private(answer: CudaAnswer, shape: Shape) -> CudaAnswer:
    """Return the kernel with every shared array made each thread's own."""
    if answer.in_python:
        return replace(answer, source=_IN_PYTHON.sub(r"local\1", answer.source))
    names = dict(zip("MNK", shape, strict=True)) | {"TILE": answer.tile}
    size = max(number_of(answer.launch.get("shared", 0), names), 1)

    def sized(array: Unsized) -> str:
        kind, name, rest = array
        return f"alignas(16) {kind} {name}[({size} + sizeof({kind}) - 1) / sizeof({kind})]{rest}"

    return replace(answer, source=rewrite_shared(answer.source, "", sized))
