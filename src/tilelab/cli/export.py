"""``tilelab export``: results for other systems."""

import json
from pathlib import Path

import click

from tilelab.cli.needs import needs_grading
from tilelab.cli.timed import as_typed
from tilelab.cli.visible import visible


@click.command()
@click.argument("assignments", nargs=-1, required=True)
@click.option("--course", default="autograder", show_default=True, help="The course's folder.")
@click.option(
    "--form", type=click.Choice(["csv", "json", "canvas", "moodle"]), default="csv", show_default=True, help="The form."
)
@click.option("--out", type=click.Path(path_type=Path), help="The file to write; the terminal unless told.")
def command(assignments: tuple[str, ...], course: str, form: str, out: Path | None) -> None:
    """Write what the gradebook holds for ASSIGNMENTS. Nothing is graded.

    Scores are after lateness. Several assignments are for json alone, which then gives the weighted total too, by the
    weights in course.toml; the other forms take one.
    """
    with needs_grading():
        from tilelab.cli.grade import row_of
        from tilelab.grading.course import Course
        from tilelab.grading.errors import GradingError
        from tilelab.grading.export import FORMS, as_csv

        if form != "json" and len(assignments) > 1:
            raise GradingError(
                f"the form {form} takes one assignment, not {len(assignments)}: {', '.join(assignments)}"
            )
        opened = Course(course)
        results = {assignment: opened.results(assignment) for assignment in assignments}
        if form == "json":
            rows = [
                {"assignment": assignment, **row_of(result)}
                for assignment in assignments
                for result in results[assignment]
            ]
            text = json.dumps({"rows": rows, "totals": opened.totals(results)}, ensure_ascii=False, indent=1) + "\n"
        else:
            (assignment,) = assignments
            text = as_csv(FORMS[form](assignment, results[assignment], opened.people()))
        stale = {one: opened.stale_feedback(one, [found.student for found in results[one]]) for one in assignments}
    if out is None:
        click.echo(text, nl=False)
    else:
        with needs_grading():
            out.write_text(text, encoding="utf-8")
        click.echo(f"wrote {out}", err=True)
    for assignment, people in stale.items():
        if people:
            names = f"{', '.join(people[:5])}{', …' if len(people) > 5 else ''}"
            words = f"the feedback of {len(people)} in {assignment} is not of these grades ({names})"
            how = f"write it again by {as_typed('tilelab', 'grade', assignment, '--course', course)}"
            click.echo(visible(f"{words}, which a person or the rules have changed since: {how}"), err=True)
