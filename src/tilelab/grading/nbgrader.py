"""The judge's place inside nbgrader: one exporter and three preprocessors, wired by `configure`.

nbgrader autogrades in two passes. The first reads the submission and repairs it (`SubmissionExporter`,
`RestoreCells`); the second executes it (`ContainedExecute`), judges the answers (`JudgeAnswers`) and stores the
scores (`SaveVerdicts`).
"""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Unicode
from traitlets.config import Config

from tilelab.grading.answers import MIME
from tilelab.grading.bounded import BoundedJudge
from tilelab.grading.errors import GradingError
from tilelab.grading.inert import make_inert
from tilelab.grading.judge import Judge, Judged
from tilelab.grading.learner import key_in
from tilelab.grading.policy import FILE
from tilelab.grading.problems import split
from tilelab.grading.restore import PlannedCell, restore
from tilelab.grading.submitted import NOTES, notes, read_submitted, substitute

#: Key of an output's metadata that marks it as the judge's, and of the resources that carry verdicts to the gradebook.
REPORT = "tilelab_report"
#: Source that gives the name ``submit`` another meaning.
REDEFINED = re.compile(
    r"^[ \t]*(?:(?:async\s+)?def\s+submit\b|class\s+submit\b|submit\s*=(?!=)|(?:from|import)\b.*\bas\s+submit\b)", re.M
)
OWN_SUBMIT = "this notebook redefines submit: the course's own was called, with your answers"
SILENT = "the cell that hands it in ran and recorded nothing: this notebook changes how cells run or what they show"


def configure(config: Config, checks: str | Path, limits: str | Path = "") -> None:
    """Make a course's nbgrader configuration use the judge.

    Parameters
    ----------
    config : Config
        What ``get_config()`` returned in ``nbgrader_config.py``.
    checks : path
        The course's folder of trusted checks.
    limits : path, optional
        The course's ``limits.toml``: what a notebook may use.
    """
    _put_alembic_on_path()
    config.ContainedExecute.limits = config.JudgeAnswers.limits = str(limits)
    here = f"{__package__}.nbgrader"
    config.JudgeAnswers.checks = str(checks)
    config.AssignLatePenalties.plugin_class = f"{__package__}.late.PolicyPenalty"
    config.PolicyPenalty.policy = str(Path(checks).parent / FILE)
    config.Autograde.exporter_class = f"{here}.SubmissionExporter"
    config.Autograde.sanitize_preprocessors = [
        f"{here}.RestoreCells",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.Autograde.autograde_preprocessors = [
        f"{__package__}.execute.ContainedExecute",
        "nbgrader.preprocessors.LimitOutput",
        f"{here}.JudgeAnswers",
        f"{here}.SaveVerdicts",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]


def _put_alembic_on_path() -> None:
    """Let nbgrader find ``alembic``, which it starts by name, in a virtual environment that is not activated."""
    beside = Path(sys.executable).parent
    if shutil.which("alembic") is None and (beside / "alembic").is_file():
        os.environ["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", "")])


class SubmissionExporter(NotebookExporter):
    """Reads any submitted file: what cannot be read becomes an empty notebook that says why."""

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Read a submitted file through `read_submitted`; nbgrader's own second pass reads what the first wrote."""
        if not getattr(self.parent, "_sanitizing", False):
            exported: tuple[NotebookNode, dict[str, Any]] = super().from_filename(filename, resources, **kw)
            return exported
        try:
            notebook = read_submitted(filename)
        except GradingError as error:
            self.log.warning("%s", error)
            notebook = substitute(str(error))
        resources = self._init_resources(resources)
        resources["metadata"]["name"] = Path(filename).stem
        resources["metadata"]["path"] = str(Path(filename).parent)
        made: tuple[NotebookNode, dict[str, Any]] = self.from_notebook_node(notebook, resources=resources, **kw)
        return made


