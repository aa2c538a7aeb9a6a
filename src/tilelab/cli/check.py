"""``tilelab check``: judge one notebook, without a course."""

import json
from pathlib import Path
from typing import Any

import click

from tilelab.cli.needs import needs_grading
from tilelab.cli.visible import visible


@click.command()
@click.argument("notebook", type=click.Path(path_type=Path))
@click.option("--course", type=click.Path(path_type=Path), help="A clone of the course; found by itself unless told.")
@click.option("--no-sandbox", is_flag=True, help="Run it in no sandbox: only what you wrote yourself.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def command(notebook: Path, course: Path | None, no_sandbox: bool, as_json: bool) -> None:
    """Run NOTEBOOK, a learner's copy of a problem, and show what the judge says of each part.

    It is the judge that grades in a course. No grade is recorded; the points go into the file that `tilelab progress`
    shows, on this machine.
    """
    with needs_grading():
        from tilelab.grading.progress import note
        from tilelab.grading.single import check_notebook

        judged = check_notebook(notebook, course, sandboxed=not no_sandbox)
        note({part.cell: {"earned": part.earned} for part in judged})
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "part": part.cell,
                "score": part.earned,
                "points": part.points,
                "pending": part.pending,
                "report": [*part.lines, *part.notes],
            }
            for part in judged
        ]
        click.echo(visible(json.dumps({"notebook": str(notebook), "rows": rows}, ensure_ascii=False)))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(visible(str(notebook))), title_justify="left")
    table.add_column("part")
    table.add_column("points", justify="right")
    table.add_column("what the judge says")
    for part in judged:
        report = escape(visible("\n".join([*part.lines, *part.notes])))
        table.add_row(part.cell, part.head.removesuffix(" points"), report)
    table.add_section()
    earned, points = sum(part.earned for part in judged), sum(part.points for part in judged)
    table.add_row("together", f"{earned:g} of {points:g}", "")
    Console().print(table)
