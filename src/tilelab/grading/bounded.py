"""Judging under a limit of time: checks work in a process of their own, which an alarm ends.

What is handed in is plain data, but a check evaluates it, and data can be made to keep a check busy for hours: in
Python, or deep in a library where no interrupt is heard. So the process that grades only asks, and waits as long as the
course's ``limits.toml`` says (``judge_seconds``). The other process is kept from one question to the next; one that was
ended costs its question, and the next question gets a new one.
"""

import atexit
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import tilelab
from tilelab.cudacpp.processes import use_runner
from tilelab.grading.budgets import budget
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Judge, Verdict
from tilelab.grading.problems import split
from tilelab.grading.sandbox.emulation import run_inside

#: Seconds after which a process that does not even end itself is ended from outside, and those to start in.
GRACE, START = 5.0, 60.0
#: After each question that took too long, a submission's others have half the time, but so many seconds at least.
LEAST = 20.0
#: How often an answer is looked at whose process ended: killed from outside, perhaps, which is nobody's fault.
ATTEMPTS = 3
#: Of ``prctl``: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1
Lost = Literal["too long", "ended"]


class BoundedJudge(Judge):
    """A judge whose checks work in another process, for a limited time each.

    Parameters
    ----------
    checks : path
        The folder of trusted checks.
    learner : str
        Whose answers they are, as the course knows them.
    limits : path, optional
        The course's ``limits.toml``.
    sandboxed : bool
        Whether learner-written kernels are compiled and run in the sandbox.

    Raises
    ------
    GradingError
        The folder is not there.
    """

    def __init__(
        self, checks: str | Path, learner: str = "", limits: Path | None = None, sandboxed: bool = True
    ) -> None:
        super().__init__(checks, learner)
        self._limits, self._sandboxed, self._stopped = limits, sandboxed, 0
        _bench().start()  # it imports what it needs while the notebook runs

    def _decide(self, cell: str, answers: dict[str, Any], key: str) -> Verdict:
        problem, part = split(cell)
        file = self.checks / f"{problem}.py"
        limit = float(budget(self._limits, problem).of(part, "judge_seconds"))
        seconds = max(limit / 2**self._stopped, min(limit, LEAST))
        asked = {
            "checks": [str(self.checks), file.stat().st_mtime_ns if file.is_file() else 0],
            "learner": self.learner,
            "sandboxed": self._sandboxed,
            "question": [cell, answers, key],
            "seconds": seconds,
        }
        found: Any = "ended"
        for _ in range(ATTEMPTS):
            found = _bench().ask(asked)
            if found != "ended":
                break
        if found == "too long":
            self._stopped += 1
            return Verdict(
                0.0,
                (
                    f"this answer was looked at for {seconds:g} s and there was no end to it, so it counts as wrong: "
                    "hand in less, or something that is done sooner",
                ),
            )
        if found == "ended":
            words = "the judge ended without a word while it looked at this answer: a person will look at it"
            return Verdict(0.0, (words,), pending=1.0)
        share, lines, pending = found
        return Verdict(share, tuple(lines), pending)


class Bench:
    """The process in which checks work; started when it is needed, and again when it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        root = str(Path(tilelab.__file__).resolve().parents[1])
        program = f"import sys; sys.path.insert(0, {root!r}); from {__name__} import main; main()"
        self._read = b""
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ask(self, asked: dict[str, Any]) -> Any:
        """Return what a check decided, as plain data: share, lines and what is pending; or how the process was lost.

        Raises
        ------
        GradingError
            It cannot be started at all.
        """
        self.start()
        if self._line(START) is None and self._restarted() is None:
            raise GradingError("the process that judges does not start: is the package installed whole?")
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        line = self._line(asked["seconds"] + GRACE)
        if line is None:
            code = self.close()
            lost: Lost = "too long" if code == -signal.SIGALRM or code is None else "ended"
            return lost
        return json.loads(line)

    def _restarted(self) -> bytes | None:
        self.close()
        self.start()
        return self._line(START)

    def _line(self, seconds: float) -> bytes | None:
        """Return the next line it writes; ``None`` where it ends before, or the time is over."""
        assert self._process is not None
        assert self._process.stdout is not None
        number, end = self._process.stdout.fileno(), monotonic() + seconds
        ready = select.poll()
        ready.register(number, select.POLLIN)
        while b"\n" not in self._read:
            if not ready.poll(1000 * max(end - monotonic(), 0)):
                return None
            piece = os.read(number, 1 << 16)
            if not piece:
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line

    def close(self) -> int | None:
        """End it; return the code with which it had ended by itself, if it had."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            # What closed its output is about to end; what did not is ended.
            code = process.wait(0.2)
        if code is None:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        return code


_benches: list[Bench] = []


def _bench() -> Bench:
    """Return this process's bench."""
    if not _benches:
        _benches.append(Bench())
        atexit.register(_close)
    return _benches[0]


def _close() -> None:
    while _benches:
        _benches.pop().close()


def main() -> None:
    """Judge what is asked, one line of JSON after another, until nobody asks any more.

    Each answer to a question, and the word that it is ready before each, is a line too.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # not a handler: it would wait for a library to come back
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a check prints is no answer
    judge, of = None, None
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, asked["seconds"])
        if judge is None or of != (asked["checks"], asked["learner"]):
            judge, of = Judge(asked["checks"][0], asked["learner"]), (asked["checks"], asked["learner"])
        with use_runner(run_inside) if asked["sandboxed"] else nullcontext():
            verdict = judge._decide(*asked["question"])
        signal.setitimer(signal.ITIMER_REAL, 0)
        made = json.dumps([float(verdict.share), list(map(str, verdict.lines)), float(verdict.pending)])
        print(made, "ready", sep="\n", file=answers, flush=True)
