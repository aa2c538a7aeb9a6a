"""Integer tuples as lists and as vectors: CuTe's helpers. Source: ``int_tuple.hpp``."""

from __future__ import annotations

from math import prod
from operator import mul
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import check, congruent, is_int, leaves, rebuild, show, transform

#: No tuple of modes is longer.
MAX_PLACES = 1024


def wrap(value: Any) -> tuple[Any, ...]:
    """Return a tuple as it is and anything else as a tuple of one."""
    return value if isinstance(value, tuple) else (value,)


def unwrap(value: Any) -> Any:
    """Return what is inside tuples of one."""
    while isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return value


def unflatten(values: Any, profile: Any) -> Any:
    """Return flat values in the nesting of ``profile``."""
    values, places = wrap(check(values)), len(list(leaves(check(profile))))
    if len(values) != places:
        raise LayoutError(f"{len(values)} values {quote(values)} do not fill the {places} places of {quote(profile)}")
    return rebuild(check(profile), iter(values))


def inner_product(a: Any, b: Any) -> int:
    """Return the sum of the products of integers in the same place."""
    return sum(map(mul, leaves(check(a)), leaves(_alike(a, b))))


def elem_scale(a: Any, b: Any) -> Any:
    """Return ``a`` with each integer multiplied by the size of what stands in its place in ``b``."""
    a, b = check(a), check(b)
    if not isinstance(a, tuple):
        return a * prod(leaves(b))
    if not isinstance(b, tuple) or len(a) != len(b):
        raise LayoutError(f"{quote(a)} and {quote(b)} are nested differently")
    return tuple(map(elem_scale, a, b))


def ceil_div(a: Any, b: Any) -> Any:
    """Return the quotient rounded up: of integers, of tuples place by place, or of a shape by an integer.

    A shape is divided from its first mode on: ``ceil_div((3,4), 2)`` is ``(2,4)`` and ``ceil_div((3,4), 6)`` ``(1,2)``.
    """
    a, b = check(a), check(b)
    if any(x < 1 for x in leaves(b)) or (isinstance(a, tuple) and any(x < 1 for x in leaves(a))):
        raise LayoutError(f"cannot divide {quote(a)} by {quote(b)}; extents and divisors are at least 1")
    return _ceil_div(a, b)


def _ceil_div(a: Any, b: Any) -> Any:
    if not isinstance(a, tuple):
        return -(-a // prod(leaves(b)))
    if isinstance(b, tuple):
        if len(b) > len(a):
            raise LayoutError(f"{show(a)} has fewer modes than the divisor {show(b)}")
        return tuple(map(_ceil_div, a, b)) + a[len(b) :]
    quotients = []
    for mode in a:
        quotients.append(_ceil_div(mode, b))
        b = -(-b // prod(leaves(mode)))
    return tuple(quotients)


def round_up(a: Any, b: Any) -> Any:
    """Return the next multiple of ``b``, integers place by place."""
    ceil_div(1, b)  # refuses what divides nothing
    return transform(lambda x, y: -(-x // y) * y, check(a), _alike(a, b))


def shape_div(a: Any, b: Any) -> int:
    """Return ``a // b`` where one divides the other (at least 1), else raise LayoutError."""
    a, b = check(a), check(b)
    if isinstance(a, tuple) or isinstance(b, tuple) or b == 0 or (a % b and b % a):
        raise LayoutError(f"{quote(a)} and {quote(b)} do not divide one another")
    return int(a // b if a % b == 0 else (1 if a * b > 0 else -1))


def dice(guide: Any, value: Any) -> Any:
    """Return the parts of a value where ``guide`` has an integer; ``None`` drops its place (CuTe's ``X``)."""
    if isinstance(guide, tuple):
        if not isinstance(value, tuple) or len(guide) != len(value):
            raise LayoutError(f"projection {show(guide)} and {quote(value)} have different numbers of modes")
        return tuple([dice(g, v) for g, v in zip(guide, value) if g is not None])
    return value


def append(value: Any, count: int, filler: Any = 1) -> Any:
    """Return a tuple filled up at its end to ``count`` places."""
    return wrap(value) + (filler,) * (_place(count) - len(wrap(value)))


def prepend(value: Any, count: int, filler: Any = 1) -> Any:
    """Return a tuple filled up at its front to ``count`` places."""
    return (filler,) * (_place(count) - len(wrap(value))) + wrap(value)


def replace(value: tuple[Any, ...], place: int, new: Any) -> tuple[Any, ...]:
    """Return a tuple with another value in one place."""
    if not isinstance(value, tuple) or not 0 <= _place(place) < len(value):
        raise LayoutError(f"{quote(value)} has no place {quote(place)}")
    return (*value[:place], new, *value[place + 1 :])


def _place(value: Any) -> int:
    if not is_int(value) or not 0 <= value <= MAX_PLACES:
        raise LayoutError(f"{quote(value)} is no number of places, 0 to {MAX_PLACES}")
    return int(value)


def zip(*values: Any) -> tuple[Any, ...]:
    """Return tuples of the first entries, the second entries, …: ``zip((1,2),(3,4))`` is ``((1,3),(2,4))``."""
    if not values or not all(isinstance(value, tuple) and len(value) == len(values[0]) for value in values):
        raise LayoutError(f"zip wants tuples of equal length, not {quote(values)}")
    return tuple(map(lambda *items: items, *values))


def _alike(a: Any, b: Any) -> Any:
    a, b = check(a), check(b)
    if not congruent(a, b):
        raise LayoutError(f"{show(a)} and {show(b)} are nested differently")
    return b
