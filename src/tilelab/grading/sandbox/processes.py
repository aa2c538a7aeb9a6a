"""The processes below another one, as ``/proc`` shows them. A process calls itself what it likes, not only in UTF-8."""

import os
from collections.abc import Iterator
from pathlib import Path


def texts(name: str) -> Iterator[tuple[int, str]]:
    """Yield the number of every process there is, with the text of one of its files; one that is gone is left out."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                yield int(entry), Path("/proc", entry, name).read_text(errors="replace")
            except OSError:
                continue


def descendants(root: int) -> list[int]:
    """Return the numbers of all processes below ``root``, parents before children."""
    children: dict[int, list[int]] = {}
    for pid, text in texts("stat"):
        children.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(pid)
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found.extend(below)
        waiting.extend(below)
    return found


def status(pid: int) -> dict[str, str]:
    """Return the fields of ``/proc/<pid>/status``; none, if the process is gone."""
    try:
        lines = Path("/proc", str(pid), "status").read_text(errors="replace").splitlines()
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
