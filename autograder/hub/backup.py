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
#: Databases that are written to while a snapshot is made. Others are files like any other, learners' above all.
DATABASES = (Path("hub/jupyterhub.sqlite"), Path("grader/course/gradebook.db"))
#: A writer's half-written folder in the exchange; and elsewhere what only a running process needs.
DRAFT = re.compile(r"\.[0-9a-f]{32}")
PASSING = re.compile(r"running\.(lock|json)|.*\.pid|.*\.log|\.cache|\.ipython|runtime|__pycache__")
NAME = "%Y-%m-%dT%H-%M-%S"
SNAPSHOT = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")


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
        for path in _kept(state):
            try:
                _copy(state, path, draft, before[-1] if before else None)
            except FileNotFoundError:
                if (state / path).exists():
                    raise
                # else a grading that runs has taken it away
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
        There is no such snapshot, something is in its place, or it cannot be written: then nothing is left of it.
    """
    if not snapshot.is_dir():
        raise GradingError(f"there is no snapshot {str(snapshot)!r}")
    if there := [name for name in KEPT if (state / name).exists()]:
        raise GradingError(f"{str(state / there[0])!r} exists: stop the hub and move {str(state)!r} away first")
    state.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        for path in _kept(snapshot):
            _copy(snapshot, path, state, None)
    except (OSError, sqlite3.Error) as error:
        for name in KEPT:
            shutil.rmtree(state / name, ignore_errors=True)
        raise GradingError(f"nothing was restored, and the snapshot is untouched: {error}") from error


def snapshots(to: Path) -> list[Path]:
    """Return the finished snapshots, oldest first; what else lies there is none."""
    return sorted(path for path in to.iterdir() if path.is_dir() and SNAPSHOT.fullmatch(path.name))


def _kept(top: Path) -> Iterator[Path]:
    """Yield what is kept of a hub's folder, relative to it, folders first; links and what passes are left out."""
    for name in KEPT:
        if (top / name).is_dir():
            yield from _below(top, Path(name))


def _below(top: Path, folder: Path) -> Iterator[Path]:
    yield folder
    for path in sorted((top / folder).iterdir()):
        here = folder / path.name
        if path.is_symlink() or _passes(here):
            continue
        if path.is_dir():
            yield from _below(top, here)
        elif path.is_file():
            yield here


def _passes(path: Path) -> bool:
    """Whether something below a hub's folder is not kept. What a learner handed in is, whatever its name."""
    whole = path.parts
    if whole[0] == "exchange":
        handed_in = whole[1:2] == ("submissions",) and len(whole) > 5
        return not handed_in and DRAFT.fullmatch(path.name) is not None
    if any(path.name.startswith(f"{database.name}-") and path.parent == database.parent for database in DATABASES):
        return True  # a journal, which does not fit the copy
    return whole[:2] != ("grader", "course") and PASSING.fullmatch(path.name) is not None


def _copy(top: Path, path: Path, to: Path, before: Path | None) -> None:
    """Copy one file or folder with its owner and mode to another top, or link it to the snapshot before."""
    source, copy = top / path, to / path
    about = source.stat()
    if source.is_dir():
        copy.mkdir(parents=True, exist_ok=True)
    elif path in DATABASES:
        _copy_database(source, copy)
    elif before is not None and _same(about, before / path):
        os.link(before / path, copy)
        return
    else:
        shutil.copy2(source, copy)
    if os.getuid() == 0:
        os.chown(copy, about.st_uid, about.st_gid)
    copy.chmod(stat.S_IMODE(about.st_mode) | (0o200 if source.is_dir() and os.getuid() else 0))


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
