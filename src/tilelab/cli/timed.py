"""What the commands that measure share: which device, a bar, and words for who waits, is stopped or goes on."""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import click

from tilelab.cli.visible import visible

if TYPE_CHECKING:
    from tilelab.grading.course import Course
    from tilelab.grading.timed.pending import Pending, Settled
    from tilelab.grading.timed.running import Ran

#: Exit code of a program that was interrupted, as shells give it.
INTERRUPTED = 130


def as_typed(*words: object) -> str:
    """Return a command as it is typed in a shell."""
    return shlex.join(map(str, words))


def say(words: str) -> None:
    """Say something beside the results."""
    click.echo(visible(words), err=True)


def say_waiting() -> None:
    """Say why nothing happens."""
    say("another run holds this GPU or these results: waiting for it")


def stop(words: str) -> NoReturn:
    """End a command that was interrupted, with what there is of its work and how it goes on."""
    say(f"stopped: {words}")
    sys.exit(INTERRUPTED)


def check_device(device: str) -> None:
    """Raise `GradingError` for what is no device's name."""
    from tilelab.grading.errors import GradingError

    if device != "emulated" and not re.fullmatch("[0-9]{1,4}", device):
        raise GradingError(f"--device is a GPU's number or emulated, not {device!r}")


def no_device(device: str) -> str:
    """Say why nothing can be timed here, or ``""``."""
    from tilelab.cudacpp.device import gpu_missing

    reason = None if device == "emulated" else gpu_missing()
    return f"nothing can be timed here: {reason}" if reason else ""


def watched_run(ran: "Iterable[Ran]", total: int) -> "list[Ran]":
    """Gather measurements under a progress bar."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console, done = Console(stderr=True), []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("measuring", total=total)
        for one in ran:
            done.append(one)
            progress.advance(task)
    return done


@dataclass
class Completed:
    """What became of the parts that waited; ``stopped`` says what ended it before its end, and how it goes on."""

    settled: "list[Settled]" = field(default_factory=list)
    stopped: str = ""
    interrupted: bool = False


def complete(
    opened: "Course", assignment: str, students: Sequence[str], device: str, accept_shipped: bool, again: str
) -> Completed:
    """Measure and decide what waits, where it can be done. What was measured is decided, however measuring ends.

    Parameters
    ----------
    opened, assignment, students, device, accept_shipped
        As for `Completion`.
    again : str
        The command that goes on where this one is stopped.

    Raises
    ------
    GradingError
        Nothing could be measured, or nothing decided.
    """
    from tilelab.grading.errors import GradingError
    from tilelab.grading.timed.complete import Completion

    completion, done, why = (
        Completion(opened, assignment, students, device, accept_shipped, say_waiting),
        Completed(),
        "",
    )
    try:
        with completion:
            try:
                with closing(completion.measure()) as ran:
                    watched_run(ran, completion.total)
            except GradingError as error:
                if not completion.measured:
                    raise
                why = str(error)
            except KeyboardInterrupt:
                why, done.interrupted = "stopped", True
            for one in completion.settle():
                done.settled.append(one)
    except KeyboardInterrupt:
        why, done.interrupted = "stopped", True
    for words, count in Counter(one.words for one in done.settled if not one.decided).items():
        say(f"{count} timed parts stay pending: {words}")
    for one in done.settled:
        if one.fault:
            say(f"{one.student}: {one.fault}")
    measured, decided = completion.measured, completion.pending.decided
    if why:
        done.stopped = (
            f"{why}: {measured} of {completion.total} measurements are kept, {decided} of {completion.parts} parts are "
            f"decided. This goes on with the rest: {again}"
        )
    if measured:
        say(f"times, samples and clocks: {as_typed('tilelab', 'jobs', 'show', completion.results)}")
    return done


def settled_by(pending: "Pending", results: "Iterable[Settled]") -> "list[Settled]":
    """Gather what an import decides; say how far it came where it is interrupted."""
    try:
        return list(results)
    except KeyboardInterrupt:
        stop(f"{pending.decided} parts are decided and recorded; the same command goes on with the rest")
