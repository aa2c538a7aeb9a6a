"""Composition: reading one layout in the order of another, ``R(c) = A(B(c))``, or an error that proves there is none.

A's coalesced extents are the radices of a number system, and A is linear in the digits of its index. Each mode ``n:m``
of B is cut where its digits would carry and the extents divide; the composition is exact when the digits of all pieces
together never carry. Source of the cutting of one mode: Cecka, arXiv:2603.02298, section 3.3. That a piece may end
inside a mode, ``(n-1)·m < extent``, that ``m`` may have several digits, and the check over all modes are our own.
"""

from __future__ import annotations

from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.fit import fit_layout
from tilelab.layout.inttuple import MAX_DEPTH, depth, is_int, leaves, rebuild, show
from tilelab.layout.layout import Layout, as_layout, joined, lifted, trusted
from tilelab.layout.simplify import from_modes, int_modes, merged, nested
from tilelab.layout.swizzle import ComposedLayout, Swizzle

#: So many coordinates are tried one by one where carries cancel, and for telling whether any layout exists.
TRIED, FITTED = 1 << 15, 1 << 10


def composition(lhs: Any, rhs: Any) -> Any:
    """Return the layout ``R`` with ``R(c) == lhs(rhs(c))`` for every coordinate ``c`` of ``rhs``.

    >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    ((2,2),3):((24,2),8)

    Parameters
    ----------
    lhs
        A layout, a swizzled layout or a swizzle.
    rhs
        A layout; or a tuple, each of its entries composed with one mode of ``lhs`` (modes beyond it are dropped, as in
        CuTe); an integer ``n`` stands for ``n:1``, and ``None`` for the whole mode.

    Raises
    ------
    LayoutError
        When no composition by modes exists: it names both layouts, the mode, the first coordinate that fails and
        both offsets, and says whether some layout exists for these points all the same.

    Notes
    -----
    Indices past the end of ``lhs`` continue along its last mode. A mode of extent 1 in ``rhs`` is always accepted.
    """
    if isinstance(lhs, Swizzle):
        if isinstance(rhs, Swizzle):
            raise LayoutError(f"{lhs} and {rhs} have no shape; write composition({lhs}, composition({rhs}, layout))")
        return ComposedLayout(lhs, 0, as_layout(rhs))
    if isinstance(lhs, Layout) and isinstance(rhs, ComposedLayout):
        return ComposedLayout(lhs, 0, rhs)
    return _composition(lhs, rhs)


@lifted
def _composition(lhs: Layout, rhs: Any) -> Layout:
    if rhs is None:
        return lhs
    if isinstance(rhs, (tuple, list)):
        if len(rhs) > lhs.rank or depth(rhs) > MAX_DEPTH:
            most = f"{lhs} has {lhs.rank}, nested at most {MAX_DEPTH} deep"
            raise LayoutError(f"tiler {quote(rhs)} has {len(rhs)} modes, {most}")
        return joined([_composition(mode, part) for mode, part in zip(lhs, rhs, strict=False)])
    return compose(lhs, as_tile(rhs))


def as_tile(tile: Any) -> Layout:
    """Return a tile as a layout: an integer ``n`` is ``n:1``."""
    if isinstance(tile, Layout):
        return tile
    if is_int(tile):
        return Layout(tile, 1)
    raise LayoutError(f"a tile is a layout, an integer, None or a tuple of these, not {quote(tile)}")


def compose(a: Layout, b: Layout, trace: list[str] | None = None) -> Layout:
    """Return ``a`` read in the order of ``b``; the steps are told in ``trace``."""
    extents, steps = _radices(a)
    loads = [0] * len(extents)
    if trace is not None and (tuple(extents), tuple(steps)) != a.flat():
        trace.append(f"A = {a} coalesces to {from_modes(extents, steps)}")
    modes = zip(*int_modes(b, "the right side of a composition"), strict=True)
    pieces = [_cut(n, m, extents, steps, loads, trace) for n, m in modes]
    result = nested(b.shape, [shape for shape, _ in pieces], [stride for _, stride in pieces])
    last = len(extents) - 1
    carries = [i for i in range(last) if loads[i] >= extents[i]] if last else []
    if trace is not None:
        for i in range(last):
            fate = "carries over" if i in carries else "stays below"
            trace.append(
                f"all modes together reach {loads[i]} in A's mode {extents[i]}:{steps[i]}, which {fate} {extents[i]}"
            )
        trace.append(f"one mode of B after the other: {'candidate' if carries else 'A∘B'} = {result}")
    if carries:
        _prove(a, b, extents, steps, result)
    return result


def _radices(a: Layout) -> tuple[list[int], list[Any]]:
    """Return A's coalesced modes. A last mode of extent 1 stays: indices past the end run along it."""
    shape, stride = a.flat()
    extents, steps = merged(shape, stride)
    if shape and shape[-1] == 1 and not (extents and stride[-1] == extents[-1] * steps[-1]):
        return [*extents, 1], [*steps, stride[-1]]
    return (extents, steps) if extents else ([1], [0])


