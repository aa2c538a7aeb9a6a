"""Points that wait in a gradebook: what they need measured, and their decision when it has been.

What a token of a bundle stands for is kept in the course's folder ``jobs/``, beside the key. A point is decided once:
what was handed in anew, graded by a person or decided before is left alone, and said.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import MissingEntry

from tilelab.grading.answers import MIME, read
from tilelab.grading.course import Course
from tilelab.grading.errors import GradingError
from tilelab.grading.evaluate import GRADED, fingerprint, read_graded
from tilelab.grading.judge import Judge, Judged, Verdict
from tilelab.grading.ledger import Ledger
from tilelab.grading.nbgrader import REPORT, write
from tilelab.grading.problems import split
from tilelab.grading.timed import thresholds as numbers
from tilelab.grading.timed.bundle import (
    Bundle,
    bundle_key,
    kept_key_of,
    key_of,
    make_bundle,
    number_in,
    private,
    read_results,
)
from tilelab.grading.timed.report import drawing
from tilelab.grading.timed.thresholds import Thresholds, read_thresholds
from tilelab.grading.timed.wanted import Measured, Wanted, digest

FOLDER = "jobs"
#: What is remembered of a job.
KEPT = "student", "notebook", "cell", "submission", "answers", "wanted"
#: What is said of a part that an earlier import decided.
BEFORE = "it was decided before: nothing is changed"


@dataclass(frozen=True)
class Waiting:
    """A grade cell of which points wait for a GPU.

    ``submission`` and ``answers`` are fingerprints: of what was handed in, and of what the judge read in it.
    """

    student: str
    notebook: str
    cell: str
    submission: str
    answers: str
    wanted: Wanted


@dataclass(frozen=True)
class Settled:
    """What became of one job: ``score`` before and after where it was decided, else why not."""

    student: str
    cell: str
    decided: bool
    before: float = 0.0
    after: float = 0.0
    words: str = ""


class Pending:
    """The points of a course that wait for a GPU.

    Parameters
    ----------
    course : Course
        The course.
    accept_shipped : bool
        Whether the thresholds hold as shipped on a device that is not calibrated.
    """

    def __init__(self, course: Course, accept_shipped: bool = False) -> None:
        self._course = course
        self._accept = accept_shipped or course.policy.accept_shipped
        self._checks = Path(course.api.config.JudgeAnswers.checks)
        self._judge = Judge(self._checks)
        self._folder = course.root / FOLDER
        #: Graded notebooks that cannot be read any more, as far as anybody has looked.
        self.unreadable: set[Path] = set()

    @property
    def thresholds(self) -> Thresholds:
        """The course's thresholds, or those beside its checks."""
        files = [self._course.root / numbers.FILE, self._checks.parent / numbers.FILE]
        return read_thresholds(next((file for file in files if file.is_file()), files[0]))

    def waiting(self, assignment: str, students: Sequence[str] | None = None) -> list[Waiting]:
        """Return the grade cells that wait, of all who handed the assignment in unless told.

        A graded notebook that cannot be read is left out, and noted in ``unreadable``.

        Raises
        ------
        GradingError
            The thresholds file says nothing of a part that waits.
        """
        found: list[Waiting] = []
        said = self.thresholds
        with self._course.gradebook() as gradebook:
            for student in self._course.students(assignment) if students is None else students:
                for file in sorted(self._place("autograded_directory", assignment, student).glob("*.ipynb")):
                    if (nb := self._graded(file)) is None:
                        continue
                    for cell, answers in _pending_cells(nb):
                        timer = self._judge.timer(cell)
                        if timer is None or _not_waiting(gradebook, assignment, student, file.stem, cell):
                            continue
                        asked = said.part(cell)
                        try:
                            wanted = timer(answers, asked)
                        except Exception:  # answers that the check itself could not read: a person looks at them
                            continue
                        if wanted is not None:
                            submission = str(nb.metadata.get(GRADED, {}).get("submission", ""))
                            found.append(Waiting(student, file.stem, cell, submission, digest(answers), wanted))
        return found

    def export(self, assignment: str, students: Sequence[str] | None = None) -> Bundle:
        """Make a bundle of all that waits, and remember whose it is.

        Raises
        ------
        GradingError
            Nothing waits, or the key cannot be used.
        """
        found = self.waiting(assignment, students)
        if not found:
            raise GradingError(f"no points of {assignment!r} wait for a GPU: nothing to export")
        secrets.SystemRandom().shuffle(found)  # whoever knows the class could read names from an order of names
        bundle = make_bundle(key_of(self._folder), ((one.cell, one.wanted) for one in found), self.thresholds)
        whose = {
            job.token: {name: value for name, value in asdict(one).items() if name != "wanted"} | {"wanted": job.wanted}
            for job, one in zip(bundle.jobs, found, strict=True)
        }
        kept = {"assignment": assignment, "exported": datetime.now(UTC).isoformat(timespec="seconds"), "jobs": whose}
        private(self._folder / f"{bundle.number}.json", json.dumps(kept, indent=1).encode())
        return bundle

    def settle(self, results: Path) -> Iterator[Settled]:
        """Decide what a results file has measured, and yield each job's outcome.

        Raises
        ------
        GradingError
            The file is changed, damaged, or belongs to a bundle that this course did not export.
        """
        number = number_in(results)
        kept = self._folder / f"{number}.json"
        if not kept.is_file():
            raise GradingError(f"{str(results)!r} belongs to a bundle that this course did not export")
        measured = read_results(results, bundle_key(kept_key_of(self._folder), number), number)
        by_student: dict[str, list[dict[str, str]]] = {}
        try:
            about = json.loads(kept.read_text())
            for job in sorted(about["jobs"].values(), key=lambda job: [str(job[name]) for name in KEPT]):
                by_student.setdefault(job["student"], []).append(job)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise GradingError(f"{str(kept)!r}, which says whose the results are, is damaged: export again") from None
        ledger = Ledger(self._course.api.coursedir, self._course.api.config)
        try:
            ledger.settle(about["assignment"])
            for student, jobs in by_student.items():
                yield from self._settle_one(ledger, about["assignment"], student, jobs, measured)
        finally:
            ledger.close()

    def _settle_one(
        self,
        ledger: Ledger,
        assignment: str,
        student: str,
        jobs: Sequence[Mapping[str, str]],
        measured: Mapping[str, Measured],
    ) -> Iterator[Settled]:
        """Decide one student's jobs, and record them together."""
        said, notebooks = self.thresholds, dict[str, NotebookNode]()
        scores: dict[tuple[str, str], tuple[float, bool]] = {}
        outcomes = []
        with ledger.alone():  # what waits now must still wait when it is written
            for job in jobs:
                notebook, cell = job["notebook"], job["cell"]
                outcome = measured.get(job["wanted"])
                file = self._place("autograded_directory", assignment, student) / f"{notebook}.ipynb"
                why = "it has not been measured yet" if outcome is None else self._stale(ledger, assignment, job, file)
                if why or outcome is None:
                    outcomes.append(Settled(student, cell, False, words=why))
                    continue
                nb = notebooks.get(notebook) or nbformat.read(file, 4)
                mark = said.mark(cell, str(outcome.device.get("name")), self._accept)
                verdict = self._decide(cell, _answers_of(nb, cell), outcome, mark)
                if verdict.pending:
                    outcomes.append(Settled(student, cell, False, words="; ".join(filter(None, verdict.lines))))
                    continue
                old, new = _write_verdict(nb, cell, verdict, outcome)
                notebooks[notebook], scores[notebook, cell] = nb, (new, False)
                outcomes.append(Settled(student, cell, True, old, new, "; ".join(verdict.lines)))
            if scores:
                ledger.amend(student, assignment, {name: nbformat.writes(nb) for name, nb in notebooks.items()}, scores)
        before = any(one.words == BEFORE for one in outcomes)  # by an import that was stopped before it wrote feedback?
        if scores or (before and self._course.stale_feedback(assignment, [student])):
            fault = self._course.write_feedback(assignment, student)
            outcomes += [Settled(student, "feedback", False, words=fault)] if fault else []
        yield from outcomes

    def _stale(self, ledger: Ledger, assignment: str, job: Mapping[str, str], file: Path) -> str:
        """Say why a job is no longer what was exported, or ``""``."""
        student, cell = job["student"], job["cell"]
        if not file.is_file():
            return "its graded notebook is gone"
        if (nb := self._graded(file)) is None:
            return "its graded notebook cannot be read: grade it again, and export again"
        if not (submitted := self._place("submitted_directory", assignment, student)).is_dir():
            return "what was handed in is gone"
        handed_in = fingerprint(submitted)
        graded = str(nb.metadata.get(GRADED, {}).get("submission", ""))
        if not job["submission"] == graded == handed_in:
            return "another submission was handed in since: grade it, and export again"
        waits = {name: digest(answers) for name, answers in _pending_cells(nb)}
        if cell not in waits:
            return BEFORE
        if waits[cell] != job["answers"]:
            return "its answers are others now: export again"
        with ledger.reading() as gradebook:
            return _not_waiting(gradebook, assignment, student, file.stem, cell)

    def _graded(self, file: Path) -> NotebookNode | None:
        """Return a graded notebook, or ``None`` for one that cannot be read."""
        if (nb := read_graded(file)) is None:
            self.unreadable.add(file)
        return nb

    def _decide(self, cell: str, answers: dict[str, Any], measured: Measured, mark: numbers.Mark | None) -> Verdict:
        settler = self._judge.settler(cell)
        if settler is None:
            return Verdict(0.0, ("the course has no rule for this part any more",), pending=1.0)
        try:
            return settler(answers, measured, mark)
        except Exception as error:  # a fault of ours, so never a zero for the learner
            return Verdict(0.0, (f"the rule itself failed ({type(error).__name__}: {error})",), pending=1.0)

    def _place(self, step: str, assignment: str, student: str) -> Path:
        directory = self._course.api.coursedir
        return Path(directory.format_path(getattr(directory, step), student, assignment))


