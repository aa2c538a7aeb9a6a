"""Local arrays as lanes see them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import tree
from tilelab.simt.lanes_memory import Place
from tilelab.simt.masks import Mask, Value, merge, minus, part, union
from tilelab.simt.runtime import NeedsThreads, outside, poisoned
from tilelab.simt.types import Scalar, Vector

if TYPE_CHECKING:
    from tilelab.simt.lanes import Lanes


class LocalView:
    """A local array: every lane has its own. Elements are rows over lanes until a lane-dependent index comes."""

    def __init__(self, lanes: "Lanes", element: Scalar | Vector, shape: tuple[int, ...], name: str) -> None:
        self.lanes, self.element, self.shape, self.name = lanes, element, shape, name
        self.sliced = False
        self.size = 1
        for extent in shape:
            self.size *= extent
        self.rows: list[Value] = [None] * self.size
        self.written: list[Mask] = [False] * self.size
        self.matrix: NDArray[Any] | None = None
        self.known: NDArray[np.bool_] | None = None

    def merged(self, mask: Mask, old: Any) -> "LocalView":
        """Lanes cannot hold different local arrays under one name."""
        raise NeedsThreads(f"{self.name} is one local array in some threads and another in others")

    def _number(self, index: tuple[Value, ...], mask: Mask, site: tree.Site) -> Value:
        flat: Value = 0
        for axis, i in enumerate(index):
            if self.lanes.checks:
                self.lanes.within(self, i, self.shape[axis], axis, mask, site)
            flat = flat * self.shape[axis] + i
        if isinstance(flat, np.ndarray) and mask is not None:
            flat = np.where(mask, flat, 0)
        if not self.lanes.checks:
            numbers = np.atleast_1d(np.asarray(flat, np.int64))
            bad = (numbers < 0) | (numbers >= self.size)
            if bad.any():
                raise IndexError(outside(int(numbers[bad.argmax()]), self.name, self.size))
        return flat.astype(np.int64) if isinstance(flat, np.ndarray) else int(flat)

    def ld(self, index: tuple[Value, ...], mask: Mask, place: Place) -> Value:
        """Load an element of each lane."""
        flat = self._number(index, mask, place.site)
        rt = self.lanes
        if rt.checks:
            self._count(mask, place)
        if isinstance(flat, int) and self.matrix is None:
            if rt.checks:
                missing, _ = part(mask, True)
                missing = minus(missing, self.written[flat]) if self.written[flat] is not mask else False
                if missing is not False:
                    rt.unwritten_local(self, flat, missing, place.site)
            row = self.rows[flat]
            return self._poison() if row is None else row
        self._to_matrix()
        assert self.matrix is not None
        assert self.known is not None
        at = flat if isinstance(flat, np.ndarray) else np.full(rt.count, flat)
        if rt.checks:
            bad = ~self.known[at, rt.every]
            if mask is not None:
                bad &= mask
            if bad.any():
                lane = int(bad.argmax())
                rt.unwritten_local(self, int(at[lane]), bad, place.site)
        if isinstance(self.element, Vector):
            return tuple(self.matrix[at, rt.every, i] for i in range(self.element.count))
        return self.matrix[at, rt.every]

    def st(self, index: tuple[Value, ...], value: Value, mask: Mask, place: Place) -> None:
        """Store an element of each lane."""
        flat = self._number(index, mask, place.site)
        rt = self.lanes
        if rt.checks:
            self._count(mask, place)
        if isinstance(flat, int) and self.matrix is None:
            old = self.rows[flat]
            self.rows[flat] = merge(mask, value, self._poison() if old is None and mask is not None else old)
            if self.written[flat] is not mask:
                self.written[flat] = union(self.written[flat], mask)
            return
        self._to_matrix()
        assert self.matrix is not None
        assert self.known is not None
        lanes = rt.every if mask is None else np.flatnonzero(mask)
        at = flat[lanes] if isinstance(flat, np.ndarray) else flat
        self.known[at, lanes] = True
        if isinstance(self.element, Vector):
            for i, x in enumerate(value):
                self.matrix[at, lanes, i] = x[lanes] if isinstance(x, np.ndarray) else x
        else:
            self.matrix[at, lanes] = value[lanes] if isinstance(value, np.ndarray) else value

    def _count(self, mask: Mask, place: Place) -> None:
        tally = self.lanes.ledger.tallies[place.site.number]
        threads, warps = self.lanes.population(mask)
        tally.requests += warps
        tally.threads += threads

    def _poison(self) -> Value:
        if isinstance(self.element, Vector):
            return tuple(poisoned(1, self.element.base.dtype)[0] for _ in range(self.element.count))
        value = poisoned(1, self.element.dtype)[0]
        return value if self.element.kind == "f" else value.item()

    def _to_matrix(self) -> None:
        """From rows to one array, once an index differs between lanes."""
        if self.matrix is not None:
            return
        vector = isinstance(self.element, Vector)
        base = self.element.base if isinstance(self.element, Vector) else self.element
        count = self.lanes.count
        shape = (self.size, count, self.element.count) if isinstance(self.element, Vector) else (self.size, count)
        self.matrix = np.empty(shape, base.held)
        self.known = np.zeros((self.size, count), bool)
        for i, row in enumerate(self.rows):
            value = self._poison() if row is None else row
            if vector:
                for c, x in enumerate(value):
                    self.matrix[i, :, c] = x
            else:
                self.matrix[i] = value
            written = self.written[i]
            if written is not False:
                self.known[i] = True if written is None else written
