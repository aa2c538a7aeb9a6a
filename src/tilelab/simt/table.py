"""A report as text: tables by rich."""

import io
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tilelab.simt.report import AccessCount, Report


def tables(report: Report) -> Iterator[Any]:
    """What a terminal shows: the findings, the lines with their counts, the traffic."""
    grid, block = (" × ".join(map(str, _trim(d))) for d in (report.grid, report.block))
    ended = "" if report.complete else " (ended early)"
    yield Text(f"{report.kernel}: grid {grid}, block {block}, engine {report.engine}{ended}", style="bold")
    if not report.findings:
        yield Text("Nothing wrong was found.", style="green")
    for finding in report.findings:
        style = "bold red" if finding.severity == "error" else "yellow"
        yield Text.assemble((f"{finding.severity} · {finding.kind}  ", style), finding.message, " ", finding.hint)
    yield _lines(report)
    if report.traffic:
        yield _traffic(report)


def as_text(report: Report, width: int = 120) -> str:
    """The same as plain text."""
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False, color_system=None).print(*tables(report), sep="\n")
    return out.getvalue()


def cost(access: AccessCount) -> str:
    """What an access costs, in one phrase."""
    if access.space == "shared":
        conflict = f"{access.ways}-way conflict, {access.replays} replays" if access.ways > 1 else "no conflict"
        return f"{access.wavefronts} wavefronts, {conflict}"
    if access.efficiency is not None:
        return f"{access.sectors} sectors, {access.efficiency:.0%} used"
    return ""


def by_line(report: Report, number: int) -> list[str]:
    """What happened in one line, one phrase each."""
    out = [f"{a.kind} {a.text}: {a.requests} warps, {cost(a)}".rstrip(", ") for a in report.line(number)]
    kinds = report.arithmetic.get(number, {})
    floats = {kind: count for kind, count in kinds.items() if kind.startswith("float")}
    out += [f"{count} × {kind}" for kind, count in floats.items()]
    whole = sum(kinds.values()) - sum(floats.values())
    if whole:
        out.append(f"{whole} integer operations")
    out += [f"{b.divergent} of {b.warps} warps split" for b in report.branches if b.line == number and b.divergent]
    return out


def _lines(report: Report) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("line", justify="right", style="dim")
    table.add_column("source", no_wrap=True)
    table.add_column("what happened", overflow="fold")
    marked = {line for finding in report.findings for line in finding.lines}
    worst = {a.line for a in report.conflicts}
    for number, text in report.source:
        style = "bold red" if number in marked else "yellow" if number in worst else ""
        table.add_row(str(number), Text(text, style=style), Text("\n".join(by_line(report, number))))
    return table


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
