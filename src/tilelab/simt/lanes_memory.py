"""Memory as lanes see it: views that load and store for all lanes at once, and the pieces under them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.banks import bank_counts
from tilelab.hardware.sectors import warp_traffic
from tilelab.simt import tree
from tilelab.simt.masks import Mask, Value, minus, part
from tilelab.simt.races import Access
from tilelab.simt.runtime import poisoned
from tilelab.simt.types import Scalar, Vector

if TYPE_CHECKING:
    from tilelab.simt.lanes import Lanes

Integers = NDArray[np.int64]


class Place:
    """A site as the lanes use it: whether its addresses may recur, and those remembered."""

    __slots__ = ("known", "recurs", "site")

    def __init__(self, site: tree.Site, recurs: bool) -> None:
        self.site = site
        self.recurs = recurs
        self.known: dict[tuple[int, ...], Entry] = {}


class Entry:
    """Addresses of one access by all lanes, and what they cost; kept while the same indices may come again."""

    __slots__ = ("at", "cost", "count", "keep", "written")

    def __init__(self, at: Integers, cost: tuple[int, ...] | None, keep: Any) -> None:
        self.at = at
        """Element of each lane in the piece's flat data; idle lanes point at element 0."""
        self.cost = cost
        self.count = 0
        self.keep = keep
        self.written = False
        """Whether all its elements are known to have been written."""


class Piece:
    """One piece of memory: a shared array for each block of the chunk, or a global array.

    ``cells`` are what races and initialisation are kept for: elements, or parts of them where dynamic shared memory is
    viewed as several types.
    """

    def __init__(self, lanes: "Lanes", name: str, space: str, cells: int, cell: int, logged: bool) -> None:
        self.lanes, self.name, self.space = lanes, name, space
        self.cells, self.cell = cells, cell
        self.logged = logged
        self.log: list[tuple[int, Integers, Mask, tree.Site, Value, Any]] = []
        self.signature: list[int] | None = []
        self.clean: set[tuple[int, ...]] = set()
        self.pending: list[tuple[Integers, Integers, tree.Site, View]] = []
        self.shadow: NDArray[np.int32] | None = None
        self.extents: tuple[int, ...] = ()
        """Shape of the array it was made for, which gives a cell its index."""
        self.item = cell
        """Bytes of an element of that array."""
        self.written = np.zeros(0 if space == "global" else cells, bool)
        self.full = False

    def reset(self) -> None:
        """Forget what was written: another block's life begins."""
        self.written[:] = False
        self.full = False

    # ---- the log of a phase
    def note(self, kind: int, entry: Entry, at: Integers, mask: Mask, site: tree.Site, value: Value) -> None:
        """Log an access: 0 a read, 1 a write, 2 an atomic."""
        epoch = self.lanes.epoch if self.lanes.syncs_warps else None
        self.log.append((kind, at, mask, site, value, epoch))
        if self.signature is not None:
            if entry.keep is None or kind == 2 or epoch is not None:
                self.signature = None
            else:
                self.signature.append(id(entry) * 2 + kind)

    def settle(self, blocks: Mask) -> None:
        """End a phase for the lanes of some blocks: look for races, then for reads of what nobody wrote."""
        log, signature = self.log, self.signature
        if not log:
            return
        if blocks is None:
            self.log, self.signature = [], []
        else:
            signature = None
            self.log = [(k, a, rest, s, v, e) for k, a, m, s, v, e in log if (rest := minus(m, blocks)) is not False]
            self.signature = None if self.log else []
            log = [(k, a, both, s, v, e) for k, a, m, s, v, e in log if (both := _meet(m, blocks)) is not False]
        racy = None
        if any(entry[0] for entry in log):
            key = tuple(signature) if signature is not None else None
            if key is None or key not in self.clean:
                racy = self.racy(log)
                if racy is not None:
                    self.lanes.races(self, log, racy)
                elif key is not None and self.space == "shared":
                    self.clean.add(key)
        if self.pending:
            self.lanes.unwritten(self, racy, blocks)

    def racy(self, log: list[tuple[int, Integers, Mask, tree.Site, Value, Any]]) -> Integers | None:
        """Cells that two threads touch, one of them writing, with nothing between; ``None`` if there are none."""
        lane = self.lanes.lane
        if not self.lanes.syncs_warps:
            return self.contested([(k, a, m) for k, a, m, *_ in log], lane)
        # First between warps; if that is clean, what is left is within one warp, between two syncwarps.
        found = self.contested([(k, a, m) for k, a, m, *_ in log], self.lanes.warp)
        if found is not None:
            return found
        for epoch in np.unique(np.concatenate([e[-1] for e in log])):
            here = [(k, a, _meet(m, e == epoch)) for k, a, m, _, _, e in log]
            found = self.contested([(k, a, m) for k, a, m in here if m is not False], lane)
            if found is not None:
                return found
        return None

    def contested(self, log: list[tuple[int, Integers, Mask]], who: NDArray[np.int32]) -> Integers | None:
        """Cells that two of ``who`` touch, one writing (or one adding while another plainly reads)."""
        if self.shadow is None:
            self.shadow = np.full(self.cells, -1, np.int32)
        shadow, bad = self.shadow, []
        chosen = [(k, *_pick(a, m, who)) for k, a, m in log]
        for k, at, by in chosen:
            if k == 1:
                shadow[at] = by
        for k, at, by in chosen:
            owner = shadow[at]
            other = owner != by
            if k != 1:
                other &= owner >= 0
            if other.any():
                bad.append(at[other])
        for k, at, _ in chosen:
            if k == 1:
                shadow[at] = -1
        if any(k == 2 for k, *_ in chosen) and any(k == 0 for k, *_ in chosen):
            bad += self._atomics(chosen)
        return np.unique(np.concatenate(bad)) if bad else None

    def _atomics(self, chosen: list[tuple[int, Integers, NDArray[np.int32]]]) -> list[Integers]:
        """Cells that one thread changes atomically and another reads plainly."""
        low, high = np.full(self.cells, np.iinfo(np.int32).max, np.int32), np.full(self.cells, -1, np.int32)
        for k, at, by in chosen:
            if k == 2:
                np.minimum.at(low, at, by)
                np.maximum.at(high, at, by)
        bad = []
        for k, at, by in chosen:
            if k == 0:
                other = (high[at] >= 0) & ((low[at] != by) | (high[at] != by))
                if other.any():
                    bad.append(at[other])
        return bad

    def accesses(self, log: list[tuple[int, Integers, Mask, tree.Site, Value, Any]], cells: Integers) -> list[Access]:
        """The accesses of a log to some cells, one by one."""
        wanted = np.zeros(self.cells, bool)
        wanted[cells] = True
        made = []
        rt = self.lanes
        for order, (k, at, mask, site, value, epoch) in enumerate(log):
            hit = wanted[at]
            if mask is not None:
                hit &= mask
            for lane in np.flatnonzero(hit):
                x = value[lane] if isinstance(value, np.ndarray) else value
                made.append(
                    Access(
                        int(at[lane]), int(lane), int(rt.warp[lane]), int(epoch[lane]) if epoch is not None else 0,
                        site.number, ("read", "write", "atomic")[k], (order,),
                        None if isinstance(x, tuple) or x is None else float(x),
                    )
                )  # fmt: skip
        return made


