"""Layouts and tensors as text, byte for byte as CuTe C++ prints them. Source: ``cute/util/print_tensor.hpp``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import coordinates, product, show
from tilelab.layout.layout import Layout, Shaped
from tilelab.layout.storage import kind_of
from tilelab.layout.tensor import Tensor

#: A longer table helps nobody and would take minutes to print.
MOST = 1_000_000


def format_layout(layout: Any, static: bool = False) -> str:
    """Return what :func:`print_layout` prints."""
    if not isinstance(layout, Shaped) or isinstance(layout, Tensor):
        raise LayoutError(f"print_layout prints a layout, not {quote(layout)} ({type(layout).__name__})")
    if layout.size > MOST:
        raise LayoutError(f"{layout!r} has {layout.size} entries; print_layout prints at most {MOST}")
    return f"{layout.text(static)}\n{''.join(_tables(layout))}"  # type: ignore[attr-defined]


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


def format_tensor(tensor: Any, static: bool = False) -> str:
    """Return what :func:`print_tensor` prints."""
    if not isinstance(tensor, Tensor) or not 1 <= tensor.rank <= 4 or tensor.size > MOST:
        raise LayoutError(
            f"print_tensor prints a tensor of one to four modes and at most {MOST} elements, not {tensor!r}"
        )
    return f"{tensor.text(static)}:\n{''.join(_slices(tensor))}"


def print_tensor(tensor: Tensor, static: bool = False) -> None:
    """Print a tensor and its elements, as ``cute::print_tensor``; one to four modes.

    Raises
    ------
    LayoutError
        For what is no tensor of one to four modes.
    """
    print(format_tensor(tensor, static), end="")


def _slices(tensor: Tensor) -> Iterator[str]:
    sizes = [product(mode) for mode in tensor.shape] if isinstance(tensor.shape, tuple) else [tensor.size]
    if len(sizes) <= 2:
        columns = range(sizes[1]) if len(sizes) == 2 else [None]
        for i in range(sizes[0]):
            yield "".join([_element(tensor, i if j is None else (i, j)) for j in columns]) + "\n"
        return
    for k in range(sizes[-1]):
        if k:
            yield ("-" if len(sizes) == 3 else "=") * (5 * sizes[1]) + "\n"
        yield from _slices(tensor[(*[None] * (len(sizes) - 1), k)])


def _element(tensor: Tensor, coordinate: Any) -> str:
    value = tensor[coordinate]
    kind = str(tensor.storage.dtype).removeprefix("torch.") if kind_of(tensor.storage) else type(value).__name__
    if kind.startswith("bool"):
        return f"{int(value):3d}"
    if kind in ("float16", "bfloat16"):
        return f"{float(value):8.2f}"
    if kind.startswith("float"):
        return f"{float(value):10.2e}" if kind == "float32" else f"{float(value):11.3e}"
    return f"{int(value):5d}" if kind[:3] in ("int", "uin") else f"  {value}"
