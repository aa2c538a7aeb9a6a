"""Layouts as text, byte for byte as CuTe C++ prints them. Source: ``cute/util/print_tensor.hpp``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import coordinates, product, show
from tilelab.layout.layout import Layout
from tilelab.layout.swizzle import ComposedLayout

#: A longer table helps nobody and would take minutes to print.
MOST = 1_000_000


def format_layout(layout: Any, static: bool = False) -> str:
    """Return what :func:`print_layout` prints."""
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise LayoutError(f"print_layout prints a layout, not {quote(layout)} ({type(layout).__name__})")
    if not isinstance(static, bool):
        raise LayoutError(f"static is True or False, not {quote(static)}")
    if layout.size > MOST:
        raise LayoutError(f"{layout!r} has {layout.size} entries; print_layout prints at most {MOST}")
    return f"{layout.text(static)}\n{''.join(_tables(layout))}"


def print_layout(layout: Any, static: bool = False) -> None:
    """Print a layout and the table of its offsets, byte for byte as ``cute::print_layout``.

    CuTe prints two modes only. Here one mode is printed as one row, and three or more as the tables of the slices,
    each under its coordinate.

    Parameters
    ----------
    layout
        The layout, which may be swizzled.
    static
        Print integers as CuTe prints compile-time ones, ``_4``.

    Raises
    ------
    LayoutError
        For what is no layout, and for more than a million entries.
    """
    print(format_layout(layout, static), end="")


def _tables(layout: Any) -> Iterator[str]:
    width = len(str(layout.cosize)) if all_ints(layout) else max(len(show(layout(c))) for c in range(layout.size))
    if layout.rank < 2:
        yield _table([[layout(i) for i in range(layout.size)]], width)
        return
    rows, columns = product(layout.shape[0]), product(layout.shape[1])
    for outer in coordinates(tuple(map(product, layout.shape[2:]))):
        if outer:
            yield f"(_,_,{show(outer, trailing=False)[1:-1]})\n"
        yield _table([[layout(i, j, *outer) for j in range(columns)] for i in range(rows)], width)


def all_ints(layout: Any) -> bool:
    """Whether a layout gives offsets, not coordinates."""
    return not isinstance(layout, Layout) or all(type(step) is int for step in layout.flat()[1])


def _table(rows: list[list[Any]], width: int) -> str:
    line = "    " + ("+" + "-" * min(width + 2, 23)) * len(rows[0]) + "+\n"
    head = "    " + "".join([f"  {n:{width}d} " for n in range(len(rows[0]))]) + "\n"
    body = "".join(
        [f"{line}{m:2d}  {''.join([f'| {show(v):>{width}} ' for v in row])}|\n" for m, row in enumerate(rows)]
    )
    return head + body + line
