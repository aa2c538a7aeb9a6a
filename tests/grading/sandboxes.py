"""What tests of the sandbox share: the corpus's way to be an ordinary user, and the processes there are."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "hostile"))
from ordinary_user import as_ordinary_user
from to_its_end import to_its_end

__all__ = ["as_ordinary_user", "command_lines", "python", "to_its_end"]


def python(*arguments):
    """Return a command of this Python."""
    return [sys.executable, *arguments]


def command_lines():
    """Return the command line of every process but this one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
