"""Products: a layout repeated in the pattern of another. Source: CuTe's ``layout.hpp``."""

from __future__ import annotations

from typing import Any

from tilelab.layout.compose import as_tile, compose
from tilelab.layout.construct import make_ordered_layout
from tilelab.layout.divide import unpacked, zipped
from tilelab.layout.errors import LayoutError
from tilelab.layout.inttuple import checked_shape, product_each, show
from tilelab.layout.inverse import complement, right_inverse
from tilelab.layout.layout import Layout, as_layout, joined, lifted, trusted
from tilelab.layout.simplify import by_mode, int_modes


@lifted
def logical_product(block: Layout, tiler: Any) -> Layout:
    """Return ``(block, repetitions)``: the block, and where its copies start so that they do not overlap.

    >>> logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))
    ((2,2),(2,3)):((4,1),(2,8))

    Parameters
    ----------
    block
        A layout or swizzled layout whose modes lie one after the other in memory, as in :func:`complement`.
    tiler
        A layout: the pattern of copies, in units of blocks; an integer ``n`` is ``n:1``; a tuple repeats each mode by
        itself, with ``None`` for a mode left as it is.

    Raises
    ------
    LayoutError
        When the block's modes repeat offsets or interleave, the tiler has too many modes, or the copies form no layout.
    """
    if tiler is None:
        return block
    if isinstance(tiler, (tuple, list)):
        return by_mode(logical_product, block, tiler, "tiler")
    tile = as_tile(tiler)
    extents, strides = int_modes(block, "logical_product")
    int_modes(tile, "logical_product")
    # Where holes are left that no mode fills, copies need room behind the block's last mode.
    room = max([block.size, *(extent * stride for extent, stride in zip(extents, strides, strict=True))])
    return joined([block, compose(complement(block, room * tile.cosize), tile)])


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
    tile = as_tile(tiler)
    rank = max(block.rank, tile.rank)
    return logical_product(_padded(block, rank), _padded(tile, rank))  # type: ignore[no-any-return]


def _padded(layout: Layout, rank: int) -> Layout:
    return joined(list(layout) + [trusted(1, 0)] * (rank - layout.rank))


@lifted
def tile_to_shape(block: Layout, shape: Any, order: Any = None) -> Layout:
    """Return the block repeated until it has a shape; ``order`` ranks the modes along which copies follow each other.

    Raises
    ------
    LayoutError
        When a mode of the block does not divide that of the shape, or the shape has fewer modes.
    """
    target = product_each(checked_shape(shape))
    padded = _padded(block, len(target))
    extents = product_each(padded.shape)
    if len(target) < block.rank or any(t % e for t, e in zip(target, extents, strict=True)):
        raise LayoutError(f"block {block} does not divide the shape {show(shape)}, mode by mode")
    counts = tuple([t // e for t, e in zip(target, extents, strict=True)])
    return blocked_product(padded, make_ordered_layout(counts, order))  # type: ignore[no-any-return]


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
    for what, one in [("thread", as_layout(thr_layout)), ("value", as_layout(val_layout))]:
        if isinstance(one, Layout) and one.cosize != one.size:
            raise LayoutError(f"{what} layout {one} must number its {what}s 0 to {one.size - 1} without holes")
    layout_mn = raked_product(as_layout(thr_layout), as_layout(val_layout))
    inverse = right_inverse(layout_mn)
    if inverse.size != layout_mn.size:
        raise LayoutError(f"threads {thr_layout} and values {val_layout} leave holes: {layout_mn} is not one to one")
    return product_each(layout_mn.shape), compose(inverse, Layout((thr_layout.size, val_layout.size)))
