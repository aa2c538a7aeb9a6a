"""What the emulator found, in words: each with the line, the threads and what would mend it."""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from tilelab.cudacpp.diagnostics import FILE
from tilelab.cudacpp.processes import Task, run
from tilelab.cudacpp.source import SIZES, excerpt


@dataclass(frozen=True)
class Finding:
    """One fault of a kernel.

    ``kind`` is one of ``race``, ``unset``, ``unwritten``, ``pending``, ``bounds``, ``index``, ``misaligned``,
    ``divergence``, ``crash``, ``stopped``. Lines are 0 where they are not known.
    """

    kind: str
    line: int
    other_line: int
    message: str

    @property
    def fatal(self) -> bool:
        """Whether the run could not go on."""
        return self.kind in ("divergence", "crash", "stopped")

    def __str__(self) -> str:
        return self.message

    @classmethod
    def unset(cls, line: int, name: str, source: str) -> "Finding":
        """A local variable that is read before it has a value; the compiler sees those."""
        mend = "is read before anything is stored in it, on some path at least: give it a first value"
        text = f"line {line}: {excerpt(source, line)}\n{name} {mend}"
        return cls("unset", line, 0, text)


def _index(number: int, extents: Sequence[int]) -> str:
    x, y = extents[:2]
    return f"({number % x},{number // x % y},{number // x // y})"


def _lines(code: bytes, offsets: Sequence[int]) -> dict[int, int]:
    """Code offsets to lines of the learner's source; negative offsets are lines already."""
    found = {offset: -offset for offset in offsets if offset < 0}
    asked = [offset for offset in offsets if offset > 0]
    if asked:
        argv = ["addr2line", "-e", "kernel.so", "-a", "-i", *(hex(offset) for offset in asked)]
        current = 0
        for text in run(Task(argv, {"kernel.so": code})).stdout.splitlines():
            if text.startswith("0x"):
                current = int(text, 16)
            elif FILE in text and current not in found:  # the innermost frame that is the learner's
                number = text.rsplit(":", 1)[-1].split()[0]
                found[current] = int(number) if number.isdigit() else 0
    return found


def read_report(
    report: str, code: bytes, source: str, block: Sequence[int], grid: Sequence[int]
) -> tuple[Finding, ...]:
    """Word the runtime's report.

    Parameters
    ----------
    report
        One finding a line: the kind, then ``key=value`` fields between tabs.
    code
        The library that ran, for its line table.
    source
        The learner's source, to quote.
    block, grid
        Extents of the launch.
    """
    rows: list[tuple[str, dict[str, str]]] = []
    for text in report.splitlines():
        kind, *parts = text.split("\t")
        rows.append((kind, dict(part.split("=", 1) for part in parts if "=" in part)))
    offsets = sorted({int(f[key]) for _, f in rows for key in ("code", "other_code") if int(f.get(key, 0))})
    lines = _lines(code, offsets)
    found = []
    for kind, f in rows:
        if kind == "stopped" and f.get("why") == "divergence":
            continue  # said already, with the threads
        line = int(f.get("line", 0)) or lines.get(int(f["code"]), 0)
        other = lines.get(int(f.get("other_code", 0)), 0) or int(f.get("other", 0))
        at = f"line {line}: {excerpt(source, line)}\n" if line else ""
        found.append(Finding(kind, line, other, at + _word(kind, f, line, other, source, block, grid)))
    return tuple(dict.fromkeys(found))


def _place(f: dict[str, str], source: str) -> str:
    """An array and an offset in it: elements where their size is known, bytes elsewhere."""
    array, offset, size = f.get("array", ""), int(f.get("offset", 0)), int(f.get("element", 1))
    declared = re.search(rf"__shared__\s+(?:__align__\s*\([^)]*\)\s*)?([\w ]+?)\s+{re.escape(array)}\s*\[", source)
    if declared and array:
        size = SIZES.get(declared[1], 1)
        return f"shared {array}, element {offset // size}" if size > 1 else f"shared {array}, byte {offset}"
    if size > 1:
        return f"{array}[{offset // size}]"
    return f"{array.replace('_', ' ') or 'memory'} + {offset} bytes"


def _word(
    kind: str, f: dict[str, str], line: int, other: int, source: str, block: Sequence[int], grid: Sequence[int]
) -> str:
    """One finding in a sentence or two."""
    thread = f"thread {_index(int(f['thread']), block)} of block {_index(int(f['block']), grid)}"
    place = _place(f, source)
    if kind == "race":
        they = f"thread {_index(int(f['other_thread']), block)} of block {_index(int(f['other_block']), grid)}"
        did, had = f"{f['second']}s", {"read": "read", "write": "wrote"}[f["first"]]
        there = f" at line {other} ({excerpt(source, other)})" if other and other != line else " at the same line"
        if f["other_block"] == f["block"]:
            mend = "put __syncthreads() between the two, where every thread of the block reaches it"
        else:
            mend = "blocks run in no order: let each write its own elements, or use an atomic"
        return f"race: {thread} {did} {place}, which {they} {had}{there}, with no barrier between: {mend}"
    if kind == "divergence":
        reason = f"waits at line {other}" if other else "has ended"
        return (
            f"barrier divergence: thread {f['waiting']} waits at __syncthreads() in line {line}, but thread "
            f"{f['missing']} of the same block {reason}: every thread of a block has to reach the same barrier"
        )
    if kind == "unwritten":
        reads = "which no thread of the block has written: write it first, then __syncthreads()"
        return f"{thread} reads {place}, {reads}"
    if kind == "pending":
        waits = "__pipeline_wait_prior, then __syncthreads(), come first"
        return f"{thread} reads {place} while an asynchronous copy to it is under way: {waits}"
    if kind == "bounds":
        size = int(f["element"])
        length = f"{int(f['length']) // size} {'elements' if size > 1 else 'bytes'}"
        return f"{thread} {f['access']}s {place}, outside its {length}: guard the access with a bounds check"
    if kind == "index":
        return f"{thread} uses index {f['index']} of an array of type {f['type']}"
    if kind == "misaligned":
        wide = f["bytes"]
        return f"{thread} makes an access of {wide} bytes at {place}, not at a multiple of {wide}: a GPU stops there"
    if kind == "crash":
        name = signal.Signals(int(f["signal"])).name
        causes = "a wild pointer, or a division by zero"
        return f"{thread} crashed ({name} at address 0x{f['address']}): {causes}"
    return f"{thread}: {f.get('why', 'stopped')}"
