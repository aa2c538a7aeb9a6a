"""Running a bundle where the GPU is: needs the package, a GPU and a compiler, and nothing that knows a learner.

Each outcome is written, signed, as soon as it is there. Started again after a crash, it goes on where it was.
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from tilelab.cudacpp.processes import Runner, Task, use_runner
from tilelab.grading.errors import GradingError
from tilelab.grading.locks import lock
from tilelab.grading.timed.bundle import Bundle, half_a_line, read_results, result_line
from tilelab.grading.timed.conductor import Conductor
from tilelab.grading.timed.enough import Effort
from tilelab.grading.timed.wanted import Measured


@dataclass(frozen=True)
class Ran:
    """One measurement of a run: ``kept`` where it was there already."""

    wanted: str
    measured: Measured
    kept: bool


def run_bundle(
    bundle: Bundle,
    results: Path,
    which: str = "0",
    effort: Effort | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> Generator[Ran, None, None]:
    """Measure what a bundle wants, and yield each as it is done.

    Parameters
    ----------
    bundle : Bundle
        What to measure.
    results : path
        Where signed outcomes go, a line each. What stands there already is kept, unless the device was in the way.
    which : str
        A GPU's number, or ``emulated``.
    effort : Effort, optional
        How long to measure.
    waiting : callable
        Called once if another run holds the device or the file.

    Raises
    ------
    GradingError
        The device cannot be used, or the file holds results of something else.
    """
    emulated = which == "emulated"
    with ExitStack() as stack:
        out = stack.enter_context(_held(results, waiting))
        try:
            found = read_results(results, bundle.key, bundle.number)
        except GradingError as error:
            raise GradingError(f"{error}. Move the file away, or name another with --out") from None
        done = {
            wanted: measured
            for wanted, measured in found.items()
            if wanted in bundle.wanted and measured.outcome != "undecided" and measured.emulated == emulated
        }
        for wanted, measured in done.items():
            yield Ran(wanted, measured, True)
        waits = [wanted for wanted in bundle.wanted if wanted not in done]
        if not waits:
            return
        if runner := sandbox(needed=emulated):
            stack.enter_context(use_runner(runner))
        _go_to_the_end(out)
        conductor = stack.enter_context(Conductor(which, effort, bundle.thresholds.ceilings, waiting))
        for wanted in waits:
            marks = {
                mark
                for cell in bundle.cells(wanted)
                for mark in bundle.thresholds.marks(cell, conductor.device["name"])
            }
            measured = conductor.measure(bundle.wanted[wanted], sorted(marks))
            try:
                _append(out, result_line(bundle, wanted, measured).encode())
            except OSError as error:
                raise GradingError(
                    f"cannot write {str(results)!r}: {error.strerror}. What was measured before stands there; run this "
                    "again to go on"
                ) from None
            yield Ran(wanted, measured, False)


@contextmanager
def _held(results: Path, waiting: Callable[[], None]) -> Iterator[FileIO]:
    """Open a results file to go on, made where there is none; another run of the same bundle waits until this ends."""
    try:
        opened = FileIO(os.open(results, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    except OSError as error:
        raise GradingError(f"cannot write {str(results)!r}: {error.strerror}") from None
    with opened:
        lock(opened.fileno(), waiting)
        yield opened


def _append(out: FileIO, line: bytes) -> None:
    """Write a line so that it is on the disk."""
    left = memoryview(line)
    while left:
        left = left[out.write(left) :]
    os.fsync(out.fileno())


def _go_to_the_end(out: FileIO) -> None:
    """Go to the end of a results file; a line that was left half written is cut off, a whole one is ended."""
    content = out.read()
    whole = len(content) - half_a_line(content)
    out.seek(whole)
    out.truncate()
    if whole and content[whole - 1 : whole] != b"\n":
        out.write(b"\n")


def sandbox(needed: bool) -> Runner | None:
    """Return the runner of the sandbox where there is one.

    A GPU machine without one still compiles under limits; only what a CPU would run must be walled in.
    """
    from tilelab.grading.sandbox.emulation import run_inside
    from tilelab.grading.sandbox.errors import SandboxError

    try:
        run_inside(Task(["true"]))
    except (SandboxError, OSError) as error:
        if needed:
            raise GradingError(f"emulation runs learners' code on this CPU, so it needs the sandbox: {error}") from None
        return None
    return run_inside
