"""Private folders that outlive nobody: each is locked while it is used, and the next one made sweeps away the rest."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilelab.grading.sandbox.errors import SandboxError

#: Of folders that are locked while they are used. No other temporary folder may be called so: it would be swept away.
PREFIX = "tilelab-held-"
YOUNG_SECONDS = 60
#: Bytes that must be free in memory for private folders to lie there; a container often has 64 MiB in all.
ROOM_IN_MEMORY = 1 << 30


def place_for_folders() -> Path:
    """Return where private folders are made: in memory where possible, so that what is written counts as memory.

    The path is short, because the path of a socket has at most 107 bytes.
    """
    for place, room in ((Path("/dev/shm"), ROOM_IN_MEMORY), (Path(tempfile.gettempdir()), 0)):
        if os.access(place, os.W_OK | os.X_OK) and shutil.disk_usage(place).free >= room:
            return place
    raise SandboxError("no folder for temporary files can be written: set TMPDIR to one that can")


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder of this process's own, and remove it at the end; a process that is killed leaves it to the next.

    Raises
    ------
    SandboxError
        There is no place for one.
    """
    place = place_for_folders()
    _sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _sweep(place: Path) -> None:
    """Remove private folders of processes that were killed: nobody holds their lock any more."""
    for folder in place.glob(f"{PREFIX}*"):
        # A young folder may belong to a process that is about to lock it.
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            found = os.fstat(lock)
            if found.st_uid == os.getuid() and time.time() - found.st_mtime > YOUNG_SECONDS:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(lock)
