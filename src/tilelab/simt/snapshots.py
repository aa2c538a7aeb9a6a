"""Shared memory of the watched block at the end of each phase."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt.types import Scalar, Vector

#: Numbers of one array that are held at most, and snapshots of a launch.
MOST_NUMBERS, MOST_SNAPSHOTS = 16384, 40


@dataclass(slots=True)
class Contents:
    """One shared array: its numbers in C order, ``None`` where nobody wrote, and which ones the phase touched.

    What is no finite number is held as text (``nan``, ``inf``), since JSON has none. A vector counts as one more axis.
    """

    shape: tuple[int, ...]
    values: list[float | int | str | None]
    written: list[int]
    read: list[int]


@dataclass(slots=True)
class Snapshot:
    """Shared memory of the watched block when a phase ends."""

    phase: int
    line: int | None
    """Line of the barrier; ``None`` at the end of the kernel."""
    arrays: dict[str, Contents] = field(default_factory=dict)


def contents(
    raw: NDArray[np.uint8], element: Scalar | Vector, shape: tuple[int, ...], cell: int, known: NDArray[np.bool_],
    written: Iterable[int], read: Iterable[int],
) -> Contents | None:  # fmt: skip
    """One array of a block, or ``None`` if it is too large to hold.

    Parameters
    ----------
    raw
        The bytes of its memory; more than the array's own may follow.
    element, shape
        The array as the kernel first looks at that memory.
    cell
        Bytes of a cell, the smallest number that any view of the memory has.
    known
        For each cell, whether somebody wrote it.
    written, read
        Cells that the phase touched.
    """
    base, lanes = (element, 1) if isinstance(element, Scalar) else (element.base, element.count)
    count, cells = int(np.prod(shape)) * lanes, base.dtype.itemsize // cell
    if count > MOST_NUMBERS:
        return None
    numbers = raw[: count * base.dtype.itemsize].view(base.dtype)
    whole = np.logical_and.reduce(known[: count * cells].reshape(count, cells), axis=1)
    return Contents(
        shape if lanes == 1 else (*shape, lanes),
        [_plain(v) if k else None for v, k in zip(numbers.tolist(), whole, strict=True)],
        _numbers(written, cells, count),
        _numbers(read, cells, count),
    )


def _numbers(cells: Iterable[int], each: int, count: int) -> list[int]:
    return sorted({number for cell in cells if (number := cell // each) < count})


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
