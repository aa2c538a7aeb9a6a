"""``tilelab jobs``: timed points travel to a machine with a GPU and come back."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilelab.cli.needs import needs_grading
from tilelab.cli.timed import as_typed, check_device, no_device, say, say_waiting, settled_by, stop, watched_run
from tilelab.cli.visible import visible

if TYPE_CHECKING:
    from tilelab.grading.timed.pending import Pending, Settled
    from tilelab.grading.timed.running import Ran

A_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def command() -> None:
    """Carry timed points to a GPU: export where the gradebook is, run where the GPU is, import where the gradebook is.

    A bundle holds learners' kernels and tokens, no names. It also holds the key that results are signed with, so keep
    it as you keep the gradebook.
    """


@command.command()
@click.argument("assignment")
@click.option("--course", default="autograder", show_default=True, help="The course's folder.")
@click.option("--student", help="Export the points of one student only.")
@click.option("--out", type=A_FILE, help="The bundle; ASSIGNMENT.jobs.json unless told.")
def export(assignment: str, course: str, student: str | None, out: Path | None) -> None:
    """Write the points of ASSIGNMENT that wait for a GPU into a bundle."""
    with needs_grading():
        from tilelab.grading.lean import course as grading
        from tilelab.grading.timed.bundle import write_bundle
        from tilelab.grading.timed.pending import Pending

        opened = grading.Course(course)
        pending = Pending(opened)
        out = out or Path(f"{assignment}.jobs.json")
        try:
            bundle = pending.export(assignment, opened.students(assignment, student))
            try:
                write_bundle(bundle, out)
            except BaseException:
                pending.forget(bundle.number)
                raise
        except KeyboardInterrupt:
            stop(f"{out} was not written; the same command exports it")
    say_unreadable(pending)
    lines = (
        f"wrote {out}: {len(bundle.jobs)} jobs, {len(bundle.wanted)} measurements. Next, where the GPU is:",
        as_typed("tilelab", "jobs", "run", out),
        f"and then here, with the results: {as_typed('tilelab', 'jobs', 'import', '--course', course)} RESULTS",
    )
    click.echo(visible("\n".join(lines)))


@command.command()
@click.argument("bundle", type=A_FILE)
@click.option("--out", type=A_FILE, help="The results; BUNDLE with .results.jsonl unless told. A second run goes on.")
@click.option("--device", default="0", show_default=True, help="A GPU's number, or emulated: nothing is decided.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def run(bundle: Path, out: Path | None, device: str, as_json: bool) -> None:
    """Measure what BUNDLE wants, and sign the results. Needs this package and a GPU; no nbgrader, no network."""
    with needs_grading():
        from tilelab.grading.errors import GradingError
        from tilelab.grading.timed.bundle import read_bundle
        from tilelab.grading.timed.running import run_bundle

        check_device(device)
        if reason := no_device(device):
            raise GradingError(reason)
        read = read_bundle(bundle)
        out = out or bundle.with_suffix(".results.jsonl")
        try:
            ran = watched_run(run_bundle(read, out, device, waiting=say_waiting), len(read.wanted))
        except KeyboardInterrupt:
            stop(f"{out} keeps what was measured: run this again to go on")
    show_runs(ran, as_json)
    next_ = as_typed("tilelab", "jobs", "import", out)
    say(f"wrote {out}. Next, where the gradebook is: {next_}, with the --course that the export had")


@command.command("import")
@click.argument("results", type=A_FILE)
@click.option("--course", default="autograder", show_default=True, help="The course's folder.")
@click.option("--accept-shipped", is_flag=True, help="Let thresholds hold as shipped where nobody has calibrated.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def import_(results: Path, course: str, accept_shipped: bool, as_json: bool) -> None:
    """Decide the points that RESULTS have measured, and write feedback. What is graded already stays as it is."""
    with needs_grading():
        from tilelab.grading.lean import course as grading
        from tilelab.grading.timed.pending import Pending

        pending = Pending(grading.Course(course), accept_shipped)
        settled = settled_by(pending, pending.settle(results))
    show_settled(settled, as_json)


@command.command()
@click.argument("results", type=A_FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def show(results: Path, as_json: bool) -> None:
    """Show what RESULTS hold: times by both clocks, how many samples, the device's clocks. Nothing is decided."""
    with needs_grading():
        from tilelab.grading.timed.bundle import unverified
        from tilelab.grading.timed.running import Ran

        ran = [Ran(wanted, measured, True) for wanted, measured in unverified(results).items()]
    show_runs(ran, as_json)


def say_unreadable(pending: "Pending") -> None:
    """Say which graded notebooks were left out because they cannot be read."""
    for file in sorted(pending.unreadable):
        say(f"left out: {str(file)!r} cannot be read; grade it again with --force")


def show_runs(ran: "list[Ran]", as_json: bool) -> None:
    """Print what was measured: times, samples and clocks."""
    from tilelab.grading.timed.report import row_of
    from tilelab.measure.records import table

    rows = [row_of(one.wanted, one.measured) for one in ran]
    click.echo(visible(json.dumps({"rows": rows}) if as_json else table(rows)))


def show_settled(settled: "list[Settled]", as_json: bool) -> None:
    """Print what became of each job."""
    rows: list[dict[str, Any]] = [
        {
            "student": one.student,
            "part": one.cell,
            "decided": one.decided,
            "before": one.before,
            "after": one.after,
            "what to know": "; ".join(filter(None, (one.words, one.fault))),
        }
        for one in settled
    ]
    if as_json:
        click.echo(visible(json.dumps({"rows": rows}, ensure_ascii=False)))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tilelab.cli.grade import WIDTH

    count = sum(one.decided for one in settled)
    table = Table("student", "part", "points", "what to know", title=f"{count} of {len(settled)} decided")
    for one, row in zip(settled, rows, strict=True):
        points = f"{one.before:g} → {one.after:g}" if one.decided else "as before"
        table.add_row(*(escape(visible(text)) for text in (one.student, one.cell, points, row["what to know"])))
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    console.print(table)
