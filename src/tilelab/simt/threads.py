"""The plain engine: one Python generator for each thread, run in turn between barriers.

It is slow and simple. It runs what lanes cannot (loops that wait for another thread), runs threads and blocks in a random
order where a seed asks for it, tells where each thread stood when a block fails, and is what the lanes are tested against.
"""

from collections.abc import Generator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.banks import bank_access
from tilelab.hardware.sectors import sector_access
from tilelab.simt import races, tree
from tilelab.simt.errors import Finding
from tilelab.simt.lanes import diverged, index_in, over_budget
from tilelab.simt.ledger import Contents, Ledger, Snapshot
from tilelab.simt.runtime import POISON, SNAPSHOT_CELLS, SNAPSHOTS, Argument, Launch, Stop, plain_numbers
from tilelab.simt.threads_memory import Cells, Element, Fault, LocalElement, Logged, Path
from tilelab.simt.types import Array, Scalar
from tilelab.simt.warps import not_all, source_lane

WARP = 32
_banks, _sectors = lru_cache(4096)(bank_access), lru_cache(4096)(sector_access)
Event = tuple[Any, ...]


class Thread:
    """One thread: what its code asks of the engine."""

    def __init__(self, engine: "Threads", number: int) -> None:
        launch = engine.launch
        self.engine, self.number, self.kernel = engine, number, launch.name
        self.checks = launch.checks
        self.block, self.linear_block = engine.block, engine.linear_block
        self.coordinates = races.dims(number, launch.block)
        self.epoch = self.phase = self.steps = 0
        self.log: list[Logged] = []
        self.forks: list[tuple[tree.Fork, Path, bool]] = []
        self.held: list[Finding] = []
        self.special: dict[str, int] = {"laneid": number % WARP, "lanemask_lt": (1 << number % WARP) - 1}
        for axis, name in enumerate("xyz"):
            self.special[f"threadIdx.{name}"] = self.coordinates[axis]
            self.special[f"blockIdx.{name}"] = self.block[axis]
            self.special[f"blockDim.{name}"] = launch.block[axis]
            self.special[f"gridDim.{name}"] = launch.grid[axis]
            self.special[f"grid.{name}"] = self.block[axis] * launch.block[axis] + self.coordinates[axis]
            self.special[f"gridsize.{name}"] = launch.block[axis] * launch.grid[axis]

    def passed(self, run: int) -> None:
        """Count arithmetic."""
        self.engine.ledger.runs[run] += 1

    def fork(self, fork: tree.Fork, path: Path, taken: bool) -> bool:
        """Note which way it went."""
        if self.checks:
            self.forks.append((fork, path, bool(taken)))
        return taken

    def tick(self, line: int, outer: int | None) -> None:
        """Count a round of a loop."""
        self.steps += 1
        if self.steps > self.engine.launch.steps:
            raise Fault(over_budget(self.kernel, line, outer, self.engine.launch.steps, self.linear_block))

    def shared(self, alloc: tree.Alloc) -> Element:
        """A shared array of the block."""
        return self.engine.shared(alloc)

    def local(self, alloc: tree.Alloc) -> LocalElement:
        """A local array, empty."""
        return LocalElement(alloc)

    def outer(self, name: str, value: NDArray[Any], kind: Array) -> Element:
        """A constant array of the kernel's globals."""
        flat = np.ascontiguousarray(value)
        cells = Cells(name, "const", flat.itemsize, flat.shape, flat.itemsize, False)
        strides = tuple(int(np.prod(flat.shape[axis + 1 :])) for axis in range(flat.ndim))
        return Element(cells, kind.element, flat.reshape(-1), 0, flat.shape, strides, name, 0)

    def unwritten(self, cells: Cells, at: int, site: tree.Site) -> None:
        """Note a read of its own memory that it never wrote."""
        self.held.append(
            races.uninitialised(
                self.kernel, site.line, cells.name, "local", races.coordinates(at, cells.extents), self.block,
                self.coordinates, self.linear_block, self.phase,
            )
        )  # fmt: skip


