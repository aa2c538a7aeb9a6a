"""A report as a page in a notebook: findings, the source line by line, banks, sectors, traffic, and phases."""

from collections.abc import Iterable
from html import escape

from tilelab.draw.colours import ramp
from tilelab.draw.grid import Cell, grid
from tilelab.draw.phases import slider
from tilelab.draw.picture import Picture
from tilelab.draw.warp_banks import bank_heat_map, bank_queue
from tilelab.draw.warp_sectors import coalescing
from tilelab.simt.errors import Finding
from tilelab.simt.report import MOST, Report
from tilelab.simt.snapshots import Contents, Snapshot
from tilelab.simt.table import by_line, more
from tilelab.simt.words import plural

_STYLE = """<style>
.tl-report{--tl-bad:#b3261e;--tl-warn:#7a5b00;--tl-good:#1a6b3c;line-height:1.4}
html[data-theme=dark] .tl-report,body[data-jp-theme-light=false] .tl-report{
 --tl-bad:#ff9c94;--tl-warn:#f2cc60;--tl-good:#7ee2a8}
.tl-report table{border-collapse:collapse;margin:.5em 0;font-size:.85em}
.tl-report td,.tl-report th{padding:.1em .6em;text-align:left;vertical-align:top}
.tl-report td.tl-n,.tl-report th.tl-n{text-align:right;font-variant-numeric:tabular-nums}
.tl-report pre,.tl-report code{background:none;border:0;padding:0;margin:0;white-space:pre;font-size:inherit}
.tl-report tr.tl-bad td:first-child{border-left:4px solid var(--tl-bad)}
.tl-report tr.tl-warn td:first-child{border-left:4px solid var(--tl-warn)}
.tl-report .tl-notes{padding-left:2em}
.tl-report .tl-b{color:var(--tl-bad);font-weight:600}.tl-report .tl-w{color:var(--tl-warn);font-weight:600}
.tl-report .tl-g{color:var(--tl-good);font-weight:600} .tl-report .tl-scroll{overflow-x:auto}
.tl-report svg{max-width:100%;height:auto}
</style>"""
#: Pictures of one kind at most, cells of a shared array that are still written out, and cells of all phases.
_PICTURES, _CELLS, _ALL_CELLS = 4, 1024, 20 * 1024
#: Numbers of a one-dimensional array in a row.
_WIDE = 16
#: Share of its size to which a picture may shrink before it scrolls instead: its numbers stay 8 pixels high.
_SMALLEST = 0.75


def as_html(report: Report) -> str:
    """The report as HTML that needs nothing else."""
    parts = [_STYLE, '<div class="tl-report">', _findings(report), _source(report), _banks(report)]
    parts += [_sectors(report), _traffic(report), _phases(report), "</div>"]
    return "\n".join(parts)


def _findings(report: Report) -> str:
    size = f"grid {report.grid}, block {report.block}"
    good = ' class="tl-g"' if report.flawless else ""
    first, rest = report.foremost
    items = [_item(finding) for finding in first]
    if rest:
        items.append(f"<li><details><summary>{more(rest)}</summary><ul>{''.join(map(_item, rest))}</ul></details></li>")
    costs = [f'<li><span class="tl-w">cost</span>: {escape(cost)}</li>' for cost in report.costs]
    items += costs[:MOST]
    if costs[MOST:]:
        summary = f"And {len(costs) - MOST:,} more costly accesses"
        items.append(f"<li><details><summary>{summary}</summary><ul>{''.join(costs[MOST:])}</ul></details></li>")
    ended = "" if report.complete else " An error ended the run; counts are of the blocks before."
    head = f"<p><b>{escape(report.kernel)}</b>, {size}. <span{good}>{report.verdict}</span>{ended}</p>"
    return head + (f"<ul>{''.join(items)}</ul>" if items else "")


def _item(finding: Finding) -> str:
    mark = "b" if finding.severity == "error" else "w"
    return (
        f'<li><span class="tl-{mark}">{escape(finding.kind)}</span>: {escape(finding.message)} '
        f"<i>{escape(finding.hint)}</i></li>"
    )


def _source(report: Report) -> str:
    bad = {line for f in report.findings if f.severity == "error" for line in f.lines}
    doubtful = {a.line for a in (*report.conflicts, *report.wasteful, *report.contended)} | {
        line for f in report.findings for line in f.lines
    }
    rows = []
    for number, text in report.source:
        mark = ' class="tl-bad"' if number in bad else ' class="tl-warn"' if number in doubtful else ""
        notes = "<br>".join(escape(note) for note in by_line(report, number))
        below = f'<div class="tl-notes" style="margin-left:{len(text) - len(text.lstrip())}ch">{notes}</div>'
        code = f"<code>{escape(text)}</code>{below if notes else ''}"
        rows.append(f'<tr{mark}><td class="tl-n">{number}</td><td>{code}</td></tr>')
    head = '<tr><th class="tl-n">line</th><th>source, and what happened there</th></tr>'
    return _wide(f"<table>{head}{''.join(rows)}</table>")


