"""Drawings of layouts."""

from __future__ import annotations

from typing import Any

from tilelab.draw.colours import ramp
from tilelab.draw.grid import Cell, grid
from tilelab.draw.picture import Picture, Text, side_by_side
from tilelab.layout.errors import LayoutError
from tilelab.layout.inttuple import coordinates, idx2crd, leaves, product, show
from tilelab.layout.layout import Layout

#: Rows, columns and slices beyond these are left out, and the caption says so.
MOST, MOST_SLICES = 128, 12


def layout(value: Any) -> Picture:
    """Draw a layout as the grid of its offsets, lighter for small ones and darker for large ones.

    One mode is one row; three and more modes are the slices side by side. Strong lines show the inner tiles of
    nested modes. More than 64 rows or columns are coloured dots.

    Raises
    ------
    LayoutError
        When the value is not a layout.
    """
    if not isinstance(value, Layout):
        raise LayoutError(f"draw.layout draws a layout, not {value!r}")
    if value.rank < 3:
        return _slice(value, (), str(value))
    outers = list(_first(coordinates(tuple(map(product, value.shape[2:]))), MOST_SLICES))
    panels = [_slice(value, outer, f"(_,_,{show(outer)[1:-1].rstrip(',')})") for outer in outers]
    whole = side_by_side(panels, str(value))
    count = product(value.shape[2:])
    headed = Picture(max(whole.width, 8.0 * len(str(value)) + 8), whole.height + 24, str(value))
    note = f"   (the first {len(outers)} of {count} slices)" if count > len(outers) else ""
    headed.items = [_heading(f"{value}{note}"), *whole.shifted(0, 24)]
    return headed


def _slice(value: Layout, outer: tuple[int, ...], title: str) -> Picture:
    one_row = value.rank < 2
    rows = 1 if one_row else product(value.shape[0])
    columns = product(value.shape) if one_row else product(value.shape[1])
    shown_rows, shown_columns = min(rows, MOST), min(columns, MOST)
    lowest, highest = reach(value)
    cells = []
    for i in range(shown_rows):
        row = []
        for j in range(shown_columns):
            coordinate = j if one_row else (i, j, *outer)
            offset = value(coordinate)
            natural = idx2crd(coordinate, value.shape)
            part = (offset - lowest) / max(highest - lowest, 1)
            row.append(Cell(str(offset), ramp(round(part * 31) / 31), f"{show(natural)} → {offset}"))
        cells.append(row)
    modes = (1, value.shape) if one_row else value.shape[:2]
    caption = ""
    if (rows, columns) != (shown_rows, shown_columns):
        caption = f"the first {shown_rows}×{shown_columns} of {rows}×{columns}; offsets {lowest} to {highest}"
    elif max(rows, columns) > 64:
        caption = f"offsets {lowest} (light) to {highest} (dark)"
    return grid(
        cells,
        title,
        row_labels=[""] if one_row else None,
        row_marks=tile_marks(modes[0], shown_rows),
        column_marks=tile_marks(modes[1], shown_columns),
        caption=caption,
    )


def reach(value: Layout) -> tuple[int, int]:
    """Return the smallest and the largest offset of a layout."""
    ends = [(extent - 1) * step for extent, step in zip(*value.flat(), strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)


def tile_marks(mode: Any, count: int) -> list[int]:
    """Return before which rows or columns of a nested mode a new innermost tile starts."""
    inner = [extent for extent in leaves(mode) if extent > 1]
    return list(range(inner[0], count, inner[0])) if len(inner) > 1 else []


def _first(values: Any, count: int) -> Any:
    return (value for value, _ in zip(values, range(count), strict=False))


def _heading(text: str) -> Text:
    return Text(0, 10, text, 13, "start", "ink", True)
