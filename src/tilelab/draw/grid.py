"""A grid of cells with its labels: what every drawing of a layout is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tilelab.draw.colours import DARK_TEXT, text_on
from tilelab.draw.picture import Line, Picture, Rect, Text

#: Above so many rows or columns cells are coloured dots without text; above so many cells nothing is noted on them.
TEXT_LIMIT, NOTE_LIMIT = 64, 1100
#: Rows and columns that a description spells out.
TOLD_ROWS, TOLD_COLUMNS = 4, 12
#: Above so many columns the cells are tight.
TIGHT = 16
DOT = 5.0


@dataclass(frozen=True)
class Cell:
    """One cell: its text, its colour and what pointing at it tells (left out, its row, its column and its text).

    A marked cell gets a frame.
    """

    text: str
    paint: str
    note: str = ""
    marked: bool = False


def grid(
    cells: Sequence[Sequence[Cell]],
    title: str,
    *,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    row_marks: Sequence[int] = (),
    column_marks: Sequence[int] = (),
    caption: str = "",
) -> Picture:
    """Return a picture of a grid.

    Parameters
    ----------
    cells
        Rows of cells, all of the same length.
    title
        Shown above the grid, and read by a screen reader.
    row_labels, column_labels
        What stands beside the rows and above the columns; left out, their numbers.
    row_marks, column_marks
        Rows and columns before which a strong line shows that a tile ends.
    caption
        Shown below the grid.
    """
    rows, columns = len(cells), len(cells[0])
    dots = rows > TEXT_LIMIT or columns > TEXT_LIMIT
    row_labels = row_labels or [str(i) for i in range(rows)]
    column_labels = column_labels or [str(j) for j in range(columns)]
    tight = columns > TIGHT
    size = 11.0 if tight else 13.0
    letter = 0.62 * size
    longest = max(max(len(cell.text) for row in cells for cell in row), max(map(len, column_labels)))
    width = DOT if dots else max(letter * longest + (5 if tight else 14), 20 if tight else 30)
    height = DOT if dots else (19.0 if tight else 26.0)
    left = letter * max(map(len, row_labels)) + 8
    top = 44.0
    grid_width, grid_height = width * columns, height * rows
    picture = Picture(
        max(left + grid_width + 1, 8.0 * len(title) + 8, 7.0 * len(caption)),
        top + grid_height + (24 if caption else 1),
        title,
        describe(cells, row_labels, caption),
    )
    items = picture.items
    items.append(Text(0, 10, title, 13, "start", "ink", True))

    # Same paint side by side becomes one SVG path, so a large grid stays a small file.
    boxes = [
        Rect(left + j * width, top + i * height, width, height, cell.paint, note(cell, row_labels[i], column_labels[j]))
        for i, row in enumerate(cells)
        for j, cell in enumerate(row)
    ]
    if rows * columns > NOTE_LIMIT:
        boxes = sorted((replace(box, note="") for box in boxes), key=lambda box: box.paint)
    items.extend(boxes)
    if not dots:
        lines = [Line(left, top + i * height, left + grid_width, top + i * height, 0.7) for i in range(rows + 1)]
        lines += [Line(left + j * width, top, left + j * width, top + grid_height, 0.7) for j in range(columns + 1)]
        items.extend(lines)
    items.extend(Line(left, top + i * height, left + grid_width, top + i * height, 2.2, DARK_TEXT) for i in row_marks)
    items.extend(Line(left + j * width, top, left + j * width, top + grid_height, 2.2, DARK_TEXT) for j in column_marks)
    items.extend(
        line
        for i, row in enumerate(cells)
        for j, cell in enumerate(row)
        if cell.marked
        for line in frame(left + j * width, top + i * height, width, height)
    )
    if not dots:
        texts = [
            Text(left + (j + 0.5) * width, top + (i + 0.5) * height, cell.text, size, "middle", text_on(cell.paint))
            for i, row in enumerate(cells)
            for j, cell in enumerate(row)
            if cell.text
        ]
        items.extend(sorted(texts, key=lambda text: text.paint))
    row_step, column_step = (16, 16) if dots else (1, 1)
    items.extend(
        Text(left + (j + 0.5) * width, top - 10, column_labels[j], size - 1, "middle", "faint")
        for j in range(0, columns, column_step)
    )
    items.extend(
        Text(left - 6, top + (i + 0.5) * height, row_labels[i], size - 1, "end", "faint")
        for i in range(0, rows, row_step)
    )
    if caption:
        items.append(Text(0, top + grid_height + 16, caption, 11, "start", "faint"))
    return picture


def frame(x: float, y: float, width: float, height: float) -> list[Line]:
    """Return a frame inside a box, dark around white, so that it shows on every colour."""
    lines = []
    for inset, strength, paint in ((1.2, 2.4, DARK_TEXT), (3.0, 1.2, "#ffffff")):
        x1, y1, x2, y2 = x + inset, y + inset, x + width - inset, y + height - inset
        corners = [(x1, y1), (x2, y1), (x2, y2), (x1, y2), (x1, y1)]
        lines += [Line(*start, *end, strength, paint) for start, end in pairwise(corners)]
    return lines


def note(cell: Cell, row: str, column: str) -> str:
    """Return what pointing at a cell tells; nothing for an empty cell of which nothing is noted."""
    if cell.note or not cell.text:
        return cell.note
    where = ", ".join(f"{kind} {label}" for kind, label in (("row", row), ("column", column)) if label)
    return f"{where}: {cell.text}" if where else cell.text


def describe(cells: Sequence[Sequence[Cell]], row_labels: Sequence[str], caption: str = "") -> str:
    """Return in words what a grid shows: its extents, its first rows, and its caption."""
    rows, columns = len(cells), len(cells[0])
    parts = [f"A grid of {rows} row{'s' * (rows > 1)} and {columns} column{'s' * (columns > 1)}."]
    told = [(label, row) for label, row in zip(row_labels, cells, strict=True) if any(cell.text for cell in row)]
    for label, row in told[:TOLD_ROWS]:
        texts = [(cell.text or "empty") + " (marked)" * cell.marked for cell in row[:TOLD_COLUMNS]]
        more = " and so on" if columns > TOLD_COLUMNS else ""
        parts.append(f"{f'Row {label}' if label else 'It holds'}: {' '.join(texts)}{more}.")
    if len(told) > TOLD_ROWS:
        parts.append("And so on.")
    return " ".join([*parts, *([f"{caption}."] if caption else [])])
