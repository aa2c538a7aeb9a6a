"""Grade one submission up to the point where scores are written: read, restore, run, judge, make inert.

This is what a worker does. It needs no gradebook: what was released comes with the job, what it found goes back as
plain data, and one writer records it (`tilelab.grading.ledger`).
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import LimitOutput

from tilelab.grading.bounded import BoundedJudge
from tilelab.grading.budgets import budget
from tilelab.grading.errors import GradingError
from tilelab.grading.execute import ContainedExecute
from tilelab.grading.inert import make_inert
from tilelab.grading.kernels import Kernels
from tilelab.grading.nbgrader import judge_notebook
from tilelab.grading.restore import PlannedCell, restore
from tilelab.grading.sandbox.files import MOST_BYTES, beginning, copy_plain_files, plain_files, regular_files
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.submitted import find_notebook, handed_in_at, note, read_submitted, substitute

#: Key of a graded notebook's metadata that says what was graded, and how.
GRADED = "tilelab_graded"
WITHOUT_FILES = "with the files that were handed in beside this notebook no kernel starts: it ran without them"
NO_SANDBOX = "graded without the sandbox: this code could reach the grader's files"


@dataclass(frozen=True)
class Released:
    """One notebook of an assignment as it was released."""

    name: str
    plan: tuple[PlannedCell, ...]
    kernelspec: Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """One submission to grade.

    ``handed_out`` is the folder of files that came with the assignment, where there are some: they take the place of
    the learner's. ``ahead`` says that another job follows, so that a kernel is worth starting for it.
    """

    student: str
    assignment: str
    folder: Path
    released: Sequence[Released]
    checks: Path
    limits: Path
    handed_out: Path | None = None
    sandboxed: bool = True
    ahead: bool = False


@dataclass(frozen=True)
class Evaluated:
    """A graded submission that is not recorded yet: the notebooks as they will be kept, by name."""

    student: str
    assignment: str
    notebooks: Mapping[str, str]
    pending: Mapping[str, float]
    seconds: float


def read_graded(file: Path) -> NotebookNode | None:
    """Return a graded notebook, or ``None`` for one that cannot be read any more: a disk may have damaged it."""
    try:
        found = nbformat.read(file, 4)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError, nbformat.ValidationError):
        return None
    return found if isinstance(found.get("cells"), list) else None


def fingerprint(folder: Path) -> str:
    """Return what tells one submission from another: a digest of the names and contents of its files."""
    digest = hashlib.sha256()
    for path, size in sorted(regular_files(folder)):
        digest.update(f"{path.relative_to(folder)}\0{size}\0".encode(errors="surrogateescape"))
        digest.update(beginning(path, MOST_BYTES))
    return digest.hexdigest()


def evaluate(job: Job, kernels: Kernels | None = None) -> Evaluated:
    """Run and judge the notebooks of one submission.

    Raises
    ------
    GradingError
        For what is not the learner's fault: no kernel starts, the course is not whole.
    """
    start = perf_counter()
    what = {"submission": fingerprint(job.folder), "sandbox": job.sandboxed}
    judge = BoundedJudge(job.checks, job.student, job.limits, job.sandboxed)
    notebooks: dict[str, str] = {}
    pending: dict[str, float] = {}
    with ExitStack() as stack:
        if job.handed_out is not None:
            staged = Path(stack.enter_context(TemporaryDirectory(prefix="tilelab-staged-")))
            for folder in (job.folder, job.handed_out):
                copy_plain_files(folder, staged)
            where = staged
        else:
            where = job.folder
        for number, released in enumerate(job.released):
            following = None
            if job.ahead or number + 1 < len(job.released):
                following = _kernel_for(job, job.released[(number + 1) % len(job.released)])
            nb = _executed(job, released, where, kernels, following)
            LimitOutput().preprocess(nb, {})
            judged = judge_notebook(nb, judge)
            make_inert(nb, judged)
            nb.metadata[GRADED] = what
            pending |= {name: verdict.pending for name, verdict in judged.items() if verdict.pending}
            # Half of a surrogate pair, which JSON can hold and no file in UTF-8, becomes a question mark.
            notebooks[released.name] = nbformat.writes(nb).encode(errors="replace").decode()
    return Evaluated(job.student, job.assignment, notebooks, pending, perf_counter() - start)


def _executed(
    job: Job, released: Released, folder: Path, kernels: Kernels | None, following: tuple[str, Limits] | None
) -> NotebookNode:
    """Return the executed notebook. Where no kernel starts, another is tried, and one without the files beside it.

    A kernel can be killed from outside: that is nobody's fault, and rarely happens twice. A file such as ``queue.py``
    can take the place of a module that a kernel needs.
    """
    nb = _read(job, released)
    try:
        run_notebook(nb, job, released.name, folder, kernels, following)
    except GradingError:
        nb = _read(job, released)
        try:
            run_notebook(nb, job, released.name, folder)
        except GradingError:
            if not plain_files(folder):
                raise
            nb = _read(job, released)
            _note_on_grades(nb, WITHOUT_FILES)
            with TemporaryDirectory(prefix="tilelab-empty-") as empty:
                run_notebook(nb, job, released.name, Path(empty))
    return nb


def run_notebook(
    nb: NotebookNode,
    job: Job,
    name: str,
    folder: Path,
    kernels: Kernels | None = None,
    following: tuple[str, Limits] | None = None,
) -> None:
    """Execute a notebook whose cells are restored, as it is executed for a grade.

    Parameters
    ----------
    nb : NotebookNode
        Changed in place.
    job : Job
        Its ``limits``, ``sandboxed`` and ``student`` are used.
    name : str
        The notebook's name.
    folder : Path
        Whose files the notebook finds beside it.
    kernels, following
        Kernels started ahead, and the one to start ahead meanwhile.

    Raises
    ------
    GradingError
        No kernel could be started.
    """
    resources = {"metadata": {"path": str(folder)}, "nbgrader": {"notebook": name, "student": job.student}}
    step = ContainedExecute(sandboxed=job.sandboxed, limits=str(job.limits), kernels=kernels)
    step.following = following
    with _as_autograding():
        try:
            step.preprocess(nb, resources)
        except Exception as error:
            raise GradingError(f"no kernel could be started: {type(error).__name__}: {error}") from error


def _read(job: Job, released: Released) -> NotebookNode:
    """Return the submitted notebook with locked cells restored, or an empty one that says why it cannot be read."""
    ids = {cell.grade_id for cell in released.plan}
    file, renamed = find_notebook(job.folder, released.name, ids, {other.name for other in job.released})
    try:
        nb = read_submitted(file)
    except GradingError as error:
        nb = substitute(str(error))
    restore(nb, released.plan)
    nb.metadata["kernelspec"] = dict(released.kernelspec)
    for text in (renamed, handed_in_at(job.folder)[1], "" if job.sandboxed else NO_SANDBOX):
        if text:
            _note_on_grades(nb, text)
    return nb


def _note_on_grades(nb: NotebookNode, text: str) -> None:
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            note(cell, text)


def _kernel_for(job: Job, released: Released) -> tuple[str, Limits]:
    return str(released.kernelspec.get("name", "python3")), budget(job.limits, released.name).limits


@contextmanager
def _as_autograding() -> Iterator[None]:
    """Let what is executed know, as nbgrader does, that it is being graded."""
    before = os.environ.get("NBGRADER_EXECUTION")
    os.environ["NBGRADER_EXECUTION"] = "autograde"
    try:
        yield
    finally:
        if before is None:
            del os.environ["NBGRADER_EXECUTION"]
        else:
            os.environ["NBGRADER_EXECUTION"] = before
