"""``tilelab progress``: what a reader has solved, from a file on their own machine."""

import json
from dataclasses import asdict

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def command(as_json: bool) -> None:
    """Show which parts look fine to the instant checks, which are handed in, and what `tilelab check` gave.

    Of some parts an instant check looks at the form only: whether they are right the judge alone tells.

    It is read from a file on this machine, which the notebooks write while you work. Nothing leaves the machine.
    """
    from tilelab.grading.progress import file, progress

    found = progress()
    if as_json:
        click.echo(json.dumps({"file": str(file()), "rows": [asdict(one) for one in found]}, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"kept in {file()}", title_justify="left")
    for column in ("problem", "looks fine", "form only", "handed in", "tilelab check"):
        table.add_column(column, justify="left" if column == "problem" else "right")
    for one in found:
        judged = "" if one.earned is None else f"{one.earned:g} of {one.points:g}"
        table.add_row(
            one.problem, f"{one.fine} of {one.parts}", str(one.open or ""), f"{one.handed_in} of {one.parts}", judged
        )
    Console().print(table)
