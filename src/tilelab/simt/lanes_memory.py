"""Memory as lanes see it: views that load and store for all lanes at once."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.banks import bank_counts
from tilelab.hardware.sectors import SECTOR, warp_traffic
from tilelab.simt import tree
from tilelab.simt.atomics import modify
from tilelab.simt.lanes_pieces import Entry, Integers, Piece
from tilelab.simt.masks import Mask, Value, merge
from tilelab.simt.runtime import NeedsThreads, outside
from tilelab.simt.types import Scalar, Vector

if TYPE_CHECKING:
    from tilelab.simt.lanes import Lanes


class Place:
    """A site as the lanes use it: whether its addresses may recur, and those remembered."""

    __slots__ = ("known", "recurs", "site")

    def __init__(self, site: tree.Site, recurs: bool) -> None:
        self.site = site
        self.recurs = recurs
        self.known: dict[tuple[int, ...], Entry] = {}


class Strided:
    """An array as a kernel holds it: where its first element is, and how to come to the others."""

    lanes: "Lanes"
    name: str
    space: str
    item: int
    """Bytes of an element."""
    offset: Value
    """Number of its first element in its memory; may differ from lane to lane, as may its extents."""
    shape: tuple[Value, ...]
    strides: tuple[int, ...]
    """In elements."""
    sliced: bool
    """Whether it is a smaller view of another."""

    @property
    def size(self) -> Value:
        """Number of elements."""
        size: Value = 1
        for extent in self.shape:
            size = size * extent
        return size

    def cut(self, parts: tuple[Any, ...], mask: Mask, line: int) -> tuple[Value, tuple[Value, ...], tuple[int, ...]]:
        """Offset, extents and strides of a smaller view: an index drops an axis, a (start, stop) keeps it."""
        offset, shape, strides = self.offset, [], []
        for axis, extent in enumerate(self.shape):
            which = parts[axis] if axis < len(parts) else (None, None)
            if isinstance(which, tuple):
                start, stop = which
                start = 0 if start is None else _end(start, extent)
                stop = extent if stop is None else _end(stop, extent)
                offset = offset + start * self.strides[axis]
                length = stop - start
                shape.append(np.maximum(length, 0) if isinstance(length, np.ndarray) else max(length, 0))
                strides.append(self.strides[axis])
            else:
                site = tree.Site(-1, line, 0, self.name, "read", self.space, self.name, "", (), self.item)
                if self.lanes.checks:
                    self.lanes.within(self, which, extent, axis, mask, site)
                offset = offset + which * self.strides[axis]
        return offset, tuple(shape), tuple(strides)


class View(Strided):
    """An array of global, shared or constant memory, or a smaller view of one."""

    def __init__(
        self,
        lanes: "Lanes",
        piece: Piece,
        element: Scalar | Vector,
        data: NDArray[Any],
        offset: Value,
        shape: tuple[Value, ...],
        strides: tuple[int, ...],
        name: str,
        base: Integers | None = None,
        address: int = 0,
        sliced: bool = False,
    ) -> None:
        self.lanes, self.piece, self.element, self.data = lanes, piece, element, data
        self.offset, self.shape, self.strides, self.name = offset, shape, strides, name
        self.base = base
        """First element of each lane's block, in shared memory."""
        self.address = address
        """Byte address of element 0."""
        self.sliced = sliced
        self.item = element.dtype.itemsize
        self.space = piece.space
        self.ratio = self.item // piece.cell
        self.held = element.held if isinstance(element, Scalar) else None
        self.limit = len(data) if base is None else len(data) // lanes.blocks
        """Elements of the memory that one block sees here."""

    def merged(self, mask: Mask, old: Any) -> "View":
        """The view in the lanes of a mask, an old one elsewhere; lanes can hold both only within one array."""
        if not isinstance(old, View) or old.data is not self.data or old.strides != self.strides:
            raise NeedsThreads(f"{self.name} is one array in some threads and another in others")
        return type(self)(
            self.lanes, self.piece, self.element, self.data, merge(mask, self.offset, old.offset),
            tuple(merge(mask, a, b) for a, b in zip(self.shape, old.shape, strict=True)), self.strides, self.name,
            self.base, self.address, self.sliced or old.sliced,
        )  # fmt: skip

    def view(self, parts: tuple[Any, ...], mask: Mask, line: int) -> "View":
        """A smaller view: an index drops an axis, a (start, stop) keeps it."""
        offset, shape, strides = self.cut(parts, mask, line)
        return type(self)(
            self.lanes, self.piece, self.element, self.data, offset, shape, strides, self.name, self.base, self.address,
            True,
        )  # fmt: skip

    # ---- addresses
    def flat(self, index: tuple[Value, ...], mask: Mask, site: tree.Site) -> Value:
        """Element number within the array's memory, checked against its extents."""
        flat = self.offset
        rt = self.lanes
        for axis, i in enumerate(index):
            if isinstance(i, np.ndarray) and i.dtype != np.int64:
                i = i.astype(np.int64)
            extent = self.shape[axis]
            if rt.checks:
                if isinstance(i, np.ndarray):
                    out = i.view(np.uint64) >= extent if type(extent) is int else (i < 0) | (i >= extent)
                    if mask is not None:
                        out &= mask
                    if out.any():
                        rt.within(self, i, extent, axis, mask, site)
                elif not (type(extent) is int and 0 <= i < extent):
                    rt.within(self, i, extent, axis, mask, site)
            stride = self.strides[axis]
            flat = flat + (i if stride == 1 else i * stride)
        return flat

    def entry(self, index: tuple[Value, ...], mask: Mask, place: Place) -> Entry:
        """Where each lane's element is; remembered if the place says that the indices recur."""
        key = None
        if place.recurs:
            key = (
                id(self),
                0 if mask is None else id(mask),
                *[id(i) if isinstance(i, np.ndarray) else ~i for i in index],
            )
            known = place.known.get(key)
            if known is not None:
                return known
        rt = self.lanes
        flat = self.flat(index, mask, place.site)
        if not isinstance(flat, np.ndarray):
            flat = np.full(rt.count, int(flat))
        if mask is not None:
            flat = np.where(mask, flat, 0)
        at = flat if self.base is None else flat + self.base
        cost = None
        if rt.checks:
            cost = self.cost(flat, mask, place.site)
        else:
            self.inside(flat)
        made = Entry(at, cost, None)
        if key is not None:
            made.keep = (self, mask, index)
            rt.remember(place, key, made)
        return made

    def inside(self, flat: Integers) -> None:
        """Without checks: stop at what leaves the memory, at either end; within it, any element will do as on a GPU.

        Raises
        ------
        IndexError
            With the element's number.
        """
        bad = flat.view(np.uint64) >= self.limit
        if bad.any():
            raise IndexError(outside(int(flat[bad.argmax()]), self.name, self.limit))

    def cost(self, flat: Integers, mask: Mask, site: tree.Site) -> tuple[int, ...]:
        """Requests, threads, wavefronts, parts, ways, sectors, bytes, least sectors, lanes that meet, turns.

        The worst warp is kept in the tally.
        """
        rt = self.lanes
        threads, warps = rt.population(mask)
        if self.piece.space == "const":  # no banks, no sectors
            return warps, threads, 0, 0, 0, 0, 0, 0, 0, 0
        rows = rt.rows(flat * self.item + self.address, 0)
        active = rt.active(mask)
        tally = rt.ledger.tallies[site.number]
        meet, turns = turns_taken(rows, active) if site.kind == "atomic" else (0, 0)
        if self.piece.space == "shared":
            parts, wavefronts, ways = bank_counts(rows, max(self.item, 1), active)
            requests = int(np.count_nonzero(ways))
            worst = int(wavefronts.max())
            if worst > tally.worst:
                tally.worst, tally.example = worst, rt.example(rows, active, int(wavefronts.argmax()))
            passes = int(wavefronts.sum()), int(parts.sum()), int(ways.max())
            return requests, threads, *passes, 0, threads * self.item, 0, meet, turns
        sectors, distinct = warp_traffic(rows, self.item, active)
        worst = int(sectors.max())
        if worst > tally.worst:
            tally.worst, tally.example = worst, rt.example(rows, active, int(sectors.argmax()))
        requests = int(np.count_nonzero(sectors))
        used = distinct * self.item
        least = int((-(-used // SECTOR)).sum())
        return requests, threads, 0, 0, 0, int(sectors.sum()), int(used.sum()), least, meet, turns

    def cells(self, at: Integers) -> list[Integers]:
        """The cells that elements are made of."""
        return [at] if self.ratio == 1 else [at * self.ratio + r for r in range(self.ratio)]

    # ---- accesses
    def ld(self, index: tuple[Value, ...], mask: Mask, place: Place) -> Value:
        """Load an element for each lane."""
        rt, piece = self.lanes, self.piece
        if not piece.logged and piece.space != "shared" and not any(isinstance(i, np.ndarray) for i in index):
            uniform = self.uniform(index, mask, place)
            if uniform is not None:
                return uniform
        entry = self.entry(index, mask, place)
        if rt.checks:
            entry.count += 1
            if entry.keep is None:
                rt.charge(place.site, entry)
            if piece.space == "shared":
                if not piece.full and not entry.written:
                    self.check_written(entry, mask, place)
                for cells in self.cells(entry.at):
                    piece.note(0, entry, cells, mask, place.site, None)
            elif piece.space == "global":
                rt.memory.touch(piece, entry.at, mask, 0, place.site)
                if piece.logged:
                    piece.note(0, entry, entry.at, mask, place.site, None)
        return self.take(entry.at)

    def take(self, at: Integers) -> Value:
        """Elements as lanes hold them."""
        if self.held is None:
            rows = self.data.take(at, axis=0)
            assert isinstance(self.element, Vector)
            held = self.element.base.held
            return tuple(np.ascontiguousarray(rows[:, i]).astype(held) for i in range(self.element.count))
        values = self.data.take(at)
        return values if values.dtype == self.held else values.astype(self.held)

    def uniform(self, index: tuple[Value, ...], mask: Mask, place: Place) -> Value:
        """The one element that all lanes load, as one number; ``None`` if lanes differ after all."""
        rt = self.lanes
        flat = self.flat(index, mask, place.site)
        if isinstance(flat, np.ndarray):
            return None
        if not rt.checks:
            self.inside(np.full(1, int(flat)))
        if rt.checks:
            threads, warps = rt.population(mask)
            tally = rt.ledger.tallies[place.site.number]
            tally.requests += warps
            tally.threads += threads
        if rt.checks and self.piece.space == "global":
            tally.sectors += warps
            tally.used += warps * self.item
            tally.least += warps
            if not tally.worst:
                tally.worst = 1
                address = int(flat) * self.item + self.address
                tally.example = tuple(address if on else None for on in rt.first_warp(mask))
            rt.memory.seen(self.piece)[0][flat] = True
        value = self.data[int(flat)]
        return value if self.data.dtype.kind == "f" else value.item()

    def check_written(self, entry: Entry, mask: Mask, place: Place) -> None:
        """Note lanes that read what nobody wrote; said when the phase ends, unless it is part of a race."""
        piece = self.piece
        whole = True
        for cells in self.cells(entry.at):
            bad = ~piece.written[cells]
            if mask is not None:
                bad &= mask
            if bad.any():
                whole = False
                lanes = np.flatnonzero(bad)
                piece.pending.append((cells[lanes], lanes, place.site, self))
        entry.written = whole and entry.keep is not None

    def st(self, index: tuple[Value, ...], value: Value, mask: Mask, place: Place) -> None:
        """Store a value of each lane."""
        rt, piece = self.lanes, self.piece
        entry = self.entry(index, mask, place)
        if rt.checks:
            entry.count += 1
            if entry.keep is None:
                rt.charge(place.site, entry)
            if piece.space == "shared":
                for cells in self.cells(entry.at):
                    piece.note(1, entry, cells, mask, place.site, (value, self.element.dtype))
                    if not piece.full:
                        piece.written[cells if mask is None else cells[mask]] = True
                if not piece.full:
                    piece.full = bool(piece.written.all())
            else:
                rt.memory.touch(piece, entry.at, mask, 1, place.site)
                piece.note(1, entry, entry.at, mask, place.site, (value, self.element.dtype))
        self.put(entry.at, value, mask)

    def put(self, at: Integers, value: Value, mask: Mask) -> None:
        """Write values into the data."""
        if self.held is None:
            for i, x in enumerate(value):
                column = self.data[:, i]
                column[at if mask is None else at[mask]] = (
                    x[mask] if mask is not None and isinstance(x, np.ndarray) else x
                )
            return
        if mask is None:
            self.data[at] = value
        else:
            self.data[at[mask]] = value[mask] if isinstance(value, np.ndarray) else value

    def atomic(
        self, name: str, index: tuple[Value, ...], values: tuple[Value, ...], mask: Mask, place: Place, used: bool
    ) -> Value:
        """Read, modify and write; lanes take their turn in the order of their numbers."""
        rt, piece = self.lanes, self.piece
        entry = self.entry(index, mask, place)
        if rt.checks:
            entry.count += 1
            if entry.keep is None:
                rt.charge(place.site, entry)
            for cells in self.cells(entry.at):
                piece.note(2, entry, cells, mask, place.site, None)
            if piece.space == "shared":
                if not piece.full:
                    self.check_written(entry, mask, place)
            else:
                rt.memory.touch(piece, entry.at, mask, 2, place.site)
        lanes = np.arange(rt.count) if mask is None else np.flatnonzero(mask)
        at = entry.at[lanes]
        operands = [
            (v[lanes] if isinstance(v, np.ndarray) else np.full(len(lanes), v)).astype(self.data.dtype) for v in values
        ]
        old = modify(name, self.data, at, operands, used)
        if not used:
            return None
        out = np.zeros(rt.count, self.data.dtype)
        out[lanes] = old
        assert self.held is not None
        return out.astype(self.held)


def turns_taken(rows: NDArray[Any], active: NDArray[np.bool_] | None) -> tuple[int, int]:
    """Most lanes of one warp that hold the same address; and that of each warp, summed."""
    keys = rows + (np.arange(len(rows)) << 40)[:, None]
    found, counts = np.unique(keys if active is None else keys[active], return_counts=True)
    most = np.zeros(len(rows), np.int64)
    np.maximum.at(most, found >> 40, counts)
    return int(most.max(initial=0)), int(most.sum())


def _end(end: Value, extent: Value) -> Value:
    """An end of a slice, as Python takes it: negative from the back, cut to the array."""
    if isinstance(end, np.ndarray) or isinstance(extent, np.ndarray):
        return np.clip(np.where(np.asarray(end) < 0, end + extent, end), 0, extent)
    return min(max(end + extent if end < 0 else end, 0), extent)
