"""A course in a folder of its own, and submissions made from the masters: for the demo class and for the tests."""

import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tilelab.grading.budgets import FILE as LIMITS
from tilelab.grading.course import CONFIG, Course
from tilelab.grading.errors import GradingError
from tilelab.grading.policy import FILE
from tilelab.grading.timed.thresholds import FILE as THRESHOLDS
from tilelab.grading.views import MARKER, learners_copy_of, source_of

AUTOGRADER = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(AUTOGRADER.parent / "tools"))

from make_views import MASTERS, write_source  # noqa: E402  (from the folder that was just put on the path)


def make_course(folder: Path, *assignments: str, problems: Collection[str] = ()) -> Course:
    """Copy the course's configuration and checks, make the sources, and generate the assignments.

    With ``problems`` the assignments consist of these alone.
    """
    folder.mkdir(parents=True)
    for file in (CONFIG, FILE, LIMITS, THRESHOLDS):
        shutil.copy(AUTOGRADER / file, folder)
    shutil.copytree(AUTOGRADER / "checks", folder / "checks", ignore=shutil.ignore_patterns("__pycache__"))
    for source in write_source(folder / "source"):
        if problems and source.stem not in problems:
            source.unlink()
    course = Course(folder)
    for assignment in assignments:
        done = course.api.generate_assignment(assignment)
        if not done["success"]:
            raise GradingError(f"{assignment} was not generated: {done.get('log')}")
    return course


def solved(problem: str, changes: Mapping[str, str] | None = None) -> NotebookNode:
    """Return the learner's copy of a problem with the master's answers filled in.

    Parameters
    ----------
    problem : str
        Its name.
    changes : mapping, optional
        Grade ids of answer cells, each with the source that stands there instead.
    """
    master = MASTERS / f"{problem}.md"
    notebook = learners_copy_of(master, AUTOGRADER)
    answers = {
        cell.metadata.nbgrader.grade_id: MARKER.sub("", cell.source)
        for cell in source_of(master).cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    answers.update(changes or {})
    for cell in notebook.cells:
        if (name := cell.metadata.get("nbgrader", {}).get("grade_id")) in answers:
            cell.source = answers[name]
    return notebook


def hand_in(course: Course, student: str, assignment: str, *notebooks: tuple[str, NotebookNode | str | bytes]) -> Path:
    """Put files where ``nbgrader collect`` would, and return the folder. Text and bytes are written as they are."""
    folder = course.root / "submitted" / student / assignment
    folder.mkdir(parents=True)
    for name, content in notebooks:
        if isinstance(content, NotebookNode):
            content = nbformat.writes(content)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
