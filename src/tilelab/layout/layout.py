"""A layout: a shape and a stride for each of its modes, together a function from coordinates to offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, cast

from tilelab.layout.display import RichDisplay
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import (
    MAX_INT,
    IntTuple,
    check,
    compact,
    compact_reversed,
    coordinates,
    depth,
    flatten,
    has_none,
    show,
)
from tilelab.layout.parsing import parse_tuple


class _Order:
    """A stride for :class:`Layout` that is worked out from the shape."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: Strides that fill memory without holes, first mode fastest (column-major) or last mode fastest (row-major).
LayoutLeft, LayoutRight = _Order("LayoutLeft"), _Order("LayoutRight")


class Layout(RichDisplay):
    """A function from coordinates to offsets, ``offset = Σ coordinate · stride``.

    A layout is a value: it never changes, compares by its modes and can be a dictionary key. ``(4,6):(1,4)`` has
    shape ``(4,6)`` and stride ``(1,4)``; a mode may itself be nested.

    Parameters
    ----------
    shape : int or nested tuple of int
        Extents, each at least 1.
    stride : int or nested tuple of int, optional
        Elements between neighbours in each mode, nested like the shape. Left out or ``LayoutLeft``: column-major
        without holes (the first mode is fastest); ``LayoutRight``: row-major without holes.

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
    _flat: tuple[tuple[int, ...], tuple[int, ...]] | None
    _shape: IntTuple
    _stride: IntTuple

    def __init__(self, shape: Any, stride: Any = None) -> None:
        if isinstance(shape, (str, Layout)):
            what = "text; read it with Layout.parse(…)" if isinstance(shape, str) else "already a layout"
            raise LayoutError(f"shape {quote(shape)} is {what}")
        shape = check(shape, "shape")
        flat_shape = flatten(shape)
        size = 1
        for extent in flat_shape:
            if extent < 1:
                raise LayoutError(f"shape {show(shape)} has extent {extent}; every extent must be at least 1")
            size *= extent
        if size > MAX_INT:
            raise LayoutError(f"shape {show(shape)} has {quote(size)} elements, more than 64 bits can count")
        if stride is None or stride is LayoutLeft:
            stride = compact(shape)[0]
        elif stride is LayoutRight:
            stride = compact_reversed(shape)[0]
        else:
            stride = check(stride, "stride")
        flat_stride = _strides_like(shape, stride)
        span = sum([(extent - 1) * abs(step) for extent, step in zip(flat_shape, flat_stride, strict=True)])
        if span >= MAX_INT:
            raise LayoutError(f"{show(shape)}:{show(stride)} reaches offsets that do not fit in 64 bits")
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
        return cls(_one_shape(shape), LayoutLeft)

    @classmethod
    def row_major(cls, *shape: Any) -> Layout:
        """Return the layout without holes whose last mode is fastest: ``row_major(4, 6)`` is ``(4,6):(6,1)``."""
        return cls(_one_shape(shape), LayoutRight)

    @property
    def shape(self) -> Any:
        """Extents, as an integer or nested tuple."""
        return self._shape

    @property
    def stride(self) -> Any:
        """Elements between neighbours in each mode, nested like the shape."""
        return self._stride

    @property
    def rank(self) -> int:
        """How many modes the layout has; 1 for an integer shape."""
        return len(self._shape) if isinstance(self._shape, tuple) else 1

    @property
    def depth(self) -> int:
        """How deep the modes are nested; 0 for an integer shape."""
        return depth(self._shape)

    @property
    def size(self) -> int:
        """How many coordinates the layout has."""
        size = 1
        for extent in self.flat()[0]:
            size *= extent
        return size

    @property
    def cosize(self) -> int:
        """How many elements a buffer needs: 1 + Σ (extent - 1) · |stride|, so 19 for ``(4,4):(5,1)``."""
        shape, stride = self.flat()
        return 1 + sum([(extent - 1) * abs(step) for extent, step in zip(shape, stride, strict=True)])

    def flat(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return all extents and all strides from left to right."""
        if self._flat is None:
            _set_flat(self, (flatten(self._shape), flatten(self._stride)))
        return cast("tuple[tuple[int, ...], tuple[int, ...]]", self._flat)

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
            return self._at(one)
        crd = check(one, "coordinate", none=True)
        if has_none(crd):
            return slice_and_offset(crd, self)[0]
        return crd2idx(crd, self._shape, self._stride)

    def _at(self, idx: int) -> int:
        shape, stride = self.flat()
        offset = 0
        for extent, step in zip(shape[:-1], stride, strict=False):
            idx, i = divmod(idx, extent)
            offset += i * step
        return offset + idx * stride[-1] if shape else offset

    def coordinates(self) -> Iterator[Any]:
        """Yield every coordinate of the shape, first mode fastest."""
        return coordinates(self._shape)

    def mode(self, i: int) -> Layout:
        """Return mode ``i`` as a layout of its own."""
        n = self.rank
        if type(i) is not int or not -n <= i < n:
            raise LayoutError(f"{self} has modes 0 to {n - 1}, not {quote(i)}")
        if not isinstance(self._shape, tuple):
            return self
        return trusted(self._shape[i], cast("tuple[IntTuple, ...]", self._stride)[i])

    def __getitem__(self, i: int) -> Layout:
        return self.mode(i)

    def __len__(self) -> int:
        return self.rank

    def __iter__(self) -> Iterator[Layout]:
        return (self.mode(i) for i in range(self.rank))

    def transpose(self, *order: int) -> Layout:
        """Return the layout with its modes reversed, or in the given order; no offset changes place in memory.

        >>> Layout((4, 6), (6, 1)).transpose()
        (6,4):(1,6)
        """
        modes = range(self.rank)
        order = order or tuple(reversed(modes))
        if sorted(order) != list(modes):
            raise LayoutError(f"order {quote(order)} does not name each of the modes {tuple(modes)} of {self} once")
        if not isinstance(self._shape, tuple):
            return self
        strides = cast("tuple[IntTuple, ...]", self._stride)
        return trusted(tuple([self._shape[i] for i in order]), tuple([strides[i] for i in order]))

    @property
    def T(self) -> Layout:
        """The transposed layout."""
        return self.transpose()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self._shape == other._shape and self._stride == other._stride

    def __hash__(self) -> int:
        return hash((self._shape, self._stride))

    def __setattr__(self, name: str, value: object = None) -> NoReturn:
        raise AttributeError(f"a layout never changes; make a new one instead of changing {name!r} of {self}")

    __delattr__ = __setattr__

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self._shape, self._stride)

    def __str__(self) -> str:
        return f"{show(self._shape)}:{show(self._stride)}"

    __repr__ = __str__


