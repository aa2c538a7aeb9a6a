"""What tests of the sandbox share: how to be an ordinary user, a place of one's own, the processes that there are."""

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tilelab.grading.sandbox import folders
from tilelab.grading.sandbox.processes import texts

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "hostile"))
from ordinary_user import as_ordinary_user
from to_its_end import to_its_end

__all__ = ["as_ordinary_user", "command_lines", "own_place", "python", "to_its_end"]


def python(*arguments):
    """Return a command of this Python."""
    return [sys.executable, *arguments]


@contextmanager
def own_place(monkeypatch):
    """Have private folders made in a folder of the test's own: what others make and sweep meanwhile is elsewhere."""
    made = tempfile.TemporaryDirectory(prefix="tilelab-own-", dir=folders.place_for_folders())
    with made as place, monkeypatch.context() as patch:
        patch.setattr(folders, "place_for_folders", lambda: Path(place))
        yield Path(place)


def command_lines():
    """Return the command line of every process but this one."""
    return (text.replace("\0", " ") for pid, text in texts("cmdline") if pid != os.getpid())
