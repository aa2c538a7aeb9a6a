"""Layouts as text, byte for byte as CuTe C++ prints them. Source of the form: ``cute/util/print_tensor.hpp``."""

from __future__ import annotations

from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import product, show
from tilelab.layout.layout import Layout

#: A longer table helps nobody and would take minutes to print.
MOST = 1_000_000


def header(layout: Any, static: bool) -> str:
    """Return the layout as CuTe prints it: ``(4,6):(1,4)``, with ``static`` ``(_4,_6):(_1,_4)``."""
    return f"{show(layout.shape, static=static, trailing=False)}:{show(layout.stride, static=static, trailing=False)}"


def format_layout(layout: Any, static: bool = False) -> str:
    """Return what :func:`print_layout` prints."""
    if not isinstance(layout, Layout):
        raise LayoutError(f"print_layout prints a layout, not {quote(layout)} ({type(layout).__name__})")
    if layout.size > MOST:
        raise LayoutError(f"{layout} has {layout.size} entries; print_layout prints at most {MOST}")
    return f"{header(layout, static)}\n{_tables(layout, layout.shape)}"


def print_layout(layout: Any, static: bool = False) -> None:
    """Print a layout and the table of its offsets, byte for byte as ``cute::print_layout``.

    CuTe prints two modes only. Here one mode is printed as one row, and three or more as the tables of the slices,
    each under its coordinate.

    Parameters
    ----------
    layout
        The layout.
    static
        Print integers as CuTe prints compile-time ones, ``_4``.
    """
    print(format_layout(layout, static), end="")


def _tables(layout: Layout, shape: Any) -> str:
    width = len(str(layout.cosize))
    if layout.rank < 2:
        return _table([[layout(i) for i in range(layout.size)]], width)
    rows, columns = product(shape[0]), product(shape[1])
    if layout.rank == 2:
        return _table([[layout(i, j) for j in range(columns)] for i in range(rows)], width)
    texts = []
    for outer in Layout(tuple(map(product, shape[2:]))).coordinates():
        rest = [[layout(i, j, *outer) for j in range(columns)] for i in range(rows)]
        texts.append(f"(_,_,{show(outer)[1:-1].rstrip(',')})\n{_table(rest, width)}")
    return "".join(texts)


def _table(rows: list[list[int]], width: int) -> str:
    line = "    " + "".join(["+" + "-" * min(width + 2, 23)] * len(rows[0])) + "+\n"
    head = "    " + "".join([f"  {n:{width}d} " for n in range(len(rows[0]))]) + "\n"
    body = "".join([f"{line}{m:2d}  {''.join([f'| {v:{width}d} ' for v in row])}|\n" for m, row in enumerate(rows)])
    return head + body + line
