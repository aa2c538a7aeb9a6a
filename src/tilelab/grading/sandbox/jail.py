"""One sandbox: its private folder, the command that starts a process in it, and the watch over its limits.

A root grader's bubblewrap builds the file system as root, then the command drops to a user number of its own; an
ordinary user's runs in a user namespace. Everything else is the same for both.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from tilelab.grading.sandbox import cgroups, seccomp, view
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.folders import private_folder
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.processes import descendants, memory_held, status

#: User numbers that belong to nobody (systemd keeps them for services without a user). Each sandbox of a root grader
#: takes one, so that process limits count for it alone.
UNOWNED_USERS = range(61184, 65520)
WATCH_SECONDS = 0.1
CPU_SECONDS_TO_SPARE = 600
#: Bytes by which this process may grow while a sandbox runs: what a kernel sends waits here until it is read.
OWN_GROWTH = 768 << 20
Broken = Literal["memory", "shared files", "messages"]
NEEDED_VERSION = (0, 8)

# Joins the control groups, opens the system-call filter and a file for the news of the start, and becomes bubblewrap.
DOOR = """
folder=$1; shift
while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift
exec 9< "$folder/filter" 8> "$folder/started"; exec "$@"
"""
# Inside: says that the walls stand, copies the given files to the home folder and becomes the command. Nothing
# learner-written has run before, and nothing after can take the word back. As number 1 it stays, and reaps.
WELCOME = """
echo yes >&8; exec 8>&-
cp -r /given/. .
if [ $$ = 1 ]; then "$@"; exit $?; fi; exec "$@"
"""


@cache
def bubblewrap() -> str:
    """Return the path of a ``bwrap`` that is new enough.

    Raises
    ------
    SandboxError
        Where there is none; the message names the package.
    """
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError("the sandbox needs bubblewrap: install the system's package 'bubblewrap'")
    text = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout.split()[
        -1
    ]
    if tuple(int(part) for part in text.split(".")[:2]) < NEEDED_VERSION:
        raise SandboxError(f"bubblewrap {text} is too old, the sandbox needs {'.'.join(map(str, NEEDED_VERSION))}")
    return found


class Jail:
    """A place to run one command in, and everything that must be cleared away afterwards.

    Parameters
    ----------
    limits : Limits
        What its processes may use together.
    show : tuple of str
        Files or folders to show inside, read-only, besides the system and this Python.
    room : int, optional
        Bytes of all files in the folder that both sides can write; ``limits.scratch`` unless told.

    Attributes
    ----------
    given : Path
        Put files here before the start: they are copied into the home folder inside.
    shared : Path
        The one folder that both sides can write, at the same path on both.
    broken : str or None
        Which limit the watch saw broken: "memory", "shared files", or "messages" where more was sent than can be
        taken. It then ended the processes.
    """

    def __init__(self, limits: Limits | None = None, show: tuple[str, ...] = (), room: int | None = None) -> None:
        bubblewrap()
        self.limits = limits or Limits()
        self.room = room or self.limits.scratch
        self.show = show
        self.broken: Broken | None = None
        self._closed = threading.Event()
        self._open = contextlib.ExitStack()
        self._folder = self._open.enter_context(private_folder())
        self.given = self._folder / "g"
        self.shared = self._folder / "c"
        for folder in (self.given, self.shared):
            folder.mkdir(mode=0o700)
        (self._folder / "filter").write_bytes(seccomp.program())
        self.user = os.getuid()
        if self.user == 0:
            self.user = random.SystemRandom().choice(UNOWNED_USERS)
            os.chown(self.shared, self.user, self.user)
        self._group = cgroups.make(self.limits)

    @property
    def memory_limit_by(self) -> str:
        """What holds the memory limit of all processes together: "control group", or "watch" where there is none."""
        return "control group" if self._group else "watch"

    def command(self, inner: Sequence[str], variables: Mapping[str, str] | None = None) -> list[str]:
        """Return the command that runs ``inner`` inside.

        Parameters
        ----------
        inner : sequence of str
            Program and arguments, as seen from inside; it starts in the home folder.
        variables : mapping, optional
            Environment variables to add to the few that are set inside.
        """
        entrances = self._group.entrances if self._group else []
        if os.getuid() == 0:
            for path in (self.given, *self.given.rglob("*")):
                os.chown(path, self.user, self.user, follow_symlinks=False)
        door = ["sh", "-c", DOOR, "sh", str(self._folder), *entrances, "--", *self._walls(variables or {}), "--"]
        return [*door, *self._dropping(), *self._resource_limits(), "sh", "-c", WELCOME, "sh", *inner]

    def _walls(self, variables: Mapping[str, str]) -> list[str]:
        """Return bubblewrap and its arguments."""
        scratch = ["--perms", "1777", "--size", str(self.limits.scratch), "--tmpfs"]
        walls = [bubblewrap(), "--die-with-parent", "--new-session", "--seccomp", "9"]
        walls += [f"--unshare-{kind}" for kind in ("pid", "ipc", "uts", "net", "cgroup-try")]
        if os.getuid():
            # bubblewrap's own number 1 is not filtered and the command's user could take it over by its memory.
            # For root it is another user's, and is needed: it alone ends with its parent after the change of user.
            walls += ["--as-pid-1"]
            walls += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
        walls += ["--hostname", "sandbox", *scratch, "/tmp", *view.arguments(self.show), "--proc", "/proc"]
        walls += ["--dev", "/dev", *scratch, "/dev/shm", "--remount-ro", "/dev", *scratch, view.HOME]
        for name, text in self._identity().items():
            (self._folder / name).write_text(text)
            walls += ["--ro-bind", str(self._folder / name), f"/etc/{name}"]
        walls += ["--ro-bind", str(self.given), "/given", *view.folders_above(self.shared)]
        walls += ["--bind", str(self.shared), str(self.shared), "--remount-ro", "/"]
        walls += ["--chdir", view.HOME, "--clearenv"]
        for name, value in {**view.environment(self.limits.cpus), **variables}.items():
            walls += ["--setenv", name, value]
        return walls

    def _identity(self) -> dict[str, str]:
        number = 65534 if os.getuid() else self.user
        return {
            "passwd": f"student:x:{number}:{number}::{view.HOME}:/bin/sh\n",
            "group": f"student:x:{number}:\n",
        }

    def _dropping(self) -> list[str]:
        """Return the command that gives up root for good; an ordinary user has nothing to give up."""
        if os.getuid():
            return []
        number = str(self.user)
        no_capabilities = [f"--{kind}=-all" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
        return ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", *no_capabilities, "--no-new-privs"]

    def _resource_limits(self) -> list[str]:
        """Return the command that sets limits of each process, under those of the group."""
        limits = self.limits
        bounds = {"fsize": limits.file_size, "data": limits.memory, "core": 0, "nofile": 1024, "msgqueue": 0}
        if not self._group:
            bounds["nproc"] = limits.processes
        # Past the time that any run has, whatever else fails: no process computes for longer than this.
        bounds["cpu"] = int(limits.seconds) + CPU_SECONDS_TO_SPARE
        return ["prlimit", *(f"--{name}={value}" for name, value in bounds.items())]

    @property
    def started(self) -> bool:
        """Tell whether the walls stood and the command was reached."""
        file = self._folder / "started"
        return file.exists() and bool(file.read_bytes())

    def watch(self, process: "subprocess.Popen[bytes]") -> None:
        """Watch over the started process from a thread: end it when a limit is broken that nothing else holds."""
        threading.Thread(target=self._watch, args=(process,), name="tilelab sandbox watch", daemon=True).start()

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        before = memory_held([os.getpid()])
        while not self._closed.wait(WATCH_SECONDS) and process.poll() is None:
            if self._group is None and memory_held(descendants(process.pid)) > self.limits.memory:
                self.broken = "memory"
            elif _bytes_below(self.shared) > self.room:
                self.broken = "shared files"
            elif memory_held([os.getpid()]) - before > OWN_GROWTH:
                self.broken = "messages"
            if self.broken:
                end(process)
                return

    def ended_for_memory(self) -> bool:
        """Tell whether a process inside was ended because the memory was used up."""
        return self.broken == "memory" or (self._group is not None and self._group.killed_for_memory())

    def close(self) -> None:
        """Clear everything away. The process must have ended."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._group:
            self._group.end()
            self._group.close()
        self._open.close()


def number_one(outer: int) -> int | None:
    """Return the number, out here, of the process that is number 1 in the sandbox which process ``outer`` started.

    It leads the session and the process group in which the command runs.
    """
    for pid in descendants(outer):
        if status(pid).get("NSpid", "").split()[-1:] == ["1"]:
            return pid
    return None


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a sandbox: everything in a process namespace ends with its number 1, which also ends with bubblewrap."""
    leader = number_one(process.pid)
    if leader is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(leader, signal.SIGKILL)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _bytes_below(folder: Path) -> int:
    """Return the bytes of all files below a folder that somebody may be changing."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += 4096 + entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
        except OSError:
            continue
    return total
