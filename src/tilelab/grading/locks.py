"""Locks of the system's own (`flock`): one is free again when its last holder is gone, however it went."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def lock(descriptor: int, waiting: Callable[[], None]) -> None:
    """Lock an open file until it is closed by its last holder; call ``waiting`` once if somebody else has."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def alone_in(folder: str | Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a folder's lock; call ``waiting`` once if somebody else does."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock(held, waiting)
        yield
    finally:
        os.close(held)
