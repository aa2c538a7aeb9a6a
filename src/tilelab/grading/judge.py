"""The judge: a part of a problem, its record and the course's trusted check give a verdict.

Trusted checks are files ``<problem>.py`` in a course's ``checks/`` folder, outside the package and never on any
import path, so that a learner's kernel cannot import them. Such a file defines one function for each part::

    def check_table(answers: dict[str, Any]) -> Verdict: ...

and for a part whose points wait for a GPU two more, which `tilelab.grading.timed` calls::

    def time_timed(answers, asked) -> Wanted | None: ...      # the measurement that it needs
    def settle_timed(answers, measured, mark) -> Verdict: ... # of the share that waited

The answers come from the record, so they are plain data, but of any form: a check must refuse what it cannot read.
The checks of a problem that learners have different layouts in take the learner's own as a second argument.
"""

import importlib.util
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilelab.grading.answers import read
from tilelab.grading.errors import GradingError
from tilelab.grading.learner import VARIABLE
from tilelab.grading.problems import given_to, split
from tilelab.grading.versions import versions

if TYPE_CHECKING:
    from tilelab.grading.timed.thresholds import Mark
    from tilelab.grading.timed.wanted import Measured, Wanted


@dataclass(frozen=True)
class Verdict:
    """What a trusted check decided about one part.

    Attributes
    ----------
    share : float
        Share of the part's points that is earned, from 0 to 1.
    lines : tuple of str
        What to tell the learner: what was tried, what came out, where to look. Never what the check compares with.
    pending : float
        Share of the points that is still to be decided, by a GPU or a person; with ``share`` at most 1.
    """

    share: float
    lines: tuple[str, ...] = ()
    pending: float = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that no gradebook can hold: nbgrader reads NaN and negative results as full marks."""
        shares = (self.share, self.pending, self.share + self.pending)
        if not all(math.isfinite(share) and -1e-9 <= share <= 1 + 1e-9 for share in shares):
            raise GradingError(f"shares must lie in [0, 1], also together: earned {self.share}, pending {self.pending}")


#: Characters of one line of a report.
LONGEST_LINE = 2000
Check = Callable[..., Verdict]
#: Answers, and what the thresholds say of the part, give the measurement that the part needs, or none.
Timer = Callable[[dict[str, Any], Mapping[str, Any]], "Wanted | None"]
#: Answers, a measurement, and what is asked for on its device give the verdict on what had to wait for it.
Settler = Callable[[dict[str, Any], "Measured", "Mark | None"], Verdict]


@dataclass(frozen=True)
class Judged:
    """A judged grade cell.

    ``lines`` is what the check found, ``notes`` what happened to the notebook on its way to the judge, ``record``
    what was judged (``None`` where nothing was recorded), ``versions`` what judged it. Points are in the gradebook's
    units.
    """

    cell: str
    points: float
    earned: float
    pending: float
    lines: tuple[str, ...]
    record: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """Return the score in words."""
        waiting = f", {self.pending:g} pending" if self.pending else ""
        return f"{self.earned:g} of {self.points:g} points{waiting}"

    @property
    def html(self) -> str:
        """Return the report for a notebook; what a learner wrote is inert in it."""
        items = "".join(f"<li>{escape(line)}</li>" for line in (*self.lines, *self.notes))
        return f'<div class="tilelab-report"><b>{self.head}</b><ul>{items}</ul></div>'


class Judge:
    """Judges answer records with the trusted checks of one folder.

    Parameters
    ----------
    checks : path
        The folder of trusted checks.
    learner : str
        Whose answers they are, as the course knows them.

    Raises
    ------
    GradingError
        The folder is not there.
    """

    def __init__(self, checks: str | Path, learner: str = "") -> None:
        self.checks, self.learner = Path(checks), learner
        if not checks or not self.checks.is_dir():
            raise GradingError(f"no folder of trusted checks at {str(checks)!r}")
        self._modules: dict[str, ModuleType] = {}

    def check(self, cell: str) -> Check | None:
        """Return the trusted check of a grade cell, or ``None`` where the course has none for it."""
        problem, part = split(cell)
        file = self.checks / f"{problem}.py"
        if not part or not file.is_file():
            return None
        self.load(problem)
        return getattr(self._modules[problem], f"check_{part}", None)

    def timer(self, cell: str) -> Timer | None:
        """Return what says which measurement a grade cell waits for, ``time_<part>``; ``None`` where it needs none."""
        found: Timer | None = self._beside_the_check(cell, "time")
        return found

    def settler(self, cell: str) -> Settler | None:
        """Return what decides the points that waited for a measurement, ``settle_<part>``."""
        found: Settler | None = self._beside_the_check(cell, "settle")
        return found

    def _beside_the_check(self, cell: str, what: str) -> Any:
        if self.check(cell) is None:
            return None
        problem, part = split(cell)
        return getattr(self._modules[problem], f"{what}_{part}", None)

    def load(self, problem: str) -> None:
        """Load the checks of a problem, where the course has some.

        Raises
        ------
        GradingError
            They do not load: a fault of the course, better told before anything is graded.
        """
        file = self.checks / f"{problem}.py"
        if problem in self._modules or not file.is_file():
            return
        try:
            self._modules[problem] = _load(file)
        except Exception as error:  # it is a program, so anything can go wrong in it
            raise GradingError(f"the check {str(file)!r} does not load: {type(error).__name__}: {error}") from error

    def judge(
        self,
        cell: str,
        points: float,
        records: Iterable[object],
        notes: Iterable[str] = (),
        why_none: str = "",
        key: str = "",
    ) -> Judged:
        """Judge one grade cell. Never raises for what a learner did; a fault of the check leaves the points pending.

        Parameters
        ----------
        cell : str
            The grade cell's name, ``<problem>_<part>``.
        points : float
            What the cell is worth.
        records : iterable
            Everything the cell recorded; exactly one valid record is expected.
        notes : iterable of str
            What happened to the notebook on its way here, for the report.
        why_none : str
            What kept the cell from recording an answer, where that is known.
        key : str
            What the notebook was handed out with, where every learner has numbers of their own.
        """
        record = None
        try:
            record = read(records, split(cell)[0])
            verdict = self._decide(cell, record["answers"], key)
            verdict = self._with_whose_numbers(cell, record.get("learner", ""), key, verdict)
        except GradingError as error:
            reason = f"{error}: {why_none}" if record is None and why_none else str(error)
            verdict = Verdict(0.0, (reason,))
        return Judged(
            cell=cell,
            points=points,
            earned=round(min(max(verdict.share, 0.0), 1.0) * points, 2),
            pending=round(max(verdict.pending, 0.0) * points, 2),
            lines=tuple(map(_plain_line, verdict.lines)),
            record=record,
            notes=tuple(notes),
            versions=versions(self.checks, split(cell)[0]),
        )

    def _decide(self, cell: str, answers: dict[str, Any], key: str) -> Verdict:
        try:
            check = self.check(cell)
            if check is None:
                return Verdict(0.0, ("this course has no check for this part: a person will look at it",), pending=1.0)
            layout = given_to(split(cell)[0], self.learner, key).layout
            takes_it = layout is not None and len(inspect.signature(check).parameters) > 1
            verdict = check(answers, layout) if takes_it else check(answers)
            if not isinstance(verdict, Verdict):
                raise TypeError(f"a check returns a Verdict, not {verdict!r:.40}")
            return verdict
        except Exception as error:  # a fault of ours, so never a zero for the learner
            return Verdict(
                0.0, (f"the check itself failed ({type(error).__name__}): a person will look at it",), pending=1.0
            )

    def _with_whose_numbers(self, cell: str, whose: str, key: str, verdict: Verdict) -> Verdict:
        """Add to a verdict that somebody else's numbers were answered, where that is why it fell short."""
        mine, theirs = (given_to(split(cell)[0], name, key) for name in (self.learner, whose))
        if not key or whose == self.learner or mine.layout == theirs.layout or verdict.share == 1:
            return verdict
        said = (
            f"answers as {whose!r} and is about {theirs.statement}"
            if whose
            else "does not say whose numbers it is about"
        )
        line = (
            f"the notebook {said}; the course knows you as {self.learner!r} and gave you {mine.statement}. "
            f"Write %env {VARIABLE}={self.learner} in a cell at the top, and answer for those"
        )
        return replace(verdict, lines=(*verdict.lines, line))


def _plain_line(line: str) -> str:
    """Return a line of a report without what steers a terminal, and without hundreds of digits."""
    plain = re.sub(r"[^\S ]|[\x00-\x1f\x7f-\x9f]", " ", line)
    short = re.sub(r"\d{40,}", lambda digits: f"{digits[0][:8]}… ({len(digits[0])} digits)", plain)
    return short if len(short) <= LONGEST_LINE else f"{short[:LONGEST_LINE]} …"


def _load(file: Path) -> ModuleType:
    """Load a file of trusted checks under a name that no import statement finds."""
    spec = importlib.util.spec_from_file_location(f"<checks of {file.stem}>", file)
    if spec is None or spec.loader is None:
        raise GradingError(f"cannot load the trusted checks in {str(file)!r}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
