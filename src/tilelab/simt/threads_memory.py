"""Memory as one thread sees it: elements one by one, every access logged with the thread that made it."""

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import sayings, tree
from tilelab.simt.errors import Finding
from tilelab.simt.runtime import outside, poisoned, strides_of
from tilelab.simt.types import Scalar, Vector

if TYPE_CHECKING:
    from tilelab.simt.threads import Thread

Path = tuple[int, ...]


class Fault(Exception):
    """A thread did what ends the launch."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Logged(NamedTuple):
    """One access of one thread."""

    thread: int
    epoch: int
    kind: str
    piece: "Cells"
    cell: int
    address: int
    width: int
    site: tree.Site
    path: Path
    value: bytes | None
    """What a write puts into the cell."""
    known: tuple[int, ...] | None
    """See :attr:`tilelab.simt.races.Access.known`."""


class Cells:
    """What races and initialisation are kept for: see :class:`tilelab.simt.lanes_memory.Piece`."""

    def __init__(self, name: str, space: str, cell: int, extents: tuple[int, ...], item: int, logged: bool) -> None:
        self.name, self.space, self.cell = name, space, cell
        self.extents, self.item, self.logged = extents, item, logged
        self.written: set[int] = set()
        self.pending: list[tuple[int, int, tree.Site]] = []
        self.memory = -1
        """Number of the global memory it is."""


class Element:
    """An array as one thread holds it; strides count elements."""

    def __init__(
        self, cells: Cells, element: Scalar | Vector, data: NDArray[Any], offset: int, shape: tuple[int, ...],
        strides: tuple[int, ...], name: str, address: int, sliced: bool = False,
    ) -> None:  # fmt: skip
        self.cells, self.element, self.data, self.offset = cells, element, data, offset
        self.shape, self.strides, self.name, self.address = shape, strides, name, address
        self.sliced = sliced
        self.item = element.dtype.itemsize
        self.ratio = self.item // cells.cell

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def view(self, t: "Thread", parts: tuple[Any, ...], line: int) -> "Element":
        """A smaller view."""
        offset, shape, strides = self.offset, [], []
        for axis, extent in enumerate(self.shape):
            which = parts[axis] if axis < len(parts) else (None, None)
            if isinstance(which, tuple):
                start, stop, _ = slice(*which).indices(extent)
                offset += start * self.strides[axis]
                shape.append(max(stop - start, 0))
                strides.append(self.strides[axis])
            else:
                site = tree.Site(-1, line, 0, self.name, "read", self.cells.space, self.name, "", (), self.item)
                self.check(t, axis, which, site)
                offset += which * self.strides[axis]
        made = copy.copy(self)
        made.offset, made.shape, made.strides, made.sliced = offset, tuple(shape), tuple(strides), True
        return made

    def check(self, t: "Thread", axis: int, index: int, site: tree.Site) -> None:
        """Stop the thread at an index outside the array."""
        if t.checks and not 0 <= index < self.shape[axis]:
            raise Fault(
                sayings.out_of_bounds(
                    t.kernel, site, self.name, axis, int(index), self.shape[axis], t.block, t.coordinates,
                    t.linear_block, t.phase, self.sliced,
                )
            )  # fmt: skip

    def at(self, t: "Thread", index: tuple[int, ...], site: tree.Site) -> int:
        """The element's number in the data."""
        flat = self.offset
        for axis, i in enumerate(index):
            self.check(t, axis, i, site)
            flat += int(i) * self.strides[axis]
        if not t.checks and not 0 <= flat < len(self.data):
            raise IndexError(outside(flat, self.name, len(self.data)))
        return flat

    def log(self, t: "Thread", kind: str, at: int, site: tree.Site, path: Path) -> None:
        """Note an access, cell by cell, after what it wrote is written; the first carries the address."""
        raw, cell = self.data[at].tobytes() if kind == "write" else None, self.cells.cell
        for r in range(self.ratio):
            address = at * self.item + self.address if r == 0 else -1
            value = None if raw is None else raw[r * cell : (r + 1) * cell]
            number = at * self.ratio + r
            t.log.append(
                Logged(t.number, t.epoch, kind, self.cells, number, address, self.item, site, path, value, t.known)
            )

    def plain(self, at: int) -> Any:
        """The value of an element as threads hold it."""
        value = self.data[at]
        if isinstance(self.element, Vector):
            return tuple(v if self.element.base.kind == "f" else v.item() for v in value)
        return value if self.element.kind == "f" else value.item()

    def ld(self, t: "Thread", index: tuple[int, ...], site: tree.Site, path: Path) -> Any:
        """Load an element."""
        at = self.at(t, index, site)
        if t.checks:
            self.log(t, "read", at, site, path)
            if self.cells.space == "shared":
                for r in range(self.ratio):
                    if at * self.ratio + r not in self.cells.written:
                        self.cells.pending.append((at * self.ratio + r, t.number, site))
        return self.plain(at)

    def st(self, t: "Thread", index: tuple[int, ...], value: Any, site: tree.Site, path: Path) -> None:
        """Store an element."""
        at = self.at(t, index, site)
        self.put(t, at, value)
        if t.checks:
            self.log(t, "write", at, site, path)
            for r in range(self.ratio):
                self.cells.written.add(at * self.ratio + r)

    def atomic(
        self, t: "Thread", name: str, index: tuple[int, ...], values: tuple[Any, ...], site: tree.Site, path: Path
    ) -> Any:
        """Read, modify and write."""
        at = self.at(t, index, site)
        old = self.plain(at)
        if t.checks:
            self.log(t, "atomic", at, site, path)
            if self.cells.space == "shared":
                for r in range(self.ratio):
                    if at * self.ratio + r not in self.cells.written:
                        self.cells.pending.append((at * self.ratio + r, t.number, site))
        kind = self.data.dtype.type
        now, operand = kind(old), kind(values[0])
        if name in ("add", "sub"):
            new = now + operand if name == "add" else now - operand
        elif name in ("max", "min"):
            new = (np.maximum if name == "max" else np.minimum)(now, operand)
        elif name in ("nanmax", "nanmin"):
            new = (np.fmax if name == "nanmax" else np.fmin)(now, operand)
        elif name in ("and_", "or_", "xor"):
            new = now & operand if name == "and_" else now | operand if name == "or_" else now ^ operand
        elif name == "exch":
            new = operand
        elif name == "inc":
            new = kind(0) if now >= operand else now + kind(1)
        elif name == "dec":
            new = operand if now == 0 or now > operand else now - kind(1)
        else:  # cas, compare_and_swap
            new = kind(values[1]) if now == operand else now
        self.put(t, at, new)
        return old

    def put(self, t: "Thread", at: int, value: Any) -> None:
        """Write a value; where threads wait for each other, note whether that changed anything."""
        before = self.data[at].tobytes() if t.engine.waits else b""
        self.data[at] = value
        if t.engine.waits and before != self.data[at].tobytes():
            t.engine.quiet = 0


