"""Layouts made to measure: of parts, in an order, like another, of coordinates. Source: CuTe's ``layout.hpp``."""

from __future__ import annotations

from typing import Any

from tilelab.layout.basis import E
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import check, checked_shape, compact, leaves, product, rebuild, show, transform
from tilelab.layout.layout import Layout, LayoutRight, joined, trusted
from tilelab.layout.simplify import int_modes


def make_layout(*parts: Any) -> Layout:
    """Return the layout whose modes are the given layouts, or the layout of a shape and a stride.

    >>> make_layout(Layout(4, 1), Layout(6, 4))
    (4,6):(1,4)
    """
    if parts and all(isinstance(part, Layout) for part in parts):
        return joined(list(parts))
    if len(parts) in (1, 2) and not any(isinstance(part, Layout) for part in parts):
        return Layout(*parts)
    raise LayoutError(f"make_layout takes layouts, or a shape and a stride, not {quote(parts)}")


def make_ordered_layout(shape: Any, order: Any = None) -> Layout:
    """Return the layout without holes whose modes follow each other in memory by their keys in ``order``.

    Smaller keys are faster, equal ones follow each other from left to right; left out, it is column-major.

    >>> make_ordered_layout((2, 2, 2, 2), (0, 2, 3, 1))
    (2,2,2,2):(1,4,8,2)
    """
    shape = checked_shape(shape)
    if order is None or order is LayoutRight:
        return Layout(shape, order)
    return Layout(shape, _ordered(shape, check(order, "order"))[0])


def _ordered(shape: Any, order: Any, start: int = 1) -> tuple[Any, int]:
    """Return the strides of modes laid one after the other by their keys; each key stands for all it covers."""
    blocks = _blocks(shape, order)
    keys = list(leaves(order))
    starts = [0] * len(keys)
    for place in sorted(range(len(keys)), key=lambda place: keys[place]):
        starts[place] = start
        start *= product(blocks[place])
    strides = [compact(block, first)[0] for block, first in zip(blocks, starts, strict=True)]
    return rebuild(order, iter(strides)), start


def _blocks(shape: Any, order: Any) -> list[Any]:
    if not isinstance(order, tuple):
        return [shape]
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(f"order {show(order)} is not nested like shape {show(shape)}")
    return [block for s, o in zip(shape, order, strict=True) for block in _blocks(s, o)]


def make_layout_like(layout: Layout) -> Layout:
    """Return the layout without holes whose modes follow each other in memory as those of ``layout`` do.

    Modes of stride 0 keep it.
    """
    int_modes(layout, "make_layout_like")
    return trusted(layout.shape, _without_holes(layout.shape, layout.stride, layout.stride)[0])


def _without_holes(shape: Any, stride: Any, order: Any) -> tuple[Any, int]:
    """Return the strides of modes in an order, of which those of stride 0 keep it, and the stride that comes next."""
    real = transform(lambda s, d: 1 if d == 0 else s, shape, stride)
    strides, end = _ordered(real, order)
    return transform(lambda s, d: 0 if s == 1 else d, real, strides), end


def make_fragment_like(layout: Layout) -> Layout:
    """Return a layout for a thread's registers: mode 0 column-major without holes, the others ordered as given.

    Modes of stride 0 in mode 0 keep it.
    """
    int_modes(layout, "make_fragment_like")
    if layout.rank < 2:
        return Layout(layout.shape)
    head, end = _without_holes(layout.shape[0], layout.stride[0], order=0)
    return trusted(layout.shape, (head, *_ordered(layout.shape[1:], layout.stride[1:], end)[0]))


def make_identity_layout(shape: Any) -> Layout:
    """Return the layout that gives each coordinate itself: ``(4,6):(1@0,1@1)``, for predication and TMA."""

    def walk(mode: Any, path: tuple[int, ...]) -> Any:
        return tuple([walk(m, (*path, i)) for i, m in enumerate(mode)]) if isinstance(mode, tuple) else E(*path)

    shape = checked_shape(shape)
    return trusted(shape, walk(shape, ())) if isinstance(shape, tuple) else Layout(shape, 1)
