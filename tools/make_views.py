"""Make the views of every problem from its master: nbgrader source, learner's copy, worked-solution page.

A master is ``solutions/<problem>.md``, a MyST text notebook with nbgrader metadata and solution regions: the only
place where a problem is written. Its views are

- ``autograder/source/<assignment>/<problem>.ipynb``, what ``nbgrader generate_assignment`` reads (not in git);
- ``notebooks/<assignment>/<problem>.ipynb``, the learner's copy, equal to what nbgrader releases (in git);
- ``solutions/pages/<assignment>/<problem>.ipynb``, a page of the book's instructors' edition (not in git).

Cells tagged ``worked-solution`` are on the solution page only. Cell ids follow from a cell's grade id or text, so
the same master always gives the same files.
"""

import argparse
import hashlib
import re
import sys
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from tilelab.grading.problems import problem

ROOT = Path(__file__).resolve().parents[1]
MASTERS = ROOT / "solutions"
MARKER = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)
WORKED = "worked-solution"


def masters() -> list[Path]:
    """Return the masters, in the order of their names."""
    return sorted(MASTERS.glob("*.md"))


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


def source_of(master: Path) -> NotebookNode:
    """Return the nbgrader source: the master without its worked-solution cells."""
    notebook = read_master(master)
    notebook.cells = [cell for cell in notebook.cells if WORKED not in cell.metadata.get("tags", [])]
    return notebook


def learners_copy_of(master: Path) -> NotebookNode:
    """Return the learner's copy, by the steps of ``nbgrader generate_assignment`` that need no gradebook."""
    from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ClearSolutions, ComputeChecksums, LockCells
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT / "autograder")).load_config()
    notebook, resources = source_of(master), {}
    for step in (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums):
        notebook, resources = step(config=config).preprocess(notebook, resources)
    notebook.metadata["mystnb"] = {"execution_mode": "off"}  # the book shows it unanswered and does not run it
    return notebook


def solution_page_of(master: Path) -> NotebookNode:
    """Return the page with the solution in place: no markers, no nbgrader metadata, nothing to hand in."""
    notebook = read_master(master)
    notebook.cells = [cell for cell in notebook.cells if not cell.metadata.get("nbgrader", {}).get("grade")]
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        cell.source = MARKER.sub("", cell.source).strip("\n")
    return notebook


def write(notebook: NotebookNode, path: Path) -> Path:
    """Write a valid notebook where its content has changed."""
    nbformat.validate(notebook)
    text = nbformat.writes(notebook) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def _place(folder: Path, master: Path) -> Path:
    return folder / problem(master.stem).assignment / f"{master.stem}.ipynb"


def write_source(folder: Path = ROOT / "autograder" / "source") -> list[Path]:
    """Write the nbgrader source of every problem and return the files."""
    return [write(source_of(master), _place(folder, master)) for master in masters()]


def write_learners_copies(folder: Path = ROOT / "notebooks") -> list[Path]:
    """Write every learner's copy and return the files."""
    return [write(learners_copy_of(master), _place(folder, master)) for master in masters()]


def write_solution_pages(folder: Path = MASTERS / "pages") -> list[Path]:
    """Write the worked-solution page of every problem and return the files."""
    return [write(solution_page_of(master), _place(folder, master)) for master in masters()]


def main() -> int:
    """Write the views that were asked for, all unless told."""
    views = {"source": write_source, "learner": write_learners_copies, "solution": write_solution_pages}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("views", nargs="*", metavar="VIEW", help=f"{', '.join(views)}; all unless told")
    wanted = parser.parse_args().views or list(views)
    if unknown := [view for view in wanted if view not in views]:
        parser.error(f"no view {unknown[0]!r}; there are {', '.join(views)}")
    for view in wanted:
        for path in views[view]():
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
