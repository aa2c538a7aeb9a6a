"""Grade the collected submissions of a course: nbgrader's own steps through its Python API, one student at a time.

One student's broken submission costs nobody else anything, and every submission gets a recorded result; what fails
for a reason that is not the learner's keeps the grade it had and is reported.
"""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, Literal

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import Autograde
from nbgrader.utils import capture_log, temp_attrs
from sqlalchemy.exc import DatabaseError, SAWarning
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from tilelab.grading.errors import GradingError
from tilelab.grading.nbgrader import REPORT
from tilelab.grading.policy import FILE, read_policy
from tilelab.grading.problems import names, split

CONFIG = "nbgrader_config.py"


@dataclass(frozen=True)
class PartResult:
    """One grade cell in the gradebook, with the judge's report."""

    cell: str
    notebook: str
    score: float
    points: float
    pending: float
    needs_person: bool
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What the gradebook holds for one student after grading.

    ``status`` is ``graded`` now, ``kept`` from an earlier run of the same submission, or ``failed`` for a reason that
    is not the learner's; ``message`` then says which.
    """

    student: str
    status: Literal["graded", "kept", "failed"]
    score: float
    points: float
    parts: tuple[PartResult, ...]
    message: str = ""
    penalty: float = 0.0
    seconds_late: float = 0.0

    @property
    def net(self) -> float:
        """The score after what lateness costs."""
        return max(self.score - self.penalty, 0.0)

    @property
    def pending(self) -> float:
        """Points that wait for a GPU or a person."""
        return sum(part.pending for part in self.parts)

    def notebook_score(self, notebook: str) -> float:
        """Return the score of one notebook."""
        return sum(part.score for part in self.parts if part.notebook == notebook)


@dataclass(frozen=True)
class Student:
    """Who a result belongs to, as the gradebook knows them; empty where it does not."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_id: str = ""


