"""Drawings of layouts, tensors, swizzles, compositions, thread-value layouts, and of where elements stand in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from typing import Any

from tilelab.draw.colours import DISTINCT, ramp
from tilelab.draw.grid import Cell, grid
from tilelab.draw.picture import Picture, Text, side_by_side
from tilelab.layout.compose import composition as compose
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import coordinates, idx2crd, leaves, product, product_each, show
from tilelab.layout.layout import Layout, as_layout
from tilelab.layout.swizzle import ComposedLayout, Swizzle
from tilelab.layout.tables import offset_table
from tilelab.layout.values import Shaped
from tilelab.tensor.tensor import Tensor

#: Rows, columns and slices beyond these are left out, and the caption says so.
MOST, MOST_SLICES = 128, 12
#: Steps of the colour ramp; more would not be told apart and make larger files.
STEPS = 31


def layout(value: Any, *, title: str = "", marked: Collection[int] = ()) -> Picture:
    """Draw a layout as the grid of its offsets, lighter for small ones and darker for large ones.

    One mode is one row; three and more modes are the slices side by side. Strong lines show the inner tiles of
    nested modes. More than 64 rows or columns are coloured dots.

    Parameters
    ----------
    value
        A layout, a swizzled layout, or a tensor, whose elements are shown in the colours of their offsets.
    title
        What stands above it; left out, the value as text.
    marked
        Indices whose cells get a frame.

    Raises
    ------
    LayoutError
        When the value is none of these.
    """
    if not isinstance(value, Shaped):
        raise LayoutError(f"draw.layout draws a layout, not {quote(value)}")
    where: Any = value.layout if isinstance(value, Tensor) else value
    paint = _by_offset(where)

    def look(coordinate: Any) -> Cell:
        offset = where(coordinate)
        text = _element(value[coordinate]) if isinstance(value, Tensor) else show(offset)
        kind = "element" if isinstance(value, Tensor) else "offset"
        told = f"{show(idx2crd(coordinate, value.shape))}: {kind} {text}"
        return Cell(text, paint(offset, coordinate), told, bool(marked) and _index(coordinate, value.shape) in marked)

    return table(value.shape, look, title or repr(value))


def _index(coordinate: Any, shape: Any) -> int:
    """Return the index of a cell of a table, whose coordinate has one number for each mode, or is the index."""
    if isinstance(coordinate, int):
        return coordinate
    extents = Layout(tuple(product(mode) for mode in shape))
    return int(extents(coordinate))


def _element(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _by_offset(value: Any) -> Callable[[Any, Any], str]:
    """Return the colour of an offset on the ramp from the smallest to the largest."""
    low, high = reach(value)

    def paint(offset: Any, coordinate: Any) -> str:
        place = offset if isinstance(offset, int) else Layout(tuple(high))(tuple(leaves(offset)))
        first, last = (low, high) if isinstance(offset, int) else (0, product(tuple(high)))
        return ramp(round((place - first) / max(last - first, 1) * STEPS) / STEPS)

    return paint


def reach(value: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest offset of a layout; for one of coordinates, 0 and the extents they have."""
    if isinstance(value, ComposedLayout):
        return 0, value.cosize - 1
    if not all(type(step) is int for step in value.flat()[1]):
        return 0, tuple(leaves(value.coshape))
    ends = [(extent - 1) * step for extent, step in zip(*value.flat(), strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)


def table(shape: Any, look: Callable[[Any], Cell], title: str, caption: str = "") -> Picture:
    """Draw a shape as a grid, with a cell for each coordinate; one row for one mode, slices for more than two."""
    if not isinstance(shape, tuple) or len(shape) < 3:
        return _slice(shape, (), look, title, caption)
    outers = tuple(map(product, shape[2:]))
    panels = [
        _slice(shape, outer, look, f"(_,_,{show(outer, trailing=False)[1:-1]})", caption)
        for outer in islice(coordinates(outers), MOST_SLICES)
    ]
    count = product(outers)
    return headed(
        side_by_side(panels, title), f"   (the first {len(panels)} of {count} slices)" * (count > len(panels))
    )


def headed(picture: Picture, note: str = "") -> Picture:
    """Return a picture with its title written above it."""
    text = picture.title + note
    whole = Picture(max(picture.width, 8.0 * len(text) + 8), picture.height + 24, picture.title, picture.description)
    whole.items = [Text(0, 10, text, 13, "start", "ink", True), *picture.shifted(0, 24)]
    return whole


def _slice(shape: Any, outer: tuple[int, ...], look: Callable[[Any], Cell], title: str, caption: str) -> Picture:
    one_row = not isinstance(shape, tuple) or len(shape) < 2
    modes = (1, shape) if one_row else shape[:2]
    rows, columns = product(modes[0]), product(modes[1])
    shown_rows, shown_columns = min(rows, MOST), min(columns, MOST)
    cells = [[look(j if one_row else (i, j, *outer)) for j in range(shown_columns)] for i in range(shown_rows)]
    if (rows, columns) != (shown_rows, shown_columns):
        caption = f"the first {shown_rows}×{shown_columns} of {rows}×{columns}"
    elif not caption and max(rows, columns) > 64:
        caption = f"{cells[0][0].text} (first) to {cells[-1][-1].text} (last); light is small, dark is large"
    return grid(
        cells,
        title,
        row_labels=[""] if one_row else None,
        row_marks=tile_marks(modes[0], shown_rows),
        column_marks=tile_marks(modes[1], shown_columns),
        caption=caption,
    )


def tile_marks(mode: Any, count: int) -> list[int]:
    """Return before which rows or columns of a nested mode a new innermost tile starts."""
    inner = [extent for extent in leaves(mode) if extent > 1]
    return list(range(inner[0], count, inner[0])) if len(inner) > 1 else []


def thread_values(tile: Any, layout_tv: Any) -> Picture:
    """Draw which thread holds each element of a tile, and as which of its values: colour by thread, text for both.

    Parameters
    ----------
    tile
        The shape of the tile, ``(M, N)``.
    layout_tv
        A layout from (thread, value) to the column-major index in the tile, as :func:`tilelab.make_layout_tv` makes.

    Raises
    ------
    LayoutError
        When the layout has not two modes, or leaves the tile.
    """
    layout_tv, extents = as_layout(layout_tv), product_each(tile)
    if layout_tv.rank != 2 or len(extents) != 2 or layout_tv.cosize > product(extents):
        raise LayoutError(f"{layout_tv} does not send (thread, value) into a tile of shape {quote(tile)}")
    threads, values = product_each(layout_tv.shape)
    holders: dict[int, list[tuple[int, int]]] = {}
    for t in range(threads):
        for v in range(values):
            holders.setdefault(layout_tv(t, v), []).append((t, v))

    def look(coordinate: Any) -> Cell:
        here = holders.get(coordinate[0] + extents[0] * coordinate[1])
        if here is None:
            return Cell("", "hole", f"{show(coordinate)}: no thread")
        t, v = here[0]
        more = f" and {len(here) - 1} more" if len(here) > 1 else ""
        return Cell(f"T{t} V{v}", DISTINCT[t % len(DISTINCT)], f"{show(coordinate)}: thread {t}, value {v}{more}")

    return table(
        extents, look, f"(thread,value) {layout_tv}", f"T thread, V value; {threads} threads, {values} values each"
    )


def swizzle(function: Swizzle, value: Layout) -> Picture:
    """Draw a layout before and after a swizzle, coloured by the bits of the offset that the swizzle writes."""
    if not isinstance(function, Swizzle):
        raise LayoutError(f"draw.swizzle wants (swizzle, layout), not {quote(function)} first")

    def panel(shown: Any) -> Picture:
        def look(coordinate: Any) -> Cell:
            offset = shown(coordinate)
            group = offset >> (function.base - min(function.shift, 0)) & ((1 << function.bits) - 1)
            return Cell(str(offset), DISTINCT[group % len(DISTINCT)], f"{show(coordinate)} → {offset}, group {group}")

        return table(shown.shape, look, repr(shown))

    whole = side_by_side([panel(as_layout(value)), panel(compose(function, value))], f"{function} before and after")
    return headed(whole)


def composition(a: Layout, b: Layout) -> Picture:
    """Draw A, B and A∘B side by side; frames in A show the elements that B chooses."""
    return headed(side_by_side(composition_panels(a, b), f"A, B and A∘B for A = {a}, B = {b}"))


def composition_panels(a: Layout, b: Layout) -> list[Picture]:
    """Return the three pictures of :func:`composition`, for a page that places them itself."""
    a, b = as_layout(a), as_layout(b)
    result, chosen = compose(a, b), set(offset_table(b, numpy=False))
    return [
        layout(a, title=f"A = {a}", marked=chosen),
        layout(b, title=f"B = {b}"),
        layout(result, title=f"A∘B = {result}"),
    ]


def memory(value: Any, columns: int = 32) -> Picture:
    """Draw the image of a layout in linear memory: which index stands at each offset, and the holes between.

    An offset with several indices shows the first and how many there are.

    Raises
    ------
    LayoutError
        When offsets are negative or reach beyond 16384.
    """
    value = as_layout(value)
    low, high = reach(value)
    if not isinstance(high, int) or low < 0 or high >= MOST * MOST or not 1 <= columns <= MOST:
        raise LayoutError(f"draw.memory draws offsets 0 to {MOST * MOST - 1}, {value!r} goes from {low} to {high}")
    indices: dict[int, list[int]] = {}
    for index, offset in enumerate(offset_table(value, numpy=False)):
        indices.setdefault(offset, []).append(index)
    columns = min(columns, high + 1)

    def cell(offset: int) -> Cell:
        here = indices.get(offset)
        if here is None:
            return Cell("", "hole", f"offset {offset}: a hole" if offset <= high else "")
        many = f"×{len(here)}" if len(here) > 1 else ""
        paint = ramp(round(here[0] / max(value.size - 1, 1) * STEPS) / STEPS)
        note = ", ".join(show(idx2crd(index, value.shape)) for index in here[:4])
        return Cell(f"{here[0]}{many}", paint, f"offset {offset}: {note}")

    rows = -(-(high + 1) // columns)
    cells = [[cell(row * columns + column) for column in range(columns)] for row in range(rows)]
    holes = high + 1 - len(indices)
    return grid(
        cells,
        f"{value!r} in memory",
        row_labels=[str(row * columns) for row in range(rows)],
        column_labels=[f"+{column}" for column in range(columns)],
        caption=f"index at each offset; {len(indices)} offsets used, {holes} holes, cosize {high + 1}",
    )
