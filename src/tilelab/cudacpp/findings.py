"""What the emulator found, in words: each with the line, the threads and what would mend it."""

import math
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from tilelab.cudacpp.diagnostics import FILE
from tilelab.cudacpp.processes import Task, run
from tilelab.cudacpp.shared import dynamic_names, shared_statements
from tilelab.cudacpp.source import SIZES, excerpt

#: So many blocks may take a minute though each ends.
MANY = 100_000


@dataclass(frozen=True)
class Finding:
    """One fault of a kernel.

    ``kind`` is one of ``race``, ``unset``, ``unwritten``, ``pending``, ``bounds``, ``index``, ``misaligned``,
    ``constant``, ``beyond``, ``absent``, ``overlap``, ``divergence``, ``crash``, ``endless``, ``stopped``. Lines are
    0 where they are not known.
    """

    kind: str
    line: int
    other_line: int
    message: str

    @property
    def fatal(self) -> bool:
        """Whether the run could not go on."""
        return self.kind in ("divergence", "beyond", "crash", "endless", "stopped")

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
            if re.fullmatch(r"0x[0-9a-f]{1,16}", text):
                current = int(text, 16)
            elif FILE in text and current not in found:  # the innermost frame that is the learner's
                number = re.match(r"[0-9]{1,9}\b", text.rsplit(":", 1)[-1])
                found[current] = int(number[0]) if number else 0
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
    offsets = sorted({int(f[key]) for _, f in rows for key in ("code", "other_code") if key in f and int(f[key])})
    lines = _lines(code, offsets)
    found = []
    for kind, f in rows:
        if kind in ("finished", "leaned") or (kind == "stopped" and f.get("why") in ("divergence", "beyond")):
            continue  # no finding; said already, with the threads
        line = int(f.get("line", 0)) or lines.get(int(f["code"]), 0)
        other = lines.get(int(f.get("other_code", 0)), 0) or int(f.get("other", 0))
        at = f"line {line}: {excerpt(source, line)}\n" if line else ""
        if kind == "overlap":
            f |= _two_names(source, line, other)
            if "name" not in f:
                continue
        found.append(Finding(kind, line, other, at + _word(kind, f, line, other, source, block, grid)))
    indices = {one.line for one in found if one.kind == "index"}  # which say more than where the access went
    return tuple(one for one in dict.fromkeys(found) if one.kind != "bounds" or one.line not in indices)


def _two_names(source: str, line: int, other: int) -> dict[str, str]:
    """The names of dynamic shared memory in two lines, where each has one of its own."""
    names = dynamic_names(source)
    here, there = (names & set(re.findall(r"\w+", excerpt(source, number))) for number in (line, other))
    return {"name": here.pop(), "over": there.pop()} if len(here) == len(there) == 1 and here != there else {}


def _declared(array: str, source: str) -> tuple[str, str, str]:
    """Where an array or variable of the block or the device is declared, its type, and the source from there on.

    Declarations that are longer than any that a person writes are not read: that would take as long as they please.
    """
    for statement in shared_statements(source):
        for one in statement.variables:
            if one.name == array:
                return "shared ", one.kind, source[statement.start :]
    seen = 0
    for word in re.finditer(r"__device__|__constant__", source):
        piece = " ".join(source[word.start() : word.start() + 400].partition(";")[0].split())
        if not array or not re.search(rf"\b{re.escape(array)}\b", piece):
            continue
        found = re.match(rf"(?:__device__|__constant__) ([\w ]+?) (?:[^;]*, ?)?[*&]?{re.escape(array)}\b", piece)
        seen += 1
        if found or seen > 20:
            return "", found[1] if found else "", source[word.start() :]
    return "", "", ""


def _place(f: dict[str, str], source: str) -> tuple[str, str]:
    """An array with an offset in it, and its length: in elements where their size is known, else in bytes."""
    array, offset, size = f.get("array", ""), int(f.get("offset", 0)), int(f.get("element", 1))
    kind, declared, rest = _declared(array, source)
    if declared:
        size = SIZES.get(" ".join(word for word in declared.split() if word not in ("const", "volatile")), 1)
    length = int(f.get("length", 0))
    if declared and length == size and offset == 0 and not re.search(rf"\b{re.escape(array)}\s*\[", rest):
        return f"{kind}{array}", ""
    if size > 1:
        name = f"{kind}{array}, element {offset // size}" if kind else f"{array}[{offset // size}]"
        return name, f"{length // size} elements"
    name = array if declared else array.replace("_", " ")
    return (f"{kind}{name}, byte {offset}" if kind else f"{name or 'memory'} + {offset} bytes"), f"{length} bytes"


