"""Snapshots of a hub while it runs, and a hub from a snapshot.

    python autograder/hub/backup.py save --course course.toml --to /var/backups/tilelab
    python autograder/hub/backup.py restore --course course.toml --from /var/backups/tilelab/2027-03-01T03-15-00

Databases are copied by SQLite itself, so a snapshot holds no half-written row. Files that have not changed since the
snapshot before are links to it and take no place.
"""

import argparse
import os
import re
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from deployment import read_deployment, say  # noqa: E402  (from the folder that was just put on the path)

from tilelab.grading.errors import GradingError  # noqa: E402

#: What is kept of a hub's folder; homes are the system's to keep.
KEPT = ("exchange", "grader", "hub")
#: A writer's half-written folder, and what only a running process needs.
PASSING = re.compile(r"\.[0-9a-f]{32}|.*\.pid|.*\.log|.*-journal|.*-wal|.*-shm|\.cache|\.ipython|runtime|__pycache__")
NAME = "%Y-%m-%dT%H-%M-%S"


def save(state: Path, to: Path, keep: int = 14) -> Path:
    """Save a snapshot and return its folder; of older ones the newest ``keep`` stay.

    Raises
    ------
    GradingError
        There is nothing to save, the disk is full, or a database is broken.
    """
    if not any((state / name).is_dir() for name in KEPT):
        raise GradingError(f"{str(state)!r} holds no hub: there is no {', '.join(KEPT)} in it")
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = snapshots(to)
    place = to / datetime.now(UTC).strftime(NAME)
    draft = to / f".{place.name}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        for name in KEPT:
            for path in _files(state / name):
                _copy(path, draft / path.relative_to(state), before[-1] / path.relative_to(state) if before else None)
        draft.mkdir(exist_ok=True)
        draft.rename(place)
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise GradingError(f"no snapshot was made, and the earlier ones are untouched: {error}") from error
    for old in snapshots(to)[:-keep]:
        shutil.rmtree(old)
    return place


def restore(snapshot: Path, state: Path) -> None:
    """Put a snapshot in place of a hub's folder, which must not be there.

    Raises
    ------
    GradingError
        There is no such snapshot, or something is in its place.
    """
    if not snapshot.is_dir():
        raise GradingError(f"there is no snapshot {str(snapshot)!r}")
    if there := [name for name in KEPT if (state / name).exists()]:
        raise GradingError(f"{str(state / there[0])!r} exists: stop the hub and move {str(state)!r} away first")
    state.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in KEPT:
        if (snapshot / name).is_dir():
            for path in _files(snapshot / name):
                _copy(path, state / path.relative_to(snapshot), None)


def snapshots(to: Path) -> list[Path]:
    """Return the finished snapshots, oldest first."""
    return sorted(path for path in to.iterdir() if path.is_dir() and not path.name.startswith("."))


def _files(folder: Path) -> Iterator[Path]:
    """Yield a folder and what is in it, folders first; links and what passes are left out."""
    if not folder.is_dir():
        return
    yield folder
    for path in sorted(folder.iterdir()):
        if PASSING.fullmatch(path.name) or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _copy(path: Path, to: Path, before: Path | None) -> None:
    """Copy one file or folder with its owner and mode, or link it to the snapshot before."""
    about = path.stat()
    if path.is_dir():
        to.mkdir(parents=True, exist_ok=True)
    elif path.suffix in (".db", ".sqlite"):
        _copy_database(path, to)
    elif before is not None and _same(about, before):
        os.link(before, to)
        return
    else:
        shutil.copy2(path, to)
    if os.getuid() == 0:
        os.chown(to, about.st_uid, about.st_gid)
    to.chmod(stat.S_IMODE(about.st_mode) | (0o200 if path.is_dir() and os.getuid() else 0))


def _copy_database(path: Path, to: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as copy:
        source.backup(copy)
        (said,) = copy.execute("PRAGMA integrity_check").fetchone()
    if said != "ok":
        raise sqlite3.DatabaseError(f"{path} is broken: {said}")


def _same(about: os.stat_result, before: Path) -> bool:
    if not before.is_file():
        return False
    then = before.stat()
    return (about.st_size, about.st_mtime_ns, about.st_mode) == (then.st_size, then.st_mtime_ns, then.st_mode)


def main() -> int:
    """Save or restore."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["save", "restore"])
    parser.add_argument("--course", type=Path, required=True, help="the course.toml")
    parser.add_argument("--to", type=Path, help="the folder of snapshots")
    parser.add_argument("--from", type=Path, dest="snapshot", help="one snapshot")
    parser.add_argument("--keep", type=int, default=14, help="how many snapshots stay")
    asked = parser.parse_args()
    if (asked.to if asked.what == "save" else asked.snapshot) is None:
        parser.error("save needs --to, restore needs --from")

    def work() -> Iterator[object]:
        state = read_deployment(asked.course.resolve()).state
        if asked.what == "save":
            yield save(state, asked.to, asked.keep)
        else:
            restore(asked.snapshot, state)
            yield f"{state} is as it was in {asked.snapshot.name}"

    return say(work)


if __name__ == "__main__":
    sys.exit(main())
