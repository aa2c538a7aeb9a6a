"""Finding the layout of given offsets, whatever rule made them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import checked_shape, coordinates, leaves, product, rebuild
from tilelab.layout.layout import Layout
from tilelab.layout.simplify import from_modes, nested

#: Fitting looks at each coordinate several times.
MOST = 1 << 16


def fit_layout(shape: Any, offset: Callable[[Any], Any]) -> Layout | None:
    """Return a layout with ``layout(c) == offset(c)`` for each coordinate of a shape, its modes cut where needed.

    Returns ``None`` where no layout compatible with the shape has these offsets; every coordinate is tried.
    """
    shape = checked_shape(shape)
    if product(shape) > MOST or not callable(offset):
        most = f"at most {MOST} coordinates of a function"
        raise LayoutError(f"fit_layout tries {most}, not {quote(shape)}, {quote(offset)}")
    extents = list(leaves(shape))
    pieces = []
    for place, extent in enumerate(extents):
        axis = [[i if k == place else 0 for k in range(len(extents))] for i in range(extent)]
        piece = _fit([offset(rebuild(shape, iter(coordinate))) for coordinate in axis])
        if piece is None:
            return None
        pieces.append(from_modes(*zip(*piece, strict=True)))
    fitted = nested(shape, [piece.shape for piece in pieces], [piece.stride for piece in pieces])
    return fitted if all(fitted(c) == offset(c) for c in coordinates(shape)) else None


def _fit(offsets: list[Any]) -> list[tuple[int, Any]] | None:
    """Return the modes of one run of offsets, ``None`` where there are none."""
    n = len(offsets)
    if n == 1:
        return [(1, 0)] if offsets[0] == 0 else None
    step = offsets[1]
    straight = next((i for i in range(n) if offsets[i] != i * step), n)
    for count in range(straight, 1, -1):
        if n % count:
            continue
        starts = offsets[::count]
        if all(offsets[i] == starts[i // count] + i % count * step for i in range(n)):
            rest = _fit(starts)
            if rest is not None:
                return [(count, step), *[mode for mode in rest if mode[0] > 1]]
    return None