def _cut(n: int, m: int, extents: list[int], steps: list[Any], loads: list[int], trace: list[str] | None) -> Any:
    """Cut one mode ``n:m`` into steps without a carry; return their shape and stride, and add to the loads."""
    last = len(extents) - 1
    if m == 0 or (n == 1 and m < 0):
        return n, 0
    if n == 1:  # one coordinate: its stride moves nothing, and is where a second one would stand
        return n, sum([digit * step for digit, step in zip(_digits(m, extents), steps, strict=True)])
    if m < 0 and last:
        raise LayoutError(f"mode {n}:{m} of B starts below the first element of A = {from_modes(extents, steps)}")
    if not last:  # A is one run: every mode stays one
        if trace is not None:
            trace.append(f"A is one run of stride {steps[0]}: mode {n}:{m} of B becomes {n}:{m * steps[0]}")
        return n, m * steps[0]
    i, total, start = 0, n, m
    shape: list[int] = []
    stride: list[Any] = []
    while i < last:
        above, digit = divmod(m, extents[i])
        if digit == 0:
            i, m = i + 1, above
            continue
        if above:
            digits = _digits(m, extents[i:])
            step = sum([digit * step for digit, step in zip(digits, steps[i:], strict=True)])
            fits = all((n - 1) * digit < extent for digit, extent in zip(digits, extents[i:last], strict=False))
        else:
            digits, step, fits = [m], m * steps[i], (n - 1) * m < extents[i]
        count, ragged = divmod(extents[i], digit)
        if fits or ragged or n % count:
            count = n  # the rest is one step: it fits, or the loads will show that it does not
        for j, digit in enumerate(digits):
            loads[i + j] += (count - 1) * digit
        shape.append(count)
        stride.append(step)
        n //= count
        if n == 1:
            break
        m = count * m // extents[i]
        i += 1
    if n > 1:
        loads[last] += (n - 1) * m
        shape.append(n)
        stride.append(m * steps[last])
    if trace is not None:
        trace.append(f"mode {total}:{start} of B takes from A {from_modes(shape, stride)}")
    return (shape[0], stride[0]) if len(shape) == 1 else (tuple(shape), tuple(stride))


def _prove(a: Layout, b: Layout, extents: list[int], steps: list[Any], result: Layout) -> None:
    """Raise the error that shows where ``result`` is wrong; return when it is right after all."""
    coordinate = _first_carry(b, extents, result)
    if a._at(b(coordinate)) == _at(result, b, coordinate):  # carries can cancel each other, here or everywhere
        wrong = (c for c, _ in zip(b.coordinates(), range(TRIED), strict=False) if a._at(b(c)) != _at(result, b, c))
        coordinate = next(wrong, None)
        if coordinate is None and b.size <= TRIED:
            return
    index = b(coordinate) if coordinate is not None else None
    place = [k for k, c in enumerate(leaves(coordinate)) if c]
    mode = place[-1] if place else 0
    n, m = (part[mode] for part in b.flat())
    why = "carries with the modes before it" if len(place) > 1 else "does not step through A evenly"
    message = f"no composition of A = {a} with B = {b}: mode {n}:{m} of B {why}"
    right = candidate = None
    if index is not None:
        right, candidate = a._at(index), _at(result, b, coordinate)
        message += f"; at {show(coordinate)} A(B) = A({index}) = {right}, but the candidate {result} gives {candidate}"
    if b.size <= FITTED:
        other = fit_layout(b.shape, lambda c: a._at(b(c)))
        message += (
            f"; no layout of shape {show(b.shape)} has these offsets"
            if other is None
            else f"; a layout exists for these {b.size} points, {other}, but is not a composition by modes"
        )
    raise LayoutError(message, a=a, b=b, mode=mode, coordinate=coordinate, right=right, candidate=candidate)


def _first_carry(b: Layout, extents: list[int], result: Layout) -> Any:
    """Return the first coordinate of B at which the digits of the pieces carry, without visiting those before it."""
    cuts = [list(leaves(shape)) for shape in _per_leaf(b.shape, result.shape)]
    pieces: list[tuple[int, list[int]]] = []
    for m, cut in zip(b.flat()[1], cuts, strict=True):
        for n in cut:
            pieces.append((n, _digits(m, extents)))
            m *= n
    totals = [sum([(n - 1) * digits[i] for n, digits in pieces]) for i in range(len(extents) - 1)]
    chosen: list[int] = []
    for n, digits in reversed(pieces):  # the last coordinate counts most: make it as small as carrying allows
        rest = [total - (n - 1) * digit for total, digit in zip(totals, digits, strict=False)]
        needs = [
            0 if r >= e else -(-(e - r) // digit) if digit else n
            for r, e, digit in zip(rest, extents, digits, strict=False)
        ]
        chosen.append(min(needs))
        totals = [r + chosen[-1] * digit for r, digit in zip(rest, digits, strict=False)]
    places = iter(reversed(chosen))
    coordinate = []
    for cut in cuts:
        index, scale = 0, 1
        for n in cut:
            index += scale * next(places)
            scale *= n
        coordinate.append(index)
    return rebuild(b.shape, iter(coordinate))


def _digits(m: int, extents: list[int]) -> list[int]:
    digits = []
    for extent in extents[:-1]:
        m, digit = divmod(m, extent)
        digits.append(digit)
    return [*digits, m]


def _per_leaf(shape: Any, cut: Any) -> list[Any]:
    """Return what stands in ``cut`` in the place of each integer of ``shape``."""
    if isinstance(shape, tuple):
        return [part for s, c in zip(shape, cut, strict=True) for part in _per_leaf(s, c)]
    return [cut]


def _at(result: Layout, b: Layout, coordinate: Any) -> Any:
    """Return the offset of the candidate at a coordinate of B, whose modes it may have cut."""
    parts = zip(leaves(coordinate), _per_leaf(b.shape, result.shape), _per_leaf(b.shape, result.stride), strict=True)
    return sum([trusted(s, d)._at(c) for c, s, d in parts])
