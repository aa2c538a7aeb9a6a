"""``tilelab grade``: grade the collected submissions of an assignment."""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tilelab.cli.needs import needs_grading
from tilelab.cli.timed import INTERRUPTED, Completed, as_typed, check_device, complete, no_device, say
from tilelab.cli.visible import visible

if TYPE_CHECKING:
    from rich.table import Table

    from tilelab.grading.course import Course, PartResult, Result

#: Columns of a table that goes into a file or another program.
WIDTH = 140


@click.command()
@click.argument("assignment")
@click.option("--course", default="autograder", show_default=True, help="The course's folder.")
@click.option("--student", help="Grade one student only.")
@click.option("--question", help="Grade one notebook only, such as exercise_3.")
@click.option("--force", is_flag=True, help="Grade again what has been graded already.")
@click.option("--workers", type=click.IntRange(1), help="Processes that grade; one for each core unless told.")
@click.option("--pending", is_flag=True, help="Only complete what waits for a GPU; nothing else is graded.")
@click.option("--device", default="0", show_default=True, help="The GPU's number, or emulated: nothing is decided.")
@click.option("--accept-shipped", is_flag=True, help="Let thresholds hold as shipped where nobody has calibrated.")
@click.option("--no-sandbox", is_flag=True, help="Run learners' code in no sandbox, and mark every grade so.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def command(
    assignment: str,
    course: str,
    student: str | None,
    question: str | None,
    force: bool,
    workers: int | None,
    pending: bool,
    device: str,
    accept_shipped: bool,
    no_sandbox: bool,
    as_json: bool,
) -> None:
    """Grade what was collected for ASSIGNMENT: run, judge, record the scores, write the feedback.

    Points that hang on a time are measured and decided right away where there is a GPU; elsewhere they wait, for
    --pending or for `tilelab jobs`. Every submission gets a recorded result. A submission that is graded already is
    left alone unless another one was collected; a run that was stopped goes on where it was. The exit code is 0 where
    all of them were graded.
    """
    with needs_grading():
        from tilelab.grading.lean import course as grading

        opened = grading.Course(course)
        notebooks = opened.notebooks(assignment)
        students = opened.students(assignment, student)
        check_device(device)
        again = as_typed(
            *("tilelab", "grade", assignment, "--pending", "--course", course),
            *(("--student", student) if student else ()),
            *(("--device", device) if device != "0" else ()),
            *(("--accept-shipped",) if accept_shipped else ()),
        )
        asked = (opened, assignment, students, device, accept_shipped, again)
        if pending:
            _finish(*asked, as_json)
            return
        cores = len(os.sched_getaffinity(0))
        graded = opened.grade_all(
            assignment, students, force, workers or cores, sandboxed=not no_sandbox, question=question
        )
        try:
            results = _watched(graded, assignment, len(students), quiet=as_json)
        except KeyboardInterrupt:
            for library in ["asyncio", "distributed"]:  # they would tell of what was cut short, at length
                logging.getLogger(library).setLevel(logging.CRITICAL)
            busy = opened.at_work()
            graded.close()
            if busy:
                say(f"at work when it was stopped: {', '.join(busy)}")
            done = opened.graded(assignment, students, sandboxed=not no_sandbox)
            say(_stopped(done, len(students), force))
            sys.exit(INTERRUPTED)
        completed = Completed() if no_device(device) else _complete(*asked)
        if completed.settled:
            by_student = {result.student: result for result in opened.results(assignment)}
            results = [replace(by_student[one.student], status=one.status, message=one.message) for one in results]
    if as_json:
        rows = [row_of(result) for result in results]
        click.echo(visible(json.dumps({"assignment": assignment, "rows": rows}, ensure_ascii=False)))
    else:
        from rich.console import Console

        console = Console()
        if not console.is_terminal:
            console.width = max(console.width, WIDTH)
        console.print(_table(assignment, notebooks, results))
        if no_sandbox:
            console.print("[bold]without the sandbox[/]: every grade made now is marked so")
    for name in opened.left_out(assignment):
        say(f"left out: the folder {name!r}, which is no student's name")
    if completed.interrupted:
        sys.exit(INTERRUPTED)
    sys.exit(1 if any(result.status == "failed" for result in results) else 0)


def _complete(
    opened: "Course", assignment: str, students: list[str], device: str, accept_shipped: bool, again: str
) -> Completed:
    """Measure and decide what waits; say so where it cannot be done: the grades that were just recorded stand."""
    from tilelab.grading.errors import GradingError
    from tilelab.grading.timed.pending import Pending

    try:
        if not Pending(opened).waiting(assignment, students):
            return Completed()
        done = complete(opened, assignment, students, device, accept_shipped, again)
    except GradingError as error:
        say(f"timed points stay pending: {error}")
        return Completed()
    if done.stopped:
        say(f"timed points stay pending: {done.stopped}")
    return done


