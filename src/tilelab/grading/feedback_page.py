"""What nbgrader's feedback page leaves unsaid.

Which part a line of its score list is about, what still waits, and of which grades the page is.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nbgrader.api import Assignment, Comment, Grade, SubmittedAssignment, SubmittedNotebook

#: A line of the list on top: nbgrader calls every part "Test cell".
LINE = re.compile(
    r'<a href="#(?P<cell>\w+)">(?:Test cell|Written response|Coding free-response|Task)</a> '
    r"\(Score: (?P<score>[^)<]*)\)"
)


def named(html: str, pending: Mapping[str, float]) -> str:
    """Return a feedback page whose score list names the parts.

    Parameters
    ----------
    html : str
        The page as nbgrader wrote it.
    pending : mapping
        Points that wait, by grade cell.
    """

    def line(match: re.Match[str]) -> str:
        cell, score = match["cell"], match["score"]
        waits = f", {pending[cell]:g} pending" if pending.get(cell) else ""
        return f'<a href="#{cell}">{cell}</a> (Score: {score}{waits})'

    return LINE.sub(line, html)


def states(gradebook: Any, assignment: str, students: Sequence[str]) -> dict[str, str]:
    """Return a digest of everything in the gradebook that a student's feedback shows, by student.

    Parameters
    ----------
    gradebook : Gradebook
        The course's.
    assignment : str
        Of what.
    students : sequence of str
        Whose.
    """
    shown: dict[str, list[str]] = {}
    scores = (Grade.cell_id, Grade.auto_score, Grade.manual_score, Grade.extra_credit)
    penalty = SubmittedNotebook.late_submission_penalty
    for what in ((*scores, penalty), (Comment.cell_id, Comment.auto_comment, Comment.manual_comment)):
        owner = Grade if what[0] is Grade.cell_id else Comment
        rows = (
            gradebook.db.query(SubmittedAssignment.student_id, *what)
            .select_from(owner)
            .join(SubmittedNotebook, owner.notebook_id == SubmittedNotebook.id)
            .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
            .filter(Assignment.name == assignment, SubmittedAssignment.student_id.in_(students))
            .order_by(what[0])
        )
        for student, *values in rows:
            shown.setdefault(student, []).append(repr([value or 0 for value in values]))
    return {student: hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] for student, lines in shown.items()}


def marked(html: str, state: str) -> str:
    """Return a feedback page that says, to programs, of which grades it is; see `states`."""
    head, end, rest = html.rpartition("</html>")
    return f"{head}{_mark(state)}{end}{rest}"


def is_of(html: str, state: str) -> bool:
    """Tell whether a feedback page is whole and of these grades."""
    return html.rstrip().endswith(f"{_mark(state)}</html>")


def _mark(state: str) -> str:
    return f"<!-- of the grades {state} -->"
