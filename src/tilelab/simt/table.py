"""A report as text: tables by rich."""

import io
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tilelab.simt.errors import Finding
from tilelab.simt.report import MOST, AccessCount, Report
from tilelab.simt.words import plural


def tables(report: Report) -> Iterator[Any]:
    """What a terminal shows: the findings, the lines with their counts, the traffic."""
    grid, block = (" × ".join(map(str, _trim(d))) for d in (report.grid, report.block))
    ended = "" if report.complete else " (ended early)"
    yield Text(f"{report.kernel}: grid {grid}, block {block}, engine {report.engine}{ended}", style="bold")
    yield Text(report.verdict, style="green" if report.flawless else "")
    first, rest = report.foremost
    for finding in first:
        style = "bold red" if finding.severity == "error" else "yellow"
        yield Text.assemble((f"{finding.severity} · {finding.kind}  ", style), finding.message, " ", finding.hint)
    if rest:
        yield Text(f"{more(rest)} (findings holds them all).", style="bold")
    for cost_ in report.costs[:MOST]:
        yield Text(cost_, style="yellow")
    if len(report.costs) > MOST:
        yield Text(f"And {len(report.costs) - MOST:,} more costly accesses (costs holds them all).", style="bold")
    yield from _lines(report)
    if report.traffic:
        yield _traffic(report)


def as_text(report: Report, width: int = 120) -> str:
    """The same as plain text."""
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False, color_system=None).print(*tables(report), sep="\n")
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def more(findings: list[Finding]) -> str:
    """Say how many findings are not written out, and where they are."""
    lines = [line for finding in findings for line in finding.lines]
    return f"And {len(findings):,} more, in lines {min(lines)} to {max(lines)}"


def cost(access: AccessCount) -> str:
    """What an access costs, in one phrase."""
    meet = f"{access.meet} lanes meet at one element and take turns, {access.turns:,} in all" * (access.meet > 1)
    if access.space == "shared" and access.kind == "atomic":
        return meet or "no two lanes of a warp meet at one element"
    if access.space == "shared":
        replays = plural(access.replays, "replay")
        conflict = f"{access.ways}-way conflict, {replays}" if access.ways > 1 else "no conflict"
        return f"{plural(access.wavefronts, 'wavefront')}, {conflict}"
    if access.efficiency is not None:
        return f"{plural(access.sectors, 'sector')}, {access.efficiency:.0%} used" + (f", {meet}" if meet else "")
    return ""


def by_line(report: Report, number: int) -> list[str]:
    """What happened in one line, one phrase each."""
    out = [f"{a.kind} {a.text}: {plural(a.requests, 'warp')}, {cost(a)}".rstrip(", ") for a in report.line(number)]
    kinds = report.arithmetic.get(number, {})
    floats = {kind: count for kind, count in kinds.items() if kind.startswith("float")}
    out += [f"{count:,} × {kind}" for kind, count in floats.items()]
    whole = sum(kinds.values()) - sum(floats.values())
    if whole:
        out.append(plural(whole, "integer operation"))
    out += [
        f"{b.divergent:,} of {plural(b.warps, 'warp')} split"
        for b in report.branches
        if b.line == number and b.divergent
    ]
    return out


def _lines(report: Report) -> Iterator[Any]:
    """The source, and under each line what happened there, so that neither squeezes the other."""
    marked = {line for finding in report.findings for line in finding.lines}
    worst = {a.line for a in (*report.conflicts, *report.wasteful, *report.contended)}
    width = len(str(report.source[-1][0]))
    for number, text in report.source:
        style = "bold red" if number in marked else "yellow" if number in worst else ""
        yield Text.assemble((f"{number:>{width}}  ", "dim"), (text, style), no_wrap=True, overflow="ellipsis")
        indent = width + 2 + len(text) - len(text.lstrip()) + 4
        for note in by_line(report, number):
            yield Padding(Text(f"· {note}", style="dim"), (0, 0, 0, indent))


def _traffic(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, title="Global memory, bytes", title_justify="left")
    for name in ("array", "loaded", "stored", "in sectors", "at least", "× the least"):
        table.add_column(name, justify="left" if name == "array" else "right")
    for t in report.traffic:
        table.add_row(
            t.array, f"{t.loaded:,}", f"{t.stored:,}", f"{t.moved:,}", f"{t.minimum:,}", f"{t.moved / t.minimum:.1f}"
        )
    return table


def _trim(dims: tuple[int, ...]) -> tuple[int, ...]:
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return dims
