"""The engine of lanes: all threads of a chunk of blocks in step, one NumPy operation for all of them.

A kernel is rewritten once (:mod:`tilelab.simt.lanes_code`) into a Python function over arrays with one element a
lane; a mask says which lanes take part. Lanes of a warp are thereby in step, yet nothing is concluded from that:
races are found from the log of accesses between two barriers, as if every order were possible.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.limits import WARP
from tilelab.simt import sayings, tree
from tilelab.simt.endless import SETTLED
from tilelab.simt.errors import Finding
from tilelab.simt.lanes_findings import Findings
from tilelab.simt.lanes_global import GlobalMemory
from tilelab.simt.lanes_local import LocalMemory, LocalView
from tilelab.simt.lanes_memory import Place, View
from tilelab.simt.lanes_pieces import Entry, Piece
from tilelab.simt.ledger import Ledger
from tilelab.simt.masks import Mask, Value, minus, part
from tilelab.simt.runtime import (
    POISON,
    Argument,
    Launch,
    Memory,
    Stop,
    poisoned,
    strides_of,
)
from tilelab.simt.snapshots import MOST_SNAPSHOTS, Snapshot, contents
from tilelab.simt.types import Array, Scalar
from tilelab.simt.warps import first_stamp, warp_operation

#: Lanes up to which a round of a loop costs about as much as for one.
HEAVY = 1024
#: Bytes of remembered addresses at most; past it all are forgotten.
MEMORY_FOR_ADDRESSES = 192 << 20


class Lanes(Findings):
    """Runs chunks of blocks of one launch."""

    def __init__(self, launch: Launch, ledger: Ledger, places: list[Place], entry: Callable[..., Any]) -> None:
        self.launch, self.ledger, self.places, self.entry_point = launch, ledger, places, entry
        self.checks = launch.checks
        self.remembered = 0
        self.threads = launch.threads
        self.warps_per_block = -(-self.threads // WARP)
        self.blocks = 0
        self.globals = [self._global_piece(m) for m in launch.memories]
        self.memory = GlobalMemory(self)
        self.stops = []

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
        self.rounds = 0
        self.stops = []
        self.held = []
        for piece in (*self.shared_pieces.values(), *self.globals):
            piece.log, piece.pending = [], []
            piece.signature = []
        for piece in self.shared_pieces.values():
            piece.reset()
        for data in self.shared_data.values():
            data.view(np.uint8)[:] = POISON
        arguments = [self._argument(a) if isinstance(a, Argument) else a for a in self.launch.arguments]
        try:
            self.entry_point(self, None, *arguments)
        except Stop as stop:  # a race with an earlier block may have come first
            raise Stop(min([*self.stops, stop.finding], key=lambda f: f.order)) from None
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
        self.weight = -(-self.count // HEAVY)
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
        self.stamp = first_stamp(self)
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
            numbers = np.array([sayings.dims(int(b), grid)[axis] for b in linear])
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
            cell = self.launch.program.dynamic_cell()
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
        strides = strides_of(shape)
        base = self.block * (step // item)
        return View(
            self,
            self.shared_pieces[key],
            element,
            typed,
            0,
            shape,
            strides,
            alloc.name,
            base,
            self.launch.program.address(alloc),
        )

    def local(self, alloc: tree.Alloc, held: dict[Any, LocalView]) -> LocalView:
        """A local array: empty when its function is called, and the same each time the line is passed."""
        if alloc.key not in held:
            memory = LocalMemory(self, alloc.array.element, alloc.shape)
            held[alloc.key] = LocalView(memory, alloc.name, 0, alloc.shape, strides_of(alloc.shape))
        return held[alloc.key]

    def outer(self, name: str, value: NDArray[Any], kind: Array) -> View:
        """A constant array of the kernel's globals."""
        flat = np.ascontiguousarray(value)
        piece = Piece(self, name, "const", flat.size, flat.itemsize, False)
        strides = strides_of(flat.shape)
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
        requests, threads, wavefronts, parts, ways, sectors, used, least, meet, turns = entry.cost
        tally, times = self.ledger.tallies[site.number], entry.count
        tally.requests += requests * times
        tally.threads += threads * times
        tally.wavefronts += wavefronts * times
        tally.parts += parts * times
        tally.ways = max(tally.ways, ways)
        tally.sectors += sectors * times
        tally.used += used * times
        tally.least += least * times
        tally.meet = max(tally.meet, meet)
        tally.turns += turns * times

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

    def tick(self, fork: tree.Fork, outer: int | None, mask: Mask) -> None:
        """Count a round of a loop; too many end the launch."""
        self.rounds += 1
        if self.rounds * self.weight > self.launch.steps:
            block = self.first + self.first_lane(mask) // self.threads
            raise Stop(sayings.over_budget(self.launch.name, fork.line, outer, self.rounds - 1, block))

    def steady(self, fork: tree.Fork, outer: int | None, rounds: int, mask: Mask) -> None:
        """A loop in which nothing changes what its end depends on is endless for those who are still inside."""
        if rounds > SETTLED:
            lane = self.first_lane(mask)
            block = lane // self.threads
            raise Stop(
                sayings.endless(
                    self.launch.name, fork, outer, self.block_of(block), self.thread_of(lane), self.first + block,
                    int(self.phase[block]),
                )
            )  # fmt: skip

    def first_lane(self, mask: Mask) -> int:
        """The lowest lane of a mask."""
        return 0 if mask is None else int(mask.argmax())

    def given(self, value: Value, known: Mask, mask: Mask, name: str, line: int, assigned: tuple[int, ...]) -> Value:
        """The value of a variable, which every lane must have assigned to before."""
        missing = minus(part(mask, True)[0], known)
        if missing is not False:
            lane = self.first_lane(missing)
            block = lane // self.threads
            raise Stop(
                sayings.unassigned(
                    self.launch.name, name, line, assigned, self.block_of(block), self.thread_of(lane),
                    self.first + block, int(self.phase[block]),
                )
            )  # fmt: skip
        return value

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
        return sayings.diverged(
            self.launch.name, line, sayings.Away(ended=gone), self.thread_of(came), self.thread_of(missing),
            self.block_of(block), self.first + block, int(self.phase[block]), int(here[block].sum()), self.threads,
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
        away = blocks is not None and not blocks[block * self.threads]
        if away or len(self.ledger.snapshots) >= MOST_SNAPSHOTS:
            return
        snapshot = Snapshot(int(self.phase[block]), line)
        for key, piece in self.shared_pieces.items():
            cells = piece.cells // self.blocks
            view = next(v for v in self._shared_views.values() if v.piece is piece)
            low = block * cells
            touched: list[set[int]] = [set(), set()]
            for kind, at, mask, *_ in piece.log:
                here = self.block == block
                if mask is not None:
                    here = here & mask
                touched[kind != 0].update((at[here] - low).tolist())
            raw = self.shared_data[key].reshape(self.blocks, -1)[block]
            known = piece.written[low : low + cells]
            made = contents(raw, view.element, piece.extents, piece.cell, known, touched[1], touched[0])
            if made is not None:
                snapshot.arrays[piece.name] = made
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
        if self.value is self.start and mask is not False:
            self._steps(mask)
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
        lanes.tick(self.fork, self.outer, mask)
        return mask

    def _steps(self, mask: Mask) -> None:
        """Stop at the first lane whose step is 0."""
        lanes = self.lanes
        still, _ = part(mask, self.step == 0)
        if still is False:
            return
        lane = lanes.first_lane(still)
        block = lane // lanes.threads
        raise Stop(
            sayings.no_step(
                lanes.launch.name, self.fork, lanes.block_of(block), lanes.thread_of(lane), lanes.first + block,
                int(lanes.phase[block]),
            )
        )  # fmt: skip
