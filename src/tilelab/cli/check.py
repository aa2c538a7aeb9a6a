"""``tilelab check``: judge one notebook, without a course."""

import json
from pathlib import Path
from typing import Any

import click

from tilelab.cli.needs import needs_grading


@click.command()
@click.argument("notebook", type=click.Path(path_type=Path))
@click.option("--course", type=click.Path(path_type=Path), help="A clone of the course; found by itself unless told.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def command(notebook: Path, course: Path | None, as_json: bool) -> None:
    """Run NOTEBOOK, a learner's copy of a problem, and show what the judge says of each part.

    It is the judge that grades in a course. Nothing is recorded.
    """
    with needs_grading():
        from tilelab.grading.single import check_notebook

        judged = check_notebook(notebook, course)
    if as_json:
        rows: list[dict[str, Any]] = [
            {"part": j.cell, "score": j.earned, "points": j.points, "pending": j.pending, "report": [*j.lines, *j.notes]}
            for j in judged
        ]
        click.echo(json.dumps({"notebook": str(notebook), "rows": rows}, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=str(notebook), title_justify="left")
    table.add_column("part")
    table.add_column("points", justify="right")
    table.add_column("what the judge says")
    for j in judged:
        waiting = f"\n{j.pending:g} pending" if j.pending else ""
        table.add_row(j.cell, f"{j.earned:g} of {j.points:g}{waiting}", "\n".join([*j.lines, *j.notes]))
    table.add_section()
    table.add_row("together", f"{sum(j.earned for j in judged):g} of {sum(j.points for j in judged):g}", "")
    Console().print(table, markup=False)
