"""Results as tables for elsewhere: plain CSV, and the columns that Canvas and Moodle import.

Sources: Canvas, *How do I import grades in the Gradebook?*; Moodle, *Grade import*.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from tilelab.grading.course import Result, Student

#: Cells that a spreadsheet would take for a formula begin with one of these.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
Table = tuple[list[str], list[list[object]]]


def plain(assignment: str, results: Sequence[Result], students: Mapping[str, Student]) -> Table:
    """One row for each student and part, and one for the whole."""
    header = [
        "student",
        "assignment",
        "notebook",
        "part",
        "score",
        "points",
        "pending",
        "penalty",
        "status",
        "versions",
    ]
    rows: list[list[object]] = []
    for result in results:
        for part in result.parts:
            said = " ".join(f"{name}={value}" for name, value in part.versions.items())
            row = [part.notebook, part.cell, part.score, part.points, part.pending, "", result.status, said]
            rows.append([result.student, assignment, *row])
        whole = ["", "together", result.net, result.points, result.pending, result.penalty, result.status, ""]
        rows.append([result.student, assignment, *whole])
    return header, rows


def canvas(assignment: str, results: Sequence[Result], students: Mapping[str, Student]) -> Table:
    """Canvas's gradebook: five columns that find a student, then the assignment; a first row with the points."""
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", assignment]
    points = max((result.points for result in results), default=0.0)
    rows: list[list[object]] = [["    Points Possible", "", "", "", "", points]]
    for result in results:
        who = students.get(result.student, Student(result.student))
        name = ", ".join(filter(None, (who.last_name, who.first_name))) or who.id
        rows.append([name, who.lms_id, "", who.id, "", result.net])
    return header, rows


def moodle(assignment: str, results: Sequence[Result], students: Mapping[str, Student]) -> Table:
    """Moodle's grade import: the user by name and address, the grade, and what is said to them."""
    header = ["Username", "First name", "Last name", "Email address", assignment, "Feedback comments"]
    rows: list[list[object]] = []
    for result in results:
        who = students.get(result.student, Student(result.student))
        said = f"{result.pending:g} points are pending" if result.pending else ""
        rows.append([who.id, who.first_name, who.last_name, who.email, result.net, said])
    return header, rows


FORMS: dict[str, Callable[[str, Sequence[Result], Mapping[str, Student]], Table]] = {
    "csv": plain,
    "canvas": canvas,
    "moodle": moodle,
}


def as_csv(table: Table) -> str:
    """Write a table as CSV; what a spreadsheet would run as a formula becomes text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    header, rows = table
    writer.writerow(map(_cell, header))
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    return f"'{text}" if text.startswith(FORMULAS) else text
