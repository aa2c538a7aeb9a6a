"""The one place where compilers and emulated kernels are started.

Everything that builds or runs learner-written C++ on a CPU goes through a :class:`Runner`. :func:`run_here` is the
plain one, with limits but no walls. A sandbox is another callable of the same form, made the default with
:func:`use_runner`, so nothing else in the package needs to know that it is there.
"""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

#: Bytes of built kernels that one folder of the cache holds.
MOST_CACHED = 512 * 1024**2


@dataclass(frozen=True)
class Limits:
    """What a process may use: seconds by the clock, bytes of memory, bytes of a file, bytes of output."""

    seconds: float = 60.0
    memory: int = 8 * 1024**3
    file_size: int = 4 * 1024**3
    output: int = 1024**2


@dataclass(frozen=True)
class Task:
    """One process: ``argv`` in a fresh folder that holds ``files``; ``wanted`` files are brought back.

    ``readable`` are folders outside that the process reads (headers). A file whose name is ``argv[0]`` after ``./``
    is made executable.
    """

    argv: Sequence[str]
    files: Mapping[str, bytes] = field(default_factory=dict)
    wanted: Sequence[str] = ()
    limits: Limits = Limits()
    readable: Sequence[Path] = ()


@dataclass(frozen=True)
class Finished:
    """How a task ended. ``code`` is negative for a signal; ``timed_out`` says that the clock ended it."""

    code: int
    stdout: str
    stderr: str
    files: Mapping[str, bytes]
    timed_out: bool = False


class Runner(Protocol):
    """Runs a task to its end and never raises for what the task itself does wrong."""

    def __call__(self, task: Task, /) -> Finished: ...


def run_here(task: Task, /) -> Finished:
    """Run a task as a child of this process, in a temporary folder, under its limits.

    Raises
    ------
    FileNotFoundError
        ``argv[0]`` does not exist.
    """
    with tempfile.TemporaryDirectory(prefix="tilelab-") as name:
        folder = Path(name)
        for file, content in task.files.items():
            (folder / file).write_bytes(content)
        program = task.argv[0]
        if program.startswith("./"):
            (folder / program).chmod(0o755)

        def limit() -> None:
            for what, most in (
                (resource.RLIMIT_AS, task.limits.memory),
                (resource.RLIMIT_FSIZE, task.limits.file_size),
                (resource.RLIMIT_CPU, int(task.limits.seconds) + 1),
                (resource.RLIMIT_CORE, 0),
            ):
                with contextlib.suppress(ValueError, OSError):  # the parent's own limit is lower
                    resource.setrlimit(what, (most, most))

        with open(folder / ".stdout", "wb") as out, open(folder / ".stderr", "wb") as err:
            process = subprocess.Popen(
                task.argv,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=limit,
            )
            timed_out = not _ends_within(process, task.limits.seconds)
        return Finished(
            code=process.returncode,
            stdout=_text(folder / ".stdout", task.limits.output),
            stderr=_text(folder / ".stderr", task.limits.output),
            files={
                file: (folder / file).read_bytes()
                for file in task.wanted
                if (folder / file).is_file() and not (folder / file).is_symlink()
            },
            timed_out=timed_out,
        )


def _ends_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Wait for the end; kill the process and its children when it takes longer."""
    try:
        process.wait(seconds)
        return process.returncode != -signal.SIGXCPU
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _text(file: Path, most: int) -> str:
    content = file.read_bytes()
    cut = "" if len(content) <= most else f"\n… {len(content) - most} bytes more"
    return content[:most].decode(errors="replace") + cut


_runner: Runner = run_here


def run(task: Task) -> Finished:
    """Run a task by the runner in use."""
    return _runner(task)


@contextlib.contextmanager
def use_runner(runner: Runner) -> Iterator[None]:
    """Within the ``with`` block, start every compiler and every emulated kernel through ``runner``."""
    global _runner
    before, _runner = _runner, runner
    try:
        yield
    finally:
        _runner = before


def cache_folder() -> Path:
    """Where built kernels are kept: ``$TILELAB_CACHE``, or ``tilelab`` in the user's cache folder."""
    chosen = os.environ.get("TILELAB_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilelab"


def keep(file: Path, content: bytes) -> None:
    """Write a file of the cache so that no reader ever sees half of it; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{os.getpid()}.{time.monotonic_ns()}")
        draft.write_bytes(content)
        draft.replace(file)
        _make_room(file.parent)


def _make_room(folder: Path) -> None:
    """Keep a folder of the cache under its size: what was written first goes first."""
    held = []
    for file in folder.iterdir():
        with contextlib.suppress(OSError):  # another process removed it
            held.append((file.stat().st_mtime, file.stat().st_size, file))
    total = sum(size for _, size, _ in held)
    for _, size, file in sorted(held):
        if total <= MOST_CACHED:
            return
        file.unlink(missing_ok=True)
        total -= size
