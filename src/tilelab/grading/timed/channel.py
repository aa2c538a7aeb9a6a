"""Talking to a process of ours: one JSON object a line each way, with a deadline, and an end that is sure."""

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tilelab

#: Bytes of one answer. Ours are some hundred; what is longer does not come from our code.
LONGEST = 1_000_000
#: Seconds for which an eager question looks without pause.
EAGER = 0.02
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_prctl: Callable[..., int] | None = getattr(ctypes.CDLL(None), "prctl", None) if os.name == "posix" else None


class Lost(Exception):
    """The process ended, or did not answer in time and was ended: ``late``. ``signal`` is what ended it, or 0."""

    def __init__(self, words: str, late: bool = False, signal: int = 0) -> None:
        super().__init__(words)
        self.late, self.signal = late, signal


def _die_with_parent() -> None:
    if _prctl is not None:
        _prctl(_END_WITH_PARENT, signal.SIGKILL)


class Companion:
    """A process that runs one of our modules and answers one question after another.

    Parameters
    ----------
    module : str
        What it runs.
    arguments : sequence of str
        For the module.
    hold : iterable of int
        File descriptors that it keeps open as long as it lives: a lock stays taken until its last holder is gone.
    environment : mapping
        Variables on top of this process's own.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        hold: Iterable[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        root = str(Path(tilelab.__file__).resolve().parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path, **(environment or {})},
            start_new_session=True,
            pass_fds=tuple(hold),
            preexec_fn=_die_with_parent,
        )
        assert self._process.stdout is not None
        self._answers = self._process.stdout.fileno()
        os.set_blocking(self._answers, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._rest = b""

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def ask(self, question: Mapping[str, Any], seconds: float, eager: bool = False) -> dict[str, Any]:
        """Ask, and wait for the answer.

        Parameters
        ----------
        question : mapping
            Plain data.
        seconds : float
            How long to wait.
        eager : bool
            Look for the answer without pause for some milliseconds, where the moment it comes counts.

        Raises
        ------
        Lost
            The process ended or took longer than ``seconds``; it is gone now.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # it is closed where the process was lost before
            raise self._ended() from None
        now = time.monotonic()
        end, busy = now + seconds, now + EAGER * eager
        while b"\n" not in self._rest:
            if time.monotonic() < busy and not self._selector.select(0):
                continue
            if not self._selector.select(max(end - time.monotonic(), 0)):
                self.end()
                raise Lost(f"it did not end within {seconds:g} s", late=True)
            got = os.read(self._answers, 1 << 16)
            self._rest += got
            if not got or len(self._rest) > LONGEST:
                raise self._ended()
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            raise self._ended() from None
        if not isinstance(answer, dict):
            raise self._ended()
        return answer

    def _ended(self) -> Lost:
        self.end()
        code = self._process.returncode
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Lost(f"its process ended ({how})", signal=max(-code, 0))

    def end(self) -> None:
        """End the process, whatever it does, and wait until it is gone: its memory on the GPU is free then."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except OSError:
                    continue


def answer_questions(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Be the other end: answer questions from standard input until it is closed.

    What anything else in this process prints goes nowhere: a kernel's ``printf`` is no answer.
    """
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    for line in sys.stdin.buffer:
        out.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
