"""What the emulation does not do, by the words that ask for it, each with what to do instead."""

import difflib
import re
from functools import cache
from pathlib import Path

from tilelab.cudacpp.errors import BuildError

_ON_A_GPU = (
    "give the kernel arrays on a GPU to run it there, or keep these lines inside #ifndef TILELAB_EMULATION and write "
    "plain C++ for the CPU in its #else"
)
#: What stands in the source, what it is, and what to do.
_UNEMULATED = (
    (r"\basm\b|__asm", "inline PTX (asm)", _ON_A_GPU),
    (r"\bwmma\b|\bnvcuda\b|\bmma\.h|\bmma_sync\b", "tensor cores (wmma)", _ON_A_GPU),
    (r"CUtensorMap|<cuda\.h>|\bcp_async_bulk|\bTMA\b|\bcde::", "the tensor memory accelerator (TMA)", _ON_A_GPU),
    (
        r"\bcooperative_groups\b|\bcg::|\bthis_thread_block\b|\bthis_grid\b",
        "cooperative groups",
        "__syncthreads(), __syncwarp() and the _sync shuffles do the same for blocks and warps",
    ),
    (
        r"\bcuda::|<cuda/(?:barrier|pipeline|std)",
        "the library libcu++ (cuda::barrier, cuda::pipeline)",
        "__pipeline_memcpy_async of <cuda_pipeline_primitives.h> is emulated, and so is __syncthreads()",
    ),
    (r"\bcute\b|\bcutlass\b", "CuTe", 'it needs a GPU, the CuTe headers and Kernel(…, backend="nvcc")'),
    (
        r"<(?:cub|thrust)/|\b(?:cub|thrust)::",
        "the libraries CUB and Thrust",
        "write the scan, sort or sum in the kernel, or give it arrays on a GPU",
    ),
    (r"\bcurand", "cuRAND", "give the kernel an array of random numbers, or write a small generator in the source"),
    (r"torch/|\btorch::|\bat::", "PyTorch host code", "give Kernel the __global__ function alone"),
    (
        r"<iostream>|\bstd::(?:cout|cerr|endl)\b",
        "<iostream>, which is host code that no kernel can call",
        "print from a kernel with printf",
    ),
    (r"‘?\b(?:concept|requires)\b", "C++20 (concepts) that nobody asked for", "give Kernel options=['-std=c++20']"),
    (
        r"exception handling disabled|\b(?:try|catch|throw)\b",
        "exceptions, which no device code has",
        "return, or __trap()",
    ),
    (r"\b__managed__\b", "managed variables", "give the kernel an array"),
    (
        r"\btexture\s*<|\bcuda(?:Texture|Surface)Object_t\b|\btex[123]D|\bsurf[123]D",
        "textures and surfaces",
        "read arrays",
    ),
    (
        r"\b__(?:shfl(?:_(?:up|down|xor))?|ballot|any|all)\b",
        "shuffles and votes without _sync, which no GPU since sm_70 has",
        "write __shfl_down_sync(0xffffffff, …) and its kind",
    ),
    (r"<<<|\bcuda[A-Z]\w+\s*\(", "host code", "keep the __global__ function alone and let Kernel launch it"),
)


def why_unemulated(text: str) -> str:
    """What of a piece of source or of a compiler's message is not emulated, and what to do; empty if nothing."""
    for words, what, remedy in _UNEMULATED:
        if re.search(words, text):
            return f"not emulated: {what}; {remedy}"
    return ""


@cache
def _calls() -> frozenset[str]:
    """CUDA's functions that are macros in emulation, of which a compiler therefore knows nothing."""
    header = Path(__file__).parent / "emulator" / "include" / "tilelab_cuda.h"
    return frozenset(re.findall(r"^#define (__[a-z]\w+|atomic\w+)\(", header.read_text(encoding="utf-8"), re.M))


def explain_unemulated(error: BuildError, source: str) -> BuildError:
    """A build for emulation that failed: where it failed over something that is not emulated, say so first.

    The compiler has read the source by then, so lines that ``#ifndef TILELAB_EMULATION`` leaves out are not blamed.
    """
    shown = str(error)
    head = re.match(r"line (\d+): .*", shown)
    line = source.splitlines()[int(head[1]) - 1] if head and 0 < int(head[1]) <= len(source.splitlines()) else ""
    what = "\n".join(shown.splitlines()[1:2])
    reason = why_unemulated(re.sub(r"//.*", "", line)) or why_unemulated(what)
    unknown = re.match(r".((?:__|atomic|h2)\w+). was not declared in this scope(; did you mean .\w+.)?", what)
    if unknown and not reason:
        calls = _calls()
        near = difflib.get_close_matches(unknown[1], calls, 1, 0.85)
        if unknown[1] in calls:
            reason = f"{unknown[1]} does nothing by its name alone: call it, {unknown[1]}(…)"
        elif near:
            reason = f"{unknown[1]} is declared nowhere; did you mean {near[0]}?"
        else:
            nowhere = f"{unknown[1]} is declared nowhere{unknown[2] or ''}"
            reason = f"{nowhere}; if it is CUDA's own, the emulation lacks it: {_ON_A_GPU}"
    if not reason:
        return error
    place = f"{head[0]}\n" if head else ""
    return BuildError(f"{place}{reason}", error.log)
