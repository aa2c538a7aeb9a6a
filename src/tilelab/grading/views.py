"""The views of a problem, made from its master: nbgrader source, learner's copy, worked-solution page.

A master is a MyST text notebook with nbgrader metadata and solution regions, the only place where a problem is
written. Cells tagged ``worked-solution`` are on the solution page only. Cell ids follow from a cell's grade id or
text, so the same master always gives the same notebooks.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from tilelab.grading.learner import with_key

#: A line that begins or ends a solution region.
MARKER = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)
#: The tag of cells that are on the solution page only.
WORKED = "worked-solution"


def read_master(master: Path) -> NotebookNode:
    """Return a master as a notebook with stable cell ids."""
    notebook = jupytext.read(master)
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        key = cell.metadata.get("nbgrader", {}).get("grade_id") or f"{cell.cell_type}:{cell.source}"
        seen[key] = seen.get(key, 0) + 1
        cell["id"] = hashlib.sha256(f"{master.stem}:{key}:{seen[key]}".encode()).hexdigest()[:8]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = NotebookNode(kernelspec=kernel, language_info={"name": "python"})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def source_of(master: Path, key: str = "") -> NotebookNode:
    """Return the nbgrader source: the master without its worked-solution cells.

    Parameters
    ----------
    master : path
        The master.
    key : str
        The course's key, where it gives every learner numbers of their own: it goes into the call of ``given``.
    """
    notebook = read_master(master)
    notebook.cells = [cell for cell in notebook.cells if WORKED not in cell.metadata.get("tags", [])]
    if key:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = with_key(cell.source, key)
    return notebook


def learners_copy_of(master: Path, course: Path, key: str = "") -> NotebookNode:
    """Return the learner's copy, by the steps of ``nbgrader generate_assignment`` that need no gradebook.

    Parameters
    ----------
    master : path
        The master.
    course : path
        The folder with the course's ``nbgrader_config.py``, which says what stands in place of a solution.
    key : str
        As for `source_of`.
    """
    from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ClearSolutions, ComputeChecksums, LockCells
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(course)).load_config()
    notebook = source_of(master, key)
    resources: dict[str, Any] = {}
    for step in (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums):
        notebook, resources = step(config=config).preprocess(notebook, resources)
    notebook.metadata["mystnb"] = {"execution_mode": "off"}  # the book shows it unanswered and does not run it
    return notebook


def solution_page_of(master: Path) -> NotebookNode:
    """Return the page with the solution in place: no markers, no nbgrader metadata, nothing to hand in."""
    notebook = read_master(master)
    notebook.cells = [cell for cell in notebook.cells if not _hands_in(cell)]
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        cell.source = MARKER.sub("", cell.source).strip("\n")
    return notebook


def _hands_in(cell: NotebookNode) -> bool:
    """Whether the cell is only there to be graded; a text that a person reads is an answer itself."""
    data = cell.metadata.get("nbgrader", {})
    return bool(data.get("grade")) and not data.get("solution")