def _word(
    kind: str, f: dict[str, str], line: int, other: int, source: str, block: Sequence[int], grid: Sequence[int]
) -> str:
    """One finding in a sentence or two."""
    thread = f"thread {_index(int(f['thread']), block)} of block {_index(int(f['block']), grid)}"
    place, length = _place(f, source)
    does = {"read": "reads", "write": "writes", "atomic": "changes by an atomic", "copy": "copies"}
    if kind == "race":
        they = f"thread {_index(int(f['other_thread']), block)} of block {_index(int(f['other_block']), grid)}"
        did, had = does[f["second"]], {"read": "read", "write": "wrote", "atomic": "changed by an atomic"}[f["first"]]
        there = f" at line {other} ({excerpt(source, other)})" if other and other != line else " at the same line"
        if f["other_block"] == f["block"]:
            between = "no barrier between"
            mend = "put __syncthreads() between the two, where every thread of the block reaches it"
        else:
            between = "nothing that orders the two blocks"
            mend = "blocks run in no order: let each write its own elements, or use atomics alone"
        if f["other_block"] == f["block"] and other == line:
            turns = "put __syncthreads() between the turns of a loop"
            mend = f"let each thread write elements of its own, use an atomic, or {turns}"
        if "atomicCAS" in source:
            lock = "let both hold the same lock, from the atomicCAS that takes it to the atomicExch that gives it back"
            mend = f"{lock}; or {mend}"
        return f"race: {thread} {did} {place}, which {they} {had}{there}, with {between}: {mend}"
    if kind == "divergence":
        elsewhere = f"waits at line {other}" + (", at another one" if other == line else "")
        reason = elsewhere if other else "has ended"
        return (
            f"barrier divergence: thread {f['waiting']} waits at __syncthreads() in line {line}, but thread "
            f"{f['missing']} of the same block {reason}: every thread of a block has to reach the same barrier"
        )
    if kind == "unwritten":
        reads = "which no thread of the block has written: write it first, then __syncthreads()"
        return f"{thread} reads {place}, {reads}"
    if kind == "overlap":
        name, over = f["name"], f["over"]
        return (
            f"{thread} writes {name} over what it wrote to {over} at line {other} ({excerpt(source, other)}), before "
            f"any other has read that: {over} and {name} start at the same byte, for a block has one dynamic shared "
            "memory; declare one array, and let a pointer to the second begin behind the first"
        )
    if kind == "pending":
        under_way = "an asynchronous copy to it" if f["end"] == "to" else "an asynchronous copy from it"
        waits = "__pipeline_wait_prior, then __syncthreads(), come first"
        return f"{thread} {does[f['access']]} {place} while {under_way} is under way: {waits}"
    if kind == "endless":
        blocks = math.prod(grid)
        if blocks > MANY:
            mend = f"or launch fewer than {blocks} blocks, which run one after another here"
        elif blocks > 1:
            mend = "one that waits for a later block waits in vain, for here one block runs after another"
        else:
            mend = "one that waits for another thread has to read by an atomic, or through volatile"
        still = f"the kernel did not end within {f['seconds']} s, and {thread} was still running"
        return f"{still}: look for a loop whose end is never reached; {mend}"
    if kind == "constant":
        who = f"{thread} writes" if line else "the kernel wrote to"
        mend = "make it __device__, or write to an argument" + ("" if line else "; kernel.check(…) names the line")
        return f"{who} {place}, which is __constant__: a kernel may only read it, and nvcc or the GPU refuses; {mend}"
    if kind == "beyond":
        where = f"block {_index(int(f['block']), grid)} wrote past the {f['length']} bytes of dynamic shared memory"
        return (
            f"{where} that the launch gives it: Kernel(…, shared=bytes) gives more, and kernel.check(…) names the line"
        )
    if kind == "bounds":
        mend = "guard the access with a bounds check"
        if f.get("array") == "dynamic shared memory":
            mend += ", or give the launch more: Kernel(…, shared=bytes)"
        return f"{thread} {does[f['access']]} {place}, outside its {length}: {mend}"
    if kind == "index":
        return f"{thread} uses index {f['index']} of an array of type {f['type']}"
    if kind == "absent":
        return (
            f"{thread} takes the value of lane {f['lane']}, which has ended, or is not in the mask or the block: "
            "nobody can say what it gets; let every lane of the mask reach the operation, or give it fewer (width)"
        )
    if kind == "misaligned":
        wide = f["bytes"]
        where = f" at {place}" if f.get("array") else ""
        return f"{thread} makes an access of {wide} bytes{where}, not at a multiple of {wide}: a GPU stops there"
    if kind == "crash":
        return f"{thread} {_crash(f, place, length)}"
    missing = re.search(r"undefined symbol: (\w+)", f.get("why", ""))
    if missing:
        name = run(Task(["c++filt", missing[1]])).stdout.strip() or missing[1]
        return f"the source uses {name}, which no device code has: it is host code, or declared and defined nowhere"
    return f"{thread}: {f.get('why', 'stopped')}"


def _crash(f: dict[str, str], place: str, length: str) -> str:
    """Why the hardware stopped a thread."""
    number, address = int(f["signal"]), f["address"]
    if f.get("overflow") == "1":
        return "runs out of its stack: functions that call themselves go too deep, or never end"
    if f.get("overflow") == "2":
        return (
            "reaches past its own local memory: keep the index of a local array within it; kernel.check(…) tells which"
        )
    if f.get("wrapped"):
        index = int(f["wrapped"])
        return (
            f"uses index {index} of {f['array']}, which is {index - 2**32} as an unsigned number: threadIdx, blockIdx "
            "and blockDim are unsigned, so write (int) before them where an index may fall below 0, and guard the "
            "access"
        )
    if f.get("array"):
        return f"reaches for {place}, far outside its {length}: guard the access with a bounds check"
    if number == signal.SIGFPE:
        return "divides by zero, or an integer by a number that leaves no result"
    if f.get("barred") == "1":
        aligned = "a float4 lies at a multiple of 16 bytes, a float2 at one of 8"
        return f"makes a misaligned access ({aligned}), or its pointer is nonsense"
    name = signal.Signals(number).name
    return f"crashed ({name} at address 0x{address}): a wild pointer, which leads to no array"
