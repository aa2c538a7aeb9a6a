"""The engine of lanes: all threads of a chunk of blocks in step, one NumPy operation for all of them.

A kernel is rewritten once (:mod:`tilelab.simt.lanes_code`) into a Python function over arrays with one element a lane; a
mask says which lanes take part. Lanes of a warp are thereby in step, yet nothing is concluded from that: races are found
from the log of accesses between two barriers, as if every order were possible.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import races, tree
from tilelab.simt.errors import Dim3, Finding
from tilelab.simt.lanes_memory import Entry, Integers, LocalView, Piece, Place, View
from tilelab.simt.ledger import Contents, Ledger, Snapshot
from tilelab.simt.masks import Mask, Value, part
from tilelab.simt.runtime import (
    POISON,
    SNAPSHOT_CELLS,
    SNAPSHOTS,
    Argument,
    Launch,
    Memory,
    Stop,
    plain_numbers,
    poisoned,
)
from tilelab.simt.types import Array, Scalar
from tilelab.simt.warps import warp_operation

WARP = 32
#: Bytes of remembered addresses at most; past it all are forgotten.
MEMORY_FOR_ADDRESSES = 192 << 20
_THREAD_BITS, _SITE_BITS = 10, 12


class Lanes:
    """Runs chunks of blocks of one launch."""

    def __init__(self, launch: Launch, ledger: Ledger, places: list[Place], entry: Callable[..., Any]) -> None:
        self.launch, self.ledger, self.places, self.entry_point = launch, ledger, places, entry
        self.checks = launch.checks
        self.remembered = 0
        self.syncs_warps = launch.program.syncs_warps
        self.threads = launch.threads
        self.warps_per_block = -(-self.threads // WARP)
        self.blocks = 0
        self.globals = [self._global_piece(m) for m in launch.memories]
        self._slots: dict[tuple[int, str], list[NDArray[np.int64] | None]] = {}
        self._seen: dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
        self.stops: list[Finding] = []

    def _global_piece(self, memory: Memory) -> Piece:
        return Piece(self, memory.name, "global", memory.data.size, memory.data.itemsize, memory.written)

    # ---- a chunk
    def run(self, first: int, count: int) -> None:
        """Run ``count`` blocks from linear number ``first`` on.

        Raises
        ------
        Stop
            With the finding that ends the launch.
        NeedsThreads
            The kernel does what lanes cannot.
        """
        if count != self.blocks:
            self._layout(count)
        self.first = first
        self._specials()
        self.phase = np.zeros(count, np.int64)
        self.last = np.zeros(count, np.int64)
        self.steps = 0
        self.stops = []
        self.held: list[tuple[int, Finding]] = []
        for piece in (*self.shared_pieces.values(), *self.globals):
            piece.log, piece.pending = [], []
            piece.signature = []
        for piece in self.shared_pieces.values():
            piece.reset()
        for data in self.shared_data.values():
            data.view(np.uint8)[:] = POISON
        arguments = [self._argument(a) if isinstance(a, Argument) else a for a in self.launch.arguments]
        self.entry_point(self, None, *arguments)
        if self.checks:
            self._settle(None, None)
            for place in self.places:
                for entry in place.known.values():
                    if entry.count:
                        self.charge(place.site, entry)
                        entry.count = 0

    def _layout(self, blocks: int) -> None:
        """Arrays that depend on the number of blocks in a chunk."""
        self.forget()
        threads = self.threads
        self.blocks, self.count = blocks, blocks * threads
        self.every = np.arange(self.count)
        self.lane = self.every.astype(np.int32)
        self.thread = np.tile(np.arange(threads), blocks)
        self.block = np.repeat(np.arange(blocks), threads)
        self.warp = (self.block * self.warps_per_block + self.thread // WARP).astype(np.int32)
        self.whole = threads % WARP == 0
        self.warps = blocks * self.warps_per_block
        if not self.whole:
            self.slot = self.warp.astype(np.int64) * WARP + self.thread % WARP
            exists = np.zeros(self.warps * WARP, bool)
            exists[self.slot] = True
            self.exists = exists.reshape(-1, WARP)
        bx, by, _ = self.launch.block
        self._threads = [
            self.thread % bx if self.launch.block[0] > 1 else 0,
            self.thread // bx % by if self.launch.block[1] > 1 else 0,
            self.thread // (bx * by) if self.launch.block[2] > 1 else 0,
        ]
        self.epoch = np.zeros(self.count, np.int64)
        self.shared_pieces: dict[Any, Piece] = {}
        self.shared_data: dict[Any, NDArray[Any]] = {}
        self._shared_views: dict[Any, View] = {}
        self._arguments: dict[int, View] = {}
        self._populations: dict[int, tuple[Mask, int, int]] = {}

    def _specials(self) -> None:
        grid, block = self.launch.grid, self.launch.block
        linear = self.first + np.arange(self.blocks)
        self.special: dict[str, Value] = {"laneid": self.thread % WARP}
        for axis, name in enumerate("xyz"):
            numbers = np.array([races.dims(int(b), grid)[axis] for b in linear])
            same = bool((numbers == numbers[0]).all())
            where: Value = int(numbers[0]) if same else np.repeat(numbers, self.threads)
            self.special[f"threadIdx.{name}"] = self._threads[axis]
            self.special[f"blockIdx.{name}"] = where
            self.special[f"blockDim.{name}"] = block[axis]
            self.special[f"gridDim.{name}"] = grid[axis]
            self.special[f"grid.{name}"] = where * block[axis] + self._threads[axis]
            self.special[f"gridsize.{name}"] = block[axis] * grid[axis]
        self.special["lanemask_lt"] = ((1 << (self.thread % WARP)) - 1).astype(np.uint64)

    def _argument(self, argument: Argument) -> View:
        view = self._arguments.get(id(argument))
        if view is None:
            memory = argument.memory
            piece = self.globals[next(i for i, m in enumerate(self.launch.memories) if m is memory)]
            view = self._arguments[id(argument)] = View(
                self, piece, argument.kind.element, memory.data, argument.offset, argument.shape, argument.strides,
                argument.name, None, memory.address,
            )  # fmt: skip
        return view

    def shared(self, alloc: tree.Alloc) -> View:
        """A shared array: one for each block, the same each time the line is passed."""
        view = self._shared_views.get(alloc.key)
        if view is None:
            view = self._shared_views[alloc.key] = self._allocate(alloc)
        return view

    def _allocate(self, alloc: tree.Alloc) -> View:
        element = alloc.array.element
        item = element.dtype.itemsize
        dynamic = not alloc.shape
        key = "dynamic" if dynamic else alloc.key
        if dynamic:
            whole = [a.array.element for a in self.launch.program.allocations.values() if not a.shape]
            cell = min(e.base.dtype.itemsize if not isinstance(e, Scalar) else e.dtype.itemsize for e in whole)
            shape: tuple[int, ...] = (self.launch.dynamic // item,)
            step = -(-self.launch.dynamic // 16) * 16
        else:
            cell, shape = (
                (element.dtype.itemsize if isinstance(element, Scalar) else element.base.dtype.itemsize),
                alloc.shape,
            )
            step = int(np.prod(shape)) * item
        if key not in self.shared_pieces:
            self.shared_pieces[key] = piece = Piece(
                self, alloc.name, "shared", self.blocks * step // cell, cell, True
            )  # fmt: skip
            piece.extents, piece.item = shape, item
            self.shared_data[key] = poisoned(self.blocks * step, np.dtype(np.uint8))
        data = self.shared_data[key]
        typed = data.view(element.dtype if isinstance(element, Scalar) else element.base.dtype)
        if not isinstance(element, Scalar):
            typed = typed.reshape(-1, element.count)
        strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
        base = self.block * (step // item)
        return View(
            self, self.shared_pieces[key], element, typed, 0, shape, strides, alloc.name, base, self._address(alloc)
        )

    def _address(self, alloc: tree.Alloc) -> int:
        """Byte address of a shared array in its block: static arrays one after another, then dynamic memory."""
        address = 0
        for other in self.launch.program.allocations.values():
            if other.key == alloc.key:
                break
            if other.shape:
                address += -(-int(np.prod(other.shape)) * other.array.element.dtype.itemsize // 16) * 16
        return address

    def local(self, alloc: tree.Alloc) -> LocalView:
        """A local array: empty each time the line is passed."""
        return LocalView(self, alloc.array.element, alloc.shape, alloc.name)

    def outer(self, name: str, value: NDArray[Any], kind: Array) -> View:
        """A constant array of the kernel's globals."""
        flat = np.ascontiguousarray(value)
        piece = Piece(self, name, "const", flat.size, flat.itemsize, False)
        strides = tuple(int(np.prod(flat.shape[axis + 1 :])) for axis in range(flat.ndim))
        return View(self, piece, kind.element, flat.reshape(-1), 0, flat.shape, strides, name)

    # ---- warps
    def rows(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Lane values as one row for each warp, padded where a block ends within a warp."""
        if self.whole:
            return values.reshape(-1, WARP)
        out = np.full(self.warps * WARP, fill, values.dtype)
        out[self.slot] = values
        return out.reshape(-1, WARP)

    def unrows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The way back."""
        flat = rows.reshape(-1)
        return flat if self.whole else flat[self.slot]

    def active(self, mask: Mask) -> NDArray[np.bool_] | None:
        """Which lanes of each warp take part; ``None`` for all."""
        if mask is None:
            return None if self.whole else self.exists
        return self.rows(mask, False)

    def population(self, mask: Mask) -> tuple[int, int]:
        """Threads in a mask, and warps that have one."""
        if mask is None:
            return self.count, self.warps
        if mask is False:
            return 0, 0
        known = self._populations.get(id(mask))
        if known is not None and known[0] is mask:
            return known[1], known[2]
        threads, warps = int(np.count_nonzero(mask)), int(self.rows(mask, False).any(axis=1).sum())
        if len(self._populations) > 8:
            self._populations.clear()
        self._populations[id(mask)] = (mask, threads, warps)
        return threads, warps

    def example(self, rows: NDArray[Any], active: NDArray[np.bool_] | None, warp: int) -> tuple[int | None, ...]:
        """Addresses of one warp, ``None`` for an idle lane."""
        on = [True] * WARP if active is None else active[warp].tolist()
        return tuple(a if o else None for a, o in zip(rows[warp].tolist(), on, strict=True))

    def first_warp(self, mask: Mask) -> list[bool]:
        """Lanes of the first warp that takes part."""
        active = self.active(mask)
        if active is None:
            return [True] * WARP
        on: list[bool] = active[int(active.any(axis=1).argmax())].tolist()
        return on

    def warp_operation(self, name: str, mask: Mask, args: tuple[Value, ...], line: int) -> Value:
        """A shuffle, vote, match, ``syncwarp`` or ``activemask``."""
        return warp_operation(self, name, mask, args, line)

    # ---- counting
    def passed(self, run: int, mask: Mask) -> None:
        """Count the threads that come by."""
        self.ledger.runs[run] += self.count if mask is None else self.population(mask)[0]

    def split(self, mask: Mask, condition: Value, fork: tree.Fork) -> tuple[Mask, Mask]:
        """Lanes that take a branch, and those that do not."""
        then, other = part(mask, condition)
        if self.checks:
            counts = self.ledger.forks[fork.number]
            warps = self.population(mask)[1]
            counts[0] += warps
            if then is not False and other is not False:
                counts[1] += self.population(then)[1] + self.population(other)[1] - warps
        return then, other

    def charge(self, site: tree.Site, entry: Entry) -> None:
        """Add what an access cost to its place."""
        assert entry.cost is not None
        requests, threads, wavefronts, phases, ways, sectors, used = entry.cost
        tally, times = self.ledger.tallies[site.number], entry.count
        tally.requests += requests * times
        tally.threads += threads * times
        tally.wavefronts += wavefronts * times
        tally.phases += phases * times
        tally.ways = max(tally.ways, ways)
        tally.sectors += sectors * times
        tally.used += used * times

    def remember(self, place: Place, key: tuple[int, ...], entry: Entry) -> None:
        """Keep an access's addresses, within the bytes allowed."""
        self.remembered += entry.at.nbytes * 2
        if self.remembered > MEMORY_FOR_ADDRESSES:
            self.forget()
            self.remembered = entry.at.nbytes * 2
        place.known[key] = entry

    def forget(self) -> None:
        """Drop all remembered addresses, and what was concluded from them."""
        for place in self.places:
            for entry in place.known.values():
                if entry.count and entry.cost is not None:
                    self.charge(place.site, entry)
            place.known.clear()
        self.remembered = 0
        for piece in getattr(self, "shared_pieces", {}).values():
            piece.clean.clear()
            piece.signature = None

    def tick(self, line: int, outer: int | None) -> None:
        """Count a round of a loop; too many end the launch."""
        self.steps += 1
        if self.steps > self.launch.steps:
            raise Stop(over_budget(self.launch.name, line, outer, self.launch.steps, self.first))

    # ---- findings
    def block_of(self, block: int) -> Dim3:
        """Coordinates of a block of the chunk."""
        return races.dims(self.first + block, self.launch.grid)

    def thread_of(self, lane: int) -> Dim3:
        """Coordinates of a lane's thread."""
        return races.dims(lane % self.threads, self.launch.block)

    def found(self, finding: Finding) -> None:
        """Note a finding; an error ends the launch when the phase is settled, unless all are collected."""
        if finding.severity == "warning" or self.launch.collect:
            self.ledger.add(finding)
        else:
            self.stops.append(finding)

    def within(
        self, view: View | LocalView, index: Value, extent: Value, axis: int, mask: Mask, site: tree.Site
    ) -> None:
        """Stop at the first lane whose index is outside its array."""
        bad = (index < 0) | (index >= extent)
        if not isinstance(bad, np.ndarray):
            if not bad:
                return
            bad = np.full(self.count, True)
        if mask is not None:
            bad = bad & mask
        if not bad.any():
            return
        lane = int(bad.argmax())
        block = lane // self.threads
        value = int(index[lane]) if isinstance(index, np.ndarray) else int(index)
        size = int(extent[lane]) if isinstance(extent, np.ndarray) else int(extent)
        raise Stop(
            races.out_of_bounds(
                self.launch.name, site, view.name, axis, value, size, self.block_of(block), self.thread_of(lane),
                self.first + block, int(self.phase[block]),
            )
        )  # fmt: skip

    def races(self, piece: Piece, log: list[Any], cells: Integers) -> None:
        """Say the races on some cells of a piece."""
        accesses = piece.accesses(log, cells[:512])
        for block in sorted({a.thread // self.threads for a in accesses}):
            own = [a for a in accesses if a.thread // self.threads == block]
            for pair in races.racing_pairs(own):
                array, index = self.cell_name(piece, pair.first.cell)
                last = int(self.last[block])
                thread = block * self.threads
                pair = races.Pair(_in_block(pair.first, thread), _in_block(pair.second, thread), pair.same_value)
                self.found(
                    races.race_in_block(
                        self.launch.name, pair, self.launch.program.sites, array, piece.space, index,
                        self.block_of(block), self.launch.block, self.first + block, int(self.phase[block]),
                        (last or None, self.closing),
                    )
                )  # fmt: skip

    def cell_name(self, piece: Piece, cell: int) -> tuple[str, tuple[int, ...]]:
        """The array and index that a cell of a piece is called by."""
        if piece.space == "shared":
            cell %= piece.cells // self.blocks
            return piece.name, races.coordinates(cell, piece.extents) if piece.item == piece.cell else (cell,)
        for argument in self.launch.arguments:
            if isinstance(argument, Argument) and argument.memory.name == piece.name:
                return argument.name, index_in(argument, cell)
        return piece.name, (cell,)

    def unwritten(self, piece: Piece, racy: Integers | None, blocks: Mask) -> None:
        """Say reads of shared memory that nobody wrote, but for cells that race anyway."""
        pending, piece.pending = piece.pending, []
        for cells, lanes, site, view in pending:
            if blocks is not None:
                now = blocks[lanes]
                if not now.all():
                    piece.pending.append((cells[~now], lanes[~now], site, view))
                cells, lanes = cells[now], lanes[now]
            if racy is not None:
                alone = ~np.isin(cells, racy)
                cells, lanes = cells[alone], lanes[alone]
            if len(lanes):
                lane = int(lanes[0])
                block = lane // self.threads
                array, index = self.cell_name(piece, int(cells[0]))
                self.found(
                    races.uninitialised(
                        self.launch.name, site.line, array, "shared", index, self.block_of(block),
                        self.thread_of(lane), self.first + block, int(self.phase[block]),
                    )
                )  # fmt: skip

    def unwritten_local(self, view: LocalView, element: int, mask: Mask, site: tree.Site) -> None:
        """Say a read of a local array that its thread never wrote."""
        lane = 0 if mask is None else int(mask.argmax())
        block = lane // self.threads
        finding = races.uninitialised(
            self.launch.name, site.line, view.name, "local", races.coordinates(element, view.shape),
            self.block_of(block), self.thread_of(lane), self.first + block, int(self.phase[block]),
        )  # fmt: skip
        self.held.append((block, finding))

    # ---- global memory
    def seen(self, piece: Piece) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which elements of a global piece were read, and which written."""
        known = self._seen.get(id(piece))
        if known is None:
            known = self._seen[id(piece)] = (np.zeros(piece.cells, bool), np.zeros(piece.cells, bool))
        return known

    def touch(self, piece: Piece, at: Integers, mask: Mask, kind: int, site: tree.Site) -> None:
        """Note which elements are touched, and look for races between blocks."""
        read, written = self.seen(piece)
        here = at if mask is None else at[mask]
        if kind != 1:
            read[here] = True
        if kind != 0:
            written[here] = True
        if not piece.logged or self.launch.blocks == 1:
            return
        block = (self.first + (self.block if mask is None else self.block[mask])).astype(np.int64)
        thread = self.thread if mask is None else self.thread[mask]
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
        first[here[empty]] = key[empty]
        foreign = first[here] >> (_THREAD_BITS + _SITE_BITS) != block
        if foreign.any():
            if mine == "W":
                self._clash(piece, first, here, block, key, "W", "W")
            second = slots[1]
            if second is None:
                second = slots[1] = np.full(piece.cells, -1, np.int64)
            second[here[foreign]] = key[foreign]

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
        sites, names = self.launch.program.sites, {"R": "read", "W": "write", "A": "atomic"}
        keys = np.stack([theirs[bad], key[bad]], axis=1)
        # one finding for each pair of places; the example is the lowest block's
        places = keys & (1 << _SITE_BITS) - 1
        _, firsts = np.unique(places, axis=0, return_index=True)
        for i in firsts:
            pair = [int(k) for k in keys[i]]
            blocks = [k >> (_THREAD_BITS + _SITE_BITS) for k in pair]
            threads = [k >> _SITE_BITS & (1 << _THREAD_BITS) - 1 for k in pair]
            lines = [sites[k & (1 << _SITE_BITS) - 1].line for k in pair]
            cell = int(here[bad][i])
            array, index = self.cell_name(piece, cell)
            b = [races.dims(x, self.launch.grid) for x in blocks]
            t = [races.dims(x, self.launch.block) for x in threads]
            last = max(blocks)
            phase = int(self.phase[last - self.first])
            self.found(
                races.race_between_blocks(
                    self.launch.name, (names[other], names[mine]), (lines[0], lines[1]), (t[0], t[1]), (b[0], b[1]),
                    array, index, (last, phase, races.RANKS["race"], min(lines), max(lines)),
                )
            )  # fmt: skip

    def touched(self) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """For each piece of global memory, which elements were read and which written."""
        return [self.seen(piece) for piece in self.globals]

    def rewind(self, first: int) -> None:
        """Forget what blocks from a number on did to global memory's slots."""
        for slots in self._slots.values():
            for slot in slots:
                if slot is not None:
                    slot[slot >= first << (_THREAD_BITS + _SITE_BITS)] = -1

    # ---- barriers
    def barrier(self, mask: Mask, returned: Mask, line: int, op: str, predicate: Value) -> Value:
        """All threads of a block wait for each other."""
        if self.checks:
            blocks: Mask = None
            if mask is not None:
                here = mask.reshape(self.blocks, self.threads)
                count = here.sum(axis=1)
                partly = (count > 0) & (count < self.threads)
                if partly.any():
                    raise Stop(self._diverged(int(partly.argmax()), here, returned, line))
                full = count == self.threads
                blocks = None if full.all() else np.repeat(full, self.threads)
            self._settle(blocks, line)
        if not op:
            return None
        true = np.broadcast_to(np.asarray(predicate, bool), self.count)
        if mask is not None:
            true = true & mask
        counts = true.reshape(self.blocks, self.threads).sum(axis=1)
        wanted = self.threads if mask is None else mask.reshape(self.blocks, self.threads).sum(axis=1)
        result = {"count": counts, "and": counts == wanted, "or": counts > 0}[op]
        return np.repeat(result.astype(np.int64), self.threads)

    def _diverged(self, block: int, here: NDArray[np.bool_], returned: Mask, line: int) -> Finding:
        came, missing = int(here[block].argmax()), int((~here[block]).argmax())
        lane = block * self.threads + missing
        gone = returned is None or (returned is not False and bool(returned[lane]))
        return diverged(
            self.launch.name, line, None, self.thread_of(came), self.thread_of(missing), gone, self.block_of(block),
            self.first + block, int(self.phase[block]), int(here[block].sum()), self.threads,
        )  # fmt: skip

    def _settle(self, blocks: Mask, line: int | None) -> None:
        """End a phase: races, unwritten reads, the watched block's memory."""
        self.closing = line
        self._watch(blocks, line)
        for piece in (*self.shared_pieces.values(), *self.globals):
            piece.settle(blocks)
        if self.held:
            for block, finding in self.held:
                if blocks is None or blocks[block * self.threads]:
                    self.found(finding)
            self.held = [h for h in self.held if blocks is not None and not blocks[h[0] * self.threads]]
        if self.stops:
            raise Stop(min(self.stops, key=lambda f: f.order))
        if line is not None:
            which = np.ones(self.blocks, bool) if blocks is None else blocks[:: self.threads]
            self.phase[which] += 1
            self.last[which] = line
            self.ledger.barriers += int(np.count_nonzero(which))

    def _watch(self, blocks: Mask, line: int | None) -> None:
        watched = self.launch.watch
        if watched is None or not self.first <= watched < self.first + self.blocks:
            return
        block = watched - self.first
        if blocks is not None and not blocks[block * self.threads] or len(self.ledger.snapshots) >= SNAPSHOTS:
            return
        snapshot = Snapshot(int(self.phase[block]), line)
        for key, piece in self.shared_pieces.items():
            cells = piece.cells // self.blocks
            if cells > SNAPSHOT_CELLS:
                continue
            view = next(v for v in self._shared_views.values() if v.piece is piece)
            data = self.shared_data[key].view(view.data.dtype)
            low, high = block * cells, (block + 1) * cells
            values = plain_numbers(data[low:high])
            known = piece.written[low:high].tolist()
            touched: list[set[int]] = [set(), set()]
            for kind, at, mask, *_ in piece.log:
                here = self.block == block
                if mask is not None:
                    here = here & mask
                touched[kind != 0].update((at[here] - low).tolist())
            shape = piece.extents if int(np.prod(piece.extents)) == cells else (cells,)
            snapshot.arrays[piece.name] = Contents(
                shape,
                [v if k else None for v, k in zip(values, known, strict=True)],
                sorted(touched[1]),
                sorted(touched[0]),
            )
        self.ledger.snapshots.append(snapshot)


class Range:
    """The rounds of a ``for`` loop, for all lanes; lanes may have different ends."""

    __slots__ = ("fork", "lanes", "outer", "start", "step", "stop", "uniform", "value")

    def __init__(
        self, lanes: Lanes, start: Value, stop: Value, step: Value, fork: tree.Fork, outer: int | None
    ) -> None:
        self.lanes, self.stop, self.step, self.fork, self.outer = lanes, stop, step, fork, outer
        self.start: Value = start
        self.value: Value = None
        self.uniform = not any(isinstance(v, np.ndarray) for v in (start, stop, step))

    def next(self, mask: Mask) -> Mask:
        """Lanes that go another round; ``value`` is then the loop variable."""
        self.value = self.start if self.value is None else self.value + self.step
        lanes = self.lanes
        if self.uniform:
            if lanes.checks:
                lanes.ledger.forks[self.fork.number][0] += lanes.population(mask)[1]
            goes_on = self.value < self.stop if self.step > 0 else self.value > self.stop
            if not goes_on:
                return False
        else:
            up = np.asarray(self.step) > 0
            mask, _ = lanes.split(mask, np.where(up, self.value < self.stop, self.value > self.stop), self.fork)
            if mask is False:
                return False
        lanes.tick(self.fork.line, self.outer)
        return mask


def _in_block(access: races.Access, first: int) -> races.Access:
    return races.Access(
        access.cell,
        access.thread - first,
        access.warp,
        access.epoch,
        access.site,
        access.kind,
        access.order,
        access.value,
    )


def index_in(argument: Argument, cell: int) -> tuple[int, ...]:
    """The index by which an argument calls an element of its memory, if it can be told."""
    rest = cell - argument.offset
    index = []
    for extent, stride in sorted(zip(argument.shape, argument.strides, strict=True), key=lambda p: -p[1]):
        if stride <= 0 or extent == 0:
            return (cell,)
        index.append(min(rest // stride, extent - 1))
        rest -= index[-1] * stride
    if rest:
        return (cell,)
    order = sorted(range(len(index)), key=lambda axis: -argument.strides[axis])
    out = [0] * len(index)
    for place, axis in enumerate(order):
        out[axis] = index[place]
    return tuple(out)


def over_budget(kernel: str, line: int, outer: int | None, steps: int, block: int) -> Finding:
    """Say that a loop did not end."""
    inside = f" (inside the loop of line {outer})" if outer is not None else ""
    return Finding(
        kind="budget", kernel=kernel, lines=(line,) if outer is None else (line, outer),
        message=f"the loop of line {line}{inside} was still running after {steps} rounds.",
        hint="See that its condition becomes false for every thread; if it is meant to run that long, "
        "cuda.simulate(kernel, steps=...) gives it more.",
        order=(block, 0, races.RANKS["budget"], line),
    )  # fmt: skip


def diverged(
    kernel: str, line: int, other: int | None, came: Dim3, missing: Dim3, returned: bool, block: Dim3, linear: int,
    phase: int, count: int, threads: int,
) -> Finding:  # fmt: skip
    """Say a barrier that part of a block reaches. ``other`` is the barrier where the missing thread waits instead."""
    if other is not None:
        where = f"waits at the barrier of line {other}"
        hint = "Let all threads meet at one barrier: move it out of the branches."
    elif returned:
        where = "has returned"
        hint = "Let every thread reach the barrier: guard the loads and stores instead of returning early."
    else:
        where = "does not come there"
        hint = (
            "Let every thread reach the barrier: move it out of the condition, and guard the loads and stores instead."
        )
    return Finding(
        kind="divergence", kernel=kernel, lines=(line,) if other is None else (line, other),
        message=f"the barrier of line {line} is reached by {count} of {threads} threads of block {block}, phase {phase}: "
        f"thread {came} waits, thread {missing} {where}.",
        hint=hint, block=block, threads=(came, missing), phase=phase,
        order=(linear, phase, races.RANKS["divergence"], line),
    )  # fmt: skip