def _banks(report: Report) -> str:
    shared = [a for a in report.accesses if a.space == "shared" and a.example]
    if not shared:
        return ""
    rows = [(f"{a.line} {a.array}", a.example, a.width) for a in shared]
    pictures = [bank_heat_map(rows)]
    for access in report.conflicts[:_PICTURES]:
        title = f"Line {access.line}: {access.text}, {access.ways}-way; who waits at which bank"
        pictures.append(bank_queue(access.example, access.width, title))
    return _drawn(pictures)


def _sectors(report: Report) -> str:
    moved = [a for a in report.accesses if a.space == "global" and a.example]
    moved.sort(key=lambda a: a.efficiency or 0)
    return _drawn(
        coalescing(
            a.example, a.width, f"Line {a.line}: {a.kind} {a.text}, its worst warp ({a.efficiency:.0%} used over all)"
        )
        for a in moved[:_PICTURES]
    )


def _drawn(pictures: Iterable[Picture]) -> str:
    return "".join(
        _wide(f'<div style="min-width:{_SMALLEST * picture.width:.0f}px">{picture.svg}</div>') for picture in pictures
    )


def _wide(part: str) -> str:
    return f'<div class="tl-scroll">{part}</div>'


def _traffic(report: Report) -> str:
    if not report.traffic:
        return ""
    names = ("loaded", "stored", "in sectors", "at least", "× the least")
    head = "<tr><th>array</th>" + "".join(f'<th class="tl-n">{n}</th>' for n in names) + "</tr>"
    rows = []
    for t in report.traffic:
        cells = (f"{t.loaded:,}", f"{t.stored:,}", f"{t.moved:,}", f"{t.minimum:,}", f"{t.moved / t.minimum:.1f}")
        numbers = "".join(f'<td class="tl-n">{c}</td>' for c in cells)
        rows.append(f"<tr><td>{escape(t.array)}</td>{numbers}</tr>")
    return "<p>Global memory, bytes:</p>" + _wide(f"<table>{head}{''.join(rows)}</table>")


def _phases(report: Report) -> str:
    if not any(s.arrays for s in report.snapshots):
        return ""
    frames: list[tuple[str, str]] = []
    cells = 0
    for snapshot in report.snapshots:
        cells += sum(min(len(c.values), _CELLS) for c in snapshot.arrays.values())
        if frames and cells > _ALL_CELLS:
            break
        frames.append((_caption(snapshot), _drawn(_contents(name, c) for name, c in snapshot.arrays.items())))
    left = len(report.snapshots) - len(frames)
    later = f" ({plural(left, 'later phase')} not drawn; snapshots holds them)" if left else ""
    return slider(frames, f"Shared memory of one block, phase by phase{later}:")


def _caption(snapshot: Snapshot) -> str:
    end = f"at the barrier of line {snapshot.line}" if snapshot.line is not None else "at the end"
    return f"phase {snapshot.phase}, {end}. Values in brackets were written in this phase."


def _share(value: float | int | str, low: float, high: float) -> float:
    """Where a value stands between two others; in the middle if it is no number."""
    return (value - low) / (high - low) if high > low and not isinstance(value, str) else 0.5


def _contents(name: str, contents: Contents) -> Picture:
    columns, labels = _rows(contents)
    numbers = [v for v in contents.values if isinstance(v, int | float)]
    low, high = (min(numbers), max(numbers)) if numbers else (0, 0)
    written = set(contents.written)
    cells = []
    for i, value in enumerate(contents.values[:_CELLS]):
        new = i in written
        text = "·" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
        paint = "hole" if value is None else ramp(_share(value, low, high))
        cells.append(Cell(f"[{text}]" if new else text, paint))
    rows = [cells[i : i + columns] for i in range(0, len(cells), columns)]
    rows[-1] += [Cell("", "hole")] * (columns - len(rows[-1]))
    cut = f" (first {_CELLS} of {len(contents.values)})" if len(contents.values) > _CELLS else ""
    return grid(rows, f"{name}{cut}", row_labels=labels and labels[: len(rows)])


def _rows(contents: Contents) -> tuple[int, list[str] | None]:
    """Numbers in a row of the picture, and what its rows are called; narrow rows stand side by side."""
    last = contents.shape[-1] if len(contents.shape) > 1 else 1
    count = len(contents.values) // last
    if last * 2 > _WIDE or (len(contents.shape) > 1 and count <= _WIDE):
        return last, None
    together = _WIDE // last
    return together * last, [str(first) for first in range(0, count, together)]
