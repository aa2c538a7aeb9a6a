"""Points that wait in a gradebook: what they need measured, and their decision when it has been.

What a token of a bundle stands for is kept in the course's folder ``jobs/``, beside the key. A point is decided once:
what was handed in anew, graded by a person or decided before is left alone, and said.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
from tilelab.grading.timed.thresholds import ASKED, Thresholds, read_thresholds
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
    """What became of one job: the score ``before`` and ``after`` where it was decided, else why not.

    ``fault`` says why the student's feedback could not be written, with one of the student's jobs.
    """

    student: str
    cell: str
    decided: bool
    before: float = 0.0
    after: float = 0.0
    words: str = ""
    fault: str = ""


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
        self.folder = course.root / FOLDER
        #: Jobs that were decided and recorded, also where whoever asked for it was stopped before hearing of it.
        self.decided = 0
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
        bundle = self.bundle_of(found)
        self.remember(bundle, assignment, found)
        return bundle

    def bundle_of(self, found: list[Waiting]) -> Bundle:
        """Make a bundle of what waits, which is put into the bundle's order."""
        secrets.SystemRandom().shuffle(found)  # whoever knows the class could read names from an order of names
        return make_bundle(key_of(self.folder), ((one.cell, one.wanted) for one in found), self.thresholds)

    def remember(self, bundle: Bundle, assignment: str, found: Sequence[Waiting]) -> None:
        """Write down whose a bundle's jobs are, and what was asked when it was made."""
        said = self.thresholds
        whose = {
            job.token: {name: value for name, value in asdict(one).items() if name != "wanted"} | {"wanted": job.wanted}
            for job, one in zip(bundle.jobs, found, strict=True)
        }
        kept = {
            "assignment": assignment,
            "exported": datetime.now(UTC).isoformat(timespec="seconds"),
            "asked": {cell: {what: said.part(cell)[what] for what in ASKED} for cell in {one.cell for one in found}},
            "jobs": whose,
        }
        private(self.kept(bundle.number), json.dumps(kept, indent=1).encode())

    def kept(self, number: str) -> Path:
        """Return the file that says whose the jobs of a bundle are."""
        return self.folder / f"{number}.json"

    def end(self, number: str) -> None:
        """Write down that all of a bundle was measured and gone through: no later run takes its results over."""
        private(self.kept(number), json.dumps({**read_kept(self.kept(number)), "ended": True}, indent=1).encode())

    def forget(self, number: str) -> None:
        """Take an export back, of which nobody has the bundle."""
        self.kept(number).unlink(missing_ok=True)

    def settle(self, results: Path) -> Iterator[Settled]:
        """Decide what a results file has measured, and yield each job's outcome.

        Raises
        ------
        GradingError
            The file is changed, damaged, or belongs to a bundle that this course did not export.
        """
        number = number_in(results)
        kept = self.kept(number)
        if not kept.is_file():
            raise GradingError(f"{str(results)!r} belongs to a bundle that this course did not export")
        measured = read_results(results, bundle_key(kept_key_of(self.folder), number), number)
        about, by_student = read_kept(kept), dict[str, list[dict[str, str]]]()
        for job in sorted(about["jobs"].values(), key=lambda job: [job[name] for name in KEPT]):
            by_student.setdefault(job["student"], []).append(job)
        ledger = Ledger(self._course.api.coursedir, self._course.api.config)
        try:
            ledger.settle(about["assignment"])
            for student, jobs in by_student.items():
                yield from self._settle_one(ledger, about["assignment"], student, jobs, measured, about["asked"])
        finally:
            ledger.close()

    def _settle_one(
        self,
        ledger: Ledger,
        assignment: str,
        student: str,
        jobs: Sequence[Mapping[str, str]],
        measured: Mapping[str, Measured],
        asked: Mapping[str, Mapping[str, Any]],
    ) -> list[Settled]:
        """Decide one student's jobs, record them together and write the student's feedback.

        Nobody else writes meanwhile: what waits now must still wait when it is written, and two that write one page
        would be in each other's way.
        """
        said, notebooks = self.thresholds, dict[str, NotebookNode]()
        scores: dict[tuple[str, str], tuple[float, bool]] = {}
        outcomes = []
        with ledger.alone():
            for job in jobs:
                notebook, cell = job["notebook"], job["cell"]
                outcome = measured.get(job["wanted"])
                file = self._place("autograded_directory", assignment, student) / f"{notebook}.ipynb"
                why = "it has not been measured yet"
                if outcome is not None:
                    why = self._stale(ledger, assignment, job, file) or self._asks_else(job, file, asked)
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
                self.decided += len(scores)
            before = any(one.words == BEFORE for one in outcomes)  # by one that was stopped before it wrote feedback?
            if scores or (before and self._course.stale_feedback(assignment, [student])):
                outcomes[-1] = replace(outcomes[-1], fault=self._course.write_feedback(assignment, student))
        return outcomes

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

    def _asks_else(self, job: Mapping[str, str], file: Path, asked: Mapping[str, Mapping[str, Any]]) -> str:
        """Say why the course asks something else of a part now than what was measured, or ``""``."""
        cell, timer = job["cell"], self._judge.timer(job["cell"])
        if timer is None:
            return "the course has no rule for this part any more"
        now = self.thresholds.part(cell)
        try:
            wanted = timer(_answers_of(nbformat.read(file, 4), cell), now)
        except Exception as error:  # the check is another one now, and cannot read what the earlier one could
            return f"the course's check fails on its answers ({type(error).__name__}: {error!s:.200})"
        if wanted is not None and wanted.digest == job["wanted"]:
            return ""
        then = asked.get(cell, {})
        changes = [
            f"{what} was {then.get(what)!r} and is {now[what]!r}" for what in ASKED if then.get(what) != now[what]
        ]
        why = f"{numbers.FILE}: {', '.join(changes)}" if changes else "the course's check has changed"
        return f"the course asks something else now than what was measured ({why}): export again, and run again"

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


def read_kept(file: Path) -> Mapping[str, Any]:
    """Read what is remembered of an export, or raise `GradingError`."""
    try:
        match about := json.loads(file.read_text()):
            case {"assignment": str(), "asked": dict(asked), "jobs": dict(jobs)} if all(
                isinstance(job, dict) and all(isinstance(job.get(name), str) for name in KEPT) for job in jobs.values()
            ) and all(isinstance(part, dict) for part in asked.values()):
                return dict(about)
    except (OSError, ValueError, RecursionError):
        pass
    raise GradingError(f"{str(file)!r}, which says whose the results are, is damaged: export again")


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
