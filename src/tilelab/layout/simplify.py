"""Fewer modes, the same function: coalesce."""

from __future__ import annotations

from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import IntTuple
from tilelab.layout.layout import Layout, trusted


def as_layout(value: Any, what: str = "a layout") -> Layout:
    """Return a layout as it is, or say that something else was given."""
    if isinstance(value, Layout):
        return value
    raise LayoutError(
        f"{what} was wanted, not {quote(value)} ({type(value).__name__}); make one with Layout(shape, stride)"
    )


def from_modes(shape: list[Any], stride: list[Any]) -> Layout:
    """Make a layout of flat modes: none is ``1:0``, one is not wrapped in a tuple."""
    if len(shape) > 1:
        return trusted(tuple(shape), tuple(stride))
    return trusted(shape[0], stride[0]) if shape else trusted(1, 0)


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


def coalesce(layout: Any, profile: Any = None) -> Layout:
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
    layout = as_layout(layout)
    if not isinstance(profile, tuple):
        return from_modes(*merged(*layout.flat()))
    if len(profile) > layout.rank:
        raise LayoutError(f"profile {quote(profile)} has {len(profile)} modes, {layout} has {layout.rank}")
    modes = [coalesce(mode, part) for mode, part in zip(layout, profile, strict=False)]
    modes += list(layout)[len(profile) :]
    return joined(modes)


def joined(modes: list[Layout]) -> Layout:
    """Make the layout whose modes are the given layouts."""
    shape: tuple[IntTuple, ...] = tuple([mode.shape for mode in modes])
    return trusted(shape, tuple([mode.stride for mode in modes]))
