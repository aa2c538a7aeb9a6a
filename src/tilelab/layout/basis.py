"""Strides that are coordinates: with them a layout gives coordinates instead of offsets.

Source: CuTe's ``arithmetic_tuple.hpp`` and its tutorial on TMA tensors, where ``E<0,1>`` prints as ``1@1@0``.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import transform


class ArithTuple:
    """A coordinate with arithmetic: ``E(0) * 2 + E(1) * 3`` is ``(2,3)``; missing places count as 0.

    Equal to, and hashed as, the plain tuple of the same numbers.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @staticmethod
    def of(value: Any) -> Any:
        """Return a tuple as a coordinate with arithmetic, and anything else as it is."""
        return ArithTuple(value) if isinstance(value, tuple) else value

    def __add__(self, other: Any) -> ArithTuple:
        if isinstance(other, ArithTuple):
            return ArithTuple(_add(self.value, other.value))
        return self if type(other) is int and other == 0 else NotImplemented

    __radd__ = __add__

    def __mul__(self, factor: Any) -> ArithTuple:
        return ArithTuple(transform(lambda x: x * factor, self.value)) if type(factor) is int else NotImplemented

    __rmul__ = __mul__

    def __abs__(self) -> ArithTuple:
        return ArithTuple(transform(abs, self.value))

    def __iter__(self) -> Any:
        return iter(self.value)

    def __getitem__(self, i: int) -> Any:
        return self.value[i]

    def __len__(self) -> int:
        return len(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, ArithTuple) else other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        path, value = "", self.value
        while isinstance(value, tuple) and value and not any(value[:-1]):
            path, value = f"@{len(value) - 1}{path}", value[-1]
        text = str(value) if isinstance(value, int) else None
        return f"{text}{path}" if text and text != "0" else str(self.value).replace(" ", "")


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple([_add(x, y) for x, y in zip_longest(a, b, fillvalue=0)])
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0 or b == 0:
        return a or b
    raise LayoutError(f"{quote(a)} and {quote(b)} are nested differently and cannot be added")


def E(*path: int) -> ArithTuple:
    """Return the unit step along a mode: ``E(1)`` is ``1@1``, one step in mode 1; ``E(1, 0)`` goes on inside it."""
    value: Any = 1
    for place in reversed(path):
        if type(place) is not int or not 0 <= place < 64:
            raise LayoutError(f"E{quote(path)}: modes are numbered from 0 to 63")
        value = (0,) * place + (value,)
    if not path:
        raise LayoutError("E() needs the number of a mode, such as E(0)")
    return ArithTuple(value)
