"""A tensor: storage and a layout over it. Slices, tiles and partitions share the storage; writes go through.

Source: CuTe's ``tensor_impl.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelab.layout.basis import ArithTuple
from tilelab.layout.construct import make_identity_layout
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import check, has_none, is_int, leaves, product, product_each, rebuild, show
from tilelab.layout.layout import Layout, as_layout, slice_and_offset
from tilelab.layout.simplify import merged
from tilelab.layout.swizzle import ComposedLayout
from tilelab.layout.tables import offset_table
from tilelab.layout.values import Shaped
from tilelab.tensor.storage import alike, described, flat_view, kind_of, strided


class Tensor(Shaped):
    """Elements ``storage[offset + layout(coordinate)]``; made by :func:`make_tensor`.

    ``tensor[2, 3]`` reads and ``tensor[2, 3] = x`` writes one element; with ``None`` in the coordinate,
    ``tensor[2, None]`` is a tensor of that slice over the same storage, and assigning to it writes its elements.
    Calls, ``tensor(2, 3)``, read as well.

    Attributes
    ----------
    storage
        One axis of memory, an object with ``__getitem__``, or ``None`` where elements are their own offsets.
    layout : Layout or ComposedLayout
        Where each coordinate stands.
    offset : int
        Where coordinate 0 stands in the storage; a coordinate for tensors of coordinates.
    """

    __slots__ = ("layout", "offset", "storage")

    def __init__(self, storage: Any, layout: Any, offset: Any = 0) -> None:
        self.storage, self.layout, self.offset = storage, layout, offset

    @property
    def shape(self) -> Any:
        """Extents, as an integer or nested tuple."""
        return self.layout.shape

    def _place(self, coordinate: Any) -> Any:
        place = self.offset + ArithTuple.of(self.layout(coordinate))
        if self.storage is not None and not 0 <= place < len(self.storage):
            many = len(self.storage)
            raise LayoutError(f"coordinate {quote(coordinate)} of {self.layout!r} is element {place} of {many}")
        return place

    def __getitem__(self, coordinate: Any) -> Any:
        coordinate = check(coordinate, "coordinate", (type(None),))
        if has_none(coordinate):
            layout, offset = slice_and_offset(coordinate, self.layout)
            return Tensor(self.storage, layout, self.offset + offset)
        place = self._place(coordinate)
        return getattr(place, "value", place) if self.storage is None else self.storage[place]

    def _sliced(self, coordinate: Any) -> Any:
        return self[coordinate]

    def __call__(self, *coordinate: Any) -> Any:
        """Return the element at a coordinate, or with ``None`` in it the tensor of that slice."""
        return self[coordinate[0] if len(coordinate) == 1 else coordinate]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.size))

    def __setitem__(self, coordinate: Any, value: Any) -> None:
        if self.storage is None:
            raise LayoutError(f"{self!r} counts its elements and cannot be written")
        coordinate = check(coordinate, "coordinate", (type(None),))
        if has_none(coordinate):
            self[coordinate]._fill(value)
        else:
            self.storage[self._place(coordinate)] = value

    def _fill(self, value: Any) -> None:
        """Write one value, or as many as there are elements: a tensor, an array by modes, or a list by index."""
        if isinstance(value, Tensor):
            if value.size != self.size:
                raise LayoutError(f"{value.size} elements cannot be written to the {self.size} of {self!r}")
            value = value.gather()
        if not kind_of(self.storage):
            single = not hasattr(value, "__len__")
            values = [value] * self.size if single else list(value.T.ravel() if kind_of(value) else value)
            if len(values) != self.size:
                raise LayoutError(f"{len(values)} values cannot be written to the {self.size} elements of {self!r}")
            for i, item in enumerate(values):
                self.storage[self._place(i)] = item
            return
        if getattr(value, "ndim", 0) > 1:
            value = value.permute(*reversed(range(value.ndim))) if kind_of(value) == "torch" else value.T
            value = value.reshape(-1)
        self.storage[self._offsets()] = (
            alike(self.storage, value, self.storage.dtype) if hasattr(value, "__len__") else value
        )

    def _offsets(self) -> Any:
        self._fits()
        return alike(self.storage, offset_table(self.layout) + self.offset)

    def gather(self) -> Any:
        """Return a copy of the elements, one axis for each mode; a list by index where the storage is one."""
        if not kind_of(self.storage):
            return [self[i] for i in range(self.size)]
        axes = product_each(self.shape)
        flat = self.storage[self._offsets()].reshape(axes[::-1])
        return flat.permute(*reversed(range(len(axes)))) if kind_of(flat) == "torch" else flat.T

    def view(self) -> Any:
        """Return the elements as an array that shares the memory, one axis for each mode.

        Raises
        ------
        LayoutError
            When a mode does not have one stride, so that only :func:`gather`, a copy, can make an array of it.
        """
        if not kind_of(self.storage) or not isinstance(self.layout, Layout):
            raise LayoutError(f"{self!r} is no strided view of an array; gather() copies its elements")
        modes = list(self.layout) if isinstance(self.shape, tuple) else [self.layout]
        axes = [merged(*mode.flat()) for mode in modes]
        nested = next((i for i, (shape, _) in enumerate(axes) if len(shape) > 1), None)
        if nested is not None or any(step < 0 for _, steps in axes for step in steps):
            which = (
                "a stride is negative" if nested is None else f"mode {nested}, {modes[nested]}, has no single stride"
            )
            raise LayoutError(f"{self.layout} has no strided view: {which}; gather() copies its elements")
        self._fits()
        shape, stride = [product(s) for s, _ in map(_first, axes)], [d for _, d in map(_first, axes)]
        return strided(self.storage, self.offset, tuple(shape), tuple(stride))

    def _fits(self) -> None:
        low, high = _reach(self.layout)
        if not (self.offset + low >= 0 and self.offset + high < len(self.storage)):
            raise LayoutError(f"{self!r} reaches element {self.offset + high} of {len(self.storage)}")

    def _lift(self, function: Callable[[Any], Any]) -> Tensor:
        return Tensor(self.storage, self.layout._lift(function), self.offset)

    def text(self, static: bool = False) -> str:
        """Return the tensor as CuTe prints it: ``ptr[32b](0x7f…) o (4,6):(6,1)``."""
        if self.storage is None:
            return (
                f"{show(self.offset) if isinstance(self.offset, tuple) else self.offset} o {self.layout.text(static)}"
            )
        return f"{described(self.storage)} o {self.layout.text(static)}"

    def __repr__(self) -> str:
        return self.text()


def _first(axis: Any) -> tuple[int, int]:
    shape, stride = axis
    return (shape[0], stride[0]) if shape else (1, 1)


def _reach(layout: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest offset of a layout."""
    if isinstance(layout, ComposedLayout):
        return 0, layout.cosize - 1
    ends = [(extent - 1) * step for extent, step in zip(*layout.flat(), strict=True)]
    if not all(isinstance(end, int) for end in ends):
        raise LayoutError(f"storage needs integer strides, not {layout}")
    return sum([min(end, 0) for end in ends]), sum([max(end, 0) for end in ends])


