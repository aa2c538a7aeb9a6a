"""The plain engine: one Python generator for each thread, run in turn between barriers.

It is slow and simple. It runs what lanes cannot (loops that wait for another thread), runs threads and blocks in a
random order where a seed asks for it, tells where each thread stood when a block fails, and is what the lanes are
tested against.
"""

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import sayings, tree
from tilelab.simt.errors import Finding
from tilelab.simt.ledger import Ledger
from tilelab.simt.runtime import POISON, Argument, Launch, Stop, strides_of
from tilelab.simt.threads_memory import Cells, Element, Fault, LocalElement, Logged, Path
from tilelab.simt.threads_phase import Phases
from tilelab.simt.types import Array, Scalar
from tilelab.simt.warps import source_lane

WARP = 32
Event = tuple[Any, ...]


class Thread:
    """One thread: what its code asks of the engine."""

    def __init__(self, engine: "Threads", number: int) -> None:
        launch = engine.launch
        self.engine, self.number, self.kernel = engine, number, launch.name
        self.checks = launch.checks
        self.block, self.linear_block = engine.block, engine.linear_block
        self.coordinates = sayings.dims(number, launch.block)
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
            raise Fault(sayings.over_budget(self.kernel, line, outer, self.engine.launch.steps, self.linear_block))

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
        strides = strides_of(flat.shape)
        return Element(cells, kind.element, flat.reshape(-1), 0, flat.shape, strides, name, 0)

    def unwritten(self, cells: Cells, at: int, site: tree.Site) -> None:
        """Note a read of its own memory that it never wrote."""
        self.held.append(
            sayings.uninitialised(
                self.kernel, site.line, cells.name, "local", sayings.coordinates(at, cells.extents), self.block,
                self.coordinates, self.linear_block, self.phase,
            )
        )  # fmt: skip


class Threads(Phases):
    """Runs blocks of one launch, thread by thread."""

    def __init__(self, launch: Launch, ledger: Ledger, compiled: tuple[Any, str]) -> None:
        super().__init__(launch, ledger)
        self.entry = compiled[0]
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
        self.linear_block, self.block = linear, sayings.dims(linear, self.launch.grid)
        self.phase, self.last = 0, 0
        self._shared = {}
        self._pieces = {}
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
        key: Any = alloc.key if alloc.shape else "dynamic"
        shape = alloc.shape or (self.launch.dynamic // element.dtype.itemsize,)
        size = int(np.prod(shape)) * element.dtype.itemsize if alloc.shape else -(-self.launch.dynamic // 16) * 16
        if key not in self._pieces:
            cell = base.dtype.itemsize if alloc.shape else self.launch.program.dynamic_cell()
            cells = Cells(alloc.name, "shared", cell, shape, element.dtype.itemsize, True)
            self._pieces[key] = cells, np.full(size, POISON, np.uint8)
        cells, data = self._pieces[key]
        typed = data.view(base.dtype)
        if not isinstance(element, Scalar):
            typed = typed.reshape(-1, element.count)
        address = self.launch.program.address(alloc)
        strides = strides_of(shape)
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
                sayings.diverged(
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
        _, line, name, _, _ = waiting[group[0]]
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
        return sayings.not_all(
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


def _int32(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits
