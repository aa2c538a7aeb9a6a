"""Run one program inside: a compiler on a learner's source, or what it built."""

import os
import selectors
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.jail import Broken, Jail, end
from tilelab.grading.sandbox.limits import Limits

# Inside: runs the command, then puts the files that are wanted where the other side finds them.
FETCH = """
out=$1; names=$2; shift 2
"$@"; code=$?
for name in $names; do
  if [ -f "$name" ] && [ ! -h "$name" ]; then cp -- "$name" "$out/" 2>/dev/null; fi
done
exit $code
"""

Ending = Broken | Literal["itself", "time"]


@dataclass(frozen=True)
class Finished:
    """How a run inside ended.

    Attributes
    ----------
    ended : {"itself", "time", "memory", "shared files", "messages"}
        Whether the program came to its own end, or which limit ended it.
    returncode : int
        What the program returned; above 128 where a signal ended it, as a shell says it.
    stdout, stderr : bytes
        At most ``Limits.output`` bytes of each.
    dropped : bool
        Whether some output was dropped.
    seconds : float
        Wall time, the sandbox's start included.
    files : dict of str to bytes
        The files that were asked for and were there.
    """

    ended: Ending
    returncode: int
    stdout: bytes
    stderr: bytes
    dropped: bool
    seconds: float
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Tell whether the program came to its own end and returned 0."""
        return self.ended == "itself" and self.returncode == 0


def run(
    argv: Sequence[str],
    files: Mapping[str, bytes | str] | None = None,
    limits: Limits | None = None,
    *,
    fetch: Sequence[str] = (),
    show: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Finished:
    """Run a program inside a sandbox of its own and wait for its end.

    Parameters
    ----------
    argv : sequence of str
        The program and its arguments, as seen from inside; it starts in the home folder.
    files : mapping of str to bytes or str, optional
        Relative path to content: what lies in the home folder at the start.
    limits : Limits, optional
        What it may use.
    fetch : sequence of str
        Names of files to bring back from the home folder. What comes back was made by learner-written code.
    show : sequence of str
        Files or folders of the machine to show inside, read-only.
    variables : mapping, optional
        Environment variables to add.
    stdin : bytes
        What the program can read.

    Returns
    -------
    Finished

    Raises
    ------
    SandboxError
        Where the sandbox itself cannot be built; never for what the program does.
    """
    limits = limits or Limits()
    jail = Jail(limits, tuple(show))
    try:
        for name, content in (files or {}).items():
            place = jail.given / _inside(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
            if content[:2] in ("#!", b"#!", b"\x7fE"):
                place.chmod(0o755)
        for name in fetch:
            if not name or set(name) & set("/*?[ \t\n"):
                raise SandboxError(f"file name {name!r}: what is fetched needs a plain name in the home folder")
        inner = ["sh", "-c", FETCH, "sh", str(jail.shared), " ".join(fetch), *argv] if fetch else list(argv)
        start = time.monotonic()
        process = subprocess.Popen(
            jail.command(inner, variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            start_new_session=True,
        )
        jail.watch(process)
        try:
            in_time, (stdout, stderr), dropped = _converse(process, stdin, limits)
        finally:
            end(process)
            code = process.wait()
        if in_time and not jail.started:
            raise SandboxError(f"the sandbox could not be built: {stderr.decode(errors='replace').strip()}")
        ended: Ending = "itself"
        if not in_time:
            ended = "time"
        elif jail.broken is not None:
            ended = jail.broken
        elif jail.ended_for_memory():
            ended = "memory"
        fetched = {name: found for name in fetch if (found := _fetched(jail, name)) is not None}
        returncode = code if code >= 0 else 128 - code
        return Finished(ended, returncode, stdout, stderr, dropped, time.monotonic() - start, fetched)
    finally:
        jail.close()


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise SandboxError(f"file name {name!r}: give a path below the home folder, such as 'kernel.cu'")
    return path


def _converse(process: "subprocess.Popen[bytes]", stdin: bytes, limits: Limits) -> tuple[bool, list[bytes], bool]:
    """Feed and read a process until it ends.

    Returns (whether it ended in time, [stdout, stderr], whether any output was dropped).
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    deadline = time.monotonic() + limits.seconds
    kept: dict[int, bytearray] = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    waiting, dropped = memoryview(stdin), False
    with process.stdin, process.stdout, process.stderr, selectors.DefaultSelector() as ready:
        for number in kept:
            ready.register(number, selectors.EVENT_READ)
        if waiting:
            os.set_blocking(process.stdin.fileno(), False)
            ready.register(process.stdin.fileno(), selectors.EVENT_WRITE)
        else:
            process.stdin.close()
        while ready.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            for key, _ in ready.select(min(left, 0.5)):
                if key.fd in kept:
                    piece = os.read(key.fd, 1 << 16)
                    if not piece:
                        ready.unregister(key.fd)
                    room = limits.output - len(kept[key.fd])
                    kept[key.fd] += piece[:room]
                    dropped |= len(piece) > room
                else:
                    try:
                        waiting = waiting[os.write(key.fd, waiting[: 1 << 16]) :]
                    except BrokenPipeError:
                        waiting = waiting[:0]
                    if not waiting:
                        ready.unregister(key.fd)
                        process.stdin.close()
        in_time = not ready.get_map()
        if in_time:
            try:
                process.wait(max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                in_time = False
    return in_time, [bytes(text) for text in kept.values()], dropped


def _fetched(jail: Jail, name: str) -> bytes | None:
    """Read a file that learner-written code left, if it is a plain file of a size that is allowed."""
    try:
        number = os.open(jail.shared / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or found.st_size > jail.limits.file_size:
        os.close(number)
        return None
    with os.fdopen(number, "rb") as file:
        return file.read()
