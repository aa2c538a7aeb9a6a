"""A launch from arguments to results: limits, the choice of engine, chunks of blocks, and what happens at an error.

Many blocks run together, so one of them may meet an error before an earlier one does. Then outputs are put back to
where they were, the chunk runs again a block at a time, and the first block with an error is run once more by the
plain engine, which sees where each thread stands.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.limits import capability, launch_problems
from tilelab.simt import tree
from tilelab.simt.errors import BoundsError, Finding, LaunchError, error_of
from tilelab.simt.kernel import Configured, Kernel
from tilelab.simt.lanes import Lanes
from tilelab.simt.lanes_code import compile_lanes
from tilelab.simt.ledger import Ledger
from tilelab.simt.runtime import Launch, NeedsThreads, Stop
from tilelab.simt.threads import Threads
from tilelab.simt.threads_code import compile_threads

if TYPE_CHECKING:
    from tilelab.simt.report import Report


def launch(
    configured: Configured, args: tuple[Any, ...], collect: bool
) -> tuple[Launch, Ledger, Finding | None, str, Any]:
    """Run a kernel.

    Returns
    -------
    launch, ledger, fatal, engine, seen
        ``fatal`` is the finding that ended the launch; ``seen`` which elements of global memory were touched.

    Raises
    ------
    SimtError
        With the first finding, unless ``collect``.
    """
    options = configured.options
    arguments, program = configured.arguments(args)
    check_limits(configured, program)
    x, y, z = (*options.watch, 0, 0)[:3]
    if not all(0 <= at < extent for at, extent in zip((x, y, z), configured.grid, strict=True)):
        raise LaunchError(f"watch={options.watch!r}: there is no such block in the grid {configured.grid}")
    run = Launch(
        program, configured.grid, configured.block, arguments.values, arguments.memories, configured.dynamic,
        options.checks, collect, options.steps, max(options.chunk, 32),
        (z * configured.grid[1] + y) * configured.grid[0] + x if collect else None, options.seed,
    )  # fmt: skip
    engine = options.engine
    if engine == "auto":
        engine = "threads" if options.seed is not None or program.spins is not None else "lanes"
    if engine == "lanes" and program.spins is not None:
        raise LaunchError(
            f"{program.kernel.name} needs engine='threads': the loop of line {program.spins} waits for another thread, "
            "and lanes run in step"
        )
    ledger = Ledger(program)
    before = [m.data.copy() if m.written else None for m in run.memories]
    with np.errstate(all="ignore"), _progress(run, options.progress):
        try:
            fatal, seen = _run(configured.kernel, run, ledger, engine)
        except IndexError as fault:
            if run.checks:
                raise
            raise BoundsError(f"{run.name}: {fault}; run it with checks to see the line and the thread") from None
        except NeedsThreads as need:
            if options.engine == "lanes":
                raise LaunchError(
                    f"{program.kernel.name} needs engine='threads': {need}, and lanes run in step"
                ) from None
            _restore(run, before)
            ledger, engine = Ledger(program), "threads"
            fatal, seen = _run(configured.kernel, run, ledger, engine)
    if fatal is not None:
        ledger.add(fatal)
        if not collect:
            raise error_of(fatal)
    return run, ledger, fatal, engine, seen


def inspect(configured: Configured, args: tuple[Any, ...]) -> "Report":
    """Run a kernel and report all that was found and counted; nothing found is raised."""
    from tilelab.simt.report import make_report

    start = time.perf_counter()
    run, ledger, fatal, engine, seen = launch(configured, args, collect=True)
    return make_report(configured.kernel.source, run, ledger, fatal, engine, seen, time.perf_counter() - start)


def check_limits(configured: Configured, program: tree.Program) -> None:
    """Refuse a launch that the device would refuse."""
    static = sum(a.bytes for a in program.allocations.values())
    chip = capability(configured.options.device)
    problems = launch_problems(chip, configured.grid, configured.block, static, configured.dynamic)
    if problems:
        name = configured.options.device
        raise LaunchError(f"{program.kernel.name} cannot be launched on {name}: {'; '.join(problems)}")
    dynamic = [a for a in program.allocations.values() if not a.shape]
    if dynamic and not configured.dynamic:
        raise LaunchError(
            f"{program.kernel.name} uses dynamic shared memory (line {dynamic[0].line}) but the launch gives none: "
            f"{program.kernel.name}[grid, block, stream, bytes](...)"
        )


def _compiled(kernel: Kernel, program: tree.Program, engine: str, checks: bool) -> Any:
    key = (id(program), f"{engine} {checks}")
    if key not in kernel.compiled:
        make: Callable[[tree.Program, bool], Any] = compile_lanes if engine == "lanes" else compile_threads
        kernel.compiled[key] = make(program, checks)
    return kernel.compiled[key]


def _run(kernel: Kernel, run: Launch, ledger: Ledger, engine: str) -> tuple[Finding | None, Any]:
    if engine == "threads":
        threads = Threads(run, ledger, _compiled(kernel, run.program, "threads", run.checks))
        order = np.arange(run.blocks)
        if run.seed is not None:
            np.random.default_rng(run.seed).shuffle(order)
        for done, block in enumerate(order):
            counts = ledger.counts()
            try:
                threads.run(int(block))
            except Stop as stop:  # the block's findings stay, its counts are of a part of it only
                ledger.revert(counts)
                return stop.finding, threads.seen
            run.progress(done + 1)
        return None, threads.seen
    return _run_lanes(kernel, run, ledger)


def _run_lanes(kernel: Kernel, run: Launch, ledger: Ledger) -> tuple[Finding | None, Any]:
    entry, places, _ = _compiled(kernel, run.program, "lanes", run.checks)
    for place in places:
        place.known.clear()
    lanes = Lanes(run, ledger, places, entry)
    together = max(1, run.chunk // run.threads)
    fatal = None
    try:
        for first in range(0, run.blocks, together):
            count = min(together, run.blocks - first)
            if not run.checks:
                try:
                    lanes.run(first, count)
                except Stop as stop:
                    fatal = stop.finding
                    break
                run.progress(first + count)
                continue
            mark = _Mark(run, lanes)
            try:
                lanes.run(first, count)
            except Stop as stop:
                if count == 1:
                    fatal = mark.back_from(first, stop.finding)
                else:
                    mark.back(first)
                    fatal = _one_by_one(run, lanes, first, count, stop.finding)
                fatal = _explained(kernel, run, ledger, fatal)
                break
            run.progress(first + count)
    finally:
        for place in places:
            place.known.clear()
    return fatal, lanes.memory.touched()


class _Mark:
    """Where a launch stands before some blocks run, to go back to."""

    def __init__(self, run: Launch, lanes: Lanes) -> None:
        self.run, self.lanes = run, lanes
        self.memories = [m.data.copy() if m.written else None for m in run.memories]
        self.seen = lanes.memory.mark()
        self.noted = lanes.ledger.copy()

    def back(self, first: int) -> None:
        """Undo all that blocks from a number on did."""
        _restore(self.run, self.memories)
        self.lanes.forget()
        self.lanes.ledger.revert(self.noted)
        self.lanes.memory.rewind(first, self.seen)

    def back_from(self, block: int, finding: Finding) -> Finding:
        """Undo what a single block did up to a fatal finding, which is returned; what else was found in it stays."""
        ledger = self.lanes.ledger
        found, snapshots = ledger.findings, ledger.snapshots
        self.back(block)
        ledger.findings, ledger.snapshots = found, snapshots
        return finding


def _one_by_one(run: Launch, lanes: Lanes, first: int, count: int, finding: Finding) -> Finding:
    """Run the blocks of a failed chunk one after another, up to the first that fails."""
    slow = finding.kind == "budget"  # its block is known, and would take as long again
    for block in range(first, finding.order[0] if slow else first + count):
        mark = _Mark(run, lanes)
        try:
            lanes.run(block, 1)
        except Stop as stop:
            return mark.back_from(block, stop.finding)
    assert slow, "a chunk failed, but none of its blocks does"
    return finding


def _explained(kernel: Kernel, run: Launch, ledger: Ledger, finding: Finding) -> Finding:
    """The same error as the plain engine sees it: which barrier the missing thread waits at, say.

    What else it finds in that block, up to the error, is noted.
    """
    if finding.kind in ("budget", "race"):  # too long for it; nothing is left to be explained
        return finding
    before = [m.data.copy() if m.written else None for m in run.memories]
    trial = Ledger(run.program)
    threads = Threads(run, trial, _compiled(kernel, run.program, "threads", True))
    try:
        threads.run(finding.order[0])
    except Stop as stop:
        for found in trial.ordered():
            if found.order[:2] <= finding.order[:2]:
                ledger.add(found)
        # run alone, the block does not see the others: a race with one of them may have come first
        if stop.finding.order[:2] <= finding.order[:2] and stop.finding.kind != "budget":
            return stop.finding
    finally:
        _restore(run, before)
    return finding


def _restore(run: Launch, before: list[NDArray[Any] | None]) -> None:
    for memory, data in zip(run.memories, before, strict=True):
        if data is not None:
            memory.data[...] = data


#: Seconds after which a launch shows how far it is.
PATIENCE = 2.0


@contextmanager
def _progress(run: Launch, wanted: bool) -> Iterator[None]:
    """A bar over the blocks, for a launch that takes long; nothing where nobody looks."""
    if not wanted or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress

    start = time.perf_counter()
    bar = Progress(console=Console(stderr=sys.stderr.isatty()), transient=True)
    task = bar.add_task(f"simulating {run.name}", total=run.blocks)
    shown = False

    def show(blocks: int) -> None:
        nonlocal shown
        if not shown and time.perf_counter() - start > PATIENCE:
            bar.start()
            shown = True
        if shown:
            bar.update(task, completed=blocks)

    run.progress = show
    try:
        yield
    finally:
        if shown:
            bar.stop()