class RestoreCells(NbGraderPreprocessor):
    """Restores graded and locked cells from the gradebook, where nbgrader would compare and complain."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Restore the notebook in place."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            plan = plan_in(gradebook, about["notebook"], about["assignment"])
        restore(nb, plan)
        return nb, resources


def plan_in(gradebook: Any, notebook: str, assignment: str) -> list[PlannedCell]:
    """Return the cells of a notebook as the gradebook says they were released."""
    released = gradebook.find_notebook(notebook, assignment)
    graded = {cell.name: cell for cell in (*released.grade_cells, *released.task_cells)}
    tasks = {cell.name for cell in released.task_cells}
    solutions = {cell.name for cell in released.solution_cells}
    return [
        PlannedCell(
            grade_id=cell.name,
            cell_type=cell.cell_type,
            source=cell.source,
            checksum=cell.checksum or "",
            locked=bool(cell.locked),
            grade=cell.name in graded and cell.name not in tasks,
            solution=cell.name in solutions,
            task=cell.name in tasks,
            points=float(graded[cell.name].max_score) if cell.name in graded else 0.0,
        )
        for cell in released.source_cells
    ]


class JudgeAnswers(NbGraderPreprocessor):
    """Replaces the outputs of our grade cells by the judge's score and report."""

    checks = Unicode(help="The course's folder of trusted checks.").tag(config=True)
    limits = Unicode("", help="The course's limits.toml.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Judge every grade cell that belongs to one of our problems; others are nbgrader's to grade."""
        limits = Path(self.limits) if self.limits else None
        judged = judge_notebook(nb, BoundedJudge(self.checks, resources["nbgrader"]["student"], limits))
        make_inert(nb, judged)
        resources[REPORT] = {name: verdict.pending for name, verdict in judged.items() if verdict.pending}
        return nb, resources


class SaveVerdicts(SaveAutoGrades):
    """nbgrader's ``SaveAutoGrades``; points that wait keep "needs manual grade" up."""

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._add_score(cell, resources)
        name = cell.metadata.nbgrader["grade_id"]
        if resources.get(REPORT, {}).get(name):
            grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
            grade.needs_manual_grade = True
            self.gradebook.db.commit()


def judge_notebook(nb: NotebookNode, judge: Judge) -> dict[str, Judged]:
    """Judge the grade cells of an executed notebook and write score and report into them.

    Returns
    -------
    dict
        What was judged, by grade cell, in the notebook's order.
    """
    unread = nb.metadata.get(NOTES, {}).get("unread", "")
    lost = _lost_earlier(nb)
    redefined = [OWN_SUBMIT] if any(REDEFINED.search(c.source) for c in nb.cells if c.cell_type == "code") else []
    key = key_in(cell.source for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("locked"))
    judged = {}
    for place, cell in enumerate(nb.cells):
        if not utils.is_grade(cell) or utils.is_solution(cell) or cell.cell_type != "code":
            continue
        data = cell.metadata.nbgrader
        problem, part = split(data["grade_id"])
        if not problem or not part:
            continue
        name, points = data["grade_id"], float(data["points"])
        if unread:
            verdict = Judged(name, points, 0.0, 0.0, (unread,))
        else:
            records = [output.data[MIME] for output in cell.outputs if MIME in output.get("data", {})]
            why = _why(cell) or ("" if records else SILENT)
            verdict = judge.judge(name, points, records, notes(cell) + redefined + lost[place], why, key)
        write(cell, verdict)
        judged[name] = verdict
    return judged


def write(cell: NotebookNode, judged: Judged) -> None:
    """Write the verdict as the cell's only output, so that nbgrader's own reading of it gives exactly the score."""
    data: dict[str, Any] = {"text/plain": repr(judged.earned), "text/html": judged.html}
    if judged.record is not None:
        data[MIME] = judged.record  # a later pass, for points that wait, needs no kernel
    report = {"pending": judged.pending, "lines": list(judged.lines), "notes": list(judged.notes)}
    metadata = {REPORT: report | {"versions": judged.versions}}
    cell.outputs = [new_output("execute_result", data, metadata=metadata, execution_count=cell.execution_count or None)]


def _why(cell: NotebookNode) -> str:
    """Return the last error of a cell in one line, or ``""``; our own errors say all in their words."""
    errors = [
        str(output.evalue) if output.ename == GradingError.__name__ else f"{output.ename}: {output.evalue}"
        for output in cell.outputs
        if output.output_type == "error"
    ]
    return " ".join(errors[-1].split())[:300] if errors else ""


def _lost_earlier(nb: NotebookNode) -> list[list[str]]:
    """For each cell, what to add to its report because a cell was stopped since the grade cell before it."""
    found: list[str] = []
    lines = []
    for cell in nb.cells:
        begins = f"the one that begins {cell.source.strip().partition(chr(10))[0][:60]!r}"
        stopped = {each.ename: each.evalue for each in cell.get("outputs", []) if each.output_type == "error"}
        if "KernelLost" in stopped:
            found.append(f"{stopped['KernelLost']}, {begins}; the rest ran in a new kernel")
        elif "CellTimeoutError" in stopped:
            found.append(f"a cell ran past its time and was stopped, {begins}")
        lines.append(found if utils.is_grade(cell) else [])
        if utils.is_grade(cell):
            found = []
    return lines
