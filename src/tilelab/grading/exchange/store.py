"""What an exchange keeps on disk. Everything is only ever added, whole or not at all, and read-only from then on.

::

    released/<assignment>/0001/…          versions; the file ``current`` names the one that is handed out
    submissions/<learner>/<assignment>/<time>/{files/…, receipt.json}
    feedback/<learner>/<assignment>/<time>/0001/…
    materials/0001/…                      the chapters

A folder is written beside its place under a name that begins with a dot, flushed to the disk, and then renamed: a kill
or a full disk leaves nothing that looks like a submission.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.bundle import Files, checked, read_folder

#: What a learner and an assignment may be called: nothing that means something to a file system.
NAME = re.compile(r"(?!\.)[\w.@-]{1,100}", re.ASCII)
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
#: Bytes of the disk that all submissions of one learner may take together, and that stay free on it.
QUOTA = 1024**3
RESERVE = 64 * 1024**2
#: What the smallest file takes, and a folder: thousands of empty ones would fill a disk too.
PIECE = 4096
#: What nbgrader takes out of a notebook before learners get it.
SECRETS = (b"### BEGIN SOLUTION", b"### BEGIN HIDDEN TESTS", b"### BEGIN MARK SCHEME")


class NoSpaceError(GradingError):
    """The disk is full, or a learner's share of it is used up. Nothing was stored."""


class MissingError(GradingError):
    """There is no such thing in the exchange."""


@dataclass(frozen=True)
class Receipt:
    """What the exchange says about one submission.

    ``time`` is the service's, in UTC; ``key`` is the sender's own name for this upload, by which a repeated one is
    known; ``digests`` are SHA-256 of the files.
    """

    learner: str
    assignment: str
    time: str
    key: str
    digests: dict[str, str]

    @property
    def moment(self) -> datetime:
        """When it was handed in."""
        return datetime.strptime(self.time, TIME).replace(tzinfo=UTC)


class Store:
    """An exchange's folder.

    Parameters
    ----------
    root : path
        Made where it does not exist.
    quota, reserve : int
        Bytes that one learner may store, and that stay free on the disk.
    now : callable
        The clock.

    Raises
    ------
    GradingError
        Other users of the machine can look into it.
    """

    def __init__(
        self,
        root: str | Path,
        quota: int = QUOTA,
        reserve: int = RESERVE,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.root = Path(root).absolute()
        self._quota, self._reserve, self._now = quota, reserve, now
        self._adding = threading.Lock()
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if mode := self.root.stat().st_mode & 0o077:
            raise GradingError(
                f"{str(self.root)!r} is open to other users (mode {mode:03o}), so it is no place for submissions: "
                f"chmod 700 {self.root}"
            )

    # ---- what is handed out

    def released(self) -> dict[str, int]:
        """Return the assignments that are handed out, each with its version."""
        found = {}
        for folder in _folders(self.root / "released"):
            current = folder / "current"
            if current.is_file():
                found[folder.name] = int(current.read_text())
        return found

    def release(self, assignment: str, files: Files, again: bool = False) -> int:
        """Hand an assignment out and return its version; earlier versions are kept.

        Raises
        ------
        GradingError
            It is handed out already and ``again`` is not said, or a file still holds a solution.
        """
        check_name("assignment", assignment)
        if assignment in self.released() and not again:
            raise GradingError(f"{assignment!r} is released already; say so to release it again (--force)")
        for name, content in files.items():
            if found := [secret.decode() for secret in SECRETS if secret in content]:
                raise GradingError(f"{name!r} holds {found[0]!r}: run nbgrader generate_assignment, and release that")
        folder = self.root / "released" / assignment
        version = self._add_version(folder, files)
        current = f"{version}\n".encode()
        with self._drafted(folder / "current", len(current)) as draft:
            _put(draft, current)
        return version

    def withdraw(self, assignment: str) -> None:
        """Stop handing an assignment out; its versions and submissions stay."""
        self._version_of(assignment)
        (self.root / "released" / assignment / "current").unlink()

    def handed_out(self, assignment: str) -> dict[str, bytes]:
        """Return the files of an assignment, or raise `MissingError`."""
        return read_folder(self.root / "released" / assignment / f"{self._version_of(assignment):04}")

    def _version_of(self, assignment: str) -> int:
        released = self.released()
        if assignment not in released:
            raise MissingError(f"no assignment {assignment!r} is released; there is {', '.join(released) or 'none'}")
        return released[assignment]

    def publish(self, files: Files) -> int:
        """Add a version of the course's materials and return its number."""
        return self._add_version(self.root / "materials", files)

    def materials(self) -> tuple[int, dict[str, bytes]]:
        """Return the newest version of the materials and its files; 0 and none where nothing was published."""
        versions = _folders(self.root / "materials")
        return (int(versions[-1].name), read_folder(versions[-1])) if versions else (0, {})

    # ---- what is handed in

    def submit(self, learner: str, assignment: str, files: Files, key: str) -> Receipt:
        """Keep a submission and return its receipt; one that came before under the same key is not kept twice.

        Raises
        ------
        NoSpaceError
            The disk is full, or the learner's share of it.
        GradingError
            The assignment is not released, or a file's name leads elsewhere.
        """
        check_name("learner", learner)
        self._version_of(assignment)
        place = self.root / "submissions" / learner / assignment
        with self._adding:
            earlier = self.submissions(learner, assignment)
            for receipt in earlier:
                if receipt.key == key:
                    return receipt
            self._check_quota(learner, files)
            moment = self._now()
            if earlier:
                moment = max(moment, earlier[-1].moment + timedelta(microseconds=1))
            digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
            receipt = Receipt(learner, assignment, moment.strftime(TIME), key, digests)
            whole = {f"files/{name}": content for name, content in checked(files).items()}
            whole["receipt.json"] = json.dumps(asdict(receipt), indent=1).encode()
            self._add(place / receipt.time, whole)
        return receipt

    def submissions(self, learner: str | None = None, assignment: str | None = None) -> list[Receipt]:
        """Return receipts, by learner, assignment and time; all, or those of one learner or assignment."""
        for what, name in (("learner", learner), ("assignment", assignment)):
            if name is not None:
                check_name(what, name)
        base = self.root / "submissions"
        found = []
        for whose in [base / learner] if learner else _folders(base):
            for which in [whose / assignment] if assignment else _folders(whose):
                found += [self._receipt(folder) for folder in _folders(which)]
        return found

    def submitted(self, learner: str, assignment: str, time: str) -> dict[str, bytes]:
        """Return the files of one submission, or raise `MissingError`."""
        return read_folder(self._submission(learner, assignment, time) / "files")

    def _receipt(self, folder: Path) -> Receipt:
        return Receipt(**json.loads((folder / "receipt.json").read_bytes()))

    def _submission(self, learner: str, assignment: str, time: str) -> Path:
        for receipt in self.submissions(learner, assignment):
            if receipt.time == time:
                return self.root / "submissions" / learner / assignment / time
        raise MissingError(f"{learner} handed in no {assignment!r} at {time!r}")

    def _check_quota(self, learner: str, files: Files) -> None:
        there = (path.stat() for path in (self.root / "submissions" / learner).rglob("*"))
        used = sum(_taken(found.st_size if stat.S_ISREG(found.st_mode) else PIECE) for found in there)
        if used + sum(_taken(len(content)) for content in files.values()) > self._quota:
            raise NoSpaceError(
                f"your submissions take {used / 1e6:.1f} MB, and {self._quota / 1e6:.0f} MB are kept for each learner: "
                "hand in smaller files, or ask your instructor"
            )

    # ---- what comes back

    def give_feedback(self, learner: str, assignment: str, time: str, files: Files) -> int:
        """Add a version of the feedback to one submission and return its number."""
        self._submission(learner, assignment, time)
        return self._add_version(self.root / "feedback" / learner / assignment / time, files)

    def feedback(self, learner: str, assignment: str) -> dict[str, dict[str, bytes]]:
        """Return the newest feedback to each submission of a learner, by its time."""
        check_name("learner", learner)
        check_name("assignment", assignment)
        found = {}
        for folder in _folders(self.root / "feedback" / learner / assignment):
            if versions := _folders(folder):
                found[folder.name] = read_folder(versions[-1])
        return found

    # ---- the disk

    def _add_version(self, folder: Path, files: Files) -> int:
        with self._adding:
            versions = _folders(folder)
            number = int(versions[-1].name) + 1 if versions else 1
            self._add(folder / f"{number:04}", checked(files))
        return number

    def _add(self, place: Path, files: Files) -> None:
        """Write a folder whole, and give it its name when it is on the disk."""
        with self._drafted(place, sum(map(len, files.values()))) as draft:
            draft.mkdir(parents=True)
            folders = {draft}
            for name, content in files.items():
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                folders |= {above for above in path.parents if above.is_relative_to(draft)}
                _put(path, content)
            for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
                folder.chmod(0o555)
                _flush(folder)

    @contextmanager
    def _drafted(self, place: Path, size: int) -> Iterator[Path]:
        """Give a path to write to, and move it to its place; where that fails nothing is left of it."""
        if shutil.disk_usage(self.root).free < size + self._reserve:
            raise self._full()
        draft = place.with_name(f".{uuid.uuid4().hex}")
        try:
            yield draft
            draft.rename(place)
            _flush(place.parent)
        except OSError as error:
            _remove(draft)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._full() from error
            raise GradingError(f"the exchange cannot be written, and nothing was stored: {error}") from error

    def _full(self) -> NoSpaceError:
        return NoSpaceError(
            f"the disk of the exchange ({self.root}) is full: nothing was stored and nothing was lost. "
            "Your files are where they were; tell your instructor, and try again later"
        )

    def sweep(self) -> int:
        """Remove what writers that were killed left behind, and return how many there were. For the one writer."""
        left = [path for path in self.root.glob("*/**/.*") if len(path.name) == 33]
        for path in left:
            _remove(path)
        return len(left)


def _taken(size: int) -> int:
    """Return the bytes that a file of a size takes on a disk."""
    return max(1, -(-size // PIECE)) * PIECE


def _put(path: Path, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o444)


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _folders(folder: Path) -> list[Path]:
    """Return the finished folders in one, in order."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def check_name(what: str, name: Any) -> None:
    """Raise `GradingError` where a learner or an assignment cannot be called so."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise GradingError(f"{what} {name!r} is not a name: letters, digits and . _ - @ are, not beginning with a dot")


def _remove(draft: Path) -> None:
    """Remove a draft, whose folders may be read-only already."""
    if draft.is_dir():
        for folder in [draft, *draft.rglob("*/")]:
            if folder.is_dir():
                folder.chmod(0o755)
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)
