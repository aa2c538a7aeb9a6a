"""All offsets of a layout at once, by outer sums: numpy arrays where numpy is there, lists where it is not."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tilelab.layout.errors import LayoutError
from tilelab.layout.inttuple import MAX_INT
from tilelab.layout.layout import Layout
from tilelab.layout.swizzle import ComposedLayout, as_function

#: A longer table fills gigabytes.
MOST = 1 << 28


def offset_table(layout: Any, *, numpy: bool | None = None) -> Any:
    """Return the offsets of all indices 0, 1, 2, … of a layout.

    Parameters
    ----------
    layout
        A layout or swizzled layout.
    numpy
        Whether to make a numpy array (``int64``) or a list; left out, an array where numpy is installed.

    Returns
    -------
    table
        ``table[i] == layout(i)``; a list as well where offsets are coordinates.
    """
    layout = as_function(layout)
    if layout.size > MOST or layout.cosize > MAX_INT:
        raise LayoutError(f"{layout!r} has {layout.size} offsets; a table holds at most {MOST} of 64 bits")
    if numpy is None:
        numpy = find_spec("numpy") is not None
    if isinstance(layout, ComposedLayout):
        table = offset_table(layout.inner, numpy=numpy)
        if isinstance(table, list) or isinstance(layout.outer, Layout):
            return [layout.outer(layout.offset + x) for x in table]
        return layout.outer(table + layout.offset)
    shape, stride = layout.flat()
    if not numpy or not all(type(step) is int for step in stride):
        return _list(shape, stride)
    import numpy as np

    sums = np.zeros(1, np.int64)
    for extent, step in zip(shape, stride, strict=True):
        sums = np.add.outer(np.arange(extent, dtype=np.int64) * step, sums).ravel()
    return sums


def _list(shape: tuple[int, ...], stride: tuple[Any, ...]) -> list[Any]:
    table: list[Any] = [0]
    for extent, step in zip(shape, stride, strict=True):
        table = [start + x for start in [i * step for i in range(extent)] for x in table]
    return table
