"""Division: a layout cut into tiles, and the rest that says where each tile starts. Source: CuTe's ``layout.hpp``."""

from __future__ import annotations

from typing import Any

from tilelab.layout.compose import as_tile, compose
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inverse import complement
from tilelab.layout.layout import Layout, joined, lifted, trusted


class Division(Layout):
    """A divided layout. It is the layout of its modes and knows how far they reach.

    Attributes
    ----------
    covers : bool
        Whether every element of the divided layout stands in some tile.
    extra : int
        How many coordinates lie outside the divided layout, because a tile does not divide its mode; a kernel leaves
        them out by predication.
    """

    __slots__ = ("_cuts",)
    _cuts: list[tuple[Layout, int]]

    @property
    def covers(self) -> bool:
        """Whether every element of the divided layout stands in some tile."""
        return all(count_below(index, size)[1] == size for index, size in self._cuts)

    @property
    def extra(self) -> int:
        """How many coordinates lie outside the divided layout."""
        inside, cut = 1, 1
        for index, size in self._cuts:
            inside *= count_below(index, size)[0]
            cut *= index.size
        return self.size - self.size // cut * inside


_set_cuts = vars(Division)["_cuts"].__set__


def count_below(index: Layout, bound: int) -> tuple[int, int]:
    """Return how many coordinates of a layout have an offset below a bound, and how many different such offsets."""
    modes = sorted((d, s) for s, d in zip(*index.flat(), strict=True) if d != 0 and s > 1)
    copies = index.size
    spans, sizes = [0], [1]
    for step, extent in modes:
        copies //= extent
        spans.append(spans[-1] + (extent - 1) * step)
        sizes.append(sizes[-1] * extent)

    def count(k: int, bound: int) -> int:
        if bound <= 0 or k == 0:
            return int(bound > 0)
        step, extent = modes[k - 1]
        whole = min(extent, max(0, (bound - 1 - spans[k - 1]) // step + 1))
        some = min(extent, -(-bound // step))
        return int(whole) * sizes[k - 1] + sum([count(k - 1, bound - i * step) for i in range(whole, some)])

    different = count(len(modes), bound)
    return different * copies, different


def divided(layout: Layout, tiler: Any, trace: list[str] | None = None) -> Division:
    """Return :func:`logical_divide`, telling its steps in ``trace``."""
    if tiler is None:
        return _division(layout, [])
    if isinstance(tiler, (tuple, list)):
        if len(tiler) > layout.rank or not isinstance(layout.shape, tuple):
            raise LayoutError(f"tiler {quote(tiler)} has {len(tiler)} modes, {layout} has {layout.rank}")
        modes = list(layout)
        parts: list[Any] = []
        for mode, tile in zip(modes, tiler, strict=False):
            if trace is not None:
                trace.append(f"mode {len(parts)}, {mode}, by {'nothing' if tile is None else quote(tile)}")
            parts.append(divided(mode, tile, trace))
        return _division(joined(parts + modes[len(parts) :]), [cut for part in parts for cut in part._cuts])
    tile = as_tile(tiler)
    index = joined([tile, complement(tile, layout.size, trace=trace)])
    if trace is not None:
        trace.append(f"A is read in the order of (tile, rest) = {index}")
    try:
        return _division(compose(layout, index, trace), [(index, layout.size)])
    except LayoutError as error:
        by_mode = "; a tuple divides mode by mode: logical_divide(layout, (tile, …))" if layout.rank > 1 else ""
        raise LayoutError(f"{layout} cannot be divided by {tile}{by_mode}: {error}", **error.details) from None


def _division(layout: Layout, cuts: list[tuple[Layout, int]]) -> Division:
    division = trusted(layout.shape, layout.stride, Division)
    assert isinstance(division, Division)
    _set_cuts(division, cuts)
    return division


@lifted
def logical_divide(layout: Layout, tiler: Any) -> Division:
    """Return the layout with each divided mode as ``(tile, rest)``: elements of a tile, then tiles.

    >>> logical_divide(Layout(8, 1), 4)
    (4,2):(1,4)

    Parameters
    ----------
    layout
        A layout, swizzled layout or tensor.
    tiler
        A layout or integer cuts the whole layout along its 1-D index; a tuple cuts mode by mode, with ``None`` for a
        mode left whole, and modes beyond it stay whole.

    Raises
    ------
    LayoutError
        When the tiler has too many modes, its offsets overlap, or it does not fit the modes of the layout.

    Notes
    -----
    A tile that does not divide its mode reaches past the end: the result's ``extra`` counts these coordinates, and
    ``covers`` tells whether every element is in some tile. A tiler with stride 0 visits its elements again and again.
    """
    return divided(layout, tiler)


@lifted
def zipped_divide(layout: Layout, tiler: Any) -> Division:
    """Return the division with all tile modes first: ``((tile, …), (rest, …))``; parameters as `logical_divide`."""
    division = divided(layout, tiler)
    return _division(zipped(division, tiler), division._cuts)


@lifted
def tiled_divide(layout: Layout, tiler: Any) -> Division:
    """Return the division as ``((tile, …), rest, …)``; parameters as in :func:`logical_divide`."""
    division = zipped_divide(layout, tiler)
    return _division(unpacked(division, keep=1), division._cuts)


@lifted
def flat_divide(layout: Layout, tiler: Any) -> Division:
    """Return the division as ``(tile, …, rest, …)``; parameters as in :func:`logical_divide`."""
    division = zipped_divide(layout, tiler)
    return _division(unpacked(division, keep=0), division._cuts)


def zipped(layout: Layout, guide: Any) -> Layout:
    """Return a layout of pairs, as far as a tuple guides, with the first halves in one mode, the second in another."""
    if guide is None:
        return joined([trusted(1, 0), layout])
    if not isinstance(guide, (tuple, list)):
        return layout
    pairs = [zipped(mode, part) for mode, part in zip(layout, guide, strict=False)]
    rest = list(layout)[len(guide) :]
    return joined([joined([pair[0] for pair in pairs]), joined([pair[1] for pair in pairs] + rest)])


def unpacked(layout: Layout, keep: int) -> Layout:
    """Return a layout with the modes after the first ``keep`` replaced by what they are made of."""
    modes: list[Layout] = []
    for i, mode in enumerate(layout):
        modes += list(mode) if i >= keep and isinstance(mode.shape, tuple) else [mode]
    return joined(modes)