def _pending_cells(nb: NotebookNode) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the grade cells of a graded notebook of which points wait, with their answers."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            report = output.get("metadata", {}).get(REPORT, {})
            if report.get("pending") and MIME in output.get("data", {}):
                name = cell.metadata.nbgrader["grade_id"]
                yield name, read([output.data[MIME]], split(name)[0])["answers"]


def _answers_of(nb: NotebookNode, cell: str) -> dict[str, Any]:
    return next(answers for name, answers in _pending_cells(nb) if name == cell)


def _not_waiting(gradebook: Any, assignment: str, student: str, notebook: str, cell: str) -> str:
    """Say why points of a cell do not wait by the gradebook, or ``""``."""
    try:
        grade = gradebook.find_grade(cell, notebook, assignment, student)
    except MissingEntry:
        return "the gradebook has no grade of it: grade it, and export again"
    if not grade.needs_manual_grade or grade.manual_score is not None:
        return "a person has graded it meanwhile: nothing is changed"
    return ""


def _write_verdict(nb: NotebookNode, name: str, verdict: Verdict, measured: Measured) -> tuple[float, float]:
    """Write what was decided into a grade cell; return its score before and after."""
    cell = next(cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)
    output = next(output for output in cell.outputs if REPORT in output.get("metadata", {}))
    report, points = output.metadata[REPORT], float(cell.metadata.nbgrader["points"])
    before = float(output.data["text/plain"])
    after = round(min(before + verdict.share * float(report["pending"]), points), 2)
    settled = [line for line in report["lines"] if "pending" not in line]
    judged = Judged(
        cell=name,
        points=points,
        earned=after,
        pending=0.0,
        lines=(*settled, *verdict.lines),
        record=output.data[MIME],
        notes=tuple(report["notes"]),
        versions=dict(report["versions"]),
    )
    write(cell, judged)
    cell.outputs[0].data["text/html"] += drawing(measured)
    cell.outputs[0].metadata[REPORT]["measured"] = measured.as_dict()
    return before, after
