"""The part of a tensor that a block, a thread or a copy works on. Source: CuTe's ``tensor_impl.hpp``."""

from __future__ import annotations

from typing import Any

from tilelab.layout.divide import zipped_divide
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import check, idx2crd, product_each
from tilelab.layout.layout import Layout
from tilelab.layout.simplify import int_modes
from tilelab.layout.tuples import dice, wrap
from tilelab.tensor.tensor import Tensor, as_tensor


def inner_partition(tensor: Any, tiler: Any, coord: Any) -> Tensor:
    """Return one tile: ``zipped_divide`` by ``tiler``, then the tile at ``coord`` (``None`` keeps a mode of tiles)."""
    pair = zipped_divide(as_tensor(tensor), tiler)
    inner, outer = pair.shape
    return pair[_whole(inner), _filled_up(coord, outer)]  # type: ignore[no-any-return]


def outer_partition(tensor: Any, tiler: Any, coord: Any) -> Tensor:
    """Return one element of every tile: ``zipped_divide`` by ``tiler``, then the element ``coord`` of each tile."""
    pair = zipped_divide(as_tensor(tensor), tiler)
    inner, outer = pair.shape
    return pair[_filled_up(coord, inner), _whole(outer)]  # type: ignore[no-any-return]


def _whole(shape: Any) -> Any:
    """Return the coordinate that keeps every mode."""
    return (None,) * len(shape) if isinstance(shape, tuple) else None


def _filled_up(coord: Any, shape: Any) -> Any:
    """Return a coordinate with ``None`` for the modes that it does not reach."""
    coord = check(coord, "coordinate", (type(None),))
    both = isinstance(coord, tuple) and isinstance(shape, tuple)
    return coord + (None,) * (len(shape) - len(coord)) if both else coord


def local_tile(tensor: Any, tiler: Any, coord: Any, proj: Any = None) -> Tensor:
    """Return the tile of a tensor that a block works on.

    Parameters
    ----------
    tensor
        A tensor, or a layout (then elements are offsets).
    tiler
        The shape of a tile.
    coord
        Which tile; ``None`` keeps all along that mode.
    proj
        Which modes of ``tiler`` and ``coord`` this tensor has: an integer keeps one, ``None`` (CuTe's ``X``) drops it.

    Examples
    --------
    >>> local_tile(Layout((8, 16), (16, 1)), (4, 4), (1, 3))
    76 o (4,4):(16,1)
    """
    return inner_partition(tensor, _diced(proj, tiler), _diced(proj, coord))


def local_partition(tensor: Any, layout: Any, index: Any, proj: Any = None) -> Tensor:
    """Return the elements of a tile that one thread works on.

    Parameters
    ----------
    tensor
        A tensor, or a layout (then elements are offsets).
    layout
        Where the threads stand: coordinate → thread. A mode of stride 0 gives all its threads coordinate 0.
    index
        Which thread.
    proj
        Which modes of ``layout`` this tensor has: an integer keeps one, ``None`` (CuTe's ``X``) drops it.

    Raises
    ------
    LayoutError
        When no coordinate of ``layout`` is that thread.

    Examples
    --------
    >>> local_partition(Layout((8, 8), (8, 1)), Layout((2, 4), (4, 1)), 5)
    9 o (4,2):(16,4)
    """
    int_modes(layout, "local_partition")
    coordinate = idx2crd(index, layout.shape, layout.stride)
    if layout(coordinate) != index:
        raise LayoutError(f"thread {quote(index)} stands nowhere in the layout {layout} of threads")
    flat = tuple([Layout(s)(c) for c, s in zip(wrap(coordinate), wrap(layout.shape), strict=True)])
    tile = product_each(layout.shape)
    return outer_partition(tensor, _diced(proj, tile), _diced(proj, flat))


def _diced(proj: Any, value: Any) -> Any:
    if proj is None or value is None:
        return value
    return dice(check(proj, "projection", (type(None),)), tuple(value) if isinstance(value, list) else value)
