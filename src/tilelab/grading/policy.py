"""What an instructor decides, from one file ``course.toml``: weights, due dates, late penalties, whose numbers."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.learner import check_key

FILE = "course.toml"
DAY = 24 * 3600
#: Tables of the file that say who takes the course and where it runs; ``autograder/hub`` reads them.
OF_THE_HUB = frozenset({"course", "people", "authenticator", "hub", "gpu", "kubernetes"})


@dataclass(frozen=True)
class Late:
    """What lateness costs: a share of what was earned for each day begun after a grace, up to a most."""

    grace_minutes: float = 0.0
    per_day: float = 0.0
    most: float = 1.0

    def share(self, seconds: float) -> float:
        """Return which share of the earned points so many seconds of lateness cost."""
        over = seconds - 60 * self.grace_minutes
        return min(self.most, self.per_day * math.ceil(over / DAY)) if over > 0 else 0.0


@dataclass(frozen=True)
class Policy:
    """The decisions of one course.

    Attributes
    ----------
    weights : mapping
        Share of each assignment in the final result.
    due : mapping
        When each assignment is due, in UTC.
    late : Late
        What lateness costs.
    key : str
        Where every learner is to have numbers of their own, what they follow from beside the learner's id; else ``""``.
        It goes into the notebooks that are handed out, and is read from there again.
    accept_shipped : bool
        Whether timed points are decided by the thresholds as shipped on a device that is not calibrated.
    course : str
        The course's name.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    due: Mapping[str, datetime] = field(default_factory=dict)
    late: Late = Late()
    key: str = ""
    accept_shipped: bool = False
    course: str = "tilelab"


def read_policy(file: Path) -> Policy:
    """Read ``course.toml``; without such a file nothing is weighted, due or late.

    Raises
    ------
    GradingError
        It cannot be read, or says something that cannot be meant.
    """
    if not file.is_file():
        return Policy()
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise GradingError(f"cannot read {file.name}: {error}") from None
    known = {"weights", "due", "late", "numbers", "timed"} | OF_THE_HUB
    if unknown := sorted(set(said) - known):
        may = ", ".join(f"[{one}]" for one in sorted(known))
        raise GradingError(f"{file.name} has [{unknown[0]}]; it may have {may}{meant(unknown[0], known)}")
    if wrong := next((name for name in said if not isinstance(said[name], dict)), None):
        raise GradingError(f"{file.name}: {wrong} = {said[wrong]!r}, but {wrong} is a table: write [{wrong}]")
    weights = {name: _share(file, f"weights.{name}", value) for name, value in said.get("weights", {}).items()}
    if weights and abs(sum(weights.values()) - 1) > 1e-6:
        raise GradingError(f"the weights in {file.name} add up to {sum(weights.values()):g}, not to 1")
    late = said.get("late", {})
    check_keys(file, "late", late, ("grace_minutes", "per_day", "most"))
    grace = late.get("grace_minutes", 0)
    if isinstance(grace, bool) or not isinstance(grace, int | float) or grace < 0:
        raise GradingError(f"{file.name}: late.grace_minutes = {grace!r}, a number from 0 on is asked for")
    timed = said.get("timed", {})
    accept = timed.get("accept_shipped", False)
    if not isinstance(accept, bool) or set(timed) - {"accept_shipped"}:
        raise GradingError(f"{file.name}: [timed] may say accept_shipped = true or false, not {timed!r}")
    return Policy(
        weights,
        {name: _moment(file, name, value) for name, value in said.get("due", {}).items()},
        Late(
            float(grace),
            _share(file, "late.per_day", late.get("per_day", 0.0)),
            _share(file, "late.most", late.get("most", 1.0)),
        ),
        _key(file, said.get("numbers", {})),
        accept,
        _course(said.get("course", {})),
    )


def check_keys(file: Path, table: str, said: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse a table's first key that is not known, with the one that was probably meant.

    Raises
    ------
    GradingError
        Quoting it.
    """
    if unknown := sorted(set(said) - set(known)):
        all_known = ", ".join(sorted(known))
        raise GradingError(f"{file.name}: {table}.{unknown[0]} is not known; {all_known} are{meant(unknown[0], known)}")


def meant(said: str, known: Iterable[str]) -> str:
    """Return a question for the one of the known words that is nearest to what was said; ``""`` where none is near."""
    near = get_close_matches(said, sorted(known), 1)
    return f". Did you mean {near[0]!r}?" if near else ""


def _key(file: Path, said: Mapping[str, Any]) -> str:
    check_keys(file, "numbers", said, ("by_learner", "key"))
    switch, key = said.get("by_learner", False), said.get("key", "")
    if not isinstance(switch, bool):
        raise GradingError(f"{file.name}: numbers.by_learner = {switch!r}, write true or false")
    try:
        key = check_key(key)
    except GradingError as error:
        raise GradingError(f"{file.name}: numbers.key: {error}") from None
    if switch and not key:
        raise GradingError(f'{file.name}: numbers.by_learner asks for a key: any text, such as key = "2027-spring"')
    return key if switch else ""


def _course(said: Mapping[str, Any]) -> str:
    """Return the course's name; whether it can be meant, who derives a hub from it says."""
    return str(said.get("id", Policy.course))


def _share(file: Path, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise GradingError(f"{file.name}: {name} = {value!r}, a share between 0 and 1 is asked for")
    return float(value)


def _moment(file: Path, name: str, value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise GradingError(
            f"{file.name}: due.{name} = {value!r}, write a date and time in UTC, such as 2027-03-01T23:59:00Z"
        )
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
