"""A layout: a shape and a stride for each of its modes, together a function from coordinates to offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from tilelab.layout.basis import ArithTuple
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import (
    MAX_INT,
    check,
    checked_shape,
    compact,
    congruent,
    has_none,
    leaves,
    mismatch,
    product,
    show,
    transform,
)
from tilelab.layout.parsing import parse_tuple
from tilelab.layout.values import Frozen, Shaped


class _Order:
    """A stride for :class:`Layout` that is worked out from the shape."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: Strides that fill memory without holes, first mode fastest (column-major) or last mode fastest (row-major).
LayoutLeft, LayoutRight = _Order("LayoutLeft"), _Order("LayoutRight")


class Layout(Shaped, Frozen):
    """A function from coordinates to offsets, ``offset = Σ coordinate · stride``.

    A layout is a value: it never changes, compares by its modes and can be a dictionary key. ``(4,6):(1,4)`` has
    shape ``(4,6)`` and stride ``(1,4)``; a mode may itself be nested.

    Parameters
    ----------
    shape : int or nested tuple of int
        Extents, each at least 1.
    stride : int or nested tuple of int, optional
        Elements between neighbours in each mode, nested like the shape. Left out or ``LayoutLeft``: column-major
        without holes (the first mode is fastest); ``LayoutRight``: row-major without holes. ``E(i)`` makes a layout
        of coordinates.

    Raises
    ------
    LayoutError
        When an extent is not a positive integer, or the stride is not nested like the shape.

    Examples
    --------
    >>> layout = Layout((4, 6), (1, 4))
    >>> layout
    (4,6):(1,4)
    >>> layout(2, 3), layout((2, 3)), layout(14)
    (14, 14, 14)

    Notes
    -----
    Coordinates are colexicographic as in CuTe: index ``i`` of shape ``(4,6)`` is the coordinate ``(i % 4, i // 4)``,
    and the last mode is not reduced, so an index past the end continues along it.
    """

    __slots__ = ("_flat", "_shape", "_stride")
    _flat: tuple[tuple[int, ...], tuple[Any, ...]]
    _shape: Any
    _stride: Any

    def __init__(self, shape: Any, stride: Any = None) -> None:
        if not self._set_plain(shape, stride):
            self._set_checked(shape, stride)

    def _set_plain(self, shape: Any, stride: Any) -> bool:
        """Set the modes if they are flat tuples of plain integers, the usual case, in one pass over them."""
        if type(shape) is not tuple or type(stride) is not tuple or len(shape) != len(stride):
            return False
        size, reach = 1, 0
        for extent, step in zip(shape, stride):  # noqa: B905  (the lengths are equal; strict costs time here)
            if type(extent) is not int or type(step) is not int or extent < 1:
                return False
            size *= extent
            reach += (extent - 1) * (step if step >= 0 else -step)
        if size > MAX_INT or reach >= MAX_INT:
            return False
        _set_shape(self, shape)
        _set_stride(self, stride)
        _set_flat(self, (shape, stride))
        return True

    def _set_checked(self, shape: Any, stride: Any) -> None:
        if isinstance(shape, (str, Shaped)):
            what = "text; read it with Layout.parse(…)" if isinstance(shape, str) else "already a layout"
            raise LayoutError(f"shape {quote(shape)} is {what}")
        shape = checked_shape(shape)
        if stride is None or isinstance(stride, _Order):
            stride = compact(shape, reverse=stride is LayoutRight)[0]
        else:
            stride = check(stride, "stride", (ArithTuple,))
            if not congruent(shape, stride):
                raise LayoutError(f"stride {quote(stride)} is not nested like shape {quote(shape)}")
        flat_shape, flat_stride = tuple(leaves(shape)), tuple(leaves(stride))
        reach = sum([(s - 1) * abs(d) for s, d in zip(flat_shape, flat_stride, strict=True) if isinstance(d, int)])
        if reach >= MAX_INT:
            raise LayoutError(f"{quote(shape)}:{quote(stride)} reaches offsets that do not fit in 64 bits")
        _set_shape(self, shape)
        _set_stride(self, stride)
        _set_flat(self, (flat_shape, flat_stride))

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Read a layout as it is printed: ``(4,6):(1,4)``, ``(_4,_6):(_1,_4)``, ``8:2``; a shape alone is compact.

        Raises
        ------
        LayoutError
            For text that is not a layout, quoting it.
        """
        if not isinstance(text, str):
            raise LayoutError(f"Layout.parse reads text such as '(4,6):(1,4)', not {quote(text)}")
        shape, colon, stride = text.partition(":")
        if ":" in stride:
            raise LayoutError(f"cannot read layout {quote(text)}: it has more than one ':'")
        return cls(parse_tuple(shape, "shape"), parse_tuple(stride, "stride") if colon else None)

    @classmethod
    def column_major(cls, *shape: Any) -> Layout:
        """Return the layout without holes whose first mode is fastest: ``column_major(4, 6)`` is ``(4,6):(1,4)``."""
        return cls(shape[0] if len(shape) == 1 else shape, LayoutLeft)

    @classmethod
    def row_major(cls, *shape: Any) -> Layout:
        """Return the layout without holes whose last mode is fastest: ``row_major(4, 6)`` is ``(4,6):(6,1)``."""
        return cls(shape[0] if len(shape) == 1 else shape, LayoutRight)

    @property
    def shape(self) -> Any:
        """Extents, as an integer or nested tuple."""
        return self._shape

    @property
    def stride(self) -> Any:
        """Elements between neighbours in each mode, nested like the shape."""
        return self._stride

    @property
    def coshape(self) -> Any:
        """The smallest shape that holds every offset; :attr:`cosize` for integer strides."""
        far = sum([(s - 1) * abs(d) for s, d in zip(*self.flat(), strict=True)])
        return far + 1 if isinstance(far, int) else transform(lambda last: last + 1, far.value)

    @property
    def cosize(self) -> int:
        """How many elements a buffer needs: ``1 + Σ (extent - 1) · |stride|``, so 19 for ``(4,4):(5,1)``."""
        return product(self.coshape)

    def flat(self) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Return all extents and all strides from left to right."""
        try:
            return self._flat
        except AttributeError:  # worked out when it is first wanted
            _set_flat(self, (tuple(leaves(self._shape)), tuple(leaves(self._stride))))
            return self._flat

    def __call__(self, *coordinate: Any) -> Any:
        """Return the offset of a coordinate, or with ``None`` in it the layout of that slice.

        ``layout(14)``, ``layout(2, 3)``, ``layout((2, 3))`` and nested coordinates all work. A slice such as
        ``layout(2, None)`` starts at an offset of its own: ``slice_and_offset`` gives both.

        Raises
        ------
        LayoutError
            When the coordinate does not fit the shape.
        """
        one = coordinate[0] if len(coordinate) == 1 else coordinate
        if type(one) is int and one >= 0:
            offset = self._at(one)
        else:
            crd = check(one, "coordinate", (type(None),))
            if has_none(crd):
                return slice_and_offset(crd, self)[0]
            offset = _crd2idx(crd, self._shape, self._stride)
        return offset if type(offset) is int else getattr(offset, "value", offset)

    def _at(self, idx: int) -> Any:
        shape, stride = self.flat()
        offset: Any = 0
        for extent, step in zip(shape[:-1], stride, strict=False):
            offset += idx % extent * step
            idx //= extent
        return offset + idx * stride[-1] if shape else offset

    def mode(self, i: int) -> Layout:
        """Return mode ``i`` as a layout of its own; ``layout[i]`` is the same."""
        if type(i) is not int or not -self.rank <= i < self.rank:
            raise LayoutError(f"{self} has modes 0 to {self.rank - 1}, not {quote(i)}")
        return trusted(self._shape[i], self._stride[i]) if isinstance(self._shape, tuple) else self

    __getitem__ = mode

    def __len__(self) -> int:
        return self.rank

    def __iter__(self) -> Iterator[Layout]:
        return map(trusted, self._shape, self._stride) if isinstance(self._shape, tuple) else iter((self,))

    def transpose(self, *order: int) -> Layout:
        """Return the layout with its modes reversed, or in the given order; no offset changes place in memory.

        >>> Layout((4, 6), (6, 1)).transpose()
        (6,4):(1,6)
        """
        modes = tuple(range(self.rank))
        order = order or modes[::-1]
        if any(type(i) is not int for i in order) or sorted(order) != list(modes):
            raise LayoutError(f"order {quote(order)} does not name each of the modes {modes} of {self} once")
        return joined([self.mode(i) for i in order]) if isinstance(self._shape, tuple) else self

    @property
    def T(self) -> Layout:
        """The transposed layout."""
        return self.transpose()

    def with_shape(self, *shape: Any) -> Layout:
        """Return the layout seen through another shape of the same size (column-major coordinates of it)."""
        from tilelab.layout.compose import composition

        other = Layout.column_major(*shape)
        if other.size != self.size:
            raise LayoutError(f"{self} has {self.size} elements, shape {show(other.shape)} has {other.size}")
        return composition(self, other)  # type: ignore[no-any-return]

    def _lift(self, function: Callable[[Layout], Layout]) -> Layout:
        return function(self)

    def _parts(self) -> tuple[Any, ...]:
        return self._shape, self._stride

    def __eq__(self, other: object) -> bool:  # a division, too, equals the layout of its modes
        return self._parts() == other._parts() if isinstance(other, Layout) else NotImplemented

    __hash__ = Frozen.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, self._parts()

    def text(self, static: bool = False) -> str:
        """Return the layout as CuTe prints it: ``(4,6):(1,4)``, with ``static`` ``(_4,_6):(_1,_4)``."""
        return ":".join([show(part, static=static, trailing=False) for part in self._parts()])

    def __repr__(self) -> str:
        return f"{show(self._shape)}:{show(self._stride)}"