def _meet(a: Mask, b: Mask) -> Mask:
    if a is None or b is None:
        return b if a is None else a
    both = a & b
    return both if both.any() else False


def _pick(at: Integers, mask: Mask, who: NDArray[np.int32]) -> tuple[Integers, NDArray[np.int32]]:
    return (at, who) if mask is None else (at[mask], who[mask])


class View:
    """An array as a kernel holds it. ``offset`` and extents may differ from lane to lane; strides count elements."""

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
    ) -> None:
        self.lanes, self.piece, self.element, self.data = lanes, piece, element, data
        self.offset, self.shape, self.strides, self.name = offset, shape, strides, name
        self.base = base
        """First element of each lane's block, in shared memory."""
        self.address = address
        """Byte address of element 0."""
        self.item = element.dtype.itemsize
        self.ratio = self.item // piece.cell
        self.held = element.held if isinstance(element, Scalar) else None

    @property
    def size(self) -> Value:
        """Number of elements."""
        size: Value = 1
        for extent in self.shape:
            size = size * extent
        return size

    def view(self, parts: tuple[Any, ...], mask: Mask, line: int) -> "View":
        """A smaller view: an index drops an axis, a (start, stop) keeps it."""
        offset, shape, strides = self.offset, [], []
        for axis, extent in enumerate(self.shape):
            which = parts[axis] if axis < len(parts) else (None, None)
            if isinstance(which, tuple):
                start, stop = which
                start = 0 if start is None else _end(start, extent)
                stop = extent if stop is None else _end(stop, extent)
                offset = offset + start * self.strides[axis]
                shape.append(
                    np.maximum(stop - start, 0) if isinstance(stop - start, np.ndarray) else max(stop - start, 0)
                )
                strides.append(self.strides[axis])
            else:
                site = tree.Site(-1, line, 0, self.name, "read", self.piece.space, self.name, "", (), self.item)
                if self.lanes.checks:
                    self.lanes.within(self, which, extent, axis, mask, site)
                offset = offset + which * self.strides[axis]
        return type(self)(
            self.lanes, self.piece, self.element, self.data, offset, tuple(shape), tuple(strides), self.name,
            self.base, self.address,
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
        cost = self.cost(flat, mask, place.site) if rt.checks else None
        made = Entry(at, cost, None)
        if key is not None:
            made.keep = (self, mask, index)
            rt.remember(place, key, made)
        return made

    def cost(self, flat: Integers, mask: Mask, site: tree.Site) -> tuple[int, ...]:
        """Requests, threads, wavefronts, phases, ways, sectors and bytes of an access; its worst warp goes to the tally."""
        rt = self.lanes
        rows = rt.rows(flat * self.item + self.address, 0)
        active = rt.active(mask)
        threads = rt.population(mask)[0]
        tally = rt.ledger.tallies[site.number]
        if self.piece.space == "shared":
            phases, wavefronts, ways = bank_counts(rows, max(self.item, 1), active)
            requests = int(np.count_nonzero(ways))
            worst = int(wavefronts.max())
            if worst > tally.worst:
                tally.worst, tally.example = worst, rt.example(rows, active, int(wavefronts.argmax()))
            return requests, threads, int(wavefronts.sum()), int(phases.sum()), int(ways.max()), 0, threads * self.item
        sectors, distinct = warp_traffic(rows, self.item, active)
        worst = int(sectors.max())
        if worst > tally.worst:
            tally.worst, tally.example = worst, rt.example(rows, active, int(sectors.argmax()))
        requests = int(np.count_nonzero(sectors))
        return requests, threads, 0, 0, 0, int(sectors.sum()), int(distinct.sum()) * self.item

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
                rt.touch(piece, entry.at, mask, 0, place.site)
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
        if rt.checks and self.piece.space == "global":
            threads, warps = rt.population(mask)
            tally = rt.ledger.tallies[place.site.number]
            tally.requests += warps
            tally.threads += threads
            tally.sectors += warps
            tally.used += warps * self.item
            if not tally.worst:
                tally.worst = 1
                address = int(flat) * self.item + self.address
                tally.example = tuple(address if on else None for on in rt.first_warp(mask))
            rt.seen(self.piece)[0][flat] = True
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
                    piece.note(1, entry, cells, mask, place.site, value)
                    if not piece.full:
                        piece.written[cells if mask is None else cells[mask]] = True
                if not piece.full:
                    piece.full = bool(piece.written.all())
            else:
                rt.touch(piece, entry.at, mask, 1, place.site)
                piece.note(1, entry, entry.at, mask, place.site, value)
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
                rt.touch(piece, entry.at, mask, 2, place.site)
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


def modify(name: str, data: NDArray[Any], at: Integers, operands: list[NDArray[Any]], used: bool) -> NDArray[Any]:
    """Apply an atomic for each position in turn and return what was there before."""
    whole = {"add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum, "and_": np.bitwise_and,
             "or_": np.bitwise_or, "xor": np.bitwise_xor, "nanmax": np.fmax, "nanmin": np.fmin}.get(name)  # fmt: skip
    if whole is not None and not used:
        whole.at(data, at, operands[0])
        return operands[0]
    old = np.empty(len(at), data.dtype)
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(at) else np.zeros(0, bool)
    start = np.flatnonzero(first)
    turn = np.arange(len(at)) - np.repeat(start, np.diff([*start, len(at)]))
    for n in range(int(turn.max(initial=-1)) + 1):
        lanes = order[turn == n]
        here = at[lanes]
        before = data[here]
        old[lanes] = before
        data[here] = _after(name, before, [o[lanes] for o in operands], whole)
    return old


def _after(name: str, before: NDArray[Any], operands: list[NDArray[Any]], whole: Any) -> NDArray[Any]:
    value = operands[0]
    made: NDArray[Any]
    if whole is not None:
        made = whole(before, value)
    elif name == "exch":
        made = value
    elif name == "inc":
        made = np.where(before >= value, 0, before + 1).astype(before.dtype)
    elif name == "dec":
        made = np.where((before == 0) | (before > value), value, before - 1).astype(before.dtype)
    else:  # cas, compare_and_swap
        made = np.where(before == value, operands[1], before)
    return made


def _end(end: Value, extent: Value) -> Value:
    """An end of a slice, as Python takes it: negative from the back, cut to the array."""
    if isinstance(end, np.ndarray) or isinstance(extent, np.ndarray):
        return np.clip(np.where(np.asarray(end) < 0, end + extent, end), 0, extent)
    return min(max(end + extent if end < 0 else end, 0), extent)


class LocalView:
    """A local array: every lane has its own. Elements are rows over lanes until a lane-dependent index comes."""

    def __init__(self, lanes: "Lanes", element: Scalar | Vector, shape: tuple[int, ...], name: str) -> None:
        self.lanes, self.element, self.shape, self.name = lanes, element, shape, name
        self.size = 1
        for extent in shape:
            self.size *= extent
        self.rows: list[Value] = [None] * self.size
        self.written: list[Mask] = [False] * self.size
        self.matrix: NDArray[Any] | None = None
        self.known: NDArray[np.bool_] | None = None

    def _number(self, index: tuple[Value, ...], mask: Mask, site: tree.Site) -> Value:
        flat: Value = 0
        for axis, i in enumerate(index):
            if self.lanes.checks:
                self.lanes.within(self, i, self.shape[axis], axis, mask, site)
            flat = flat * self.shape[axis] + i
        if isinstance(flat, np.ndarray) and mask is not None:
            flat = np.where(mask, flat, 0)
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
            from tilelab.simt.masks import merge, union

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
