"""The problems as a learner's kernel may know them: names, parts, points, instant checks; never the trusted checks.

One module a problem, named as the problem, with one value ``PROBLEM``. A new problem is a new file.

A *part* is what earns points by itself. Its grade cell in the notebook is called ``<problem>_<part>``, so that the
gradebook has a line for each part, points that wait for a GPU or a person wait alone, and a kernel that dies in one
part costs only that part. An answer belongs to the problem: a call may hand in one part's answers or all of them.

A course can give every learner a layout of their own in the problems that have more than one (`given_to`). Such a
module has a function ``posed`` from a layout to the problem about it, and a tuple ``OTHERS`` of layouts that may take
the place of the one in the text. Which one it is follows from the course's key and the learner's id alone, so the
judge, who has both, need not ask the notebook.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.layout import Layout


@dataclass(frozen=True)
class Finding:
    """What an instant check found in one part: whether a public check fails, and what to tell the learner.

    ``decided`` is false where the answer has the right form and more would give it away: only the judge knows.
    """

    ok: bool
    text: str
    decided: bool = True

    @classmethod
    def undecided(cls, text: str, fault: str = "") -> "Finding":
        """Make the finding of a check that looks at an answer's form alone: its fault, or that the judge will say."""
        return cls(False, fault) if fault else cls(True, text, decided=False)

    @property
    def mark(self) -> str:
        """Return ``✓``, ``✗``, or ``○`` for what is not decided here."""
        return "✗" if not self.ok else "✓" if self.decided else "○"


@dataclass(frozen=True)
class Part:
    """A part of a problem: what earns points by itself.

    Attributes
    ----------
    name : str
        The grade cell is called ``<problem>_<name>``.
    points : float
        What the part is worth; the master's grade cell says the same, and a test holds that.
    look : callable
        The instant check: takes all answers that were given (those this part needs are among them), returns a
        `Finding`. It runs in the learner's kernel, so it must not give a right answer away.
    answers : tuple of str
        Names of the answers it needs; its own name unless told.
    by_person : bool
        A text that a person grades in nbgrader: its grade cell is the answer, nothing is handed in by ``submit``.
    """

    name: str
    points: float
    look: Callable[[Mapping[str, Any]], Finding]
    answers: tuple[str, ...] = ()
    by_person: bool = False

    @classmethod
    def text(cls, name: str, points: float) -> "Part":
        """Make a part whose answer is a text in its grade cell, for a person to grade."""
        return cls(name, points, lambda answers: Finding.undecided("a person reads it"), by_person=True)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the answers that the part needs."""
        return self.answers or (self.name,)


@dataclass(frozen=True)
class Problem:
    """A problem.

    Attributes
    ----------
    name, assignment : str
        Its own name and that of the assignment it belongs to.
    parts : tuple of Part
        In the order of the notebook.
    picture : callable, optional
        Draws a learner's own answers: takes those that were given, returns a value that a notebook can show, or
        ``None`` where there is nothing to draw.
    layout : Layout, optional
        The layout that it is about, where learners may have different ones.
    statement : str
        That layout in the problem's words, such as ``the layout (3,4):(1,3)``.
    """

    name: str
    assignment: str
    parts: tuple[Part, ...]
    picture: Callable[[Mapping[str, Any]], object | None] | None = None
    layout: Layout | None = None
    statement: str = ""

    def part(self, name: str) -> Part:
        """Return one part by name, or raise `GradingError` that lists the parts there are."""
        for part in self.parts:
            if part.name == name:
                return part
        known = ", ".join(part.name for part in self.parts)
        raise GradingError(f"{self.name} has no part {name!r}; it has {known}")

    def answered(self, answers: Mapping[str, object]) -> tuple[Part, ...]:
        """Return the parts that have all their answers, or raise `GradingError` for a name that is no answer."""
        asked = [part for part in self.parts if not part.by_person]
        known = list(dict.fromkeys(name for part in asked for name in part.needs))
        for name in answers:
            if name not in known:
                raise GradingError(f"{self.name} asks for no {name!r}; its answers are {', '.join(known)}")
        return tuple(part for part in asked if set(part.needs) <= set(answers))


@cache
def names() -> tuple[str, ...]:
    """Return the names of all problems, sorted."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def problem(name: str) -> Problem:
    """Return a problem by its name.

    Raises
    ------
    GradingError
        There is no such problem; the message lists those there are.
    """
    found: Problem = _module(name).PROBLEM
    return found


def given_to(name: str, learner: str, key: str) -> Problem:
    """Return a problem as it is given to one learner.

    Parameters
    ----------
    name : str
        The problem's name.
    learner : str
        The learner's id in the course.
    key : str
        The course's key; with ``""`` everybody has the problem of the text.

    Raises
    ------
    GradingError
        There is no such problem.
    """
    plain = problem(name)
    if not key or plain.layout is None:
        return plain
    module = _module(name)
    layouts = (plain.layout, *module.OTHERS)
    digest = hashlib.sha256(f"{key}\0{name}\0{learner}".encode(errors="backslashreplace")).digest()
    found: Problem = module.posed(layouts[int.from_bytes(digest) % len(layouts)])
    return found


def _module(name: str) -> ModuleType:
    if name not in names():
        raise GradingError(f"there is no problem {name!r:.80}; there are {', '.join(names())}")
    return import_module(f"{__name__}.{name}")


def split(cell: str) -> tuple[str, str]:
    """Split a grade cell's name into problem and part: ``exercise_1_table`` → ``("exercise_1", "table")``.

    A problem's own name has the part ``""``; so has a name that belongs to no problem, with the problem ``""``.
    """
    for name in sorted(names(), key=len, reverse=True):
        if cell == name:
            return name, ""
        if cell.startswith(name + "_"):
            return name, cell[len(name) + 1 :]
    return "", ""
