"""Run a command that may leave processes behind, or never end, and be back in any case."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


def to_its_end(command: Sequence[str], seconds: float, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command and return how it ended and what it said.

    What it says goes into files: with a pipe, whoever waits would also wait for everything that it left behind.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; it leads a session of its own and reads nothing.
    seconds : float
        After so long it is ended, and its whole process group with it.
    **options
        For ``subprocess.Popen``, such as ``cwd`` and ``env``.

    Raises
    ------
    subprocess.TimeoutExpired
        It took longer. The error holds what it had said.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, **options
        )
        late = None
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            late = error
        finally:
            if process.returncode is None:  # by its number: Popen.kill takes a stopped child for one that has ended
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
    if late is not None:
        raise subprocess.TimeoutExpired(command, seconds, said[0], said[1])
    return subprocess.CompletedProcess(command, process.returncode, *said)
