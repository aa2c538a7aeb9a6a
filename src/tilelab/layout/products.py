"""Products: a layout repeated in the pattern of another, and layouts made to measure. Source: CuTe's ``layout.hpp``."""

from __future__ import annotations

from typing import Any, cast

from tilelab.layout.basis import E
from tilelab.layout.compose import as_tile, compose
from tilelab.layout.divide import unpacked, zipped
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import (
    check,
    checked_shape,
    compact,
    leaves,
    product,
    product_each,
    rebuild,
    show,
    transform,
)
from tilelab.layout.inverse import complement, right_inverse
from tilelab.layout.layout import Layout, LayoutRight, as_layout, joined, lifted, trusted
from tilelab.layout.simplify import by_mode, int_modes


@lifted
def logical_product(block: Layout, tiler: Any) -> Layout:
    """Return ``(block, repetitions)``: the block, and where its copies start so that they do not overlap.

    >>> logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))
    ((2,2),(2,3)):((4,1),(2,8))

    Parameters
    ----------
    block
        A layout or swizzled layout whose offsets differ.
    tiler
        A layout: the pattern of copies, in units of blocks; an integer ``n`` is ``n:1``; a tuple repeats each mode by
        itself, with ``None`` for a mode left as it is.

    Raises
    ------
    LayoutError
        When the block's offsets repeat, the tiler has too many modes, or the copies form no layout.
    """
    if tiler is None:
        return block
    if isinstance(tiler, (tuple, list)):
        return by_mode(logical_product, block, tiler, "tiler")
    tile = as_tile(tiler)
    int_modes(block, "logical_product")
    int_modes(tile, "logical_product")
    return joined([block, compose(complement(block, block.size * tile.cosize), tile)])


@lifted
def zipped_product(block: Layout, tiler: Any) -> Layout:
    """Return the product as ``((block, …), (repetitions, …))``; parameters as in :func:`logical_product`."""
    return zipped(logical_product(block, tiler), tiler)


@lifted
def tiled_product(block: Layout, tiler: Any) -> Layout:
    """Return the product as ``((block, …), repetitions, …)``; parameters as in :func:`logical_product`."""
    return unpacked(zipped_product(block, tiler), keep=1)


@lifted
def flat_product(block: Layout, tiler: Any) -> Layout:
    """Return the product as ``(block, …, repetitions, …)``; parameters as in :func:`logical_product`."""
    return unpacked(zipped_product(block, tiler), keep=0)


@lifted
def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """Return the tiles side by side: each mode is ``(block's, tiler's)``; the shorter rank is filled up with ``1:0``.

    >>> blocked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    ((2,3),(5,4)):((5,10),(1,30))
    """
    inner, outer = _padded_product(block, tiler)
    return joined([joined(list(pair)) for pair in zip(inner, outer, strict=True)])


@lifted
def raked_product(block: Layout, tiler: Layout) -> Layout:
    """Return the tiles interleaved: each mode is ``(tiler's, block's)``; the shorter rank is filled up with ``1:0``."""
    inner, outer = _padded_product(block, tiler)
    return joined([joined(list(pair)) for pair in zip(outer, inner, strict=True)])


def _padded_product(block: Layout, tiler: Any) -> Layout:
    rank = max(block.rank, as_tile(tiler).rank)
    return cast(
        "Layout",
        logical_product(*[joined(list(x) + [trusted(1, 0)] * (rank - x.rank)) for x in (block, as_tile(tiler))]),
    )


@lifted
def tile_to_shape(block: Layout, shape: Any, order: Any = None) -> Layout:
    """Return the block repeated until it has a shape; ``order`` ranks the modes along which copies follow each other.

    Raises
    ------
    LayoutError
        When a mode of the block does not divide that of the shape, or the shape has fewer modes.
    """
    target = product_each(checked_shape(shape))
    padded = joined(list(block) + [trusted(1, 0)] * (len(target) - block.rank))
    extents = product_each(padded.shape)
    if len(target) < block.rank or any(t % e for t, e in zip(target, extents, strict=True)):
        raise LayoutError(f"block {block} does not divide the shape {show(shape)}, mode by mode")
    counts = tuple([t // e for t, e in zip(target, extents, strict=True)])
    return cast("Layout", blocked_product(padded, make_ordered_layout(counts, order)))


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
    return trusted(layout.shape, _like(layout.shape, layout.stride)[0])


def _like(shape: Any, stride: Any, start: int = 1) -> tuple[Any, int]:
    real = transform(lambda s, d: 1 if d == 0 else s, shape, stride)
    strides, end = _ordered(real, stride, start)
    return transform(lambda s, d: 0 if s == 1 else d, real, strides), end


def make_fragment_like(layout: Layout) -> Layout:
    """Return a layout for a thread's registers: mode 0 column-major without holes, the others ordered as given.

    Modes of stride 0 in mode 0 keep it.
    """
    int_modes(layout, "make_fragment_like")
    if layout.rank < 2:
        return Layout(layout.shape)
    first = transform(lambda s, d: 1 if d == 0 else s, layout.shape[0], layout.stride[0])
    strides, end = compact(first)
    head = transform(lambda s, d: 0 if s == 1 else d, first, strides)
    return trusted(layout.shape, (head, *_ordered(layout.shape[1:], layout.stride[1:], end)[0]))


def make_identity_layout(shape: Any) -> Layout:
    """Return the layout that gives each coordinate itself: ``(4,6):(1@0,1@1)``, for predication and TMA."""

    def walk(mode: Any, path: tuple[int, ...]) -> Any:
        return tuple([walk(m, (*path, i)) for i, m in enumerate(mode)]) if isinstance(mode, tuple) else E(*path)

    shape = checked_shape(shape)
    return trusted(shape, walk(shape, ())) if isinstance(shape, tuple) else Layout(shape, 1)


def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[tuple[int, ...], Layout]:
    """Return the tile that threads cover with their values, and the layout from (thread, value) to its index.

    Parameters
    ----------
    thr_layout
        Where the threads stand: coordinate in the tile (in units of value blocks) → thread.
    val_layout
        Where a thread's values stand: coordinate in its block → value.

    Returns
    -------
    tile, layout
        The shape of the tile, and a layout of shape ``(threads, values)`` that gives the column-major index of each
        value in the tile: ``right_inverse(raked_product(thr, val))`` seen as threads times values.

    Raises
    ------
    LayoutError
        When threads or values do not fill the tile one for one.
    """
    layout_mn = raked_product(as_layout(thr_layout), as_layout(val_layout))
    inverse = right_inverse(layout_mn)
    if inverse.size != layout_mn.size:
        raise LayoutError(f"threads {thr_layout} and values {val_layout} leave holes: {layout_mn} is not one to one")
    return product_each(layout_mn.shape), compose(inverse, Layout((thr_layout.size, val_layout.size)))
