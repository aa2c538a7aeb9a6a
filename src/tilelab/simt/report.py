"""What a run of a kernel tells: findings, counts for each line, traffic, and shared memory phase by phase.

A report is plain data. :meth:`Report.to_dict` gives it as JSON can hold it; printing it gives a table, and a notebook
shows it as a page with pictures (:mod:`tilelab.simt.page`).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.sectors import SECTOR
from tilelab.simt.errors import Dim3, Finding, error_of
from tilelab.simt.ledger import Ledger
from tilelab.simt.runtime import Argument, Launch
from tilelab.simt.snapshots import Snapshot
from tilelab.simt.source import Source
from tilelab.simt.words import article, plural

#: Findings, and costs, that a printed report writes out.
MOST = 8
#: From how many times the sectors that would do on an access is called costly.
WASTE = 2


@dataclass(frozen=True, slots=True)
class AccessCount:
    """Counts of one access in the source, over all warps that made it."""

    line: int
    text: str
    kernel: str
    array: str
    space: str
    kind: str
    width: int
    """Bytes a thread moves."""
    requests: int
    """Warp instructions."""
    threads: int
    wavefronts: int
    """Shared memory: passes through the banks."""
    parts: int
    """Shared memory: passes that no layout could save."""
    ways: int
    """Shared memory: the worst conflict; 1 is none."""
    sectors: int
    """Global memory: pieces of 32 bytes asked for."""
    used_bytes: int
    """Bytes wanted, each once a request."""
    least_sectors: int
    """Global memory: sectors that the bytes of each request would fill, packed together."""
    meet: int
    """Atomics: most lanes of a warp that change one element at once, and so must take turns."""
    turns: int
    """Atomics: turns of all warp instructions, as many in each as lanes meet at one element; told from the addresses,
    and held to no counter of a GPU."""
    example: tuple[int | None, ...] = field(repr=False)
    """Byte addresses of the lanes in the worst request."""

    @property
    def replays(self) -> int:
        """Passes lost to bank conflicts."""
        return self.wavefronts - self.parts

    @property
    def moved_bytes(self) -> int:
        """Bytes of the sectors asked for."""
        return self.sectors * SECTOR

    @property
    def efficiency(self) -> float | None:
        """Share of the moved bytes that is wanted; ``None`` where nothing is moved in sectors."""
        return self.used_bytes / self.moved_bytes if self.sectors else None


@dataclass(frozen=True, slots=True)
class BranchCount:
    """How often warps came to a branch or loop test, and how often they split there."""

    line: int
    text: str
    warps: int
    divergent: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one array of global memory was asked for, in bytes, against the least that could do."""

    array: str
    loaded: int
    """Wanted by threads, each its own; an atomic loads its element and stores it."""
    stored: int
    moved: int
    """In sectors, requests of warps added up, those of an atomic for both ways; caches answer part of it."""
    minimum: int
    """Every element touched, once for reading and once for writing."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that is known of one run of a kernel."""

    kernel: str
    source: tuple[tuple[int, str], ...]
    """Line numbers and text."""
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int
    engine: str
    findings: tuple[Finding, ...]
    accesses: tuple[AccessCount, ...]
    branches: tuple[BranchCount, ...]
    arithmetic: dict[int, dict[str, int]]
    """Line -> kind (``float32 *``) -> how many threads did it."""
    traffic: tuple[Traffic, ...]
    barriers: int
    """Passed, summed over blocks."""
    snapshots: tuple[Snapshot, ...] = field(repr=False)
    seconds: float = 0.0
    complete: bool = True
    """False if a finding ended the run: counts are then of the blocks before it."""
    checked: bool = True
    """False if the run was without checks: nothing was looked for, and nothing counted."""

    @property
    def ok(self) -> bool:
        """Whether nothing wrong was found."""
        return self.complete and not any(f.severity == "error" for f in self.findings)

    @property
    def flawless(self) -> bool:
        """Whether all was looked for, and nothing found, not even something costly."""
        return self.checked and not self.findings and not self.costs

    def of(self, kind: str) -> list[Finding]:
        """Findings of one kind, as named by :attr:`Finding.kind`."""
        return [f for f in self.findings if f.kind == kind]

    @property
    def races(self) -> list[Finding]:
        """Races, warnings included."""
        return self.of("race")

    @property
    def conflicts(self) -> list[AccessCount]:
        """Loads and stores of shared memory with bank conflicts, the worst first; those of atomics are not modelled."""
        return sorted((a for a in self.accesses if a.ways > 1 and a.kind != "atomic"), key=lambda a: -a.replays)

    @property
    def contended(self) -> list[AccessCount]:
        """Atomics by which several lanes of a warp change one element at once, the most lanes first."""
        return sorted((a for a in self.accesses if a.meet > 1), key=lambda a: -a.meet)

    @property
    def flops(self) -> int:
        """Floating-point additions, multiplications and the like, as written."""
        return sum(
            count for kinds in self.arithmetic.values() for kind, count in kinds.items() if kind.startswith("float")
        )

    @property
    def wasteful(self) -> list[AccessCount]:
        """Accesses to global memory that move twice the sectors that would do, or more, the worst first.

        What would do are the sectors that the bytes of each warp's request fill when they lie side by side. One
        element that a whole warp reads, or one thread's store, moves one sector, and none could be saved.
        """
        found = [a for a in self.accesses if a.sectors and a.sectors >= WASTE * a.least_sectors]
        return sorted(found, key=lambda a: a.least_sectors - a.sectors)

    @property
    def costs(self) -> list[str]:
        """What is right but costs more than it need, a sentence each."""
        banks = [
            f"Line {a.line}: {a.kind} {a.text} has {article(a.ways)} {a.ways}-way bank conflict: "
            f"{plural(a.wavefronts, 'wavefront')} where {a.parts:,} would do."
            for a in self.conflicts
        ]
        return (
            banks
            + [
                f"Line {a.line}: {a.kind} {a.text} moves {plural(a.sectors, 'sector')} where "
                f"{a.least_sectors:,} would do ({a.efficiency:.0%} used)."
                for a in self.wasteful
            ]
            + [
                f"Line {a.line}: {a.meet} lanes of a warp change one element by {a.text}: they take turns, "
                f"{a.turns:,} where {a.requests:,} would do (the time of that is not modelled)."
                for a in self.contended
            ]
        )

    @property
    def foremost(self) -> tuple[list[Finding], list[Finding]]:
        """The findings to be read first, errors before warnings and some of every kind, and all others."""
        ranked = sorted(self.findings, key=lambda f: f.severity)
        if len(ranked) <= MOST + 1:
            return ranked, []
        firsts = {(f.severity, f.kind): f for f in reversed(ranked)}
        others = [f for f in ranked if firsts[f.severity, f.kind] is not f]
        chosen = [*firsts.values(), *others][:MOST]
        return [f for f in ranked if f in chosen], [f for f in ranked if f not in chosen]

    @property
    def verdict(self) -> str:
        """What was found, in one sentence."""
        if not self.checked and not self.findings:
            return "It ran without checks: nothing was looked for."
        errors = sum(f.severity == "error" for f in self.findings)
        warnings = len(self.findings) - errors
        costly = f"{len(self.costs)} costly access" + "es" * (len(self.costs) > 1)
        found = [plural(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
        if found:
            return f"Found: {', '.join([*found, costly] if self.costs else found)}."
        return f"No error was found, but {costly}." if self.costs else "Nothing wrong was found."

    def line(self, number: int) -> list[AccessCount]:
        """Accesses in one line of the source."""
        return [a for a in self.accesses if a.line == number]

    def check(self) -> "Report":
        """Return the report, or raise the first error it holds.

        Raises
        ------
        SimtError
            The first finding of severity ``error``.
        """
        for finding in self.findings:
            if finding.severity == "error":
                raise error_of(finding)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        record = {
            "kernel": self.kernel,
            "grid": self.grid,
            "block": self.block,
            "dynamic_shared_bytes": self.dynamic_shared_bytes,
            "engine": self.engine,
            "ok": self.ok,
            "complete": self.complete,
            "checked": self.checked,
            "source": [{"line": n, "text": text} for n, text in self.source],
            "findings": [f.to_dict() for f in self.findings],
            "accesses": [
                asdict(a) | {"replays": a.replays, "moved_bytes": a.moved_bytes, "efficiency": a.efficiency}
                for a in self.accesses
            ],
            "branches": [asdict(b) for b in self.branches],
            "arithmetic": [
                {"line": n, "kind": kind, "count": count}
                for n, kinds in self.arithmetic.items()
                for kind, count in kinds.items()
            ],
            "traffic": [asdict(t) for t in self.traffic],
            "barriers": self.barriers,
            "flops": self.flops,
            "snapshots": [asdict(s) for s in self.snapshots],
            "seconds": self.seconds,
        }
        plain: dict[str, Any] = _plain(record)
        return plain

    def __str__(self) -> str:
        from tilelab.simt.table import as_text

        return as_text(self)

    def __rich_console__(self, console: Any, options: Any) -> Iterable[Any]:
        from tilelab.simt.table import tables

        yield from tables(self)

    def _repr_html_(self) -> str:
        from tilelab.simt.page import as_html

        return as_html(self)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


Seen = list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]


def make_report(
    source: Source, run: Launch, ledger: Ledger, fatal: Finding | None, engine: str, seen: Seen, seconds: float
) -> Report:
    """Put together what an engine noted."""
    accesses = []
    for site, tally in zip(run.program.sites, ledger.tallies, strict=True):
        if tally.requests:
            accesses.append(
                AccessCount(
                    site.line, site.text, site.kernel, site.array, site.space, site.kind, site.width, tally.requests,
                    tally.threads, tally.wavefronts, tally.parts, tally.ways, tally.sectors, tally.used, tally.least,
                    tally.meet, tally.turns, tally.example,
                )
            )  # fmt: skip
    arithmetic: dict[int, dict[str, int]] = {}
    for passed, operations in zip(ledger.runs, run.program.runs, strict=True):
        for (line, kind), times in operations.items():
            if passed:
                counts = arithmetic.setdefault(line, {})
                counts[kind] = counts.get(kind, 0) + passed * times
    lines = [(source.first + i, text) for i, text in enumerate(source.lines)]
    return Report(
        kernel=run.name, source=tuple(lines), grid=run.grid, block=run.block, dynamic_shared_bytes=run.dynamic,
        engine=engine, findings=tuple(ledger.ordered()),
        accesses=tuple(sorted(accesses, key=lambda a: (a.line, a.space, a.text, a.kind))),
        branches=tuple(
            BranchCount(fork.line, fork.text, warps, divergent)
            for fork, (warps, divergent) in zip(run.program.forks, ledger.forks, strict=True)
            if warps
        ),
        arithmetic=dict(sorted(arithmetic.items())), traffic=tuple(_traffic(run, ledger, seen)),
        barriers=ledger.barriers, snapshots=tuple(ledger.snapshots), seconds=seconds, complete=fatal is None,
        checked=run.checks,
    )  # fmt: skip


def _traffic(run: Launch, ledger: Ledger, seen: Seen) -> list[Traffic]:
    """For each piece of global memory that was touched, named by the arguments that look into it."""
    out = []
    for memory, (read, written) in zip(run.memories, seen, strict=True):
        item = memory.data.itemsize
        names = [a.name for a in run.arguments if isinstance(a, Argument) and a.memory is memory]
        loaded = stored = moved = 0
        for site, tally in zip(run.program.sites, ledger.tallies, strict=True):
            if site.space != "global" or memory.name not in site.roots:
                continue
            moved += tally.sectors * SECTOR * (2 if site.kind == "atomic" else 1)
            loaded += tally.threads * item * (site.kind != "write")
            stored += tally.threads * item * (site.kind != "read")
        minimum = int(read.sum() + written.sum()) * item
        if minimum:
            out.append(Traffic(", ".join(names), loaded, stored, moved, minimum))
    return out
