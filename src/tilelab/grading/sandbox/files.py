"""The files of a submission: plain ones, and not more of them than a submission has use for.

Whoever hands in chooses what lies in the folder: links to files that the grader can read, pipes that never end, files
of a terabyte that take no room on a disk, folders a thousand deep. None of them is opened here.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

MIB = 1 << 20
#: More is left out, in the order of the names.
MOST_FILES = 1000
MOST_BYTES = 128 * MIB
DEEPEST = 8
#: Files that are not copied inside: a notebook beside the one that runs may hold tests or answers.
HELD_BACK = ("*.ipynb", "timestamp.txt")


def regular_files(folder: Path, deepest: int = DEEPEST) -> Iterator[tuple[Path, int]]:
    """Yield the regular files in and below a folder with their sizes, at most `MOST_FILES` of them.

    What is no regular file, or cannot be looked at, is not there.
    """
    found, waiting = 0, [(folder, 1)]
    while waiting:
        place, depth = waiting.pop(0)
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(about.st_mode):
                yield Path(entry.path), about.st_size
                found += 1
                if found == MOST_FILES:
                    return
            elif stat.S_ISDIR(about.st_mode) and depth < deepest:
                waiting.append((Path(entry.path), depth + 1))


def plain_files(folder: Path, most: int = MOST_BYTES, deepest: int = DEEPEST) -> list[Path]:
    """Return the files that a notebook finds beside it.

    Parameters
    ----------
    folder : Path
        What was handed in.
    most : int
        Bytes of all files together; one that would be too much is left out.
    deepest : int
        Levels of folders; 1 is the folder itself.
    """
    taken, total = [], 0
    for path, size in regular_files(folder, deepest):
        held_back = any(path.match(pattern) for pattern in HELD_BACK)
        if not held_back and total + size <= most and os.access(path, os.R_OK):
            taken.append(path)
            total += size
    return taken


def copy_plain_files(source: Path, target: Path, most: int = MOST_BYTES) -> None:
    """Copy what `plain_files` returns, and the folders it lies in."""
    for path in plain_files(source, most):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place, follow_symlinks=False)
        place.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)


def beginning(path: Path, most: int) -> bytes:
    """Return the first bytes of a regular file; none, if it is no such file or cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        return b""
    with os.fdopen(number, "rb") as file:
        return file.read(most)
