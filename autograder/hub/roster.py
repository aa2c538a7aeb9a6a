"""A course's learners: the CSV file that names them, one a line."""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass

from tilelab.grading.errors import GradingError

#: What JupyterHub, nbgrader, Unix and the exchange all take for a user's name.
USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
COLUMNS = ("id", "first_name", "last_name", "email")


@dataclass(frozen=True)
class Learner:
    """One line of the roster."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""


def read_roster(text: str, name: str = "the roster") -> tuple[Learner, ...]:
    """Read a roster: CSV whose first line names the columns, ``id`` among them.

    Raises
    ------
    GradingError
        Quoting the line.
    """
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        lines = [(rows.line_num, [cell.strip() for cell in row]) for row in rows if any(map(str.strip, row))]
    except csv.Error as error:
        raise GradingError(f"{name}, line {rows.line_num}: {error}") from error
    if not lines:
        raise GradingError(f"{name} is empty: its first line is {','.join(COLUMNS)}")
    (_, header), *rest = lines
    if unknown := sorted(set(header) - set(COLUMNS)):
        raise GradingError(f"{name}: the column {unknown[0]!r} is not known; {', '.join(COLUMNS)} are")
    if "id" not in header or len(set(header)) < len(header):
        raise GradingError(f"{name}: the first line is {','.join(header)!r}; it names each column once, id among them")
    learners, seen = [], dict[str, int]()
    for number, row in rest:
        if len(row) != len(header):
            raise GradingError(f"{name}, line {number}: {len(row)} cells where the first line names {len(header)}")
        learner = Learner(**dict(zip(header, row, strict=True)))
        if not USER.fullmatch(learner.id):
            raise GradingError(f"{name}, line {number}: {no_user(learner.id)}")
        if learner.id in seen:
            raise GradingError(f"{name}, line {number}: {learner.id!r} is in line {seen[learner.id]} already")
        seen[learner.id] = number
        learners.append(learner)
    return tuple(learners)


def write_roster(learners: Iterable[Learner]) -> str:
    """Return the roster that `read_roster` reads."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(COLUMNS)
    lines.writerows([getattr(learner, column) for column in COLUMNS] for learner in learners)
    return text.getvalue()


def no_user(name: str) -> str:
    """Return why a name is none."""
    return f"{name!r} is no user name: up to 32 small letters, digits and . _ - are, beginning with a letter or _"
