"""Pieces of memory under the lanes' arrays: the log of a phase, and the races in it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.limits import WARP
from tilelab.simt import tree
from tilelab.simt.masks import Mask, Value, minus
from tilelab.simt.races import Access, racing_pairs

if TYPE_CHECKING:
    from tilelab.simt.lanes import Lanes
    from tilelab.simt.lanes_memory import View

Integers = NDArray[np.int64]
#: Racy cells of a phase that are looked at one access by one.
MOST_CELLS = 512


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where each lane stands among the ``syncwarp`` of its warp."""

    epoch: Integers
    """How many each lane has passed."""
    known: Integers | None
    """Of shape (warps, lane, other lane): up to which epoch the other's accesses come before what the lane does next,
    -1 for none of them; ``None`` if all lanes of a warp pass every ``syncwarp`` together."""


#: Kind (0 a read, 1 a write, 2 an atomic), cells, mask, place, (value, dtype) of a write, stamp.
Logged = tuple[int, Integers, Mask, tree.Site, Any, Stamp | None]


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
        self.log: list[Logged] = []
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
        stamp = self.lanes.stamp
        self.log.append((kind, at, mask, site, value, stamp))
        if self.signature is not None:
            if entry.keep is None or kind == 2 or stamp is not None:
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

    def racy(self, log: list[Logged]) -> Integers | None:
        """Cells that two threads touch, one of them writing, with nothing between; ``None`` if there are none."""
        lane = self.lanes.lane
        stamp = self.lanes.stamp
        if stamp is None:
            return self.contested([(k, a, m) for k, a, m, *_ in log], lane)
        # Between warps no syncwarp counts; within a warp, only what lies between two of them does.
        found = [self.contested([(k, a, m) for k, a, m, *_ in log], self.lanes.warp)]
        if stamp.known is not None:
            found.append(self._racy_in_warps(log))
        else:
            epochs = [stamp.epoch for *_, stamp in log if stamp is not None]
            for epoch in np.unique(np.concatenate(epochs)):
                here = [(k, a, _meet(m, e == epoch)) for (k, a, m, *_), e in zip(log, epochs, strict=True)]
                found.append(self.contested([(k, a, m) for k, a, m in here if m is not False], lane))
        cells = [some for some in found if some is not None]
        return np.unique(np.concatenate(cells)) if cells else None

    def _racy_in_warps(self, log: list[Logged]) -> Integers | None:
        """The same where a ``syncwarp`` may order some lanes of a warp and not others: access by access."""
        doubtful = self.contested([(k, a, m) for k, a, m, *_ in log], self.lanes.lane)
        if doubtful is None:
            return None
        cells = {pair.first.cell for pair in racing_pairs(self.accesses(log, doubtful))}
        return np.array(sorted(cells)) if cells else None

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

    def telling(self, log: list[Logged], cells: Integers) -> Integers:
        """Of many racy cells the first of every sort: touched at the same places, and written alike or not."""
        if len(cells) <= MOST_CELLS:
            return cells
        low, high = np.full(self.cells, (1 << 64) - 1, np.uint64), np.zeros(self.cells, np.uint64)
        touched: dict[tuple[int, int], NDArray[np.bool_]] = {}
        for k, at, mask, site, value, _ in log:
            here = at if mask is None else at[mask]
            touched.setdefault((site.number, k), np.zeros(self.cells, bool))[here] = True
            if k == 1:
                raw = self._raw(value, at)
                raw = raw if mask is None else raw[mask]
                np.minimum.at(low, here, raw)
                np.maximum.at(high, here, raw)
        weights = np.random.default_rng(0).integers(1, 1 << 62, len(touched), np.uint64)
        sort = np.zeros(self.cells, np.uint64)
        for place, weight in zip(touched.values(), weights, strict=True):
            sort[place] ^= weight
        sort[low < high] += np.uint64(1)
        _, which = np.unique(sort[cells], return_inverse=True)
        order = np.argsort(which, kind="stable")
        starts = np.flatnonzero(np.diff(which[order], prepend=-1))
        turn = np.empty(len(cells), np.int64)
        turn[order] = np.arange(len(cells)) - np.repeat(starts, np.diff([*starts, len(cells)]))
        return cells[turn < max(1, MOST_CELLS // len(starts))]

    def accesses(self, log: list[Logged], cells: Integers) -> list[Access]:
        """The accesses of a log to some cells, one by one."""
        wanted = np.zeros(self.cells, bool)
        wanted[cells] = True
        made = []
        rt = self.lanes
        for order, (k, at, mask, site, value, stamp) in enumerate(log):
            hit = wanted[at]
            if mask is not None:
                hit &= mask
            for lane in np.flatnonzero(hit):
                cell, warp, place = int(at[lane]), int(rt.warp[lane]), int(rt.thread[lane]) % WARP
                epoch, known = 0, None
                if stamp is not None:
                    epoch = int(stamp.epoch[lane])
                    known = None if stamp.known is None else stamp.known[warp, place].tolist()
                made.append(
                    Access(
                        cell, int(lane), warp, place, epoch, site.number, ("read", "write", "atomic")[k], (order,),
                        None if value is None else self._bytes(value, int(lane), cell), known,
                    )
                )  # fmt: skip
        return made

    def _raw(self, written: tuple[Value, np.dtype[Any]], at: Integers) -> NDArray[np.uint64]:
        """What all lanes' writes put into their cells, as numbers."""
        value, dtype = written
        elements = np.empty(len(at), dtype)
        if type(value) is tuple:
            for name, part in zip(dtype.names or (), value, strict=True):
                elements[name] = part
        else:
            elements[:] = value
        start = int(at[0]) % (dtype.itemsize // self.cell) * self.cell
        raw = np.zeros((len(at), 8), np.uint8)
        raw[:, : self.cell] = elements.view(np.uint8).reshape(len(at), -1)[:, start : start + self.cell]
        return raw.view(np.uint64)[:, 0]

    def _bytes(self, written: tuple[Value, np.dtype[Any]], lane: int, cell: int) -> bytes:
        """What one lane's write puts into a cell."""
        value, dtype = written
        parts = tuple(x[lane] if isinstance(x, np.ndarray) else x for x in (value if type(value) is tuple else [value]))
        start = cell % (dtype.itemsize // self.cell) * self.cell
        return np.array(parts if type(value) is tuple else parts[0], dtype).tobytes()[start : start + self.cell]


def _meet(a: Mask, b: Mask) -> Mask:
    if a is None or b is None:
        return b if a is None else a
    both = a & b
    return both if both.any() else False


def _pick(at: Integers, mask: Mask, who: NDArray[np.int32]) -> tuple[Integers, NDArray[np.int32]]:
    return (at, who) if mask is None else (at[mask], who[mask])