# A layout cannot be assigned to, not even by itself; its slots can.
_set_shape, _set_stride, _set_flat = (vars(Layout)[name].__set__ for name in ("_shape", "_stride", "_flat"))


def trusted(shape: Any, stride: Any, kind: type[Layout] = Layout) -> Layout:
    """Make a layout of parts already known to be right, without checking them again."""
    layout = kind.__new__(kind)
    _set_shape(layout, shape)
    _set_stride(layout, stride)
    return layout


def joined(modes: list[Layout]) -> Layout:
    """Make the layout whose modes are the given layouts."""
    return trusted(tuple([mode._shape for mode in modes]), tuple([mode._stride for mode in modes]))


def as_layout(value: Any, what: str = "a layout") -> Any:
    """Return a layout (or what wraps one) as it is, or say that something else was given."""
    if isinstance(value, Shaped):
        return value
    made = "make one with Layout(shape, stride)"
    raise LayoutError(f"{what} was wanted, not {quote(value)} ({type(value).__name__}); {made}")


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of layouts work on what wraps a layout: swizzled layouts and tensors keep their wrapping."""

    @wraps(function)
    def wrapper(layout: Any, *args: Any, **options: Any) -> Any:
        if isinstance(layout, Layout):
            return function(layout, *args, **options)
        return as_layout(layout)._lift(lambda inner: function(inner, *args, **options))

    return wrapper


def crd2idx(crd: Any, shape: Any, stride: Any = None) -> Any:
    """Return the offset of a coordinate: ``crd2idx((2, 3), (4, 6), (1, 4))`` is 14.

    A :class:`Layout` may stand for shape and stride; a shape alone is taken as compact, column-major.

    Raises
    ------
    LayoutError
        When the coordinate has another number of modes than the shape, or the arguments are swapped.
    """
    if isinstance(crd, Shaped):
        raise LayoutError(f"crd2idx wants (coordinate, layout) in this order, not the layout {quote(crd)} first")
    if isinstance(shape, Shaped) and stride is not None:
        raise LayoutError(f"the layout {shape!r} already has strides; leave out {quote(stride)}")
    crd = check(crd, "coordinate")
    return (shape if isinstance(shape, Shaped) else Layout(shape, stride))(crd)  # type: ignore[operator]


def _crd2idx(crd: Any, shape: Any, stride: Any) -> Any:
    if isinstance(crd, tuple):
        if not isinstance(shape, tuple) or len(crd) != len(shape):
            raise mismatch(crd, shape)
        offset: Any = 0
        for c, s, d in zip(crd, shape, stride, strict=True):
            offset += _crd2idx(c, s, d)
        return offset
    if not isinstance(shape, tuple):
        return crd * stride
    if crd < 0:
        raise LayoutError(f"index {crd} is negative; a 1-D index into {show(shape)} starts at 0")
    return trusted(shape, stride)._at(crd)


def slice_and_offset(crd: Any, layout: Any) -> tuple[Any, Any]:
    """Return the layout of the modes where a coordinate has ``None``, and the offset where that slice starts.

    >>> slice_and_offset((1, None), Layout(((2, 2), (2, 2)), ((1, 8), (4, 16))))
    (((2,2),):((4,16),), 1)

    Parameters
    ----------
    crd
        A coordinate with ``None`` where everything is kept, nested like the shape as far as the ``None`` go.
    layout
        The layout to slice. A swizzled layout keeps the offset inside, before its swizzle; the one returned is 0.

    Raises
    ------
    LayoutError
        When the coordinate does not fit, or the arguments are swapped.
    """
    if isinstance(crd, Shaped) or not isinstance(layout, Shaped):
        raise LayoutError(f"slice_and_offset wants (coordinate, layout), not ({quote(crd)}, {quote(layout)})")
    crd = check(crd, "coordinate", (type(None),))
    if not isinstance(layout, Layout):
        return layout._sliced(crd), 0  # type: ignore[attr-defined]
    if crd is None:
        return layout, 0
    shape, stride, offset = _slice(crd, layout.shape, layout.stride)
    return trusted(shape, stride), offset


def slice_(crd: Any, layout: Any) -> Any:
    """Return the layout part of :func:`slice_and_offset`."""
    return slice_and_offset(crd, layout)[0]


def _slice(crd: Any, shape: Any, stride: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    if crd is None:
        return (shape,), (stride,), 0
    if not has_none(crd):
        return (), (), _crd2idx(crd, shape, stride)
    if not isinstance(shape, tuple) or len(crd) != len(shape):
        raise mismatch(crd, shape)
    shapes, strides, offsets = zip(*map(_slice, crd, shape, stride), strict=True)
    return sum(shapes, ()), sum(strides, ()), sum(offsets)
