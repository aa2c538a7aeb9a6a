"""The plain engine: one Python generator for each thread, run in turn between barriers.

It is slow and simple. It runs what lanes cannot (loops that wait for another thread), runs threads and blocks in a
random order where a seed asks for it, tells where each thread stood when a block fails, and is what the lanes are
tested against.
"""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.limits import WARP
from tilelab.simt import sayings, tree
from tilelab.simt.endless import SETTLED
from tilelab.simt.errors import Finding
from tilelab.simt.ledger import Ledger
from tilelab.simt.runtime import POISON, Argument, Launch, Stop, strides_of
from tilelab.simt.threads_memory import Cells, Element, Fault, LocalElement, Logged, Path
from tilelab.simt.threads_phase import Phases
from tilelab.simt.types import Array, Scalar
from tilelab.simt.warps import source_lane

#: How many times the rounds of one thread all threads of a block may make.
TOGETHER = 16
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
        self.known: tuple[int, ...] | None = (-1,) * WARP if launch.program.syncs_parts else None
        self.left = 0
        """Line in which it returned."""
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

    def tick(self, fork: tree.Fork, outer: int | None) -> None:
        """Count a round of a loop; too many end the launch."""
        self.steps += 1
        self.engine.steps += 1
        most = self.engine.launch.steps
        if self.steps > most or self.engine.steps > most * TOGETHER:
            raise Stop(sayings.over_budget(self.kernel, fork.line, outer, self.steps - 1, self.linear_block))

    def steady(self, fork: tree.Fork, outer: int | None, rounds: int) -> None:
        """A loop in which nothing changes what its end depends on is endless for a thread that is still inside."""
        if rounds >= SETTLED:
            raise Fault(self.endless(fork, outer))

    def range(self, start: int, stop: int, step: int, fork: tree.Fork) -> range:
        """The rounds of a ``for`` loop."""
        if step == 0:
            raise Fault(sayings.no_step(self.kernel, fork, self.block, self.coordinates, self.linear_block, self.phase))
        return range(start, stop, step)

    def endless(self, fork: tree.Fork, outer: int | None, waits: bool = False) -> Finding:
        """Say that it stays in a loop for ever."""
        return sayings.endless(
            self.kernel, fork, outer, self.block, self.coordinates, self.linear_block, self.phase, waits
        )

    def given(self, value: Any, name: str, line: int, assigned: tuple[int, ...]) -> Any:
        """The value of a variable, which the thread must have assigned to before."""
        if value is None:
            raise Fault(
                sayings.unassigned(
                    self.kernel, name, line, assigned, self.block, self.coordinates, self.linear_block, self.phase
                )
            )
        return value

    def shared(self, alloc: tree.Alloc) -> Element:
        """A shared array of the block."""
        return self.engine.shared(alloc)

    def local(self, alloc: tree.Alloc, held: dict[Any, LocalElement]) -> LocalElement:
        """A local array: empty when its function is called, and the same each time the line is passed."""
        if alloc.key not in held:
            held[alloc.key] = LocalElement(alloc)
        return held[alloc.key]

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
        self.waits = launch.program.spins is not None
        self.quiet = 0
        """Turns of all waiting threads since memory changed last."""
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
        self.phase, self.last, self.steps = 0, 0, 0
        self._shared = {}
        self._pieces, self._fresh = {}, set()
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
            problems: list[Finding] = []
            if not faults:
                answers = self._warps(waiting, problems)
            if ready and not answers and self._stuck(waiting, ready, faults):
                ready = []
            elif not ready and not answers:
                faults += problems
            ready += answers
            if ready:
                for number in ready:
                    del waiting[number]
                ready = self._order(ready)
                continue
            closing = self._meet(waiting, faults)
            self._settle(closing, faults)
            if not live:
                self._see()
                return
            answers = self._barrier(waiting)
            waiting = {}
            ready = self._order(list(live))

    def _stuck(self, waiting: dict[int, Event], ready: list[int], faults: list[Finding]) -> bool:
        """Whether all that still run wait in loops for what none of them does."""
        _, fork, outer = waiting[ready[0]]
        if any(waiting[n][1] is None for n in ready):
            self.quiet = 0
        self.quiet += 1
        if self.quiet <= SETTLED:
            return False
        if not faults:  # else they may wait for a thread that was stopped
            faults.append(self.threads[ready[0]].endless(fork, outer, waits=True))
        return True

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
    def _meet(self, waiting: dict[int, Event], faults: list[Finding]) -> int | None:
        """The barrier at which the block stands; that not all threads do is a fault."""
        waiting = {n: event for n, event in waiting.items() if event[0] != "turn"}
        if not waiting:
            return None
        first = min(waiting, key=lambda n: (waiting[n][-1], n))
        here = [n for n in waiting if waiting[n][0] == "barrier" and waiting[n][-1] == waiting[first][-1]]
        line: int = waiting[first][1]
        if len(here) < self.launch.threads and not faults and self.launch.checks:
            missing = next(n for n in range(self.launch.threads) if n not in here)
            came, gone = self.threads[here[0]], self.threads[missing]
            fork, taken = _parting(came, gone, waiting[first][4]) or (None, False)
            elsewhere = waiting[missing][1] if missing in waiting else None
            leaves, left = _parting(came, gone, waiting[first][5], inmost=True) or (None, False)
            away = sayings.Away(elsewhere, fork, taken, gone.left, missing not in waiting, leaves, left)
            faults.append(
                sayings.diverged(
                    self.launch.name, line, away, came.coordinates, gone.coordinates, self.block, self.linear_block,
                    self.phase, len(here), self.launch.threads,
                )
            )  # fmt: skip
        return line

    def _barrier(self, waiting: dict[int, Event]) -> dict[int, Any]:
        """What each thread gets from the barrier."""
        true = sum(bool(event[3]) for event in waiting.values())
        result = {"": None, "count": true, "and": int(true == len(waiting)), "or": int(true > 0)}
        return {number: result[event[2]] for number, event in waiting.items()}

    def _warps(self, waiting: dict[int, Event], found: list[Finding]) -> dict[int, Any]:
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
                found.append(problems[0])
        return answers

    def _incomplete(self, group: list[int], waiting: dict[int, Event], lanes: range) -> Finding | None:
        _, line, name, _, _ = waiting[group[0]]
        if name == "activemask" or not self.launch.checks:
            return None
        why, who = "", 0
        for n in group:
            named = waiting[n][3][0]
            if not named >> (n % WARP) & 1:
                who, why = n, sayings.NOT_NAMED
                break
            wanted = [m for m in lanes if named >> (m % WARP) & 1]
            absent = [m for m in wanted if m not in group]
            if absent:
                who, why = absent[0], sayings.NOT_THERE
                break
            if any(waiting[m][3][0] != named for m in wanted):
                who, why = n, sayings.OTHER_MASK
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
                answers[n] = members
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
        if name == "syncwarp":
            self._order_warp(answers)
        return answers

    def _order_warp(self, answers: dict[int, Any]) -> None:
        """After a ``syncwarp`` each thread knows what any member knew; ``answers`` holds the members of each."""
        before = {}
        for n in answers:
            t = self.threads[n]
            if t.known is not None:
                before[n] = [*t.known[: n % WARP], t.epoch, *t.known[n % WARP + 1 :]]
        for n, members in answers.items():
            t = self.threads[n]
            if t.known is not None:
                t.known = tuple(map(max, zip(*(before[m] for m in members), strict=True)))
            t.epoch += 1
            answers[n] = None


def _parting(
    came: Thread, gone: Thread, forks: Sequence[tree.Fork], inmost: bool = False
) -> tuple[tree.Fork, bool] | None:
    """The outermost of some branches at which two threads parted in this phase, and the way of the one that is gone.

    ``inmost`` asks for the last one instead, of branches that do not lie around each other.
    """
    ways = [{fork.number: taken for fork, _, taken in t.forks} for t in (came, gone)]
    for fork in reversed(forks) if inmost else forks:
        if fork.number not in ways[0]:
            continue
        if fork.number not in ways[1]:
            if inmost:
                continue
            return None
        if ways[0][fork.number] != ways[1][fork.number]:
            return fork, ways[1][fork.number]
    return None


def _int32(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits
