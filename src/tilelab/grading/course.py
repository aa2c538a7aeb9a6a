"""Grade the collected submissions of a course: workers run and judge them, one writer records them.

One student's broken submission costs nobody else anything, and every submission gets a recorded result; what fails
for a reason that is not the learner's keeps the grade it had and is reported. Killed at any moment and started
again, grading goes on where it was.
"""

import re
import shlex
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import GenerateFeedback
from nbgrader.utils import capture_log, temp_attrs
from sqlalchemy.exc import DatabaseError, SAWarning
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from tilelab.grading.errors import GradingError
from tilelab.grading.evaluate import GRADED, Evaluated, Job, Released, evaluate, fingerprint, read_graded
from tilelab.grading.farm import Farm, get_ready, kernels
from tilelab.grading.feedback_page import is_of, marked, named, states
from tilelab.grading.judge import Judge
from tilelab.grading.ledger import Ledger
from tilelab.grading.locks import alone_in
from tilelab.grading.nbgrader import REPORT, plan_in
from tilelab.grading.policy import FILE, read_policy
from tilelab.grading.problems import names, problem
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.files import plain_files
from tilelab.grading.sandbox.preflight import require

CONFIG = "nbgrader_config.py"
Status = Literal["graded", "kept", "failed"]


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
    status: Status
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


@dataclass(frozen=True)
class FeedbackJob:
    """Whose feedback is to be written."""

    root: Path
    assignment: str
    student: str


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
        config.merge(Config(CourseDirectory={"root": str(self.root)}))
        self.api = NbGraderAPI(config=config)
        self.policy = read_policy(self.root / FILE)
        self._farm: Farm | None = None

    @contextmanager
    def gradebook(self) -> Iterator[Any]:
        """Open the gradebook; `GradingError` where there is none (none is made by the way) or it cannot be used."""
        url = self.api.coursedir.db_url
        file = Path(url.removeprefix("sqlite:///"))
        if url.startswith("sqlite:///") and not (file.is_file() and file.stat().st_size):
            raise GradingError(f"{str(self.root)!r} has no gradebook: {self._how_to_make_one()}")
        try:
            with Gradebook(url, self.api.coursedir.course_id) as gradebook:
                yield gradebook
        except DatabaseError as error:
            raise GradingError(f"the gradebook of {str(self.root)!r} cannot be used: {error.orig}") from error

    def _how_to_make_one(self) -> str:
        """Say which commands make the gradebook."""
        if (self.root.parent / "tools" / "make_views.py").is_file():
            return (
                f"in {str(self.root.parent)!r} run .venv/bin/python tools/make_views.py source && "
                f"cd {shlex.quote(self.root.name)} && ../.venv/bin/nbgrader generate_assignment exercises"
            )
        return "run nbgrader generate_assignment ASSIGNMENT in it first"

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

    def at_work(self) -> list[str]:
        """Return whose submissions are being graded now, sorted."""
        return sorted({job.student for job in self._farm.at_work()}) if self._farm else []

    def left_out(self, assignment: str) -> list[str]:
        """Return folders that hold the assignment and whose names nbgrader takes for nobody's, sorted."""
        people = self._submitted("-", assignment).parent.parent
        if self._submitted("-", assignment) != people / "-" / assignment or not people.is_dir():
            return []
        known = set(self.api.get_submitted_students(assignment))
        return sorted(one.name for one in people.iterdir() if (one / assignment).is_dir() and one.name not in known)

    def results(self, assignment: str) -> list[Result]:
        """Return what the gradebook holds for everybody who handed the assignment in; nothing is graded.

        What lateness costs follows ``course.toml`` as it is now.
        """
        students = self.students(assignment)
        self._set_due(assignment)
        with self._ledger() as ledger:
            ledger.penalise(assignment)
            return [self._result(ledger, assignment, student, "kept") for student in students]

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

    def grade(
        self, assignment: str, student: str, force: bool = False, sandboxed: bool = True, question: str | None = None
    ) -> Result:
        """Grade one submission in this process; see `grade_all`."""
        return next(iter(self.grade_all(assignment, [student], force, sandboxed=sandboxed, question=question)))

    def grade_all(
        self,
        assignment: str,
        students: Sequence[str],
        force: bool = False,
        workers: int = 1,
        sandboxed: bool = True,
        feedback: bool = True,
        question: str | None = None,
    ) -> Generator[Result, None, None]:
        """Grade submissions, record their scores and write their feedback.

        Parameters
        ----------
        assignment : str
            What was handed in.
        students : sequence of str
            By whom.
        force : bool
            Grade again what has been graded already; without it only a submission that has changed is.
        workers : int
            Processes that grade.
        sandboxed : bool
            Whether learners' code runs in the sandbox. Without it every grade is marked.
        feedback : bool
            Whether to write feedback.
        question : str, optional
            The one notebook to grade again; the others keep what they have. All are graded unless told.

        Yields
        ------
        Result
            As each is done, in any order.

        Raises
        ------
        GradingError
            The sandbox is asked for and has holes, the gradebook cannot be opened, or a check does not load.
        """
        if question is not None and question not in (known := self.notebooks(assignment)):
            raise GradingError(f"{assignment!r} has no question {question!r}; it has {', '.join(known)}")
        self._set_due(assignment)  # says what is wrong before anything runs
        with self._ledger() as ledger:
            ledger.settle(assignment)
            ledger.penalise(assignment)
            kept = [] if force or question else self.graded(assignment, students, sandboxed)
            waiting = [student for student in students if student not in kept]
            if question:
                self._want_the_others(assignment, waiting, question)
            stale = self.stale_feedback(assignment, kept) if feedback else []
            for student in kept:
                if student not in stale:
                    yield self._result(ledger, assignment, student, "kept")
            if not waiting and not stale:
                return
            if (processes := min(workers, len(waiting) + len(stale))) > 1:
                get_ready()
            judge = Judge(self._checks)
            for notebook in self.notebooks(assignment):
                judge.load(notebook)
            if sandboxed and waiting:
                self.require_sandbox()
            with Farm(processes) as farm:
                self._farm = farm
                for student in stale:
                    farm.start(write_feedback, FeedbackJob(self.root, assignment, student))
                for job in self._jobs(assignment, waiting, sandboxed, question):
                    farm.start(work, job)
                for function, argument, outcome in farm.done():
                    if isinstance(outcome, GradingError):
                        student = argument.student
                        yield self._result(ledger, assignment, student, "failed", str(outcome))
                    elif function is work:
                        student = outcome.student
                        try:
                            ledger.record(self._with_the_others(outcome) if question else outcome)
                        except GradingError as error:
                            yield self._result(ledger, assignment, student, "failed", str(error))
                            continue
                        if feedback:
                            farm.start(write_feedback, FeedbackJob(self.root, assignment, student), first=True)
                        else:
                            yield self._result(ledger, assignment, student, "graded")
                    else:
                        status: Status = "kept" if argument.student in kept else "graded"
                        status = "failed" if outcome else status
                        yield self._result(ledger, assignment, argument.student, status, outcome)

    @contextmanager
    def _ledger(self) -> Iterator[Ledger]:
        with self.gradebook():
            pass  # there is one
        ledger = Ledger(self.api.coursedir, self.api.config)
        try:
            yield ledger
        finally:
            ledger.close()

    def _set_due(self, assignment: str) -> None:
        """Tell the gradebook when the assignment is due, by the course's own file; without a word there it stays.

        Raises
        ------
        GradingError
            The file has a word on an assignment that is none.
        """
        due = self.policy.due.get(assignment)
        with self.gradebook() as gradebook:
            known = {found.name for found in gradebook.assignments} | {problem(name).assignment for name in names()}
            for table, said in (("due", self.policy.due), ("weights", self.policy.weights)):
                if unknown := sorted(set(said) - known):
                    raise GradingError(
                        f"{FILE}: [{table}] names {unknown[0]!r}, which is no assignment; there are "
                        f"{', '.join(sorted(known))}"
                    )
            if due is None:
                return
            found = gradebook.find_assignment(assignment)
            plain = due.astimezone(UTC).replace(tzinfo=None)  # nbgrader keeps UTC without saying so
            if found.duedate != plain:
                found.duedate = plain
                gradebook.db.commit()

    def _want_the_others(self, assignment: str, students: Sequence[str], question: str) -> None:
        """Raise `GradingError` where a notebook beside the question has not been graded yet."""
        for student in students:
            for name in self.notebooks(assignment):
                if name != question and not (self._autograded(assignment, student) / f"{name}.ipynb").is_file():
                    raise GradingError(f"{student}'s {name} has not been graded yet: grade the whole assignment first")

    def _with_the_others(self, evaluated: Evaluated) -> Evaluated:
        """Return one graded question together with the notebooks that were graded before."""
        texts: dict[str, str] = {}
        pending: dict[str, float] = {}
        for file in sorted(self._autograded(evaluated.assignment, evaluated.student).glob("*.ipynb")):
            texts[file.stem] = file.read_text(encoding="utf-8")
            if file.stem not in evaluated.notebooks:
                pending |= {cell: report["pending"] for cell, report in _reports_in(file).items() if report["pending"]}
        return replace(
            evaluated, notebooks=texts | dict(evaluated.notebooks), pending=pending | dict(evaluated.pending)
        )

    def require_sandbox(self) -> None:
        """Return if the sandbox is on and shows nothing of the course; raise `GradingError` otherwise."""
        exchange = self.api.config.Exchange.get("root", "/srv/nbgrader/exchange")
        try:
            require([self.root, self.root / CONFIG, self._checks, exchange])
        except SandboxError as error:
            raise GradingError(
                f"{error}. To grade without the sandbox, and mark every grade so, add --no-sandbox"
            ) from error

    @property
    def _checks(self) -> Path:
        return Path(self.api.config.JudgeAnswers.checks)

    def _jobs(
        self, assignment: str, students: Sequence[str], sandboxed: bool, question: str | None = None
    ) -> list[Job]:
        source = Path(self.api.coursedir.format_path(self.api.coursedir.source_directory, ".", assignment))
        with self.gradebook() as gradebook:
            notebooks = sorted(notebook.name for notebook in gradebook.find_assignment(assignment).notebooks)
            released = tuple(
                Released(name, tuple(plan_in(gradebook, name, assignment)), _kernelspec(source / f"{name}.ipynb"))
                for name in notebooks
                if question in (None, name)
            )
        limits = Path(self.api.config.ContainedExecute.get("limits", ""))
        common = (released, self._checks, limits, source if plain_files(source) else None, sandboxed)
        return [
            Job(student, assignment, self._submitted(assignment, student), *common, ahead=number + 1 < len(students))
            for number, student in enumerate(students)
        ]

    def graded(self, assignment: str, students: Sequence[str], sandboxed: bool = True) -> list[str]:
        """Return those students whose submission is graded as it is now."""
        recorded = self._states(assignment, students)  # a gradebook may have been made anew, or lost a student
        return [one for one in students if one in recorded and self._is_graded(assignment, one, sandboxed)]

    def _is_graded(self, assignment: str, student: str, sandboxed: bool) -> bool:
        """Tell whether what a student handed in is what was graded, and as safely."""
        now = fingerprint(self._submitted(assignment, student))
        for name in self.notebooks(assignment):
            file = self._autograded(assignment, student) / f"{name}.ipynb"
            if not file.is_file() or (nb := read_graded(file)) is None:
                return False
            graded = nb.metadata.get(GRADED, {})
            if graded.get("submission") != now or (sandboxed and not graded.get("sandbox")):
                return False
        return True

    def write_feedback(self, assignment: str, student: str) -> str:
        """Write one student's feedback; return what stopped it, or ``""``. Two that write the same take turns."""
        folder = self._autograded(assignment, student).parent
        if not folder.is_dir():
            return f"graded, but no feedback: {str(folder)!r} is gone"
        with alone_in(folder):
            return self._write_feedback(assignment, student)

    def _write_feedback(self, assignment: str, student: str) -> str:
        state = self._states(assignment, [student]).get(student, "")  # first: what changes meanwhile is seen next time
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=SAWarning, module=r"nbgrader\.api")
            with temp_attrs(self.api.coursedir, assignment_id=assignment, student_id=student):
                step = FeedbackOfOne(coursedir=self.api.coursedir, parent=self.api)
                step.update_config(Config(HTMLExporter={"template_name": "feedback"}))
                step.force = True
                done = capture_log(step)
        if done["success"]:
            self._complete_pages(assignment, student, state)
        return "" if done["success"] else f"graded, but no feedback: {_reason(done)}"

    def _complete_pages(self, assignment: str, student: str, state: str) -> None:
        """Let a student's feedback name the parts, where nbgrader calls each of them a test cell, and its grades."""
        reports = self._reports(assignment, student)
        pending = {cell: float(report["pending"]) for cell, report in reports.items()}
        for page in self._feedback(assignment, student).glob("*.html"):
            page.write_text(marked(named(page.read_text(encoding="utf-8"), pending), state), encoding="utf-8")

    def stale_feedback(self, assignment: str, students: Sequence[str]) -> list[str]:
        """Return those students whose feedback is not there, not whole, or not of the grades that there are now."""
        states = self._states(assignment, students)
        return [one for one in students if not self._has_feedback(assignment, one, states.get(one, ""))]

    def _states(self, assignment: str, students: Sequence[str]) -> dict[str, str]:
        with self.gradebook() as gradebook:
            return states(gradebook, assignment, students)

    def _has_feedback(self, assignment: str, student: str, state: str) -> bool:
        folder = self._feedback(assignment, student)
        for name in self.notebooks(assignment):
            html, graded = folder / f"{name}.html", self._autograded(assignment, student) / f"{name}.ipynb"
            if not (html.is_file() and graded.is_file()) or html.stat().st_mtime < graded.stat().st_mtime:
                return False
            if not is_of(html.read_text(errors="replace"), state):
                return False
        return True

    def _result(
        self,
        ledger: Ledger,
        assignment: str,
        student: str,
        status: Status,
        message: str = "",
    ) -> Result:
        reports = self._reports(assignment, student)
        parts = []
        with ledger.reading() as gradebook:
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

    def _reports(self, assignment: str, student: str) -> dict[str, dict[str, Any]]:
        """Return what the judge wrote into the autograded notebooks, by grade cell, in order."""
        reports: dict[str, dict[str, Any]] = {}
        for file in sorted(self._autograded(assignment, student).glob("*.ipynb")):
            reports |= _reports_in(file)
        return reports

    def _submitted(self, assignment: str, student: str) -> Path:
        return self._folder(self.api.coursedir.submitted_directory, assignment, student)

    def _autograded(self, assignment: str, student: str) -> Path:
        return self._folder(self.api.coursedir.autograded_directory, assignment, student)

    def _feedback(self, assignment: str, student: str) -> Path:
        return self._folder(self.api.coursedir.feedback_directory, assignment, student)

    def _folder(self, step: str, assignment: str, student: str) -> Path:
        return Path(self.api.coursedir.format_path(step, student, assignment))