def make_tensor(engine: Any, layout: Any) -> Tensor:
    """Return the tensor of a storage and a layout; nothing is copied.

    Parameters
    ----------
    engine
        A numpy, torch or CuPy array without holes, a list, or an offset (0 counts offsets, ``(0, 0)`` coordinates).
    layout
        A layout, a swizzled layout, or a shape (column-major).

    Raises
    ------
    LayoutError
        When the storage has fewer elements than the layout needs.
    """
    if isinstance(engine, Shaped) and not isinstance(layout, Shaped):
        raise LayoutError(f"make_tensor wants (storage, layout) in this order, not ({quote(engine)}, {quote(layout)})")
    layout = layout if isinstance(layout, (Layout, ComposedLayout)) else Layout(layout)
    if not kind_of(engine) and (is_int(engine) or isinstance(engine, tuple)):
        return Tensor(None, layout, ArithTuple.of(check(engine, "offset")))
    storage = flat_view(engine)
    low, high = _reach(layout)
    if low < 0 or high >= len(storage):
        needs = f"reaches element {low}" if low < 0 else f"needs {high + 1} elements"
        raise LayoutError(f"{layout!r} {needs}, the storage has {len(storage)}")
    return Tensor(storage, layout)


def make_identity_tensor(shape: Any) -> Tensor:
    """Return the tensor whose elements are their own coordinates, to be cut like the data and compared with bounds."""
    layout = make_identity_layout(shape)
    return make_tensor(rebuild(layout.shape, iter([0] * len(list(leaves(layout.shape))))), layout)


def as_tensor(value: Any) -> Tensor:
    """Return a tensor as it is, and a layout as the tensor of its offsets."""
    return value if isinstance(value, Tensor) else make_tensor(0, as_layout(value, "a tensor or layout"))