class Course:
    """An nbgrader course that uses the judge.

    Parameters
    ----------
    root : path
        The course's folder: it holds ``nbgrader_config.py`` and the gradebook.

    Raises
    ------
    GradingError
        There is no such folder or configuration, or the configuration does not use the judge.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).absolute()
        if not self.root.is_dir():
            raise GradingError(f"no course folder {str(root)!r}")
        if not (self.root / CONFIG).is_file():
            raise GradingError(f"{str(root)!r} is not a course: it has no {CONFIG}")
        try:
            config = PyFileConfigLoader(CONFIG, path=str(self.root)).load_config()
        except Exception as error:  # it is a program, so anything can go wrong in it
            raise GradingError(f"{str(self.root / CONFIG)!r} does not load: {type(error).__name__}: {error}") from error
        if not any("JudgeAnswers" in str(step) for step in config.Autograde.get("autograde_preprocessors", [])):
            raise GradingError(
                f"{str(root)!r} does not use the judge: call tilelab.grading.nbgrader.configure in {CONFIG}"
            )
        _put_alembic_on_path()
        config.merge(Config(CourseDirectory={"root": str(self.root)}))
        self.api = NbGraderAPI(config=config)
        self.policy = read_policy(self.root / FILE)

    @contextmanager
    def gradebook(self) -> Iterator[Any]:
        """Open the gradebook; `GradingError` where there is none (none is made by the way) or it cannot be used."""
        url = self.api.coursedir.db_url
        if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
            raise GradingError(f"{str(self.root)!r} has no gradebook: run nbgrader generate_assignment in it first")
        try:
            with Gradebook(url, self.api.coursedir.course_id) as gradebook:
                yield gradebook
        except DatabaseError as error:
            raise GradingError(f"the gradebook of {str(self.root)!r} cannot be used: {error.orig}") from error

    def notebooks(self, assignment: str) -> list[str]:
        """Return the names of an assignment's notebooks, sorted, or raise `GradingError` that lists the assignments."""
        with self.gradebook() as gradebook:
            known = sorted(found.name for found in gradebook.assignments)
            if assignment not in known:
                raise GradingError(
                    f"no assignment {assignment!r} in this course; it has {', '.join(known) or 'none yet'}"
                )
            return sorted(notebook.name for notebook in gradebook.find_assignment(assignment).notebooks)

    def students(self, assignment: str, only: str | None = None) -> list[str]:
        """Return who handed the assignment in, sorted.

        Raises
        ------
        GradingError
            There is no such assignment, nobody handed it in, or ``only`` did not.
        """
        self.notebooks(assignment)
        found = sorted(self.api.get_submitted_students(assignment))
        if not found:
            raise GradingError(
                f"nobody has handed in {assignment!r} yet: nothing in {self._submitted('…', assignment)}"
            )
        if only is not None:
            if only not in found:
                raise GradingError(
                    f"{only!r} has not handed in {assignment!r}: nothing in {self._submitted(assignment, only)}"
                )
            return [only]
        return found

    def results(self, assignment: str) -> list[Result]:
        """Return what the gradebook holds for everybody who handed the assignment in; nothing is graded."""
        return [self._result(assignment, student, "kept") for student in self.students(assignment)]

    def people(self) -> dict[str, Student]:
        """Return everybody in the gradebook, by their id."""
        with self.gradebook() as gradebook:
            return {
                one.id: Student(
                    one.id, one.first_name or "", one.last_name or "", one.email or "", str(one.lms_user_id or "")
                )
                for one in gradebook.students
            }

    def totals(self, results: Mapping[str, Sequence[Result]]) -> dict[str, float]:
        """Return each student's share of the whole course, by the weights in ``course.toml``.

        An assignment that a student has not handed in counts 0; one without a weight counts for nothing.
        """
        totals: dict[str, float] = {}
        for assignment, found in results.items():
            weight = self.policy.weights.get(assignment, 0.0)
            for result in found:
                share = weight * result.net / result.points if result.points else 0.0
                totals[result.student] = round(totals.get(result.student, 0.0) + share, 4)
        return totals

    def grade(self, assignment: str, student: str, force: bool = False, question: str | None = None) -> Result:
        """Autograde one submission, store its scores and write its feedback.

        Parameters
        ----------
        assignment, student : str
            Whose submission of what.
        force : bool
            Grade again what has been graded already; without it only a newer submission is.
        question : str, optional
            The one notebook to grade; all of the assignment's unless told.
        """
        if question is not None and question not in (known := self.notebooks(assignment)):
            raise GradingError(f"{assignment!r} has no question {question!r}; it has {', '.join(known)}")
        self._set_due(assignment)
        graded_before = self._autograded(assignment, student).is_dir()
        force = force or (graded_before and not self._finished(assignment, student))
        stamp = self._stamp(assignment, student)
        only = {"notebook_id": question} if question else {}
        with temp_attrs(self.api.coursedir, assignment_id=assignment, student_id=student, **only):
            step = AutogradeAll(coursedir=self.api.coursedir, parent=self.api)
            step.force = force
            with _contained():
                outcome = capture_log(step)
        if not outcome["success"]:
            return self._result(assignment, student, "failed", _reason(outcome))
        kept = graded_before and not force and question is None and stamp == self._stamp(assignment, student)
        if kept and self._feedback(assignment, student).is_dir():
            return self._result(assignment, student, "kept")
        feedback = self.api.generate_feedback(assignment, student, force=True)
        if not feedback["success"]:
            return self._result(assignment, student, "failed", f"graded, but no feedback: {_reason(feedback)}")
        return self._result(assignment, student, "graded")

    def _result(
        self, assignment: str, student: str, status: Literal["graded", "kept", "failed"], message: str = ""
    ) -> Result:
        reports = self._reports(assignment, student)
        parts = []
        with self.gradebook() as gradebook:
            try:
                submission = gradebook.find_submission(assignment, student)
            except MissingEntry:
                return Result(student, "failed", 0.0, 0.0, (), message or "nothing was recorded")
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    report = reports.get(grade.name, {})
                    waits = bool(grade.needs_manual_grade)
                    parts.append(
                        PartResult(
                            cell=grade.name,
                            notebook=notebook.name,
                            score=float(grade.score or 0.0),
                            points=float(grade.max_score),
                            pending=float(report.get("pending", grade.max_score)) if waits else 0.0,
                            needs_person=waits,
                            lines=tuple(report.get("lines", ())),
                            notes=tuple(report.get("notes", ())),
                            versions=dict(report.get("versions", {})),
                        )
                    )
            score, points = float(submission.score), float(submission.max_score)
            penalty, late = float(submission.late_submission_penalty or 0), float(submission.total_seconds_late or 0)
        order = list(reports)  # as the parts stand in the notebook
        parts.sort(key=lambda part: (part.notebook, order.index(part.cell) if part.cell in reports else len(order)))
        return Result(student, status, score, points, tuple(parts), message, penalty, late)

    def _finished(self, assignment: str, student: str) -> bool:
        """Whether an earlier run came to its end: one that was stopped leaves notebooks out, or not yet judged."""
        folder = self._autograded(assignment, student)
        ours = [name for name in self.notebooks(assignment) if name in names()]
        judged = {split(cell)[0] for cell in self._reports(assignment, student)}
        return all((folder / f"{name}.ipynb").is_file() and name in judged for name in ours)

    def _set_due(self, assignment: str) -> None:
        """Tell the gradebook when the assignment is due, by the course's own file; without a word there it stays."""
        due = self.policy.due.get(assignment)
        if due is None:
            return
        with self.gradebook() as gradebook:
            found = gradebook.find_assignment(assignment)
            plain = due.astimezone(UTC).replace(tzinfo=None)  # nbgrader keeps UTC without saying so
            if found.duedate != plain:
                found.duedate = plain
                gradebook.db.commit()

    def _reports(self, assignment: str, student: str) -> dict[str, dict[str, Any]]:
        """Return what the judge wrote into the autograded notebooks, by grade cell, in order."""
        reports = {}
        for file in sorted(self._autograded(assignment, student).glob("*.ipynb")):
            for cell in nbformat.read(file, 4).cells:
                for output in cell.get("outputs", []):
                    if REPORT in output.get("metadata", {}):
                        reports[cell.metadata.nbgrader["grade_id"]] = output.metadata[REPORT]
        return reports

    def _submitted(self, assignment: str, student: str) -> Path:
        return self._folder(self.api.coursedir.submitted_directory, assignment, student)

    def _autograded(self, assignment: str, student: str) -> Path:
        return self._folder(self.api.coursedir.autograded_directory, assignment, student)

    def _feedback(self, assignment: str, student: str) -> Path:
        return self._folder(self.api.coursedir.feedback_directory, assignment, student)

    def _folder(self, step: str, assignment: str, student: str) -> Path:
        return Path(self.api.coursedir.format_path(step, student, assignment))

    def _stamp(self, assignment: str, student: str) -> int:
        """Return when the autograded folder was made, to tell a new run from a kept one."""
        folder = self._autograded(assignment, student)
        return folder.stat().st_ctime_ns if folder.is_dir() else 0


