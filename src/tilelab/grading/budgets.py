"""What a learner's notebook may use, problem by problem and question by question, from the course's ``limits.toml``.

::

    [every]                       # every notebook
    memory = "2 GiB"
    cell_seconds = 30
    judge_seconds = 180

    [exercise_5]                  # one problem
    memory = "4 GiB"

    [exercise_5.executable]       # the cells of one question
    cell_seconds = 120
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.problems import problem
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.limits import Limits

FILE = "limits.toml"
#: Keys that a question may have, and a problem besides those of a sandbox.
OF_A_QUESTION = frozenset({"cell_seconds", "cell_output", "judge_seconds"})
OF_A_NOTEBOOK = OF_A_QUESTION | {"seconds", "restarts"}


@dataclass(frozen=True)
class Budget:
    """What one notebook may use.

    Attributes
    ----------
    limits : Limits
        Of the sandbox around its kernel; ``limits.seconds`` is for all cells together.
    cell_seconds : float
        For each cell.
    cell_output : int
        Bytes of output kept of each cell.
    judge_seconds : float
        For the judge to look at the answer of each question.
    restarts : int
        Kernels started again after one was lost.
    questions : mapping
        Part of the problem to its own ``cell_seconds``, ``cell_output`` and ``judge_seconds``.
    """

    limits: Limits = field(default_factory=lambda: Limits(seconds=300))
    cell_seconds: float = 30.0
    cell_output: int = 4_000_000
    judge_seconds: float = 180.0
    restarts: int = 8
    questions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of(self, part: str, key: str) -> Any:
        """Return one of `OF_A_QUESTION` for a part of the problem; ``""`` is for the cells of none."""
        return self.questions.get(part, {}).get(key, getattr(self, key))


def budget(file: Path | None, name: str = "") -> Budget:
    """Return what the notebook of a problem may use.

    Parameters
    ----------
    file : Path or None
        The course's ``limits.toml``; without one there are the defaults.
    name : str
        The problem.

    Raises
    ------
    GradingError
        The file cannot be read, or names a limit, problem or question that does not exist.
    """
    if file is None or not file.is_file():
        return Budget()
    try:
        tables = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GradingError(f"{str(file)!r} is not TOML: {error}") from error
    found = Budget()
    try:
        for table in ("every", name):
            found = _changed(found, tables.get(table, {}), table)
    except SandboxError as error:
        raise GradingError(f"{str(file)!r}: {error}") from error
    return found


def _changed(found: Budget, table: Mapping[str, Any], name: str) -> Budget:
    own = {key: value for key, value in table.items() if key in OF_A_NOTEBOOK and key != "seconds"}
    questions = {key: value for key, value in table.items() if isinstance(value, dict)}
    limits = {key: value for key, value in table.items() if key not in own and key not in questions}
    for key, value in (*own.items(), *(one for settings in questions.values() for one in settings.items())):
        least = 0 if key == "restarts" else 1e-3
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise SandboxError(f"limit {key} = {value!r}: give a positive number")
    if questions:
        parts = [part.name for part in problem(name).parts] if name != "every" else []
        for question, settings in questions.items():
            if question not in parts:
                raise GradingError(
                    f"limits of {name}.{question}: the questions of {name} are {', '.join(parts) or 'none'}"
                )
            if unknown := sorted(set(settings) - OF_A_QUESTION):
                raise GradingError(
                    f"limits of {name}.{question}: {unknown[0]!r} is not {' or '.join(sorted(OF_A_QUESTION))}"
                )
    return replace(found, limits=found.limits.changed(limits), questions={**found.questions, **questions}, **own)
