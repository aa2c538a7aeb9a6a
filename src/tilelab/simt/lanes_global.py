"""Global memory over a whole launch: which elements were touched, and races between blocks."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import sayings, tree
from tilelab.simt.lanes_pieces import Integers, Piece
from tilelab.simt.masks import Mask

if TYPE_CHECKING:
    from tilelab.simt.lanes import Lanes

_THREAD_BITS, _SITE_BITS = 10, 12


class GlobalMemory:
    """What blocks did to global memory, kept until the launch ends.

    For each element and kind of access two keys are held, of different blocks: with two, any third block's access finds
    one that is not its own.
    """

    def __init__(self, lanes: "Lanes") -> None:
        self.lanes = lanes
        self._slots: dict[tuple[int, str], list[NDArray[np.int64] | None]] = {}
        self._seen: dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}

    def touched(self) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """For each piece of global memory, which elements were read and which written."""
        return [self.seen(piece) for piece in self.lanes.globals]

    def seen(self, piece: Piece) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which elements of a global piece were read, and which written."""
        known = self._seen.get(id(piece))
        if known is None:
            known = self._seen[id(piece)] = (np.zeros(piece.cells, bool), np.zeros(piece.cells, bool))
        return known

    def mark(self) -> dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Which elements were touched, to go back to."""
        return {key: (read.copy(), written.copy()) for key, (read, written) in self._seen.items()}

    def touch(self, piece: Piece, at: Integers, mask: Mask, kind: int, site: tree.Site) -> None:
        """Note which elements are touched, and look for races between blocks."""
        read, written = self.seen(piece)
        here = at if mask is None else at[mask]
        if kind != 1:
            read[here] = True
        if kind != 0:
            written[here] = True
        if not piece.logged or self.lanes.launch.blocks == 1:
            return
        block = (self.lanes.first + (self.lanes.block if mask is None else self.lanes.block[mask])).astype(np.int64)
        thread = self.lanes.thread if mask is None else self.lanes.thread[mask]
        key = block << (_THREAD_BITS + _SITE_BITS) | thread << _SITE_BITS | site.number
        mine = "RWA"[kind]
        for other in {"R": "WA", "W": "RA", "A": "RW"}[mine]:
            for slot in (0, 1):
                self._clash(
                    piece, self._slots.get((id(piece), other), [None, None])[slot], here, block, key, other, mine
                )
        slots = self._slots.setdefault((id(piece), mine), [None, None])
        first = slots[0]
        if first is None:
            first = slots[0] = np.full(piece.cells, -1, np.int64)
        empty = first[here] < 0
        first[here[empty][::-1]] = key[empty][::-1]  # of several lanes the first is kept
        foreign = first[here] >> (_THREAD_BITS + _SITE_BITS) != block
        if foreign.any():
            if mine == "W":
                self._clash(piece, first, here, block, key, "W", "W")
            second = slots[1]
            if second is None:
                second = slots[1] = np.full(piece.cells, -1, np.int64)
            foreign &= second[here] < 0
            second[here[foreign][::-1]] = key[foreign][::-1]

    def _clash(
        self, piece: Piece, slot: NDArray[np.int64] | None, here: Integers, block: Integers, key: Integers,
        other: str, mine: str,
    ) -> None:  # fmt: skip
        """Say a race between blocks if a slot holds another block's access of these elements."""
        if slot is None:
            return
        theirs = slot[here]
        bad = (theirs >= 0) & (theirs >> (_THREAD_BITS + _SITE_BITS) != block)
        if not bad.any():
            return
        sites, names = self.lanes.launch.program.sites, {"R": "read", "W": "write", "A": "atomic"}
        keys = np.stack([theirs[bad], key[bad]], axis=1)
        # one finding for each pair of places; the example is the lowest block's
        places = keys & (1 << _SITE_BITS) - 1
        _, firsts = np.unique(places, axis=0, return_index=True)
        for i in firsts:
            pair = [int(k) for k in keys[i]]
            blocks = [k >> (_THREAD_BITS + _SITE_BITS) for k in pair]
            threads = [k >> _SITE_BITS & (1 << _THREAD_BITS) - 1 for k in pair]
            places_ = [sites[k & (1 << _SITE_BITS) - 1] for k in pair]
            lines = [place.line for place in places_]
            cell = int(here[bad][i])
            array, index = self.lanes.cell_name(piece, cell)
            b = [sayings.dims(x, self.lanes.launch.grid) for x in blocks]
            t = [sayings.dims(x, self.lanes.launch.block) for x in threads]
            last = max(blocks)
            phase = int(self.lanes.phase[last - self.lanes.first])
            self.lanes.found(
                sayings.race_between_blocks(
                    self.lanes.launch.name, (names[other], names[mine]), (places_[0], places_[1]),
                    (t[0], t[1]), (b[0], b[1]),
                    array, index, (last, phase, sayings.RANKS["race"], min(lines), max(lines)),
                    self.lanes.launch.program.fences,
                )
            )  # fmt: skip

    def rewind(self, first: int, mark: dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_]]]) -> None:
        """Forget what blocks from a number on did to global memory; ``mark`` was made before them."""
        self._seen = mark
        for slots in self._slots.values():
            for slot in slots:
                if slot is not None:
                    slot[slot >= first << (_THREAD_BITS + _SITE_BITS)] = -1
