"""Control groups: limits on memory and processes that hold for a whole sandbox, where this process may set them.

They also share the processors out: a learner who starts a hundred busy processes slows nobody else's notebook down.

Version 1 has a tree for each controller, version 2 one tree. Groups are made inside the grader's own (version 2: beside
it, in the nearest ancestor that hands its controllers on), so that limits set on the grader go on to hold.

Where this process may make none, resource limits hold for each process and a watch for all of them together:
``tilelab doctor`` says which. Version 2 was tried on Linux 6.1 (Debian 12) in a virtual machine, as root in a
group as a service has it, and as an ordinary user in a group that was handed over (``Delegate=yes``).
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

from tilelab.grading.sandbox.limits import Limits

PREFIX = "tilelab-"
#: How long a busy machine may take to clear away processes that were killed, their memory with them.
CLEARED_SECONDS = 10
_serial = count()


class Group:
    """A control group (one folder in version 2, one a controller in version 1) for one sandbox.

    Parameters
    ----------
    folders : list of Path
        Folders to make, each under a parent that :func:`parents` found.
    limits : Limits
        ``memory`` and ``processes`` are set.
    """

    def __init__(self, folders: list[Path], limits: Limits) -> None:
        self.folders: list[Path] = []
        try:
            for folder in folders:
                folder.mkdir()
                self.folders.append(folder)
            for name, value in [
                ("memory.limit_in_bytes", limits.memory),
                ("memory.memsw.limit_in_bytes", limits.memory),
                ("memory.max", limits.memory),
                ("memory.swap.max", 0),
                ("memory.oom.group", 0),
                ("pids.max", limits.processes),
            ]:
                for folder in self.folders:
                    if (folder / name).exists():
                        (folder / name).write_text(str(value))
        except OSError:
            self.close()
            raise

    @property
    def entrances(self) -> list[str]:
        """Files to which a process writes its number to join."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def killed_for_memory(self) -> bool:
        """Tell whether the kernel ended a process of this group because the memory was used up."""
        for folder in self.folders:
            for name in ("memory.oom_control", "memory.events"):
                if (folder / name).exists():
                    pairs = dict(line.split() for line in (folder / name).read_text().splitlines())
                    if int(pairs.get("oom_kill", 0)):
                        return True
        return False

    def end(self) -> None:
        """End every process that is still in the group."""
        for entrance in self.entrances:
            for _ in range(100):
                members = Path(entrance).read_text().split() if Path(entrance).exists() else []
                if not members:
                    break
                for member in members:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(member), signal.SIGKILL)
                time.sleep(0.005)

    def close(self) -> None:
        """Remove the group, which must have ended; the kernel refuses until the last process is cleared away."""
        latest = time.monotonic() + CLEARED_SECONDS
        for folder in self.folders:
            pause = 0.001
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > latest:
                        break
                    time.sleep(pause := min(2 * pause, 0.1))
        self.folders = []


def make(limits: Limits) -> Group | None:
    """Return a group with these limits, or ``None`` where this process may not make one."""
    places = parents()
    if not places:
        return None
    name = f"{PREFIX}{os.getpid()}-{next(_serial)}"
    try:
        return Group([place / name for place in places], limits)
    except OSError:
        return None


def held_by() -> str:
    """Say what holds the memory and the processes of a whole sandbox together, for this user on this machine."""
    places = parents()
    if not places:
        return "limits held by resource limits and a watch, because this user may not make control groups"
    version = 2 if (places[0] / "cgroup.controllers").exists() else 1
    return f"limits held by control groups (version {version})"


@cache
def parents() -> list[Path]:
    """Return the folders in which groups with a memory and a process limit can be made and joined; none, if none."""
    for places in ([*_version_2()], _version_1("memory", "pids", "cpu"), _version_1("memory", "pids")):
        if places and _joinable(places):
            _sweep(places)
            return places
    return []


def _memberships() -> list[tuple[list[str], str]]:
    """Return (controllers, path) of the groups this process is in; version 2 has no controllers named."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    return [(names.split(",") if names else [], path) for _, names, path in (line.split(":", 2) for line in lines)]


def _mounted(kind: str, controller: str = "") -> Path | None:
    """Return where a tree of control groups is mounted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, found, options, *_ = line.split()
        if found == kind and (not controller or controller in options.split(",")):
            return Path(where)
    return None


def _version_1(*wanted: str) -> list[Path]:
    """Return where groups of these controllers can be made; none, where one of them is missing.

    One limit without the others holds nothing. With ``cpu`` a sandbox full of busy processes has the share of one.
    """
    found: dict[str, Path] = {}
    for controllers, path in _memberships():
        for controller in set(wanted) & set(controllers):
            mount = _mounted("cgroup", controller)
            if mount is not None:
                # In a container the path may be the host's, which is not in sight: the mount is then the own group.
                own = mount / path.lstrip("/")
                found[controller] = own if own.is_dir() else mount
    return sorted(set(found.values())) if len(found) == len(wanted) else []  # several may be of one tree


def _version_2() -> Iterator[Path]:
    mount = _mounted("cgroup2")
    own = next((path for controllers, path in _memberships() if not controllers), None)
    if mount is None or own is None:
        return
    place = mount / own.lstrip("/")
    while place.is_relative_to(mount):
        handed_on = place / "cgroup.subtree_control"
        if handed_on.exists() and {"memory", "pids"} <= set(handed_on.read_text().split()):
            yield place
            return
        place = place.parent


def _joinable(places: list[Path]) -> bool:
    """Try it: make a group in each place and let a process join."""
    for place in places:
        trial = place / f"{PREFIX}{os.getpid()}-trial-{next(_serial)}"  # of its own: threads may ask at once
        try:
            trial.mkdir()
        except OSError:
            return False
        try:
            join = ["sh", "-c", 'echo $$ > "$0"', str(trial / "cgroup.procs")]
            if subprocess.run(join, stderr=subprocess.DEVNULL, check=False, timeout=60).returncode:
                return False
        except subprocess.TimeoutExpired:  # a group in which nothing runs: it is frozen
            return False
        finally:
            trial.rmdir()
    return True


def _sweep(places: list[Path]) -> None:
    """Remove groups of graders that were killed. A group with processes in it cannot be removed, and stays."""
    for place in places:
        for folder in place.glob(f"{PREFIX}*"):
            owner = folder.name.removeprefix(PREFIX).split("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                try:
                    folder.rmdir()
                except OSError:
                    continue
