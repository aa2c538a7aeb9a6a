"""What both engines are told about a launch, and how they stop."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import tree
from tilelab.simt.errors import Dim3, Finding
from tilelab.simt.types import Array

POISON = 0xCD
"""The byte that shared and local memory start with, so that reading it is seen."""


class Stop(Exception):
    """The launch ends here with a finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class NeedsThreads(Exception):
    """Something that lanes in step cannot do; the plain engine runs the kernel instead."""


@dataclass(slots=True)
class Memory:
    """Global memory as one flat piece; several arguments may look into it."""

    name: str
    data: "NDArray[Any]"
    """Flat."""
    written: bool
    address: int
    """Byte address modulo 256 of its first element, taken from where the first array of its base starts."""


@dataclass(slots=True)
class Argument:
    """An array argument: a view into a piece of memory. Strides count elements."""

    kind: Array
    memory: Memory
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    name: str


@dataclass(slots=True)
class Launch:
    """One launch: what is run, where, and under which rules."""

    program: tree.Program
    grid: Dim3
    block: Dim3
    arguments: list[Any]
    """Numbers, or :class:`Argument`, in the order of the parameters."""
    memories: list[Memory]
    dynamic: int
    """Bytes of dynamic shared memory."""
    checks: bool = True
    collect: bool = False
    """Go on after a finding where possible, instead of stopping at the first."""
    steps: int = 100_000
    chunk: int = 8192
    """Lanes run together."""
    watch: int | None = None
    """Linear number of the block whose shared memory is recorded."""
    seed: int | None = None
    progress: Callable[[int], None] = field(default=lambda blocks: None)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.program.kernel.name


def poisoned(count: int, dtype: "np.dtype[Any]") -> "NDArray[Any]":
    """Memory that nobody wrote."""
    return np.full(count * dtype.itemsize, POISON, np.uint8).view(dtype)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array in C order, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def outside(number: int, name: str, count: int) -> str:
    """Say, for a launch without checks, that an index leaves an array's memory."""
    return f"element {number} of {name} lies outside its memory of {count:,}"
