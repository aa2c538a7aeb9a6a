"""Local arrays as lanes see them."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import tree
from tilelab.simt.lanes_memory import Place, Strided
from tilelab.simt.masks import Mask, Value, merge, minus, part, union
from tilelab.simt.runtime import NeedsThreads, outside, poisoned
from tilelab.simt.types import Scalar, Vector

if TYPE_CHECKING:
    from tilelab.simt.lanes import Lanes


class LocalMemory:
    """A local array: every lane has its own. Elements are rows over lanes until a lane-dependent index comes."""

    def __init__(self, lanes: "Lanes", element: Scalar | Vector, shape: tuple[int, ...]) -> None:
        self.lanes, self.element, self.shape = lanes, element, shape
        self.size = math.prod(shape)
        self.rows: list[Value] = [None] * self.size
        self.written: list[Mask] = [False] * self.size
        self.matrix: NDArray[Any] | None = None
        self.known: NDArray[np.bool_] | None = None

    def poison(self) -> Value:
        """An element that nobody wrote."""
        if isinstance(self.element, Vector):
            return tuple(poisoned(1, self.element.base.dtype)[0] for _ in range(self.element.count))
        value = poisoned(1, self.element.dtype)[0]
        return value if self.element.kind == "f" else value.item()

    def whole(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """All elements in one array, and which of them are written; from rows, once an index differs between lanes."""
        if self.matrix is not None and self.known is not None:
            return self.matrix, self.known
        vector = isinstance(self.element, Vector)
        base = self.element.base if isinstance(self.element, Vector) else self.element
        count = self.lanes.count
        shape = (self.size, count, self.element.count) if isinstance(self.element, Vector) else (self.size, count)
        self.matrix = np.empty(shape, base.held)
        self.known = np.zeros((self.size, count), bool)
        for i, row in enumerate(self.rows):
            value = self.poison() if row is None else row
            if vector:
                for c, x in enumerate(value):
                    self.matrix[i, :, c] = x
            else:
                self.matrix[i] = value
            written = self.written[i]
            if written is not False:
                self.known[i] = True if written is None else written
        return self.matrix, self.known


class LocalView(Strided):
    """A local array as a kernel holds it, or a smaller view of one."""

    space = "local"

    def __init__(
        self, memory: LocalMemory, name: str, offset: Value, shape: tuple[Value, ...], strides: tuple[int, ...],
        sliced: bool = False,
    ) -> None:  # fmt: skip
        self.memory, self.name, self.offset, self.shape, self.strides = memory, name, offset, shape, strides
        self.sliced = sliced
        self.lanes, self.element = memory.lanes, memory.element
        self.item = self.element.dtype.itemsize

    def merged(self, mask: Mask, old: Any) -> "LocalView":
        """The view in the lanes of a mask, an old one elsewhere; lanes can hold both only within one array."""
        if not isinstance(old, LocalView) or old.memory is not self.memory or old.strides != self.strides:
            raise NeedsThreads(f"{self.name} is one local array in some threads and another in others")
        shape = tuple(merge(mask, a, b) for a, b in zip(self.shape, old.shape, strict=True))
        offset = merge(mask, self.offset, old.offset)
        return LocalView(self.memory, self.name, offset, shape, self.strides, self.sliced or old.sliced)

    def view(self, parts: tuple[Any, ...], mask: Mask, line: int) -> "LocalView":
        """A smaller view: an index drops an axis, a (start, stop) keeps it."""
        return LocalView(self.memory, self.name, *self.cut(parts, mask, line), True)

    def _number(self, index: tuple[Value, ...], mask: Mask, site: tree.Site) -> Value:
        flat: Value = self.offset
        for axis, i in enumerate(index):
            if self.lanes.checks:
                self.lanes.within(self, i, self.shape[axis], axis, mask, site)
            flat = flat + i * self.strides[axis]
        if isinstance(flat, np.ndarray):
            flat = flat.astype(np.int64) if mask is None else np.where(mask, flat, 0).astype(np.int64)
            bad = (flat < 0) | (flat >= self.memory.size) if not self.lanes.checks else None
            if bad is not None and bad.any():
                raise IndexError(outside(int(flat[bad.argmax()]), self.name, self.memory.size))
            return flat
        if not 0 <= flat < self.memory.size and not self.lanes.checks:
            raise IndexError(outside(int(flat), self.name, self.memory.size))
        return int(flat)

    def ld(self, index: tuple[Value, ...], mask: Mask, place: Place) -> Value:
        """Load an element of each lane."""
        flat = self._number(index, mask, place.site)
        rt, memory = self.lanes, self.memory
        if rt.checks:
            self._count(mask, place)
        if isinstance(flat, int) and memory.matrix is None:
            if rt.checks:
                missing, _ = part(mask, True)
                missing = minus(missing, memory.written[flat]) if memory.written[flat] is not mask else False
                if missing is not False:
                    rt.unwritten_local(self, flat, missing, place.site)
            row = memory.rows[flat]
            return memory.poison() if row is None else row
        matrix, known = memory.whole()
        at = flat if isinstance(flat, np.ndarray) else np.full(rt.count, flat)
        if rt.checks:
            bad = ~known[at, rt.every]
            if mask is not None:
                bad &= mask
            if bad.any():
                lane = int(bad.argmax())
                rt.unwritten_local(self, int(at[lane]), bad, place.site)
        if isinstance(self.element, Vector):
            return tuple(matrix[at, rt.every, i] for i in range(self.element.count))
        return matrix[at, rt.every]

    def st(self, index: tuple[Value, ...], value: Value, mask: Mask, place: Place) -> None:
        """Store an element of each lane."""
        flat = self._number(index, mask, place.site)
        rt, memory = self.lanes, self.memory
        if rt.checks:
            self._count(mask, place)
        if isinstance(flat, int) and memory.matrix is None:
            old = memory.rows[flat]
            memory.rows[flat] = merge(mask, value, memory.poison() if old is None and mask is not None else old)
            if memory.written[flat] is not mask:
                memory.written[flat] = union(memory.written[flat], mask)
            return
        matrix, known = memory.whole()
        lanes = rt.every if mask is None else np.flatnonzero(mask)
        at = flat[lanes] if isinstance(flat, np.ndarray) else flat
        known[at, lanes] = True
        if isinstance(self.element, Vector):
            for i, x in enumerate(value):
                matrix[at, lanes, i] = x[lanes] if isinstance(x, np.ndarray) else x
        else:
            matrix[at, lanes] = value[lanes] if isinstance(value, np.ndarray) else value

    def _count(self, mask: Mask, place: Place) -> None:
        tally = self.lanes.ledger.tallies[place.site.number]
        threads, warps = self.lanes.population(mask)
        tally.requests += warps
        tally.threads += threads
