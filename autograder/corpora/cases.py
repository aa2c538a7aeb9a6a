"""The corpora: for each problem what learners really hand in, with the points that it is designed to earn.

One file a problem, with three values::

    RIGHT    = {"order": "column-major", …}                                  # the answers that earn everything
    WRONG    = {"fills along the rows": ({"table": …}, {"table": 0.33}), …}  # changes, and the points of those parts
    UNUSUAL  = {"written with a blank": {"order": "Column major"}, …}        # changes that still earn everything

``PENDING`` names the points of a part that wait where there is no GPU. Parts that are not named earn all their points.
"""

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.grading.answers import record
from tilelab.grading.judge import Judge, Judged
from tilelab.grading.problems import problem

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # the corpora share kernels
CHECKS = HERE.parent / "checks"
KINDS = ("right", "unusual", "wrong")


@dataclass(frozen=True)
class Case:
    """One learner's answers to one problem, and what each part is designed to earn and to leave pending."""

    problem: str
    kind: str
    name: str
    answers: dict[str, Any]
    expected: dict[str, float]
    pending: dict[str, float]

    def judge(self, judge: Judge) -> dict[str, Judged]:
        """Judge every part that answers are handed in for, by its name."""
        parts = [part for part in problem(self.problem).parts if not part.by_person]
        made = [record(self.problem, self.answers)]
        return {part.name: judge.judge(f"{self.problem}_{part.name}", part.points, made) for part in parts}


def problems() -> list[str]:
    """Return the problems that have a corpus."""
    return sorted(path.stem for path in HERE.glob("*_[0-9].py"))


def cases(name: str) -> Iterator[Case]:
    """Yield the cases of one problem: right, unusual, wrong."""
    spec = importlib.util.spec_from_file_location(f"corpus_of_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    corpus = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpus)
    waits: dict[str, float] = getattr(corpus, "PENDING", {})
    full = {p.name: p.points - waits.get(p.name, 0.0) for p in problem(name).parts if not p.by_person}
    yield Case(name, "right", "the worked solution's answers", corpus.RIGHT, full, waits)
    for title, changes in corpus.UNUSUAL.items():
        yield Case(name, "unusual", title, {**corpus.RIGHT, **changes}, full, waits)
    for title, (changes, earns) in corpus.WRONG.items():
        pending = {part: points for part, points in waits.items() if part not in earns}
        pending |= getattr(corpus, "WRONG_PENDING", {}).get(title, {})
        yield Case(name, "wrong", title, {**corpus.RIGHT, **changes}, {**full, **earns}, pending)
