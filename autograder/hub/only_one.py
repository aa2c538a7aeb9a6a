"""One hub at a time for one folder: the hub holds a lock for as long as it lives, and whoever comes second is refused.

Two hubs that write to one folder would each end what the other's people do.
"""

import json
import os
from datetime import datetime
from pathlib import Path

from deployment import Deployment
from filelock import FileLock, Timeout

from tilelab.grading.errors import GradingError

#: The lock, and who holds it: beside the hub's database.
LOCK, HOLDER = "running.lock", "running.json"
_held: dict[Path, FileLock] = {}


def hold(of: Deployment, mark: str = "") -> None:
    """Take the lock of a course's folder until this process ends.

    Parameters
    ----------
    of : Deployment
        The course.
    mark : str
        What the hub's processes have in their environment, by which they are found where it cannot end them itself.

    Raises
    ------
    GradingError
        Another hub has it; the message names that one.
    """
    folder = of.state / "hub"
    if folder in _held:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _held[folder] = _locked(of)
    about = {"pid": os.getpid(), "url": of.url, "since": f"{datetime.now():%Y-%m-%d %H:%M}", "mark": mark}
    (folder / HOLDER).write_text(json.dumps(about))


def check_alone(of: Deployment) -> None:
    """Raise `GradingError` where a hub runs in a course's folder; the message names it."""
    if (of.state / "hub").is_dir():
        _locked(of).release()


def left_behind(of: Deployment) -> str:
    """Return the mark of the hub that held the lock last; ``""`` where there is none."""
    return str(_holder(of).get("mark", ""))


def _locked(of: Deployment) -> FileLock:
    lock = FileLock(of.state / "hub" / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = _holder(of)
        who = f"process {holder['pid']}, at {holder['url']}, since {holder['since']}" if holder else "it just started"
        raise GradingError(
            f"a hub runs in {str(of.state)!r} already ({who}). End that one first: Ctrl-C where it was started, "
            "systemctl stop on a server, else kill. For a second hub say another folder in [hub] state of "
            f"{of.file.name}"
        ) from None
    return lock


def _holder(of: Deployment) -> dict[str, object]:
    try:
        said = json.loads((of.state / "hub" / HOLDER).read_text())
        return said if {"pid", "url", "since"} <= said.keys() else {}
    except (OSError, ValueError, AttributeError):
        return {}
