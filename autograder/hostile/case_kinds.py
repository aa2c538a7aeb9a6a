"""What a broken or hostile submission to exercise 1 is: files, the points and the words it is designed to get.

Every case is made from the learner's copy with the right answers; what is said of it is what is wrong with it. So a
right grade shows that nothing else was lost. The parts are table (2 points), order (1) and contiguous (1).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from classroom import solved
from nbformat import NotebookNode

PROBLEM = "exercise_1"
PARTS = ("table", "order", "contiguous")
ALL, NO_ORDER, NOTHING = (2, 1, 1), (2, 0, 1), (0, 0, 0)
RIGHT_TABLE = "[[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]"


@dataclass(frozen=True)
class Case:
    """What is handed in, the points it gets, and words that its report must hold; ``prepare`` makes what is no file.

    Points are ``None`` where chance decides what a learner does to their own questions: a recorded result is designed.
    """

    files: dict[str, bytes]
    points: tuple[float, float, float] | None
    words: str = ""
    prepare: Callable[[Path], object] | None = None


def notebook(**answers: str) -> NotebookNode:
    """Return the solved notebook with some answer cells' sources replaced, named without the problem's name."""
    return solved(PROBLEM, {f"{PROBLEM}_{name}": source for name, source in answers.items()})


def case(content: NotebookNode | bytes, points: tuple[float, float, float] | None, words: str = "") -> Case:
    """Return a case that hands in one file of the right name."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Case({f"{PROBLEM}.ipynb": data}, points, words)


def before_order(source: str, points: tuple[float, float, float] | None, words: str = "") -> Case:
    """Return a case in which code runs before the right order is answered."""
    return case(notebook(order_answer=f'{source}\norder = "column-major"'), points, words)


def found_out(source: str) -> Case:
    """Return a case whose order is right only if code that sets ``out`` finds or reaches something it must not."""
    body = "\n".join(f"    {line}" for line in source.strip().splitlines())
    guarded = (
        f"import os, sys\nout = None\ntry:\n{body}\nexcept Exception as error:\n    print('stopped by', repr(error))"
    )
    return case(notebook(order_answer=f'{guarded}\norder = "column-major" if out else "row-major"'), NO_ORDER)


def first(source: str, points: tuple[float, float, float] | None, words: str = "", **answers: str) -> Case:
    """Return a case in which code runs in the notebook's first answer cell."""
    return case(notebook(prediction=source, **answers), points, words)


def changed(change: Callable[[NotebookNode], None], points: tuple[float, float, float] | None, words: str = "") -> Case:
    """Return a case in which the notebook itself was changed."""
    made = notebook()
    change(made)
    return case(made, points, words)


def cell(made: NotebookNode, name: str) -> NotebookNode:
    """Return the cell of a grade id, named without the problem's name."""
    return next(c for c in made.cells if c.metadata.get("nbgrader", {}).get("grade_id") == f"{PROBLEM}_{name}")
