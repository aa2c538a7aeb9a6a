"""The one writer of grades: a submission is recorded whole or not at all, whenever the process is killed.

A graded submission has two halves, its row in the gradebook and its folder in ``autograded/``. They are written so::

    1. the folder, complete, beside its place, as .<assignment>.new
    2. the gradebook, in one transaction
    3. the folder is moved to its place

Killed before 2 nothing has changed; between 2 and 3 the next start finishes (`Ledger.settle`). Several processes may
write grades of a course at once: they take turns, a submission each (`Ledger.alone`).
"""

import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import nbformat
from nbgrader import utils
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.exc import DatabaseError, OperationalError, SAWarning
from traitlets.config import Config

from tilelab.grading.errors import GradingError
from tilelab.grading.evaluate import Evaluated, read_graded
from tilelab.grading.inert import FILES_TO_SHOW
from tilelab.grading.locks import alone_in
from tilelab.grading.nbgrader import REPORT, SaveVerdicts
from tilelab.grading.sandbox.files import plain_files
from tilelab.grading.submitted import handed_in_at

#: Seconds to wait for a gradebook that another program has locked.
PATIENCE = 30.0
#: A score, and whether points of the cell still wait.
Score = tuple[float, bool]


class Ledger:
    """The gradebook of a course, opened once, and its folder of graded notebooks.

    Parameters
    ----------
    coursedir : CourseDirectory
        The course.
    config : Config
        Its configuration; late penalties are its.
    patience : float
        Seconds to wait for a gradebook that another program has locked.
    """

    def __init__(self, coursedir: CourseDirectory, config: Config, patience: float = PATIENCE) -> None:
        self._coursedir = coursedir
        self._config = config
        self._patience = patience
        self._turns = 0
        with self._words():
            self._gradebook = Gradebook(coursedir.db_url, coursedir.course_id)

    def close(self) -> None:
        """Close the gradebook."""
        self._gradebook.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody else writes grades of this course, and let nobody meanwhile.

        The lock is on the course's folder.
        """
        self._turns += 1
        try:
            with alone_in(self._coursedir.root) if self._turns == 1 else nullcontext():
                yield
        finally:
            self._turns -= 1

    def record(self, evaluated: Evaluated) -> None:
        """Record a graded submission: its scores, and its folder in ``autograded/``.

        Raises
        ------
        GradingError
            The gradebook stays locked, or the disk is full. The grades and notebooks there were are still there.
        """
        place = self.folder(evaluated.student, evaluated.assignment)
        fresh = place.with_name(f".{place.name}.new")
        with self._words(), self.alone():
            self._write(evaluated, place, fresh)
            self._patiently(lambda: self._store(evaluated), fresh)
            _move(fresh, place)

    def _patiently(self, store: Callable[[], None], fresh: Path) -> None:
        """Store scores, and wait for a locked gradebook; ``fresh`` goes where it stays locked."""
        end = time.monotonic() + self._patience
        while not self._stored(store):
            if time.monotonic() > end:
                shutil.rmtree(fresh)
                raise GradingError(
                    f"the gradebook was locked by another program for {self._patience:g} s: nothing was changed. "
                    "Close what holds it (formgrader, another nbgrader command) and run this again"
                )
            time.sleep(0.05)

    def amend(
        self, student: str, assignment: str, notebooks: Mapping[str, str], scores: Mapping[tuple[str, str], Score]
    ) -> None:
        """Change some grade cells of a graded submission, and nothing else of it.

        Parameters
        ----------
        student, assignment : str
            Whose and of what.
        notebooks : mapping
            The graded notebooks that change, as they will be kept.
        scores : mapping
            Notebook and grade cell to the new score, and whether points of it still wait.

        Raises
        ------
        GradingError
            As for `record`.
        """
        place = self.folder(student, assignment)
        part, fresh = place.with_name(f".{place.name}.part"), place.with_name(f".{place.name}.new")
        with self._words(), self.alone():
            for stale in (part, fresh):
                shutil.rmtree(stale, ignore_errors=True)
            shutil.copytree(place, part)
            for name, text in notebooks.items():
                file = part / f"{name}.ipynb"
                file.unlink()
                file.write_text(text, encoding="utf-8")
                file.chmod(0o444)
            part.rename(fresh)
            self._patiently(lambda: self._store_scores(student, assignment, scores), fresh)
            _move(fresh, place)

    def _store_scores(self, student: str, assignment: str, scores: Mapping[tuple[str, str], Score]) -> None:
        for (notebook, cell), (score, waits) in scores.items():
            grade = self._gradebook.find_grade(cell, notebook, assignment, student)
            grade.auto_score, grade.needs_manual_grade = score, waits
        self._gradebook.db.flush()
        for notebook in {notebook for notebook, _ in scores}:
            self._penalise(notebook, assignment, student)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Give the gradebook to read, and let go of it afterwards: nobody waits for a reader that is done."""
        with self._words():
            try:
                yield self._gradebook
            finally:
                self._gradebook.db.rollback()

    def settle(self, assignment: str) -> None:
        """Finish or take back what a killed grader left half done."""
        with self.alone():
            for student in sorted(path.name for path in self._autograded().glob("*") if path.is_dir()):
                place = self.folder(student, assignment)
                fresh, old = place.with_name(f".{place.name}.new"), place.with_name(f".{place.name}.old")
                shutil.rmtree(place.with_name(f".{place.name}.part"), ignore_errors=True)
                if fresh.is_dir():
                    if self._holds(student, assignment, fresh):
                        _move(fresh, place)
                    else:
                        shutil.rmtree(fresh)
                if old.is_dir():
                    if not place.is_dir():
                        old.rename(place)
                    shutil.rmtree(old, ignore_errors=True)

    def folder(self, student: str, assignment: str) -> Path:
        """Return where a graded submission is kept."""
        directory = self._coursedir
        return Path(directory.format_path(directory.autograded_directory, student, assignment))

    def _autograded(self) -> Path:
        return self.folder("x", "y").parents[1]

    def _submitted(self, student: str, assignment: str) -> Path:
        directory = self._coursedir
        return Path(directory.format_path(directory.submitted_directory, student, assignment))

    def _write(self, evaluated: Evaluated, place: Path, fresh: Path) -> None:
        """Write the folder beside its place; it has its name when it is complete."""
        part = place.with_name(f".{place.name}.part")
        for stale in (part, fresh):
            shutil.rmtree(stale, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            submitted = self._submitted(evaluated.student, evaluated.assignment)
            for path in plain_files(submitted, deepest=1):
                if path.suffix.lower().removeprefix(".") not in FILES_TO_SHOW:
                    continue  # formgrader would serve it, as a page of its own
                shutil.copyfile(path, part / path.name, follow_symlinks=False)
            if when := handed_in_at(submitted)[0]:
                (part / "timestamp.txt").write_text(f"{when} UTC")
            for name, text in evaluated.notebooks.items():
                file = part / f"{name}.ipynb"
                file.write_text(text, encoding="utf-8")
                file.chmod(0o444)
            part.rename(fresh)
        except OSError:
            shutil.rmtree(part, ignore_errors=True)
            raise

    def _stored(self, store: Callable[[], None]) -> bool:
        """Write scores in one transaction; false where the gradebook is locked."""
        try:
            with _one_transaction(self._gradebook):
                store()
        except (OperationalError, InvalidEntry) as error:  # nbgrader gives the first as the second
            if "locked" in str(error):
                return False
            raise
        return True

    def _store(self, evaluated: Evaluated) -> None:
        book, student, assignment = self._gradebook, evaluated.student, evaluated.assignment
        book.update_or_create_student(student)
        stamp = handed_in_at(self._submitted(student, assignment))[0]
        book.update_or_create_submission(assignment, student, **({"timestamp": stamp} if stamp else {}))
        for name, text in evaluated.notebooks.items():
            nb = nbformat.reads(text, 4)
            saver = SaveVerdicts(config=self._config)
            saver.gradebook = book
            saver.notebook_id, saver.assignment_id, saver.student_id = name, assignment, student
            resources = {REPORT: evaluated.pending}
            for number, cell in enumerate(nb.cells):
                saver.preprocess_cell(cell, resources, number)
            self._penalise(name, assignment, student)

    def penalise(self, assignment: str) -> set[str]:
        """Take off for lateness what the course's rule says now, for everybody alike: nobody is graded again.

        Returns
        -------
        set of str
            Whose points that changes.

        Raises
        ------
        GradingError
            The gradebook cannot be used.
        """
        changed = set()
        with self._words(), _one_transaction(self._gradebook):
            for submission in self._gradebook.assignment_submissions(assignment):
                for notebook in submission.notebooks:
                    before = notebook.late_submission_penalty
                    self._penalise(notebook.name, assignment, submission.student.id)
                    if (notebook.late_submission_penalty or 0) != (before or 0):
                        changed.add(submission.student.id)
        return changed

    def _penalise(self, notebook: str, assignment: str, student: str) -> None:
        """Take off for lateness what the course's own rule says."""
        step = AssignLatePenalties(config=self._config)
        step.init_plugin()
        late = self._gradebook.find_submission(assignment, student).total_seconds_late
        found = self._gradebook.find_submission_notebook(notebook, assignment, student)
        penalty = step.plugin_inst.late_submission_penalty(student, found.score, late) if late > 0 else None
        found.late_submission_penalty = None if penalty is None else step._check_late_penalty(found, penalty)

    def _holds(self, student: str, assignment: str, folder: Path) -> bool:
        """Tell whether the gradebook holds this submission, with exactly the scores that the notebooks show."""
        try:
            submission = self._gradebook.find_submission(assignment, student)
        except MissingEntry:
            return False
        if submission.timestamp != handed_in_at(folder)[0]:
            return False
        for file in folder.glob("*.ipynb"):
            if (nb := read_graded(file)) is None:
                return False
            for cell in nb.cells:
                if not utils.is_grade(cell):
                    continue
                name = cell.metadata.nbgrader["grade_id"]
                try:
                    grade = self._gradebook.find_grade(name, file.stem, assignment, student)
                except MissingEntry:
                    return False
                if grade.auto_score != utils.determine_grade(cell)[0]:
                    return False
        return True

    @contextmanager
    def _words(self) -> Iterator[None]:
        """Say in plain words what stopped a write."""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", category=SAWarning, module=r"nbgrader\.api")
                yield
        except (DatabaseError, InvalidEntry) as error:
            words = getattr(error, "orig", None) or error
            raise GradingError(f"the gradebook cannot be used, and was not changed: {words}") from error
        except OSError as error:
            words = error.args[0][0][2] if isinstance(error, shutil.Error) else error  # of a folder's files the first
            raise GradingError(f"the graded notebooks cannot be written, and nothing was changed: {words}") from error


@contextmanager
def _one_transaction(book: Any) -> Iterator[None]:
    """Let everything within be one transaction, though nbgrader's methods each commit."""
    session = book.db
    commit: Callable[[], None] = session.commit
    session.commit = session.flush
    try:
        yield
        commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        session.commit = commit


def _move(fresh: Path, place: Path) -> None:
    """Put a complete folder in its place. A kill in between leaves one of the two to `Ledger.settle`."""
    old = place.with_name(f".{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.is_dir():
        place.rename(old)
    fresh.rename(place)
    shutil.rmtree(old, ignore_errors=True)
