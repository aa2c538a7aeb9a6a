"""Write the views of every problem from its master ``solutions/<problem>.md``.

- ``autograder/source/<assignment>/<problem>.ipynb``, what ``nbgrader generate_assignment`` reads (not in git);
- ``notebooks/<assignment>/<problem>.ipynb``, the learner's copy, equal to what nbgrader releases (in git);
- ``solutions/pages/<assignment>/<problem>.ipynb``, a page of the book's instructors' edition (not in git).
"""

import argparse
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tilelab.grading.policy import FILE, read_policy
from tilelab.grading.problems import problem
from tilelab.grading.views import learners_copy_of, solution_page_of, source_of

ROOT = Path(__file__).resolve().parents[1]
AUTOGRADER, MASTERS = ROOT / "autograder", ROOT / "solutions"


def masters() -> list[Path]:
    """Return the masters, in the order of their names."""
    return sorted(MASTERS.glob("*.md"))


def text_of(notebook: NotebookNode) -> str:
    """Return a valid notebook as the text of its file."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def write(notebook: NotebookNode, folder: Path, master: Path) -> Path:
    """Write a master's view below a folder, where its content has changed."""
    path = folder / problem(master.stem).assignment / f"{master.stem}.ipynb"
    text = text_of(notebook)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def write_source(folder: Path = AUTOGRADER / "source") -> list[Path]:
    """Write the nbgrader source of every problem, with the key of the ``course.toml`` beside; return the files."""
    key = read_policy(folder.parent / FILE).key
    return [write(source_of(master, key), folder, master) for master in masters()]


def write_learners_copies(folder: Path = ROOT / "notebooks") -> list[Path]:
    """Write every learner's copy and return the files."""
    return [write(learners_copy_of(master, AUTOGRADER), folder, master) for master in masters()]


def write_solution_pages(folder: Path = MASTERS / "pages") -> list[Path]:
    """Write the worked-solution page of every problem and return the files."""
    return [write(solution_page_of(master), folder, master) for master in masters()]


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
