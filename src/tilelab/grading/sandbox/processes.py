"""The processes below another one, as ``/proc`` shows them."""

import os
from pathlib import Path


def descendants(root: int) -> list[int]:
    """Return the numbers of all processes below ``root``, parents before children."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                after_name = Path("/proc", entry, "stat").read_text().rpartition(")")[2]
            except OSError:
                continue
            children.setdefault(int(after_name.split()[1]), []).append(int(entry))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found.extend(below)
        waiting.extend(below)
    return found


def status(pid: int) -> dict[str, str]:
    """Return the fields of ``/proc/<pid>/status``; none, if the process is gone."""
    try:
        lines = Path("/proc", str(pid), "status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def memory_held(pids: list[int]) -> int:
    """Return the bytes of memory that is not merely mapped files, summed over processes."""
    kilobytes = 0
    for pid in pids:
        fields = status(pid)
        kilobytes += sum(int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem"))
    return kilobytes << 10
