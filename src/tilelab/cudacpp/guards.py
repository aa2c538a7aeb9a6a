"""What stands around the arrays of an emulated kernel, so that a stray read or write shows.

Guards are NaN whichever way they are read (half, bfloat16, float, double), so that a stray read spoils the result; and
no two launches have the same, so that nobody can write past an array what stands there already.
"""

import secrets
from collections.abc import Sequence

from tilelab.cudacpp.arguments import Array, host_bytes
from tilelab.cudacpp.errors import KernelFault

#: Bytes on both sides of every array.
GUARD = 4096


def pattern(count: int) -> bytes:
    """Fresh NaN, ``count`` bytes of them.

    Each 16 bits are sign, eleven ones and four random bits, neither all zero nor all one: that leaves out infinity,
    -1, and the NaN that processors make themselves.
    """
    low = bytes(0xF1 + b % 14 for b in range(256))
    drawn = secrets.token_bytes(-(-count // 2) * 2)
    filled = bytearray(len(drawn))
    filled[::2] = drawn[::2].translate(low)  # the low byte of a 16-bit word comes first
    filled[1::2] = bytes(0x7F | b & 0x80 for b in drawn[1::2])
    return bytes(filled[:count])


def lay_out(arrays: Sequence[Array]) -> tuple[bytes, list[int]]:
    """All arrays in one memory with guards around each, and where each begins."""
    offsets, end = [], GUARD
    for array in arrays:
        offsets.append(end)
        end += -(-array.bytes // 256) * 256 + GUARD
    parts, at = [], 0
    for array, start in zip(arrays, offsets, strict=True):
        parts += [pattern(start - at), host_bytes(array)]
        at = start + array.bytes
    return b"".join([*parts, pattern(end - at)]), offsets


def look(before: bytes, after: bytes, arrays: Sequence[Array], offsets: Sequence[int]) -> None:
    """Compare the guards.

    Raises
    ------
    KernelFault
        One was written to; or an array was that may only be read.
    """
    starts = [0, *(at + array.bytes for array, at in zip(arrays, offsets, strict=True))]
    ends = [*offsets, len(before)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if before[start:end] == after[start:end]:
            continue
        first = next(at for at in range(start, end) if before[at] != after[at])
        left = arrays[number - 1] if number else None
        if left is not None and (number == len(arrays) or first - start < end - first):
            element, length = (first - offsets[number - 1]) // left.itemsize, left.bytes // left.itemsize
            text = f"the kernel wrote to {left.name}[{element}], past its end ({length} elements)"
        else:
            right = arrays[number]
            text = f"the kernel wrote to {right.name}[{(first - end) // right.itemsize}], before its start"
        raise KernelFault(f"{text}; kernel.check(…) names the line")
    for array, at in zip(arrays, offsets, strict=True):
        if not array.writable and before[at : at + array.bytes] != after[at : at + array.bytes]:
            raise KernelFault(f"the kernel wrote to {array.name}, which may only be read (a read-only array)")
