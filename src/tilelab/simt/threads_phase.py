"""The end of a phase in the plain engine: what warps did together, races, unwritten reads."""

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.hardware.banks import bank_access
from tilelab.hardware.limits import WARP
from tilelab.hardware.sectors import sector_access
from tilelab.simt import races, sayings, tree
from tilelab.simt.errors import Dim3, Finding
from tilelab.simt.ledger import Ledger
from tilelab.simt.runtime import Argument, Launch, Stop
from tilelab.simt.snapshots import MOST_SNAPSHOTS, Snapshot, contents
from tilelab.simt.threads_memory import Cells, Element, Logged, Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilelab.simt.threads import Thread

_banks, _sectors = lru_cache(4096)(bank_access), lru_cache(4096)(sector_access)


class Phases:
    """Keeps what the threads of a block logged, and settles it at each barrier."""

    launch: Launch
    ledger: Ledger
    threads: list["Thread"]
    block: Dim3
    linear_block: int
    phase: int
    last: int
    """Line of the barrier that opened the phase; 0 at the start."""
    _shared: dict[Any, Element]
    _pieces: dict[Any, tuple[Cells, "NDArray[Any]"]]
    _fresh: set[tuple[int, int, str]]
    """Memory, cell and kind of what the running block did; of a block that an error ends, nothing counts as seen."""

    def __init__(self, launch: Launch, ledger: Ledger) -> None:
        self.launch, self.ledger = launch, ledger
        self.seen = [(np.zeros(m.data.size, bool), np.zeros(m.data.size, bool)) for m in launch.memories]
        self.touched: dict[tuple[int, int, str], list[tuple[int, int, tree.Site]]] = {}

    def _see(self) -> None:
        """Take what a block touched for seen, now that it has ended."""
        for memory, cell, kind in self._fresh:
            read, written = self.seen[memory]
            read[cell] |= kind != "write"
            written[cell] |= kind != "read"

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
            if entry.piece.space in ("local", "const"):  # no banks, no sectors
                continue
            if entry.kind == "atomic":
                most = max(Counter(lane.address for lane in lanes.values()).values())
                tally.meet = max(tally.meet, most)
                tally.turns += most
            if entry.piece.space == "shared":
                bank = _banks(tuple(addresses), entry.width)
                tally.wavefronts += bank.wavefronts
                tally.parts += bank.parts
                tally.ways = max(tally.ways, bank.ways)
                tally.used += len(lanes) * entry.width
                worst = bank.wavefronts
            else:
                sectors = _sectors(tuple(addresses), entry.width)
                tally.sectors += sectors.sectors
                tally.used += sectors.used
                tally.least += sectors.minimum
                worst = sectors.sectors
                if entry.piece.memory >= 0:
                    self._fresh.update((entry.piece.memory, lane.cell, lane.kind) for lane in lanes.values())
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
                    e.cell, e.thread, e.thread // WARP, e.thread % WARP, e.epoch, e.site.number, e.kind, e.path,
                    e.value, e.known,
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
                    sayings.race_in_block(
                        self.launch.name, pair, self.launch.program.sites, array, cells.space, index, self.block,
                        self.launch.block, self.linear_block, self.phase, (self.last or None, closing),
                    )
                )  # fmt: skip
        for cell, thread, site in cells.pending:
            if cell not in racy:
                array, index = self._name(cells, cell)
                found.append(
                    sayings.uninitialised(
                        self.launch.name, site.line, array, cells.space, index, self.block,
                        self.threads[thread].coordinates, self.linear_block, self.phase,
                    )
                )  # fmt: skip
        cells.pending = []
        return found

    def _name(self, cells: Cells, cell: int) -> tuple[str, tuple[int, ...]]:
        if cells.space == "shared":
            return cells.name, sayings.element_of(cell, cells.cell, cells.item, cells.extents)
        for argument in self.launch.arguments:
            if isinstance(argument, Argument) and argument.memory.name == cells.name:
                return argument.name, sayings.index_in(argument, cell)
        return cells.name, (cell,)

    def _between_blocks(self, log: list[Logged]) -> list[Finding]:
        """Races with what earlier blocks did to global memory."""
        found: dict[Any, Finding] = {}
        if self.launch.blocks == 1:
            return []
        against = {"read": ("write", "atomic"), "write": ("read", "write", "atomic"), "atomic": ("read", "write")}
        for entry in sorted(log, key=lambda e: (e.path, e.thread)):
            if entry.piece.space != "global" or not entry.piece.logged:
                continue
            for kind in against[entry.kind]:
                for block, thread, site in self.touched.get((entry.piece.memory, entry.cell, kind), ()):
                    if block == self.linear_block or (kind, site.number, entry.kind, entry.site.number) in found:
                        continue
                    array, index = self._name(entry.piece, entry.cell)
                    dims = (self.launch.grid, self.launch.block)
                    lines = (site.line, entry.site.line)
                    made = sayings.race_between_blocks(
                        self.launch.name, (kind, entry.kind), (site, entry.site),
                        (sayings.dims(thread, dims[1]), self.threads[entry.thread].coordinates),
                        (sayings.dims(block, dims[0]), self.block), array, index,
                        (self.linear_block, self.phase, sayings.RANKS["race"], min(lines), max(lines)),
                        self.launch.program.fences,
                    )  # fmt: skip
                    found[kind, site.number, entry.kind, entry.site.number] = made
            known = self.touched.setdefault((entry.piece.memory, entry.cell, entry.kind), [])
            if all(block != self.linear_block for block, _, _ in known) and len(known) < 2:
                known.append((self.linear_block, entry.thread, entry.site))
        return list(found.values())

    def _watch(self, closing: int | None, log: list[Logged]) -> None:
        if self.launch.watch != self.linear_block or len(self.ledger.snapshots) >= MOST_SNAPSHOTS:
            return
        snapshot = Snapshot(self.phase, closing)
        for key, (cells, data) in self._pieces.items():
            view = next(v for k, v in self._shared.items() if k == key or v.cells is cells)
            known = np.zeros(len(data) // cells.cell, bool)
            known[list(cells.written)] = True
            written, read = (
                {e.cell for e in log if e.piece is cells and (e.kind == "read") is read} for read in (False, True)
            )
            made = contents(data, view.element, cells.extents, cells.cell, known, written, read)
            if made is not None:
                snapshot.arrays[cells.name] = made
        self.ledger.snapshots.append(snapshot)
