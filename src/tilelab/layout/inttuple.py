"""Integer tuples: integers, and tuples of integer tuples. Shapes, strides and coordinates are made of them.

The order of coordinates is colexicographic: the first mode runs fastest. Sources: CuTe's ``int_tuple.hpp`` and
``stride.hpp``; Cecka, *CuTe Layout Representation and Algebra*, arXiv:2603.02298.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    return type(value) is int or (hasattr(value, "__index__") and not isinstance(value, bool))


def check(value: Any, what: str = "integer tuple", *, none: bool = False, _level: int = 0) -> Any:
    """Return a value as nested tuples of plain integers.

    Lists become tuples, and whatever has ``__index__`` (a numpy integer) becomes an ``int``.

    Parameters
    ----------
    value
        What the caller gave.
    what
        What it is meant to be, for the message.
    none
        Whether ``None`` may stand for an integer, as in the coordinate of a slice.

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
        return tuple([check(item, what, none=none, _level=_level + 1) for item in value])
    if value is None and none:
        return None
    if is_int(value):
        return check(as_index(value), what)
    if isinstance(value, str):
        raise LayoutError(f"{what} {quote(value)} is text; Layout.parse reads text such as '(4,6):(1,4)'")
    wanted = "integers, None and tuples of them" if none else "integers and tuples of them"
    raise LayoutError(f"{what} must be {wanted}, not {quote(value)} ({kind.__name__})")


def leaves(value: IntTuple) -> Iterator[int]:
    """Yield the integers of an integer tuple from left to right."""
    if isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def flatten(value: IntTuple) -> tuple[int, ...]:
    """Return the integers of an integer tuple as a flat tuple; ``4`` gives ``(4,)``."""
    return tuple(leaves(value))


def product(value: IntTuple) -> int:
    """Return the product of all integers; 1 for the empty tuple."""
    if not isinstance(value, tuple):
        return value
    result = 1
    for item in value:
        result *= product(item)
    return result


def rank(value: Any) -> int:
    """Return the number of modes of an integer tuple or layout; 1 for an integer."""
    value = getattr(value, "shape", value)
    return len(value) if isinstance(value, tuple) else 1


def depth(value: Any) -> int:
    """Return how deep an integer tuple or layout is nested; 0 for an integer."""
    value = getattr(value, "shape", value)
    return 1 + max(map(depth, value), default=0) if isinstance(value, tuple) else 0


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether two integer tuples are nested alike."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(congruent, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def compact(shape: IntTuple, start: int = 1) -> tuple[IntTuple, int]:
    """Return the strides that fill memory without holes, first mode fastest, and the stride that would come next."""
    if not isinstance(shape, tuple):
        return start, start * shape
    strides = []
    for mode in shape:
        stride, start = compact(mode, start)
        strides.append(stride)
    return tuple(strides), start


def compact_reversed(shape: IntTuple, start: int = 1) -> tuple[IntTuple, int]:
    """Return the strides that fill memory without holes, last mode fastest, and the stride that would come next."""
    if not isinstance(shape, tuple):
        return start, start * shape
    strides = []
    for mode in reversed(shape):
        stride, start = compact_reversed(mode, start)
        strides.append(stride)
    return tuple(reversed(strides)), start


def coordinates(shape: Any) -> Iterator[Any]:
    """Yield every coordinate of a shape, first mode fastest."""
    if not isinstance(shape, tuple):
        yield from range(shape)
        return
    if not shape:
        yield ()
        return
    for last in coordinates(shape[-1]):
        for first in coordinates(shape[:-1]):
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
    """
    idx, shape = check(idx, "index"), check(shape, "shape")
    if stride is None:
        return _idx2crd(idx, shape)
    return _idx2crd_stride(idx, shape, check(stride, "stride"))


def _idx2crd(idx: Any, shape: Any) -> Any:
    if not isinstance(shape, tuple):
        if isinstance(idx, tuple):
            raise LayoutError(f"coordinate {quote(idx)} has {len(idx)} modes where the shape has the one mode {shape}")
        return idx
    if isinstance(idx, tuple):
        if len(idx) != len(shape):
            raise LayoutError(f"coordinate {quote(idx)} has {len(idx)} modes, shape {show(shape)} has {len(shape)}")
        return tuple(map(_idx2crd, idx, shape))
    if idx < 0:
        raise LayoutError(f"index {idx} is negative; a 1-D index into {show(shape)} starts at 0")
    coordinate = []
    for mode in shape[:-1]:
        extent = product(mode)
        coordinate.append(_idx2crd(idx % extent, mode))
        idx //= extent
    if shape:
        coordinate.append(_idx2crd(idx, shape[-1]))
    return tuple(coordinate)


def _idx2crd_stride(idx: Any, shape: Any, stride: Any) -> Any:
    if isinstance(shape, tuple):
        if not isinstance(stride, tuple) or len(stride) != len(shape):
            raise LayoutError(f"stride {show(stride)} is not nested like shape {show(shape)}")
        parts = idx if isinstance(idx, tuple) else (idx,) * len(shape)
        if len(parts) != len(shape):
            raise LayoutError(f"coordinate {quote(idx)} has {len(parts)} modes, shape {show(shape)} has {len(shape)}")
        return tuple(map(_idx2crd_stride, parts, shape, stride))
    if isinstance(stride, tuple) or isinstance(idx, tuple):
        raise LayoutError(f"index {quote(idx)} and stride {show(stride)} are not nested like shape {show(shape)}")
    if shape == 1:
        return 0
    if stride == 0:
        raise LayoutError(f"stride 0 in a mode of extent {shape}: index {idx} has no coordinate in it")
    return idx // stride % shape


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
