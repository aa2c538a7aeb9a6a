"""Files on their way: a folder as names and contents, and the JSON that carries them."""

import base64
import binascii
import fnmatch
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError

#: Names, relative and with ``/``, each with its content.
Files = Mapping[str, bytes]
#: Bytes that all files of one submission or release may have together.
MOST_BYTES = 64 * 1024**2
MOST_FILES = 500
DEEPEST = 8
#: Values that a message's JSON may hold: reading many small ones takes far more memory than the message.
MOST_VALUES = 20_000


def checked(files: Files) -> dict[str, bytes]:
    """Return the files if every name stays inside the folder it is written to, and they are not too many or large.

    Raises
    ------
    GradingError
        Quoting the name.
    """
    if not files:
        raise GradingError("there are no files in it")
    if len(files) > MOST_FILES:
        raise GradingError(f"{len(files)} files are too many: at most {MOST_FILES} are taken")
    total = sum(map(len, files.values()))
    if total > MOST_BYTES:
        largest = max(files, key=lambda name: len(files[name]))
        raise GradingError(
            f"{total / 1e6:.1f} MB are too many: at most {MOST_BYTES / 1e6:.0f} MB are taken, and {largest!r} alone "
            f"has {len(files[largest]) / 1e6:.1f} MB. Clear large outputs, or move large files elsewhere"
        )
    _check_names(files)
    return dict(files)


def _check_names(files: Files) -> None:
    for name in files:
        _check_name(name)
        above = name
        while "/" in above:
            above = above.rpartition("/")[0]
            if above in files:
                raise GradingError(f"{above!r} is a file and a folder at once")


def _check_name(name: str) -> None:
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise GradingError(f"{name!r} is not a name inside a folder: write names such as 'data/table.csv'")
    if len(parts) > DEEPEST or any(len(part.encode()) > 200 for part in parts):
        raise GradingError(f"{name[:60]!r} is too long or too deep: at most {DEEPEST} folders, of 200 bytes each")


def read_folder(folder: Path, ignore: Iterable[str] = ()) -> dict[str, bytes]:
    """Return the plain files below a folder; links are left out, for they lead elsewhere.

    Parameters
    ----------
    folder : path
        Where to look.
    ignore : iterable of str
        Patterns of file and folder names to leave out, as nbgrader's ``CourseDirectory.ignore``.

    Raises
    ------
    GradingError
        A file cannot be read, or they are too many or too large.
    """
    patterns = tuple(ignore)
    files: dict[str, bytes] = {}
    total = 0
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _ignored(name, patterns))
        for name in sorted(name for name in names if not _ignored(name, patterns)):
            path = Path(above) / name
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError as error:
                if path.is_symlink():
                    continue
                raise GradingError(f"cannot read {str(path.relative_to(folder))!r}: {error.strerror}") from error
            with open(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    continue
                content = file.read(MOST_BYTES + 1)
            files[path.relative_to(folder).as_posix()] = content
            total += len(content)
            if total > MOST_BYTES or len(files) > MOST_FILES:
                return checked(files)  # which says what is too much
    return checked(files)


def _ignored(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def write_folder(folder: Path, files: Files) -> None:
    """Write files below a folder that may not exist yet, every one inside it."""
    _check_names(files)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def as_json(files: Files) -> dict[str, str]:
    """Return files as JSON carries them."""
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def from_json(said: Any) -> dict[str, bytes]:
    """Return the files that JSON carried.

    Raises
    ------
    GradingError
        It is not names with base64 texts, or the files are not `checked`.
    """
    if not isinstance(said, dict):
        raise GradingError(f"files are an object of names and base64 texts, not a {type(said).__name__}")
    files = {}
    for name, text in said.items():
        try:
            files[name] = base64.b64decode(text, validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise GradingError(f"the content of {name!r} is not base64") from None
    return checked(files)


def read_json(body: bytes) -> dict[str, Any]:
    """Return the object that a message's body holds.

    Raises
    ------
    GradingError
        It holds none, or far more values than files have names and contents.
    """
    if sum(map(body.count, (b",", b"{", b"["))) > MOST_VALUES:
        raise GradingError(f"the message holds more than {MOST_VALUES:,} values")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise GradingError(f"the message is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise GradingError(f"the message is a {type(said).__name__}, an object is asked for")
    return said