def _reports_in(file: Path) -> dict[str, dict[str, Any]]:
    """Return what the judge wrote into one graded notebook, by grade cell; nothing for one that cannot be read."""
    if (nb := read_graded(file)) is None:
        return {}
    return {
        cell.metadata.nbgrader["grade_id"]: dict(output.metadata[REPORT])
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if REPORT in output.get("metadata", {})
    }


class FeedbackOfOne(GenerateFeedback):
    """nbgrader's ``GenerateFeedback`` for one student, whose name it would take as a pattern."""

    def init_notebooks(self) -> None:
        """Find the graded notebooks in the one folder that has exactly this name."""
        folder = Path(self._format_source(self.coursedir.assignment_id, self.coursedir.student_id))
        self.assignments = {str(folder): [str(file) for file in folder.glob("*.ipynb")]}
        self.notebooks: list[str] = []


def work(job: Job) -> Evaluated:
    """Evaluate one submission, in a worker that keeps a kernel started ahead for the next."""
    return evaluate(job, kernels())


def write_feedback(job: FeedbackJob) -> str:
    """Write one student's feedback, in a worker that keeps the course open."""
    return _course_at(job.root).write_feedback(job.assignment, job.student)


@lru_cache(maxsize=4)
def _course_at(root: Path) -> Course:
    return Course(root)


def _kernelspec(source: Path) -> dict[str, Any]:
    """Return which kernel a notebook was released for."""
    found = nbformat.read(source, 4).metadata.get("kernelspec") if source.is_file() else None
    return dict(found or {"name": "python3", "display_name": "Python 3", "language": "python"})


def _reason(outcome: dict[str, Any]) -> str:
    """Return the exception that nbgrader's log tells of, in one line; what it raises itself only points to the log."""
    text = f"{outcome.get('error', '')}\n{outcome.get('log', '')}"
    raised = re.findall(r"^\s*((?:\w+\.)*\w*(?:Error|Exception|Entry): .+)$", text, re.MULTILINE)
    return raised[-1] if raised else (text.strip().splitlines() or ["nbgrader gave no reason"])[-1]