def _finish(
    opened: "Course",
    assignment: str,
    students: list[str],
    device: str,
    accept_shipped: bool,
    again: str,
    as_json: bool,
) -> None:
    """Complete what waits for a GPU, or say how."""
    from tilelab.cli.jobs import say_unreadable, show_settled
    from tilelab.grading.errors import GradingError
    from tilelab.grading.timed.pending import Pending

    pending = Pending(opened)
    waits = pending.waiting(assignment, students)
    say_unreadable(pending)
    if waits and (missing := no_device(device)):
        people = len({one.student for one in waits})
        only = ("--student", *students) if len(students) == 1 else ()
        raise GradingError(
            f"{len(waits)} parts of {people} submissions wait for a GPU, and {missing}. To time them elsewhere: "
            + as_typed("tilelab", "jobs", "export", assignment, "--course", opened.root, *only)
        )
    if not waits:
        say(f"no points of {assignment} wait for a GPU")
    done = complete(opened, assignment, students, device, accept_shipped, again) if waits else Completed()
    if done.settled or not done.stopped:
        show_settled(done.settled, as_json)
    if done.interrupted:
        say(done.stopped)
        sys.exit(INTERRUPTED)
    if done.stopped:
        raise GradingError(done.stopped)


def _interrupts() -> list[int]:
    """Return a list that fills with the interrupts that come: libraries on the way swallow some."""
    came: list[int] = []

    def handler(number: int, _: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)
    return came


def _stopped(done: list[str], total: int, force: bool) -> str:
    """Say what was graded when somebody stopped the grading, and how it goes on."""
    names = f" ({', '.join(done[:5])}{', …' if len(done) > 5 else ''})" if done else ""
    rerun = "the same command without --force" if force else "the same command"
    return f"stopped: {len(done)} of {total} submissions are graded and recorded{names}; {rerun} goes on with the rest"


def _watched(graded: Iterable["Result"], assignment: str, total: int, quiet: bool) -> list["Result"]:
    """Gather the results under a progress bar on the error stream, or with a line for each off a terminal; sorted."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    results = []
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"grading {assignment}", total=total)
        interrupted = _interrupts()
        for result in graded:
            if interrupted:
                raise KeyboardInterrupt
            results.append(result)
            if not console.is_terminal and total > 1 and not quiet:
                line = f"{len(results)} of {total}: {result.student}: {result.net:g} of {result.points:g}"
                click.echo(visible(line), err=True)
            progress.update(task, advance=1, description=escape(visible(f"grading {assignment}: {result.student}")))
    return sorted(results, key=lambda result: result.student)


def _table(assignment: str, notebooks: list[str], results: list["Result"]) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{assignment}: {len(results)} submission{'s' * (len(results) != 1)}", title_justify="left")
    longest = max((len(result.student) for result in results), default=0)
    table.add_column("student", overflow="fold", min_width=min(longest, 24))  # a cut name would be nobody's
    stem = notebooks[0].rpartition("_")[0] + "_"
    numbered = len(notebooks) > 1 and all(notebook.startswith(stem) for notebook in notebooks)
    for notebook in notebooks:  # many columns need short heads
        table.add_column(notebook.removeprefix(stem) if numbered else notebook, justify="right")
    table.add_column("together", justify="right", no_wrap=True)
    table.add_column("pending", justify="right")
    table.add_column("what to know")
    for result in results:
        table.add_row(
            escape(visible(result.student)),
            *(f"{result.notebook_score(notebook):g}" for notebook in notebooks),
            f"{result.net:g} of {result.points:g}",
            f"{result.pending:g}" if result.pending else "",
            escape(visible(what_to_know(result))),
        )
    return table


def what_to_know(result: "Result") -> str:
    """Return what an instructor should read beside a score: why it failed, or what the reports say of lost points."""
    if result.status == "failed":
        return f"not graded now: {result.message}"
    late = [f"{result.penalty:g} points lost by lateness"] if result.penalty else []
    lost = [part for part in result.parts if part.score + part.pending < part.points]
    if len({part.notebook for part in result.parts}) > 1:  # a line for each part would fill the screen
        lines = _by_notebook(lost)
    else:
        lost = [part for part in result.parts if part.score < part.points]
        lines = [line for part in lost for line in (*part.lines[:1], *part.notes)]
    said = "; ".join([*late, *dict.fromkeys(lines)])
    return said if result.status == "graded" else f"graded before{': ' if said else ''}{said}"


def _by_notebook(parts: "list[PartResult]") -> list[str]:
    """Return the names of parts, a line for each notebook: ``1: correct, timed``; and what happened to them."""
    lines = []
    for notebook in dict.fromkeys(part.notebook for part in parts):
        here = [part for part in parts if part.notebook == notebook]
        said = ", ".join(part.cell.removeprefix(f"{notebook}_") for part in here)
        notes = dict.fromkeys(note for part in here for note in part.notes)
        lines.append("; ".join([f"{notebook.rpartition('_')[2]}: {said}", *notes]))
    return lines


def row_of(result: "Result") -> dict[str, Any]:
    """Return a result as plain data."""
    return {
        "student": result.student,
        "status": result.status,
        "score": result.score,
        "penalty": result.penalty,
        "seconds_late": result.seconds_late,
        "points": result.points,
        "pending": result.pending,
        "message": result.message,
        "parts": [
            {
                "part": part.cell,
                "notebook": part.notebook,
                "score": part.score,
                "points": part.points,
                "pending": part.pending,
                "needs_person": part.needs_person,
                "report": [*part.lines, *part.notes],
                "versions": part.versions,
            }
            for part in result.parts
        ],
    }
