"""Judge one learner's notebook without a course: the same restoring, executing and judging, no gradebook."""

import os
from pathlib import Path

from nbformat import NotebookNode

import tilelab
from tilelab.grading.budgets import FILE as LIMITS
from tilelab.grading.errors import GradingError
from tilelab.grading.evaluate import Job, run_notebook
from tilelab.grading.judge import Judge, Judged
from tilelab.grading.learner import VARIABLE, key_in, me
from tilelab.grading.nbgrader import judge_notebook
from tilelab.grading.problems import names, split
from tilelab.grading.restore import plan_of, restore
from tilelab.grading.submitted import read_submitted
from tilelab.grading.views import learners_copy_of


def find_course(start: Path) -> Path:
    """Return the folder that holds ``autograder/checks``: above the notebook, above here, or around the package.

    Raises
    ------
    GradingError
        There is none.
    """
    here = Path.cwd()
    around = Path(tilelab.__file__).parents[2]
    for folder in (start, *start.parents, here, *here.parents, around):
        if (folder / "autograder" / "checks").is_dir():
            return folder
    raise GradingError(
        f"no autograder/checks above {str(start)!r} or here: the judge's checks come with a clone of the course. "
        "Run tilelab check inside it, or name it with --course"
    )


def check_notebook(path: str | Path, course: Path | None = None, sandboxed: bool = True) -> list[Judged]:
    """Judge one notebook.

    Parameters
    ----------
    path : path
        A learner's notebook of one of the problems.
    course : path, optional
        A clone of the course, with ``autograder/`` and ``solutions/``; found by itself unless told.
    sandboxed : bool
        Whether the notebook runs in the sandbox.

    Returns
    -------
    list of Judged
        One for each part, in the notebook's order.

    Raises
    ------
    GradingError
        The notebook cannot be read or belongs to no problem, or the course is not there.
    """
    file = Path(path).absolute()
    if not os.path.lexists(file):
        raise GradingError(f"no file {str(path)!r}")
    notebook = read_submitted(file.resolve() if file.exists() else file)  # a link of one's own is no harm
    name = _problem_of(file, notebook)
    root = course or find_course(file.parent)
    key, learner = key_in(cell.source for cell in notebook.cells), me()
    if key and not learner:
        raise GradingError(f"{file.name} is one learner's own: say whose, by {VARIABLE}=… before the command")
    judge = Judge(root / "autograder" / "checks", learner)
    judge.load(name)
    released = _released(root, name, key)
    restore(notebook, plan_of(released))
    notebook.metadata["kernelspec"] = released.metadata["kernelspec"]
    job = Job(learner, "", file.parent, (), judge.checks, root / "autograder" / LIMITS, sandboxed=sandboxed)
    run_notebook(notebook, job, name, file.parent)
    return list(judge_notebook(notebook, judge).values())


def _problem_of(file: Path, notebook: NotebookNode) -> str:
    """Return the problem a notebook answers: by its name, else by the grade ids in it."""
    if file.stem in names():
        return file.stem
    claimed = [split(cell.metadata.get("nbgrader", {}).get("grade_id", ""))[0] for cell in notebook.cells]
    found = sorted({name for name in claimed if name})
    if len(found) != 1:
        owners = " and ".join(found) or "no problem of this course"
        raise GradingError(f"{file.name} belongs to {owners}; name it after the problem that it answers")
    return found[0]


def _released(root: Path, name: str, key: str) -> NotebookNode:
    """Make the learner's copy afresh: the one in the clone may be the very notebook that is judged."""
    master = root / "solutions" / f"{name}.md"
    if not master.is_file():
        raise GradingError(f"{str(root)!r} is no whole clone of the course: it has no {master.relative_to(root)}")
    return learners_copy_of(master, root / "autograder", key)
