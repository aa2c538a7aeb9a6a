"""Complements, inverses, and what two layouts have in common. Source: CuTe's ``layout.hpp``."""

from __future__ import annotations

from math import gcd
from typing import Any

from tilelab.layout.compose import composition
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import check, checked_shape, compact, is_int, leaves
from tilelab.layout.layout import Layout, trusted
from tilelab.layout.simplify import coalesce, from_modes, int_modes, merged
from tilelab.layout.tuples import ceil_div


def ordered_modes(layout: Layout, what: str) -> list[tuple[int, int]]:
    """Return the modes as (stride, extent), smallest stride first, without extent 1 and stride 0.

    Raises
    ------
    LayoutError
        When a stride is negative, or offsets repeat or interleave: ``what`` can do with neither.
    """
    modes = sorted((d, s) for s, d in zip(*int_modes(layout, what), strict=True) if s > 1 and d != 0)
    below, end = 1, 1
    for step, extent in modes:
        if step < 0:
            raise LayoutError(f"{what} needs strides of at least 0; {layout} has stride {step}")
        if step < end:
            clash = f"mode {extent}:{step} starts before {end}, where mode {end // below}:{below} ends"
            raise LayoutError(f"{what} needs modes that lie one after the other; in {layout} {clash}")
        below, end = step, step * extent
    return modes


def complement(layout: Layout, cotarget: Any = None, *, trace: list[str] | None = None) -> Layout:
    """Return the layout of the steps that repeat ``layout`` through ``cotarget`` elements without overlap.

    >>> complement(Layout(4, 2), 24)
    (2,3):(1,8)

    Parameters
    ----------
    layout
        The layout; its modes of stride 0 do not count.
    cotarget
        How many elements to fill, or a shape, which is rounded up mode by mode; left out, the cosize of the layout.
    trace
        A list that the steps are told in, for ``explain``.

    Raises
    ------
    LayoutError
        When offsets of the layout repeat or interleave, or a stride is negative.

    Notes
    -----
    Where a gap is no multiple of what fills it, as in ``(3,2):(1,4)``, CuTe's result does not overlap but leaves
    elements out; divisions report that as ``covers == False``.
    """
    modes = ordered_modes(layout, "complement")
    cotarget = layout.cosize if cotarget is None else checked_shape(cotarget, "cotarget")
    shape, stride, end = [], [], 1
    for step, extent in modes:
        if trace is not None:
            fills = "fills the gap" if step % end == 0 else "fits into the gap and leaves elements out"
            gap = f"{step // end}:{end} {fills}" if step > end else "no gap"
            trace.append(f"mode {extent}:{step} starts at {step}, filled so far up to {end}: {gap}")
        shape.append(step // end)
        stride.append(end)
        end = step * extent
    rest = -(-cotarget // end) if type(cotarget) is int else ceil_div(cotarget, end)
    if trace is not None:
        trace.append(f"{cotarget} elements hold {rest} times the {end} filled so far: {rest}:{end}")
    strides = (end,) if type(rest) is int else leaves(compact(rest, end)[0])
    result = from_modes(*merged([*shape, *leaves(rest)], [*stride, *strides]))
    if trace is not None:
        trace.append(f"complement = {result}")
    return result


def right_inverse(layout: Layout) -> Layout:
    """Return the largest layout ``R`` with ``layout(R(i)) == i``: where in the layout offset ``i`` stands.

    >>> right_inverse(Layout((4, 6), (6, 1)))
    (6,4):(4,1)

    It follows the modes whose strides continue each other from stride 1 on; without stride 1 it is ``1:0``. Of modes
    with the same stride the first counts, as in CuTe.
    """
    int_modes(layout, "right_inverse")
    modes = _placed(layout)
    shape, stride, end = [], [], 1
    for step, extent, place in sorted(modes, key=lambda mode: mode[0]):
        if step == end:
            shape.append(extent)
            stride.append(place)
            end *= extent
    return from_modes(*merged(shape, stride))


def left_inverse(layout: Layout) -> Layout:
    """Return a layout ``L`` with ``L(layout(i)) == i``: which index has an offset.

    >>> left_inverse(Layout((4, 2), (1, 16)))
    (16,2):(1,4)

    Modes of stride 0 count as one coordinate: then ``layout(L(layout(i))) == layout(i)``.

    Raises
    ------
    LayoutError
        When offsets repeat or interleave, a stride is negative, or one stride does not divide the next.
    """
    ordered_modes(layout, "left_inverse")
    modes = sorted(mode for mode in _placed(layout) if mode[0] != 0)
    shape, stride, below = [], [0], 1
    for step, _, place in modes:
        if step % below:
            raise LayoutError(f"{layout} has no left inverse by modes: stride {below} does not divide stride {step}")
        shape.append(step // below)
        stride.append(place)
        below = step
    return from_modes(*merged([*shape, modes[-1][1] if modes else 1], stride))


def _placed(layout: Layout) -> list[tuple[int, int, int]]:
    """Return the coalesced modes as (stride, extent, index step)."""
    shape, stride = merged(*layout.flat())
    return list(zip(stride, shape, leaves(compact(tuple(shape))[0]), strict=True))


def nullspace(layout: Layout) -> Layout:
    """Return the layout of the indices that a layout sends to offset 0 because their modes have stride 0."""
    shape, stride = int_modes(layout, "nullspace")
    places = leaves(compact(shape)[0])
    zero = [(s, p) for s, d, p in zip(shape, stride, places, strict=True) if d == 0 and s > 1]
    return from_modes([s for s, _ in zero], [p for _, p in zero])


def max_common_layout(a: Layout, b: Layout) -> Layout:
    """Return the largest layout ``R`` with ``a(R(i)) == b(R(i)) == i``: what can be copied as one vector."""
    int_modes(a, "max_common_layout")
    inverse = right_inverse(b)
    modes = list(inverse) if isinstance(inverse.shape, tuple) else [inverse]
    while modes:  # the longest run of modes of the inverse that A can be composed with
        candidate = from_modes([mode.shape for mode in modes], [mode.stride for mode in modes])
        try:
            common = coalesce(composition(a, candidate))
        except LayoutError:
            modes.pop()
            continue
        shape, stride = common.flat()
        return coalesce(composition(candidate, trusted(shape[0], 1))) if stride[0] == 1 else trusted(1, 0)
    return trusted(1, 0)


def max_common_vector(a: Layout, b: Layout) -> int:
    """Return how many elements from the first on stand one after the other in both layouts; at least 1."""
    return max_common_layout(a, b).size


def max_alignment(layout: Layout) -> int:
    """Return the largest ``n`` for which ``upcast(layout, n)`` groups whole elements: vectors of ``n`` stay aligned."""
    int_modes(layout, "max_alignment")
    run, rest = 1, []
    for step, extent, _ in sorted(_placed(layout), key=lambda mode: abs(mode[0])):
        if step == run:
            run *= extent
        elif step != 0:
            rest.append(step)
    return gcd(run, *rest)


def domain_distribute(shape: Any, count: int) -> Layout:
    """Return ``count`` places spread over a shape so that they divide it: ``((15,14), 6)`` gives ``(3,2):(1,15)``.

    Raises
    ------
    LayoutError
        When ``count`` is no positive integer.
    """
    if not is_int(count) or check(count) < 1:
        raise LayoutError(f"count must be a positive integer, not {quote(count)}")
    flat = tuple(leaves(checked_shape(getattr(shape, "shape", shape))))
    parts = []
    for extent in flat:
        parts.append(gcd(extent, count))
        count //= parts[-1]
    return from_modes(*merged(parts, compact(flat)[0]))
