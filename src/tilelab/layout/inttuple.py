"""Integer tuples: integers, and tuples of integer tuples. Shapes, strides and coordinates are made of them.

The order of coordinates is colexicographic: the first mode runs fastest. Sources: CuTe's ``int_tuple.hpp`` and
``stride.hpp``; Cecka, *CuTe Layout Representation and Algebra*, arXiv:2603.02298.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from operator import index as as_index
from typing import Any, TypeAlias

from tilelab.layout.errors import LayoutError, quote

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"

#: No reader nests deeper; the bound keeps every recursion far from the interpreter's.
MAX_DEPTH = 64
#: Extents, strides and coordinates are 64-bit integers, as they are on the device.
MAX_INT = 2**63 - 1


def is_int(value: object) -> bool:
    """Whether a value counts as an integer: anything with ``__index__`` except a bool."""
    return type(value) is int or (hasattr(value, "__index__") and not isinstance(value, (bool, type)))


def check(value: Any, what: str = "integer tuple", also: tuple[type, ...] = (), _level: int = 0) -> Any:
    """Return a value as nested tuples of plain integers; lists become tuples, numpy integers become ``int``.

    ``what`` names the value in the message; values of the types in ``also`` may stand for integers.

    Raises
    ------
    LayoutError
        For bools, floats, strings, integers beyond 64 bits and nesting deeper than 64.
    """
    kind = type(value)
    if kind is int:
        if -MAX_INT <= value <= MAX_INT:
            return value
        raise LayoutError(f"{what} {quote(value)} does not fit in 64 bits")
    if kind is tuple or kind is list:
        if _level == MAX_DEPTH:
            raise LayoutError(f"{what} is nested deeper than {MAX_DEPTH}: {quote(value)}")
        return tuple([check(item, what, also, _level + 1) for item in value])
    if isinstance(value, also):
        return value
    if is_int(value):
        try:
            return check(as_index(value), what)
        except TypeError:  # an array of several numbers has __index__ too
            pass
    if isinstance(value, str):
        raise LayoutError(f"{what} {quote(value)} is text; Layout.parse reads text such as '(4,6):(1,4)'")
    wanted = "integers, None and tuples of them" if type(None) in also else "integers and tuples of them"
    raise LayoutError(f"{what} must be {wanted}, not {quote(value)} ({kind.__name__})")


def checked_shape(value: Any, what: str = "shape") -> Any:
    """Return a shape as nested tuples of positive integers whose product fits in 64 bits, or raise LayoutError."""
    shape = check(value, what)
    size = 1
    for extent in leaves(shape):
        if extent < 1:
            raise LayoutError(f"{what} {show(shape)} has extent {extent}; every extent must be at least 1")
        size *= extent
    if size > MAX_INT:
        raise LayoutError(f"{what} {quote(shape)} has more elements than 64 bits can count")
    return shape


def leaves(value: Any) -> Iterator[Any]:
    """Yield the integers of an integer tuple from left to right."""
    if isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def show(value: Any, *, static: bool = False, trailing: bool = True) -> str:
    """Return an integer tuple as CuTe prints it: ``(4,(2,3))``; ``static`` writes ``_4``, ``None`` is ``_``.

    With ``trailing`` a tuple of one keeps Python's comma, ``(4,)``, so that the text can be read back; CuTe leaves it.
    """
    if isinstance(value, tuple):
        inside = ",".join([show(item, static=static, trailing=trailing) for item in value])
        return f"({inside},)" if trailing and len(value) == 1 else f"({inside})"
    if value is None:
        return "_"
    return f"_{value}" if static else str(value)


def product(value: Any) -> int:
    """Return the product of all integers; 1 for the empty tuple."""
    if not isinstance(value, tuple):
        return value if type(value) is int else product(check(value))
    result = 1
    for item in value:
        result *= item if type(item) is int else product(item)
    return result


def product_each(shape: Any) -> tuple[int, ...]:
    """Return the size of each mode: ``((2,3),4)`` gives ``(6, 4)``."""
    shape = check(shape, "shape")
    return tuple(map(product, shape)) if isinstance(shape, tuple) else (shape,)


def rank(value: Any) -> int:
    """Return the number of modes of an integer tuple or layout; 1 for an integer."""
    value = getattr(value, "shape", value)
    return len(value) if isinstance(value, (tuple, list)) else 1


def depth(value: Any) -> int:
    """Return how deep an integer tuple or layout is nested; 0 for an integer."""
    value = getattr(value, "shape", value)
    return 1 + max(map(depth, value), default=0) if isinstance(value, (tuple, list)) else 0


def _nested(a: Any, b: Any, fits: Callable[[Any, Any], bool]) -> bool:
    """Whether ``b``, a layout or shape, has the modes of ``a``, and what stands at each integer of ``a`` fits it."""
    a, b = (getattr(value, "shape", value) for value in (a, b))
    if isinstance(a, (tuple, list)):
        return isinstance(b, (tuple, list)) and len(a) == len(b) and all(map(_nested, a, b, repeat(fits)))
    return fits(a, b)


def congruent(a: Any, b: Any) -> bool:
    """Whether two integer tuples, or the shapes of two layouts, are nested alike."""
    return _nested(a, b, lambda _, inside: not isinstance(inside, (tuple, list)))


def weakly_congruent(a: Any, b: Any) -> bool:
    """Whether ``b`` is nested like ``a`` or deeper: every coordinate of ``a`` is one of ``b``."""
    return _nested(a, b, lambda *_: True)


def compatible(a: Any, b: Any) -> bool:
    """Whether every coordinate of shape ``a`` is one of ``b``: 24 with ``(4,6)`` and ``(24,)``, but not the reverse."""
    return _nested(a, b, lambda size, inside: bool(size == product(inside)))


def compact(shape: Any, start: int = 1, *, reverse: bool = False) -> tuple[Any, int]:
    """Return the strides that fill memory without holes, and the stride that would come next.

    The first mode is fastest, or with ``reverse`` the last.
    """
    if not isinstance(shape, tuple):
        return start, start * shape
    strides: list[Any] = []
    for mode in reversed(shape) if reverse else shape:
        stride, start = compact(mode, start, reverse=reverse)
        strides.append(stride)
    return tuple(reversed(strides) if reverse else strides), start


def prefix_product(shape: Any) -> Any:
    """Return the column-major compact strides of a shape: ``(4,6)`` gives ``(1,4)``."""
    return compact(checked_shape(shape))[0]


def coordinates(shape: Any) -> Iterator[Any]:
    """Return every coordinate of a shape, first mode fastest."""
    return _coordinates(checked_shape(shape))


def _coordinates(shape: Any) -> Iterator[Any]:
    if not isinstance(shape, tuple):
        yield from range(shape)
    elif not shape:
        yield ()
    else:
        for last in _coordinates(shape[-1]):
            for first in _coordinates(shape[:-1]):
                yield (*first, last)


def has_none(value: Any) -> bool:
    """Whether an integer tuple contains ``None``."""
    return any(map(has_none, value)) if isinstance(value, tuple) else value is None


def idx2crd(idx: Any, shape: Any, stride: Any = None) -> Any:
    """Return the coordinate of a 1-D index in a shape, colexicographic.

    The last mode is not reduced, so an index past the end gives a coordinate past the end, as in CuTe.

    Parameters
    ----------
    idx
        An index ``>= 0``, or a coordinate whose integers are indices into the matching modes.
    shape
        The shape.
    stride
        Strides to divide by instead of the compact ones; a mode of extent 1 has coordinate 0 whatever its stride.

    Raises
    ------
    LayoutError
        When the index does not fit the shape.
    """
    idx, shape = check(idx, "index"), checked_shape(shape)
    return _idx2crd(idx, shape) if stride is None else _idx2crd_stride(idx, shape, check(stride, "stride"))


def crd2crd(crd: Any, source: Any, target: Any) -> Any:
    """Return the coordinate of shape ``target`` with the same 1-D index as ``crd`` has in shape ``source``."""
    source = checked_shape(source)
    index = 0
    for c, step in zip(leaves(idx2crd(crd, source)), leaves(compact(source)[0]), strict=True):
        index += c * step
    return idx2crd(index, target)


def mismatch(crd: Any, shape: Any) -> LayoutError:
    """Return the error for a coordinate with another number of modes than a shape."""
    return LayoutError(f"coordinate {quote(crd)} has {rank(crd)} modes, but shape {quote(shape)} has {rank(shape)}")


def _idx2crd(idx: Any, shape: Any) -> Any:
    if isinstance(idx, tuple):
        if not isinstance(shape, tuple) or len(idx) != len(shape):
            raise mismatch(idx, shape)
        return tuple(map(_idx2crd, idx, shape))
    if not isinstance(shape, tuple):
        return idx
    if idx < 0:
        raise LayoutError(f"index {idx} is negative; a 1-D index into {quote(shape)} starts at 0")
    coordinate = []
    for mode in shape[:-1]:
        idx, inside = divmod(idx, product(mode))
        coordinate.append(_idx2crd(inside, mode))
    return (*coordinate, _idx2crd(idx, shape[-1])) if shape else ()


def _idx2crd_stride(idx: Any, shape: Any, stride: Any) -> Any:
    if isinstance(shape, tuple):
        parts = idx if isinstance(idx, tuple) else (idx,) * len(shape)
        if isinstance(stride, tuple) and len(stride) == len(shape) == len(parts):
            return tuple(map(_idx2crd_stride, parts, shape, stride))
    elif not isinstance(stride, tuple) and not isinstance(idx, tuple):
        # A thread mode of stride 0 broadcasts: all its coordinates are the same, so 0 stands for them.
        return 0 if shape == 1 or stride == 0 else idx // stride % shape
    raise LayoutError(f"index {quote(idx)}, shape {show(shape)} and stride {show(stride)} are nested differently")


def rebuild(shape: Any, values: Iterator[Any]) -> Any:
    """Return values from left to right in the nesting of a shape."""
    return tuple([rebuild(mode, values) for mode in shape]) if isinstance(shape, tuple) else next(values)


def transform(function: Callable[..., Any], *values: Any) -> Any:
    """Apply a function to the integers of integer tuples that are nested alike."""
    if isinstance(values[0], tuple):
        return tuple([transform(function, *items) for items in zip(*values, strict=True)])
    return function(*values)