class AutogradeAll(Autograde):
    """nbgrader's ``Autograde`` for one student, for all notebooks of the assignment, handed in or not.

    nbgrader stops where it finds no notebook; here a missing one goes the way of an unreadable one, and is recorded
    as 0 with the reason.
    """

    def init_notebooks(self) -> None:
        """Expect what the gradebook expects."""
        directory = self.coursedir
        folder = Path(self._format_source(directory.assignment_id, directory.student_id))
        with Gradebook(directory.db_url, directory.course_id) as gradebook:
            expected = sorted(
                notebook.name for notebook in gradebook.find_assignment(directory.assignment_id).notebooks
            )
        if directory.notebook_id != "*":
            expected = [directory.notebook_id]
        self.assignments = {str(folder): [str(folder / f"{name}.ipynb") for name in expected]}
        self.notebooks: list[str] = []


def _put_alembic_on_path() -> None:
    """Let nbgrader find ``alembic``, which it starts by name, in a virtual environment that is not activated."""
    beside = Path(sys.executable).parent
    if shutil.which("alembic") is None and (beside / "alembic").is_file():
        os.environ["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", "")])


@contextmanager
def _contained() -> Iterator[None]:
    """Keep nbgrader's habits inside: it leaves ``NBGRADER_EXECUTION`` set on failure, and its models warn."""
    before = os.environ.get("NBGRADER_EXECUTION")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=SAWarning, module=r"nbgrader\.api")
            yield
    finally:
        if before is None:
            os.environ.pop("NBGRADER_EXECUTION", None)
        else:
            os.environ["NBGRADER_EXECUTION"] = before


def _reason(outcome: dict[str, Any]) -> str:
    """Return the exception that nbgrader's log tells of, in one line; what it raises itself only points to the log."""
    text = f"{outcome.get('error', '')}\n{outcome.get('log', '')}"
    raised = re.findall(r"^\s*((?:\w+\.)*\w*(?:Error|Exception|Entry): .+)$", text, re.MULTILINE)
    return raised[-1] if raised else (text.strip().splitlines() or ["nbgrader gave no reason"])[-1]
