"""Swizzles: offsets with some of their bits exclusive-or'ed into others, and layouts that end in one.

Source: CuTe's ``swizzle.hpp`` and ``layout_composed.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import check, has_none, is_int
from tilelab.layout.layout import Layout, slice_and_offset
from tilelab.layout.values import Frozen, Shaped


class Swizzle(Frozen):
    """The function ``x ^ ((x & mask) >> shift)`` on offsets; applied twice it gives the offset back.

    ``bits`` bits starting at bit ``base + shift`` are exclusive-or'ed into those starting at bit ``base``. A negative
    shift goes the other way. All counts are in elements, as the layout's are.

    Raises
    ------
    LayoutError
        When ``bits`` or ``base`` is negative, or ``|shift| < bits``, so that the two groups of bits would overlap.
    """

    __slots__ = ("bits", "base", "shift")  # noqa: RUF023  (the order of the parts)
    bits: int
    base: int
    shift: int

    def __init__(self, bits: int, base: int, shift: int) -> None:
        for name, given in zip(self.__slots__, (bits, base, shift), strict=True):
            value = check(given, f"Swizzle's {name}")
            if not isinstance(value, int) or (name != "shift" and value < 0):
                raise LayoutError(f"Swizzle's {name} must be an integer, at least 0, not {quote(value)}")
            object.__setattr__(self, name, value)
        if abs(self.shift) < self.bits:
            raise LayoutError(
                f"{self}: |shift| {abs(self.shift)} is less than bits {self.bits}, its bits would overlap"
            )
        if self.top > 62:
            raise LayoutError(f"{self} reaches beyond bit 62")

    @property
    def mask(self) -> int:
        """The bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    @property
    def top(self) -> int:
        """The first bit above all that are read or written."""
        return self.base + self.bits + abs(self.shift)

    def __call__(self, offset: Any) -> Any:
        """Return the swizzled offset; arrays of integers work too."""
        if type(offset) is not int and not getattr(offset, "shape", None):  # an array has __index__ too
            if not is_int(offset):
                raise LayoutError(f"a swizzle takes an integer offset, not {quote(offset)}")
            offset = int(offset)
        read = offset & self.mask
        return offset ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def __repr__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


class ComposedLayout(Shaped, Frozen):
    """The function ``c → outer(offset + inner(c))``, for an outer swizzle or layout.

    Whatever changes a layout's shape (``coalesce``, ``composition``, the divisions, slices …) changes the inner one.
    """

    __slots__ = ("outer", "offset", "inner")  # noqa: RUF023  (the order of the parts)
    outer: Any
    offset: Any
    inner: Any

    def __init__(self, outer: Any, offset: Any, inner: Any) -> None:
        if not isinstance(outer, (Swizzle, Layout)) or not isinstance(inner, (Layout, ComposedLayout)):
            wanted = "a Swizzle or Layout outside and a layout inside"
            raise LayoutError(f"a composed layout has {wanted}, not {quote(outer)} and {quote(inner)}")
        for name, value in zip(self.__slots__, (outer, check(offset, "offset"), inner), strict=True):
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> Any:
        """Extents, as an integer or nested tuple."""
        return self.inner.shape

    @property
    def coshape(self) -> int:
        """The same as :attr:`cosize`."""
        return self.cosize

    @property
    def cosize(self) -> int:
        """How many elements a buffer needs: the largest offset that occurs, plus one; exact for swizzles."""
        return 1 + max(self._largest())

    def _largest(self) -> Iterator[int]:
        """Yield offsets that end in the largest, without visiting coordinates that cannot reach it."""
        if not (isinstance(self.outer, Swizzle) and isinstance(self.inner, Layout) and isinstance(self.offset, int)):
            yield from map(self, range(self.size))
            return
        below = (1 << self.outer.top) - 1  # a swizzle changes no bit above these
        modes = sorted(zip(*reversed(self.inner.flat()), strict=True), key=lambda mode: abs(mode[0]))
        reach = [0]
        for step, extent in modes:
            reach.append(reach[-1] + max(0, (extent - 1) * step))
        best = -1
        stack = [(len(modes), self.offset)]
        while stack:
            k, start = stack.pop()
            if (start + reach[k]) | below <= best:
                continue
            if k == 0:
                best = max(best, self.outer(start))
                yield best
                continue
            step, extent = modes[k - 1]
            # A place this far from the end is lower by more than a swizzle can add.
            near = min(extent, 2 + below // abs(step)) if step else 1
            if near > 1 << 20:
                raise LayoutError(f"{self} has too many elements for an exact cosize")
            places = range(extent - near, extent) if step > 0 else range(near - 1, -1, -1)
            stack += [(k - 1, start + i * step) for i in places]

    def __call__(self, *coordinate: Any) -> Any:
        """Return the offset of a coordinate, or with ``None`` in it the slice, which keeps its offset inside."""
        one = coordinate[0] if len(coordinate) == 1 else coordinate
        crd = check(one, "coordinate", (type(None),))
        return self._sliced(crd) if has_none(crd) else self.outer(self.offset + self.inner(crd))

    def _sliced(self, crd: Any) -> ComposedLayout:
        inner, offset = slice_and_offset(crd, self.inner)
        return ComposedLayout(self.outer, self.offset + offset, inner)

    def _lift(self, function: Callable[[Any], Any]) -> ComposedLayout:
        return ComposedLayout(self.outer, self.offset, self.inner._lift(function))

    def text(self, static: bool = False) -> str:
        """Return the layout as CuTe prints it: ``Sw<2,0,3> o 0 o (8,8):(8,1)``."""
        outer = self.outer.text(static) if isinstance(self.outer, Layout) else repr(self.outer)
        return f"{outer} o {'_' if static else ''}{self.offset} o {self.inner.text(static)}"

    def __repr__(self) -> str:
        return f"{self.outer!r} o {self.offset} o {self.inner!r}"


def as_function(value: Any) -> Any:
    """Return a layout or swizzled layout as it is, or say that something else was given."""
    if isinstance(value, (Layout, ComposedLayout)):
        return value
    raise LayoutError(f"a layout or swizzled layout was wanted, not {quote(value)} ({type(value).__name__})")


def linear_bases(layout: Any) -> list[int]:
    """Return the offsets of the indices 1, 2, 4, …: the columns of a layout as a linear map over the bits (F2).

    Raises
    ------
    LayoutError
        When the size is no power of two, or the layout is not linear over bits.
    """
    size = as_function(layout).size
    bases = [layout(1 << bit) for bit in range(size.bit_length() - 1)]
    if size & (size - 1) or size > 1 << 20 or not all(isinstance(base, int) for base in bases):
        raise LayoutError(
            f"{layout!r} has {size} elements; a map over bits needs offsets of a power of two, at most 2^20"
        )
    table = [layout(0)]
    for base in bases:
        table += [offset ^ base for offset in table]
    wrong = next((i for i in range(size) if table[i] != layout(i)), None)
    if wrong is not None:
        raise LayoutError(
            f"{layout!r} is not linear over bits: index {wrong} gives {layout(wrong)}, not {table[wrong]}"
        )
    return bases
