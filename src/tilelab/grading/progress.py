"""What a reader has solved so far, in one file on their own machine. Nothing leaves it.

The file is ``tilelab/progress.json`` in the user's data folder (``$XDG_DATA_HOME``, else ``~/.local/share``);
``$TILELAB_PROGRESS`` names another one, and set to nothing it turns this off. Where the file cannot be written, nothing
is lost but the record.
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.grading.problems import Finding, names, problem

VARIABLE = "TILELAB_PROGRESS"
#: Kept instead of whether a part looks fine where the instant check looked at its form alone.
OPEN = "open"


def file() -> Path:
    """Return where the progress is kept."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    folder = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(folder) / "tilelab" / "progress.json"


def read() -> dict[str, dict[str, Any]]:
    """Return what is known of each part, by its grade cell's name; nothing where this is off or the file not ours."""
    if os.environ.get(VARIABLE) == "":
        return {}
    try:
        found = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    parts = found.get("parts") if isinstance(found, dict) else None
    return {name: dict(one) for name, one in parts.items() if isinstance(one, dict)} if isinstance(parts, dict) else {}


def note(changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Add to what is known of some parts. Never raises: a full disk must not stop a learner."""
    if os.environ.get(VARIABLE) == "":
        return
    try:
        parts = read()
        for name, change in changes.items():
            parts[name] = {**parts.get(name, {}), **change}
        place = file()
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_suffix(f".{os.getpid()}.new")  # two notebooks may write at once
        fresh.write_text(json.dumps({"parts": parts}, indent=1) + "\n", encoding="utf-8")
        fresh.replace(place)
    except OSError:
        return


@dataclass(frozen=True)
class Progress:
    """Where a reader stands with one problem.

    Parts that look fine, parts whose form alone could be looked at, parts handed in, points by the judge.
    """

    problem: str
    parts: int
    fine: int
    open: int
    handed_in: int
    earned: float | None
    points: float


def progress() -> list[Progress]:
    """Return where the reader stands with every problem, in order."""
    known = read()
    return [_of(name, known) for name in names()]


def _of(name: str, known: Mapping[str, Mapping[str, Any]]) -> Progress:
    asked = [part for part in problem(name).parts if not part.by_person]
    found = [known.get(f"{name}_{part.name}", {}) for part in asked]
    scores = [one["earned"] for one in found if isinstance(one.get("earned"), int | float)]
    return Progress(
        problem=name,
        parts=len(asked),
        fine=sum(one.get("fine") is True for one in found),
        open=sum(one.get("fine") == OPEN for one in found),
        handed_in=sum(one.get("handed_in") is True for one in found),
        earned=float(sum(scores)) if scores else None,
        points=float(sum(part.points for part in asked)),
    )


def seen(name: str, parts: Iterable[tuple[str, Finding]], handed_in: Collection[str] | None = None) -> None:
    """Note what an instant check said of some parts, and which of them hold an answer where they were handed in."""
    note(
        {
            f"{name}_{part}": {"fine": finding.ok if finding.decided else OPEN}
            | ({} if handed_in is None else {"handed_in": part in handed_in})
            for part, finding in parts
        }
    )