_set_shape = vars(Layout)["_shape"].__set__
_set_stride = vars(Layout)["_stride"].__set__
_set_flat = vars(Layout)["_flat"].__set__


def trusted(shape: IntTuple, stride: IntTuple) -> Layout:
    """Make a layout of parts already known to be right, without checking them again."""
    layout = Layout.__new__(Layout)
    _set_shape(layout, shape)
    _set_stride(layout, stride)
    _set_flat(layout, None)
    return layout


def _one_shape(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape


def _strides_like(shape: IntTuple, stride: IntTuple) -> tuple[int, ...]:
    """Return the strides from left to right; they must be nested like the shape."""
    found: list[int] = []

    def walk(s: IntTuple, d: IntTuple) -> bool:
        if isinstance(s, tuple):
            return isinstance(d, tuple) and len(s) == len(d) and all(map(walk, s, d))
        if isinstance(d, tuple):
            return False
        found.append(d)
        return True

    if not walk(shape, stride):
        raise LayoutError(f"stride {show(stride)} is not nested like shape {show(shape)}")
    return tuple(found)


def crd2idx(crd: Any, shape: Any, stride: Any = None) -> Any:
    """Return the offset of a coordinate: ``crd2idx((2, 3), (4, 6), (1, 4))`` is 14.

    A :class:`Layout` may stand for shape and stride; a shape alone is taken as compact, column-major.

    Raises
    ------
    LayoutError
        When the coordinate has another number of modes than the shape, or the arguments are swapped.
    """
    if isinstance(crd, Layout):
        raise LayoutError(f"crd2idx wants (coordinate, layout) in this order, not the layout {crd} first")
    if isinstance(shape, Layout):
        layout = shape if stride is None else None
        if layout is None:
            raise LayoutError(f"the layout {shape} already has strides; leave out {quote(stride)}")
    elif type(crd) is tuple and type(shape) is tuple and type(stride) is tuple:
        return _crd2idx(crd, shape, stride)
    else:
        layout = Layout(shape, stride)
    return _crd2idx(check(crd, "coordinate"), layout.shape, layout.stride)


def _crd2idx(crd: Any, shape: Any, stride: Any) -> Any:
    if not isinstance(shape, tuple):
        if isinstance(crd, tuple):
            raise LayoutError(f"coordinate {quote(crd)} has {len(crd)} modes where the shape has the one mode {shape}")
        return crd * stride
    if isinstance(crd, tuple):
        if len(crd) != len(shape):
            raise LayoutError(f"coordinate {quote(crd)} has {len(crd)} modes, shape {show(shape)} has {len(shape)}")
        offset = 0
        for c, s, d in zip(crd, shape, stride, strict=True):
            offset += _crd2idx(c, s, d)
        return offset
    if crd < 0:
        raise LayoutError(f"index {crd} is negative; a 1-D index into {show(shape)} starts at 0")
    return trusted(shape, stride)._at(crd)


def slice_and_offset(crd: Any, layout: Any) -> tuple[Layout, Any]:
    """Return the layout of the modes where a coordinate has ``None``, and the offset where that slice starts.

    >>> slice_and_offset((1, None), Layout(((2, 2), (2, 2)), ((1, 8), (4, 16))))
    (((2,2),):((4,16),), 1)

    Parameters
    ----------
    crd
        A coordinate with ``None`` where everything is kept, nested like the shape as far as the ``None``s go.
    layout
        The layout to slice.

    Raises
    ------
    LayoutError
        When the coordinate does not fit, or the arguments are swapped.
    """
    if isinstance(crd, Layout) or not isinstance(layout, Layout):
        raise LayoutError(f"slice_and_offset wants (coordinate, layout), not ({quote(crd)}, {quote(layout)})")
    crd = check(crd, "coordinate", none=True)
    if crd is None:
        return layout, 0
    shape, stride, offset = _slice(crd, layout.shape, layout.stride)
    return trusted(tuple(shape), tuple(stride)), offset


def _slice(crd: Any, shape: Any, stride: Any) -> tuple[list[Any], list[Any], Any]:
    if crd is None:
        return [shape], [stride], 0
    if not has_none(crd):
        return [], [], _crd2idx(crd, shape, stride)
    if not isinstance(shape, tuple) or len(crd) != len(shape):
        raise LayoutError(f"coordinate {show(crd)} has {len(crd)} modes, shape {show(shape)} does not")
    shapes: list[Any] = []
    strides: list[Any] = []
    offset: Any = 0
    for c, s, d in zip(crd, shape, stride, strict=True):
        more_shapes, more_strides, more_offset = _slice(c, s, d)
        shapes += more_shapes
        strides += more_strides
        offset += more_offset
    return shapes, strides, offset
