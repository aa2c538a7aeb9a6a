"""The same bytes as elements of another width. Source: CuTe's ``layout.hpp`` and ``swizzle_layout.hpp``."""

from __future__ import annotations

from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import check, is_int
from tilelab.layout.layout import Layout
from tilelab.layout.simplify import int_modes, nested
from tilelab.layout.swizzle import ComposedLayout, Swizzle
from tilelab.layout.values import Shaped


def upcast(layout: Any, n: int) -> Any:
    """Return the layout of vectors of ``n`` elements: ``upcast(Layout((8,4),(1,8)), 2)`` is ``(4,4):(1,4)``.

    Raises
    ------
    LayoutError
        When a stride neither divides ``n`` nor is divided by it, a mode does not fill whole vectors, or modes overlap
        inside a vector.
    """
    n = _factor(layout, n, "upcast")
    if isinstance(layout, ComposedLayout):
        return _recast_composed(layout, upcast(layout.inner, n), -_log2(layout, n), layout.offset, n)
    shape, stride = int_modes(layout, "upcast")
    shapes, strides, inside = [], [], 0
    for extent, step in zip(shape, stride, strict=True):
        size = abs(step)
        if extent == 1 or step == 0:
            shapes.append(extent)
            strides.append(step // n)
        elif size % n == 0:
            shapes.append(extent)
            strides.append(step // size * (size // n))
        else:
            count = n // size
            if n % size or (extent % count and count % extent):
                raise LayoutError(f"mode {extent}:{step} of {layout} does not fill whole vectors of {n}")
            inside += (min(extent, count) - 1) * size
            shapes.append(max(extent // count, 1))
            strides.append(step // size)
    if inside >= n:
        raise LayoutError(f"modes of {layout} overlap inside vectors of {n}")
    return nested(layout.shape, shapes, strides)


def downcast(layout: Any, n: int) -> Any:
    """Return the layout of the ``n`` parts of each element: ``downcast(Layout((8,4),(1,8)), 2)`` is ``(16,4):(1,16)``.

    Raises
    ------
    LayoutError
        When no mode, or more than one, has stride 1: then there is no place for the parts. When a stride is negative:
        the parts of an element would run the other way.
    """
    n = _factor(layout, n, "downcast")
    if isinstance(layout, ComposedLayout):
        return _recast_composed(layout, downcast(layout.inner, n), _log2(layout, n), layout.offset * n, 1)
    shape, stride = int_modes(layout, "downcast")
    if n == 1:
        return layout
    if any(step < 0 for step in stride):
        raise LayoutError(f"downcast needs strides of at least 0, not {layout}")
    units = [i for i, step in enumerate(stride) if step == 1]
    units = [i for i in units if shape[i] > 1] or units[:1]
    if len(units) != 1:
        found = "more than one mode" if units else "no mode"
        raise LayoutError(f"{layout} has {found} of stride 1 that could hold the {n} parts of an element")
    shapes = [extent * n if i == units[0] else extent for i, extent in enumerate(shape)]
    strides = [step if i == units[0] else step * n for i, step in enumerate(stride)]
    return nested(layout.shape, shapes, strides)


def recast(layout: Any, old_bits: int, new_bits: int) -> Any:
    """Return the layout of the same bytes when elements of ``old_bits`` are read as elements of ``new_bits``."""
    old, new = _factor(layout, old_bits, "recast"), _factor(layout, new_bits, "recast")
    if new % old == 0:
        return upcast(layout, new // old)
    if old % new == 0:
        return downcast(layout, old // new)
    raise LayoutError(f"elements of {old} bits cannot be read as elements of {new} bits: neither divides the other")


def _factor(layout: Any, n: Any, what: str) -> int:
    if isinstance(n, Shaped) or not isinstance(layout, Shaped) or not is_int(n) or check(n) < 1:
        raise LayoutError(f"{what} wants a layout and then positive integers, not ({quote(layout)}, {quote(n)})")
    return int(n)


def _log2(layout: Any, n: int) -> int:
    if n & (n - 1) or not isinstance(layout.outer, Swizzle):
        raise LayoutError(f"{layout} can only be recast by a power of two, and with a swizzle outside, not by {n}")
    return n.bit_length() - 1


def _recast_composed(layout: ComposedLayout, inner: Layout, shift: int, offset: Any, divisor: int) -> ComposedLayout:
    swizzle = layout.outer
    if not isinstance(swizzle, Swizzle) or swizzle.base + shift < 0 or offset % divisor:
        raise LayoutError(f"{layout} cannot be read in vectors of {divisor}: its swizzle or offset would split them")
    return ComposedLayout(Swizzle(swizzle.bits, swizzle.base + shift, swizzle.shift), offset // divisor, inner)