class LocalElement(Element):
    """A local array of one thread: nobody else sees it, so only its own reads are checked."""

    def __init__(self, alloc: tree.Alloc) -> None:
        element = alloc.array.element
        base = element if isinstance(element, Scalar) else element.base
        size = int(np.prod(alloc.shape))
        cells = Cells(alloc.name, "local", element.dtype.itemsize, alloc.shape, element.dtype.itemsize, False)
        count = 1 if isinstance(element, Scalar) else element.count
        data = poisoned(size * count, base.dtype)
        if not isinstance(element, Scalar):
            data = data.reshape(-1, count)
        strides = strides_of(alloc.shape)
        super().__init__(cells, element, data, 0, alloc.shape, strides, alloc.name, 0)

    def ld(self, t: "Thread", index: tuple[int, ...], site: tree.Site, path: Path) -> Any:
        """Load an element."""
        at = self.at(t, index, site)
        if t.checks:
            t.log.append(Logged(t.number, t.epoch, "read", self.cells, at, 0, self.item, site, path, None, None))
            if at not in self.cells.written:
                t.unwritten(self.cells, at, site)
        return self.plain(at)

    def st(self, t: "Thread", index: tuple[int, ...], value: Any, site: tree.Site, path: Path) -> None:
        """Store an element."""
        at = self.at(t, index, site)
        self.data[at] = value
        self.cells.written.add(at)
        if t.checks:
            t.log.append(Logged(t.number, t.epoch, "write", self.cells, at, 0, self.item, site, path, None, None))