class Threads:
    """Runs blocks of one launch, thread by thread."""

    def __init__(self, launch: Launch, ledger: Ledger, compiled: tuple[Any, str]) -> None:
        self.launch, self.ledger = launch, ledger
        self.entry = compiled[0]
        self.seen = [(np.zeros(m.data.size, bool), np.zeros(m.data.size, bool)) for m in launch.memories]
        self.touched: dict[tuple[int, int, str], list[tuple[int, int, tree.Site]]] = {}
        self.random = None if launch.seed is None else np.random.default_rng(launch.seed)
        self.globals = []
        for i, memory in enumerate(launch.memories):
            item = memory.data.itemsize
            cells = Cells(memory.name, "global", item, (), item, memory.written)
            cells.memory = i
            self.globals.append(cells)

    # ---- a block
    def run(self, linear: int) -> None:
        """Run one block.

        Raises
        ------
        Stop
            With the finding that ends the launch.
        """
        self.linear_block, self.block = linear, races.dims(linear, self.launch.grid)
        self.phase, self.last = 0, 0
        self._shared: dict[Any, Element] = {}
        self._pieces: dict[Any, tuple[Cells, NDArray[Any]]] = {}
        arguments = [self._argument(a) if isinstance(a, Argument) else a for a in self.launch.arguments]
        self.threads = [Thread(self, n) for n in range(self.launch.threads)]
        live: dict[int, Generator[Event, Any, Any]] = {t.number: self.entry(t, (), *arguments) for t in self.threads}
        waiting: dict[int, Event] = {}
        answers: dict[int, Any] = {}
        ready = self._order(list(live))
        faults: list[Finding] = []
        while True:
            for number in ready:
                try:
                    waiting[number] = live[number].send(answers.pop(number, None))
                except StopIteration:
                    del live[number]
                except Fault as fault:
                    del live[number]
                    faults.append(fault.finding)
            ready = [n for n, event in waiting.items() if event[0] == "turn"]
            if faults and faults[-1].kind == "budget":
                raise Stop(faults[-1])
            if not ready and not faults:
                answers = self._warps(live, waiting, faults)
                ready = list(answers)
            if ready:
                for number in ready:
                    del waiting[number]
                ready = self._order(ready)
                continue
            closing = self._meet(live, waiting, faults)
            self._settle(closing, faults)
            if not live:
                return
            answers = self._barrier(waiting)
            waiting = {}
            ready = self._order(list(live))

    def _order(self, numbers: list[int]) -> list[int]:
        if self.random is None:
            return sorted(numbers)
        return [numbers[i] for i in self.random.permutation(len(numbers))]

    def _argument(self, argument: Argument) -> Element:
        memory = argument.memory
        cells = self.globals[next(i for i, m in enumerate(self.launch.memories) if m is memory)]
        return Element(
            cells, argument.kind.element, memory.data, argument.offset, argument.shape, argument.strides, argument.name,
            memory.address,
        )  # fmt: skip

    def shared(self, alloc: tree.Alloc) -> Element:
        """A shared array of this block."""
        if alloc.key not in self._shared:
            self._shared[alloc.key] = self._allocate(alloc)
        return self._shared[alloc.key]

    def _allocate(self, alloc: tree.Alloc) -> Element:
        element = alloc.array.element
        base = element if isinstance(element, Scalar) else element.base
        allocations = list(self.launch.program.allocations.values())
        key: Any = alloc.key if alloc.shape else "dynamic"
        shape = alloc.shape or (self.launch.dynamic // element.dtype.itemsize,)
        size = int(np.prod(shape)) * element.dtype.itemsize if alloc.shape else -(-self.launch.dynamic // 16) * 16
        if key not in self._pieces:
            kinds = [a.array.element for a in allocations if not a.shape] if not alloc.shape else [element]
            cell = min((k if isinstance(k, Scalar) else k.base).dtype.itemsize for k in kinds)
            cells = Cells(alloc.name, "shared", cell, shape, element.dtype.itemsize, True)
            self._pieces[key] = cells, np.full(size, POISON, np.uint8)
        cells, data = self._pieces[key]
        typed = data.view(base.dtype)
        if not isinstance(element, Scalar):
            typed = typed.reshape(-1, element.count)
        address = 0
        for other in allocations:
            if other.key == alloc.key:
                break
            if other.shape:
                address += -(-int(np.prod(other.shape)) * other.array.element.dtype.itemsize // 16) * 16
        strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
        return Element(cells, element, typed, 0, shape, strides, alloc.name, address)

    # ---- waiting
    def _meet(self, live: dict[int, Any], waiting: dict[int, Event], faults: list[Finding]) -> int | None:
        """The barrier at which the block stands; that not all threads do is a fault."""
        if not waiting:
            return None
        first = min(waiting, key=lambda n: (waiting[n][-1], n))
        here = [n for n in waiting if waiting[n][0] == "barrier" and waiting[n][-1] == waiting[first][-1]]
        line: int = waiting[first][1]
        if len(here) < self.launch.threads and not faults and self.launch.checks:
            missing = next(n for n in range(self.launch.threads) if n not in here)
            other = waiting[missing][1] if missing in waiting else None
            faults.append(
                diverged(
                    self.launch.name, line, other, self.threads[here[0]].coordinates, self.threads[missing].coordinates,
                    missing not in waiting, self.block, self.linear_block, self.phase, len(here), self.launch.threads,
                )
            )  # fmt: skip
        return line

    def _barrier(self, waiting: dict[int, Event]) -> dict[int, Any]:
        """What each thread gets from the barrier."""
        true = sum(bool(event[3]) for event in waiting.values())
        result = {"": None, "count": true, "and": int(true == len(waiting)), "or": int(true > 0)}
        return {number: result[event[2]] for number, event in waiting.items()}

    def _warps(self, live: dict[int, Any], waiting: dict[int, Event], faults: list[Finding]) -> dict[int, Any]:
        """Execute, for each warp, the earliest warp instruction whose lanes have all come."""
        answers: dict[int, Any] = {}
        for start in range(0, self.launch.threads, WARP):
            lanes = range(start, min(start + WARP, self.launch.threads))
            groups: dict[Path, list[int]] = {}
            for n in lanes:
                if n in waiting and waiting[n][0] == "warp":
                    groups.setdefault(waiting[n][-1], []).append(n)
            if not groups:
                continue
            problems = []
            for path in sorted(groups):
                problem = self._incomplete(groups[path], waiting, lanes)
                if problem is None:
                    answers |= self._execute(groups[path], waiting)
                    break
                problems.append(problem)
            else:
                faults.append(problems[0])
        return answers

    def _incomplete(self, group: list[int], waiting: dict[int, Event], lanes: range) -> Finding | None:
        _, line, name, args, _ = waiting[group[0]]
        if name == "activemask" or not self.launch.checks:
            return None
        why, who = "", 0
        for n in group:
            named = waiting[n][3][0]
            if not named >> (n % WARP) & 1:
                who, why = n, "is not named in its own mask"
                break
            absent = [m for m in lanes if named >> (m % WARP) & 1 and m not in group]
            if absent:
                who, why = absent[0], "is named in its mask but does not come there"
                break
            if name.startswith("shfl"):
                source = int(source_lane(name, n % WARP, int(waiting[n][3][2])))
                if lanes.start + source not in group:
                    who, why = n, f"asks lane {source}, which takes no part"
                    break
        if not why:
            return None
        return not_all(
            self.launch.name, name, line, self.threads[who].coordinates, why, self.block, self.linear_block, self.phase
        )

    def _execute(self, group: list[int], waiting: dict[int, Event]) -> dict[int, Any]:
        name = waiting[group[0]][2]
        arguments = {n: waiting[n][3] for n in group}
        everyone = sum(1 << n % WARP for n in group)
        answers: dict[int, Any] = {}
        for n in group:
            if name == "activemask":
                answers[n] = everyone
                continue
            named = arguments[n][0]
            members = [m for m in group if named >> (m % WARP) & 1]
            if name == "syncwarp":
                self.threads[n].epoch += 1
                answers[n] = None
            elif name.startswith("shfl"):
                source = int(source_lane(name, n % WARP, int(arguments[n][2])))
                lane = n - n % WARP + source
                answers[n] = arguments[lane][1] if lane in arguments else arguments[n][1]
            elif name.startswith("match"):
                same = [m for m in members if arguments[m][1] == arguments[n][1]]
                bits = sum(1 << m % WARP for m in same)
                every = len(same) == len(members)
                answers[n] = _int32(bits) if name == "match_any_sync" else (_int32(bits if every else 0), every)
            else:
                true = [m for m in members if arguments[m][1]]
                answers[n] = {
                    "ballot_sync": _int32(sum(1 << m % WARP for m in true)),
                    "all_sync": len(true) == len(members),
                    "any_sync": bool(true),
                    "eq_sync": len(true) in (0, len(members)),
                }[name]
        return answers

    # ---- the end of a phase
    def _settle(self, closing: int | None, faults: list[Finding]) -> None:
        """Put the accesses of a phase together: counts, races, unwritten reads."""
        if not self.launch.checks:
            self._next(closing)
            if faults:
                raise Stop(faults[0])
            return
        log = [entry for t in self.threads for entry in t.log]
        self._count(log)
        self._forks()
        found: list[Finding] = []
        for cells in {id(e.piece): e.piece for e in log}.values():
            if cells.space in ("shared", "global") and cells.logged:
                found += self._races(cells, [e for e in log if e.piece is cells], closing)
        for t in self.threads:
            found += t.held
            t.log, t.forks, t.held = [], [], []
        found += self._between_blocks(log)
        self._watch(closing, log)
        errors = [f for f in found if f.severity == "error"]
        if (errors or faults) and not self.launch.collect:
            raise Stop(min(errors + faults, key=lambda f: f.order))
        for finding in found:
            self.ledger.add(finding)
        if faults:
            raise Stop(min(faults, key=lambda f: f.order))
        self._next(closing)

    def _next(self, closing: int | None) -> None:
        if closing is not None:
            self.ledger.barriers += 1
            self.phase += 1
            self.last = closing
            for t in self.threads:
                t.phase = self.phase

    def _count(self, log: list[Logged]) -> None:
        """Put the accesses of each warp's lanes together and price them."""
        groups: dict[tuple[Any, ...], dict[int, Logged]] = {}
        seen: dict[tuple[Any, ...], int] = {}
        for entry in log:
            if entry.address < 0 or entry.site.number < 0:
                continue
            own = (entry.thread, entry.site.number, entry.path)
            seen[own] = seen.get(own, -1) + 1
            key = (entry.thread // WARP, entry.site.number, entry.path, seen[own])
            groups.setdefault(key, {})[entry.thread % WARP] = entry
        for lanes in groups.values():
            entry = next(iter(lanes.values()))
            tally = self.ledger.tallies[entry.site.number]
            tally.requests += 1
            tally.threads += len(lanes)
            addresses = [lanes[i].address if i in lanes else None for i in range(WARP)]
            if entry.piece.space == "local":
                continue
            if entry.piece.space == "shared":
                bank = _banks(tuple(addresses), entry.width)
                tally.wavefronts += bank.wavefronts
                tally.phases += bank.phases
                tally.ways = max(tally.ways, bank.ways)
                tally.used += len(lanes) * entry.width
                worst = bank.wavefronts
            else:
                sectors = _sectors(tuple(addresses), entry.width)
                tally.sectors += sectors.sectors
                tally.used += sectors.used
                worst = sectors.sectors
                read, written = self.seen[entry.piece.memory] if entry.piece.memory >= 0 else (None, None)
                for lane in lanes.values():
                    if read is not None and written is not None:
                        read[lane.cell] |= lane.kind != "write"
                        written[lane.cell] |= lane.kind != "read"
            if worst > tally.worst:
                tally.worst, tally.example = worst, tuple(addresses)

    def _forks(self) -> None:
        ways: dict[tuple[int, int, Path, int], set[bool]] = {}
        for t in self.threads:
            seen: dict[tuple[int, Path], int] = {}
            for fork, path, taken in t.forks:
                turn = seen[fork.number, path] = seen.get((fork.number, path), -1) + 1
                ways.setdefault((t.number // WARP, fork.number, path, turn), set()).add(taken)
        for (_, number, _, _), taken_ in ways.items():
            self.ledger.forks[number][0] += 1
            self.ledger.forks[number][1] += len(taken_) > 1

    def _races(self, cells: Cells, log: list[Logged], closing: int | None) -> list[Finding]:
        found: list[Finding] = []
        racy: set[int] = set()
        if any(e.kind != "read" for e in log):
            accesses = [
                races.Access(
                    e.cell, e.thread, e.thread // WARP, e.epoch, e.site.number, e.kind, e.path,
                    None if e.value is None or isinstance(e.value, tuple) else float(e.value),
                )
                for e in log
            ]  # fmt: skip
            by_cell: dict[int, list[races.Access]] = {}
            for access in accesses:
                by_cell.setdefault(access.cell, []).append(access)
            racy = {cell for cell, here in by_cell.items() if races.racing_pairs(here)}
            for pair in races.racing_pairs(a for a in accesses if a.cell in racy):
                array, index = self._name(cells, pair.first.cell)
                found.append(
                    races.race_in_block(
                        self.launch.name, pair, self.launch.program.sites, array, cells.space, index, self.block,
                        self.launch.block, self.linear_block, self.phase, (self.last or None, closing),
                    )
                )  # fmt: skip
        for cell, thread, site in cells.pending:
            if cell not in racy:
                array, index = self._name(cells, cell)
                found.append(
                    races.uninitialised(
                        self.launch.name, site.line, array, cells.space, index, self.block,
                        self.threads[thread].coordinates, self.linear_block, self.phase,
                    )
                )  # fmt: skip
        cells.pending = []
        return found

    def _name(self, cells: Cells, cell: int) -> tuple[str, tuple[int, ...]]:
        if cells.space == "shared":
            return cells.name, races.coordinates(cell, cells.extents) if cells.item == cells.cell else (cell,)
        for argument in self.launch.arguments:
            if isinstance(argument, Argument) and argument.memory.name == cells.name:
                return argument.name, index_in(argument, cell)
        return cells.name, (cell,)

    def _between_blocks(self, log: list[Logged]) -> list[Finding]:
        """Races with what earlier blocks did to global memory."""
        found: dict[Any, Finding] = {}
        if self.launch.blocks == 1:
            return []
        against = {"read": ("write", "atomic"), "write": ("read", "write", "atomic"), "atomic": ("read", "write")}
        for entry in log:
            if entry.piece.space != "global" or not entry.piece.logged:
                continue
            for kind in against[entry.kind]:
                for block, thread, site in self.touched.get((entry.piece.memory, entry.cell, kind), ()):
                    if block == self.linear_block or (kind, site.number, entry.kind, entry.site.number) in found:
                        continue
                    array, index = self._name(entry.piece, entry.cell)
                    dims = (self.launch.grid, self.launch.block)
                    lines = (site.line, entry.site.line)
                    made = races.race_between_blocks(
                        self.launch.name, (kind, entry.kind), lines,
                        (races.dims(thread, dims[1]), self.threads[entry.thread].coordinates),
                        (races.dims(block, dims[0]), self.block), array, index,
                        (self.linear_block, self.phase, races.RANKS["race"], min(lines), max(lines)),
                    )  # fmt: skip
                    found[kind, site.number, entry.kind, entry.site.number] = made
            known = self.touched.setdefault((entry.piece.memory, entry.cell, entry.kind), [])
            if all(block != self.linear_block for block, _, _ in known) and len(known) < 2:
                known.append((self.linear_block, entry.thread, entry.site))
        return list(found.values())

    def _watch(self, closing: int | None, log: list[Logged]) -> None:
        if self.launch.watch != self.linear_block or len(self.ledger.snapshots) >= SNAPSHOTS:
            return
        snapshot = Snapshot(self.phase, closing)
        for key, (cells, data) in self._pieces.items():
            view = next(v for k, v in self._shared.items() if k == key or v.cells is cells)
            values = plain_numbers(data.view(view.data.dtype))
            if len(values) > SNAPSHOT_CELLS:
                continue
            shape = cells.extents if int(np.prod(cells.extents)) == len(values) else (len(values),)
            touched = [
                {e.cell for e in log if e.piece is cells and (e.kind == "read") is read} for read in (False, True)
            ]
            snapshot.arrays[cells.name] = Contents(
                shape, [v if i in cells.written else None for i, v in enumerate(values)],
                sorted(touched[0]), sorted(touched[1]),
            )  # fmt: skip
        self.ledger.snapshots.append(snapshot)


def _int32(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits
