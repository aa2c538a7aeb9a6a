"""A bundle: measurements that travel to a GPU, and results that come back, both as plain JSON.

The machine with the gradebook keeps a key. Each bundle gets a key of its own, made from that one and the bundle's
number, and carries it: whoever has the bundle can sign results, and the gradebook's machine can check them without
having kept anything. So a bundle is a secret of the course; its file can be read by its owner alone.

Learners are tokens. What a token stands for never leaves the gradebook's machine.
"""

import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.timed.thresholds import Thresholds, checked
from tilelab.grading.timed.wanted import Measured, Wanted, canonical, read_measured, read_wanted

#: Bytes of a bundle or of results, at most: a class of a thousand needs a tenth.
LARGEST = 256 * 1024**2
FORM = "tilelab-jobs-1"
RESULTS = "tilelab-results-1"
#: What a bundle's number looks like: it becomes the name of a file.
NUMBER = "[0-9a-f]{32}"


def private(file: Path, content: bytes, first: bool = False) -> None:
    """Write a file that its owner alone can read, whole or not at all; raise `GradingError` where it cannot be.

    Where another process was ``first``, its file stays.
    """
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        if first:
            with suppress(FileExistsError):
                os.link(draft, file)
        else:
            draft.replace(file)
    except OSError as error:
        raise GradingError(f"cannot write {str(file)!r}: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


def content_of(file: Path) -> bytes:
    """Return what a bundle or a results file holds; raise `GradingError` for what can be neither."""
    try:
        about = file.stat()
        if not stat.S_ISREG(about.st_mode):
            raise GradingError(f"{str(file)!r} is no file")
        if about.st_size > LARGEST:
            raise GradingError(f"{str(file)!r} has {about.st_size} bytes: no bundle and no results are that large")
        return file.read_bytes()
    except OSError as error:
        raise GradingError(f"cannot read {str(file)!r}: {error.strerror}") from None


def key_of(folder: Path) -> bytes:
    """Return the key of a gradebook's machine, made on first use.

    Raises
    ------
    GradingError
        Others can read it, or it is none.
    """
    file = folder / "key"
    if not file.exists():
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise GradingError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None
        private(file, secrets.token_hex(32).encode(), first=True)
    return kept_key_of(folder)


def kept_key_of(folder: Path) -> bytes:
    """Return the key that was made; raise `GradingError` as `key_of` does, and where there is none any more."""
    file = folder / "key"
    if not file.exists():
        raise GradingError(f"the key {str(file)!r} is gone, so no results can be checked: export again, and run again")
    try:
        if file.stat().st_mode & 0o077:
            raise GradingError(f"others can read {str(file)!r}: chmod 600 it, and export again if they may have")
        key = bytes.fromhex(file.read_text())
    except OSError as error:
        raise GradingError(f"cannot read {str(file)!r}: {error.strerror}") from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise GradingError(f"{str(file)!r} is no key: delete it, export again, and run again")
    return key


def signature(key: bytes, content: object) -> str:
    """Return the HMAC-SHA256 of plain data."""
    return hmac.digest(key, canonical(content), "sha256").hex()


def bundle_key(key: bytes, number: str) -> bytes:
    """Return the key of one bundle."""
    return hmac.digest(key, f"{FORM}:{number}".encode(), "sha256")


@dataclass(frozen=True)
class Job:
    """One grade cell that waits: its token, the part it belongs to, and the measurement it needs."""

    token: str
    cell: str
    wanted: str


@dataclass(frozen=True)
class Bundle:
    """Jobs with the measurements they need.

    Attributes
    ----------
    number : str
        Random; what results say they belong to.
    key : bytes
        What results are signed with.
    jobs : tuple of Job
        Grade cells that wait. Several may need the same measurement.
    wanted : mapping
        Measurements by their digest.
    thresholds : Thresholds
        The course's, so that more is measured where points change.
    """

    number: str
    key: bytes
    jobs: tuple[Job, ...]
    wanted: Mapping[str, Wanted]
    thresholds: Thresholds = field(default_factory=lambda: Thresholds({}))

    def cells(self, wanted: str) -> list[str]:
        """Return the parts that need a measurement."""
        return sorted({job.cell for job in self.jobs if job.wanted == wanted})


def make_bundle(key: bytes, waiting: Iterable[tuple[str, Wanted]], thresholds: Thresholds) -> Bundle:
    """Make a bundle of (grade cell, measurement) pairs; jobs are in the same order."""
    number = secrets.token_hex(16)
    jobs, wanted = [], {}
    for cell, one in waiting:
        jobs.append(Job(secrets.token_hex(8), cell, one.digest))
        wanted[one.digest] = one
    return Bundle(number, bundle_key(key, number), tuple(jobs), wanted, thresholds)


def write_bundle(bundle: Bundle, file: Path) -> None:
    """Write a bundle as one file that its owner alone can read."""
    body: dict[str, Any] = {
        "form": FORM,
        "number": bundle.number,
        "key": bundle.key.hex(),
        "jobs": [{"token": job.token, "cell": job.cell, "wanted": job.wanted} for job in bundle.jobs],
        "wanted": {name: one.as_dict() for name, one in bundle.wanted.items()},
        "thresholds": json.loads(canonical(bundle.thresholds.said)),
    }
    private(file, json.dumps(body | {"signature": signature(bundle.key, body)}, indent=1).encode())


def read_bundle(file: Path) -> Bundle:
    """Read a bundle.

    Raises
    ------
    GradingError
        It is none, or not as it was exported.
    """
    body = _read_json(file)
    if not isinstance(body, dict) or body.get("form") != FORM:
        raise GradingError(f"{str(file)!r} is no bundle of jobs: make one with tilelab jobs export")
    signed = body.pop("signature", "")
    try:
        match body:
            case {
                "number": str(number),
                "key": str(in_hex),
                "jobs": list(listed),
                "wanted": dict(named),
                "thresholds": dict(said),
            } if re.fullmatch(NUMBER, number):
                pass
            case _:
                raise ValueError("no bundle")
        key = bytes.fromhex(in_hex)
        if not hmac.compare_digest(signature(key, body), str(signed)):
            raise GradingError(f"{str(file)!r} was changed since it was exported: export it again")
        wanted = {name: read_wanted(one) for name, one in named.items()}
        if any(name != one.digest for name, one in wanted.items()):
            raise GradingError(f"{str(file)!r} wants something else than it says: export it again")
        return Bundle(number, key, tuple(_job(one, wanted) for one in listed), wanted, checked(said))
    except (TypeError, ValueError, RecursionError):
        raise GradingError(f"{str(file)!r} is damaged: export it again") from None


def _job(data: object, wanted: Mapping[str, Wanted]) -> Job:
    """Read plain data as a job that needs one of the measurements, or raise `ValueError`."""
    match data:
        case {"token": str(token), "cell": str(cell), "wanted": str(name)} if name in wanted:
            return Job(token, cell, name)
    raise ValueError("no job")


def _read_json(file: Path) -> Any:
    try:
        return json.loads(content_of(file))
    except (ValueError, RecursionError):
        raise GradingError(f"{str(file)!r} is damaged or something else: it is no JSON") from None


def result_line(bundle: Bundle, wanted: str, measured: Measured) -> str:
    """Return one measurement's outcome as a signed line of a results file."""
    body = {"form": RESULTS, "bundle": bundle.number, "wanted": wanted, "measured": measured.as_dict()}
    body = json.loads(canonical(body))
    return json.dumps(body | {"signature": signature(bundle.key, body)}) + "\n"


def read_results(file: Path, key: bytes, number: str) -> dict[str, Measured]:
    """Read the outcomes in a results file by the digest of what was wanted; half a line at its end does not count.

    Of several outcomes of one the last counts, but none that decides nothing in place of one that does: results of two
    runs may stand in one file, and one of them may have been on a CPU.

    Raises
    ------
    GradingError
        A line was changed, or belongs to another bundle.
    """
    content = content_of(file)
    try:
        lines = content[: len(content) - half_a_line(content)].decode().splitlines()
    except UnicodeDecodeError as error:
        raise GradingError(f"cannot read {str(file)!r}: {error}") from None
    found: dict[str, Measured] = {}
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            body = json.loads(line)
            signed = str(body.pop("signature", ""))
            belongs = body["bundle"] == number and body["form"] == RESULTS
            true = hmac.compare_digest(signature(key, body), signed)
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise GradingError(f"line {place} of {str(file)!r} is damaged: nothing of this file is used") from None
        if not belongs:
            raise GradingError(f"line {place} of {str(file)!r} belongs to another bundle: nothing of this file is used")
        if not true:
            raise GradingError(f"line {place} of {str(file)!r} was changed since it was signed: nothing is used")
        _take(found, body)
    return found


def _take(found: dict[str, Measured], body: Mapping[str, Any]) -> None:
    wanted, measured = body.get("wanted"), read_measured(body.get("measured"))
    if not isinstance(wanted, str):
        raise GradingError(f"this is no measurement's outcome: it is of {wanted!r:.40}")
    if measured.decides or wanted not in found or not found[wanted].decides:
        found[wanted] = measured


def half_a_line(content: bytes) -> int:
    """Return how many bytes at the end of a results file were left half written when its writer was stopped.

    A line that is whole counts whether or not a line break follows: a program that carried the file may have cut it.
    """
    last = content[content.rfind(b"\n") + 1 :]
    try:
        json.loads(last)
    except (ValueError, RecursionError):
        return len(last)
    return 0


def unverified(file: Path) -> dict[str, Measured]:
    """Read the outcomes in a results file to look at; whoever decides anything by them asks `read_results`.

    Raises
    ------
    GradingError
        The file holds no results.
    """
    number_in(file)
    found: dict[str, Measured] = {}
    for line in content_of(file).decode(errors="replace").splitlines():
        try:
            _take(found, json.loads(line))
        except (ValueError, AttributeError, RecursionError, GradingError):
            continue  # half a line, of a run that was stopped
    return found


def number_in(file: Path) -> str:
    """Return the number of the bundle that a results file says it belongs to, or raise `GradingError`."""
    try:
        number = json.loads(content_of(file).strip().partition(b"\n")[0])["bundle"]
        if re.fullmatch(NUMBER, number):
            return str(number)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise GradingError(f"{str(file)!r} holds no results: make them with tilelab jobs run")
