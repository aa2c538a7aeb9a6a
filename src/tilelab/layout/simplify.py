"""Fewer or other modes, the same function. Source: CuTe's ``layout.hpp``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import MAX_DEPTH, depth, is_int, rebuild
from tilelab.layout.layout import Layout, as_layout, joined, lifted, trusted


def from_modes(shape: Any, stride: Any) -> Layout:
    """Make a layout of flat modes: none is ``1:0``, one is not wrapped in a tuple."""
    if len(shape) > 1:
        return trusted(tuple(shape), tuple(stride))
    return trusted(shape[0], stride[0]) if shape else trusted(1, 0)


def nested(shape: Any, shapes: Iterable[Any], strides: Iterable[Any]) -> Layout:
    """Make the layout nested like a shape, with the given extents and strides in the places of its integers."""
    return trusted(rebuild(shape, iter(shapes)), rebuild(shape, iter(strides)))


def merged(shapes: Any, strides: Any) -> tuple[list[Any], list[Any]]:
    """Return the modes with neighbours joined where one goes on where the other ends; modes of extent 1 go."""
    shape: list[Any] = []
    stride: list[Any] = []
    for extent, step in zip(shapes, strides, strict=True):
        if extent == 1:
            continue
        if shape and step == shape[-1] * stride[-1]:
            shape[-1] *= extent
        else:
            shape.append(extent)
            stride.append(step)
    return shape, stride


@lifted
def coalesce(layout: Layout, profile: Any = None) -> Layout:
    """Return the layout with the fewest modes that gives the same offset for every 1-D index.

    Two neighbouring modes ``s0:d0`` and ``s1:d1`` merge when ``d1 == s0 * d0``; modes of extent 1 vanish.

    >>> coalesce(Layout((2, 4), (1, 2)))
    8:1
    >>> coalesce(Layout((2, 4), (4, 1)))
    (2,4):(4,1)

    Parameters
    ----------
    layout
        The layout.
    profile
        A nested tuple: each of its leaves stands for one mode that is coalesced by itself. Modes beyond the profile
        stay as they are.

    Raises
    ------
    LayoutError
        When the profile has more modes than the layout.
    """
    if not isinstance(profile, (tuple, list)):
        if not (profile is None or is_int(profile)):
            raise LayoutError(f"profile {quote(profile)} must be a nested tuple of integers, or None")
        return from_modes(*merged(*layout.flat()))
    return by_mode(coalesce, layout, profile, "profile")


def by_mode(function: Any, layout: Layout, guide: Any, what: str) -> Layout:
    """Apply a function to each mode with the matching part of a guide; modes beyond the guide stay as they are."""
    if len(guide) > layout.rank or not isinstance(layout.shape, tuple) or depth(guide) > MAX_DEPTH:
        most = f"{layout} has {layout.rank}, nested at most {MAX_DEPTH} deep"
        raise LayoutError(f"{what} {quote(guide)} has {len(guide)} modes, {most}")
    modes = list(layout)
    return joined([function(mode, part) for mode, part in zip(modes, guide, strict=False)] + modes[len(guide) :])


@lifted
def filter_zeros(layout: Layout) -> Layout:
    """Return the layout with extent 1 in each mode of stride 0."""

    def walk(shape: Any, stride: Any) -> Any:
        return tuple(map(walk, shape, stride)) if isinstance(shape, tuple) else (1 if stride == 0 else shape)

    return trusted(walk(layout.shape, layout.stride), layout.stride)


@lifted
def filter(layout: Layout) -> Layout:
    """Return the layout without its modes of stride 0 and extent 1, coalesced: the same offsets, each found once."""
    kept = [(s, d) for s, d in zip(*layout.flat(), strict=True) if d != 0]
    return from_modes(*merged([s for s, _ in kept], [d for _, d in kept]))


@lifted
def flatten_layout(layout: Layout) -> Layout:
    """Return the layout with all its modes side by side; an integer shape stays one."""
    return trusted(*layout.flat()) if isinstance(layout.shape, tuple) else layout


@lifted
def sort(layout: Layout) -> Layout:
    """Return the flat layout with its modes in the order of their strides, smallest first."""
    modes = sorted(zip(*reversed(int_modes(layout, "sort")), strict=True))
    return from_modes([s for _, s in modes], [d for d, _ in modes])


@lifted
def select(layout: Layout, *modes: int) -> Layout:
    """Return the layout of the named modes, in the order they are named."""
    return joined([layout.mode(i) for i in modes])


@lifted
def take(layout: Layout, begin: int, end: int) -> Layout:
    """Return the layout of the modes from ``begin`` up to, but without, ``end``."""
    if not (is_int(begin) and is_int(end) and 0 <= begin <= end <= layout.rank):
        raise LayoutError(f"{layout} has no modes {quote(begin)} to {quote(end)}")
    return joined(list(layout)[begin:end])


@lifted
def group(layout: Layout, begin: int, end: int) -> Layout:
    """Return the layout with the modes from ``begin`` up to, but without, ``end`` made one nested mode."""
    inner = take(layout, begin, end)
    return joined([*list(layout)[:begin], inner, *list(layout)[end:]])


def int_modes(layout: Any, what: str) -> tuple[Any, Any]:
    """Return the flat modes of a plain layout with integer strides, which ``what`` needs."""
    if not isinstance(layout, Layout):
        raise LayoutError(f"{what} needs a layout of integer strides, not {quote(as_layout(layout))}")
    shape, stride = layout.flat()
    for step in stride:
        if type(step) is not int:
            raise LayoutError(f"{what} needs integer strides, not {layout}")
    return shape, stride
