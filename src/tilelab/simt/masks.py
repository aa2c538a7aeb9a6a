"""Masks over lanes, and arithmetic on values that are one number for all lanes or one for each.

A mask is ``None`` for every lane, ``False`` for none, else a boolean array. A value is a Python or NumPy number
(uniform) or an array with one element a lane, which is never changed in place: addresses are remembered by identity.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = Any  # None | Literal[False] | NDArray[np.bool_]
Value = Any
_LOW, _HIGH = -(1 << 63), 1 << 63


def merge(mask: Mask, new: Value, old: Value) -> Value:
    """``new`` in the lanes of a mask, ``old`` elsewhere; a variable nobody set yet takes the new value everywhere."""
    if mask is None or old is None or new is old:
        return new
    if isinstance(new, tuple):
        if not isinstance(old, tuple) or len(old) != len(new):
            return new
        return tuple(merge(mask, n, o) for n, o in zip(new, old, strict=True))
    if isinstance(new, np.ndarray | np.generic | int | float) and isinstance(
        old, np.ndarray | np.generic | int | float
    ):
        return np.where(mask, new, old)
    return new.merged(mask, old) if hasattr(new, "merged") else new


def union(a: Mask, b: Mask) -> Mask:
    """Lanes in either."""
    if a is False or b is False:
        return b if a is False else a
    return None if a is None or b is None else a | b


def minus(mask: Mask, *without: Mask) -> Mask:
    """Lanes of a mask that are in none of the others."""
    for gone in without:
        if gone is False:
            continue
        if mask is False or gone is None:
            return False
        mask = ~gone if mask is None else mask & ~gone
        if not mask.any():
            return False
    return mask


def part(mask: Mask, condition: Value) -> tuple[Mask, Mask]:
    """Lanes of a mask for which a condition holds, and the others."""
    if not isinstance(condition, np.ndarray):
        return (mask, False) if condition else (False, mask)
    if mask is None:
        count = np.count_nonzero(condition)
        if count == condition.size:
            return None, False
        return (condition, ~condition) if count else (False, None)
    then = mask & condition
    count = np.count_nonzero(then)
    if count == 0:
        return False, mask
    if count == np.count_nonzero(mask):
        return mask, False
    return then, mask & ~condition


# ---- integers: lanes wrap at 64 bits by themselves, Python's numbers must be told to
def wrap_signed(value: Value) -> Value:
    """An int64."""
    if type(value) is not int or _LOW <= value < _HIGH:
        return value
    return ((value + _HIGH) & ((1 << 64) - 1)) - _HIGH


def wrap_unsigned(value: Value) -> Value:
    """A uint64."""
    return value if type(value) is not int or 0 <= value < 1 << 64 else value & ((1 << 64) - 1)


def floor_divide(a: Value, b: Value) -> Value:
    """``a // b`` of integers or floats, rounded down; integers by zero give 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    return np.floor_divide(a, b)


def modulo(a: Value, b: Value) -> Value:
    """``a % b`` with the sign of ``b``; integers by zero give 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    return np.remainder(a, b)


def integer_power(a: Value, b: Value) -> Value:
    """``a ** b`` of integers in 64 bits; a negative exponent gives 0, or 1 and -1 for those bases."""
    if isinstance(a, int) and isinstance(b, int):
        if b >= 0:
            return ((pow(a, b, 1 << 64) + _HIGH) & ((1 << 64) - 1)) - _HIGH
        return a ** (-b % 2) if a in (1, -1) else 0
    a, b = np.asarray(a), np.asarray(b)
    small = b < 0
    if not small.any():
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(small, inverse, np.power(a, np.where(small, 0, b)))


def float_power(a: Value, b: Value) -> Value:
    """``a ** b`` in the type of ``a``."""
    return np.power(a, np.asarray(b).astype(a.dtype)) if isinstance(b, np.ndarray) else np.power(a, a.dtype.type(b))


def shift_left(a: Value, b: Value) -> Value:
    """``a << b``; 64 or more bits leave nothing, as the hardware does."""
    if isinstance(a, int) and isinstance(b, int):
        return a << b if 0 <= b < 64 else 0
    a = np.asarray(a)
    gone = (np.asarray(b) < 0) | (np.asarray(b) > 63)
    return np.where(gone, np.zeros_like(a), a << np.where(gone, 0, b).astype(a.dtype))


def shift_right(a: Value, b: Value) -> Value:
    """``a >> b``; 64 or more bits leave the sign, as the hardware does."""
    if isinstance(a, int) and isinstance(b, int):
        return a >> (b if 0 <= b < 64 else 63)
    a = np.asarray(a)
    if a.dtype == np.uint64:
        gone = (np.asarray(b) < 0) | (np.asarray(b) > 63)
        return np.where(gone, np.zeros_like(a), a >> np.where(gone, 0, b).astype(np.uint64))
    return a >> np.where((np.asarray(b) < 0) | (np.asarray(b) > 63), 63, b).astype(a.dtype)


def both(a: Value, b: Value) -> Value:
    """``a and b`` of conditions."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.logical_and(a, b)
    return bool(a and b)


def either(a: Value, b: Value) -> Value:
    """``a or b`` of conditions."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.logical_or(a, b)
    return bool(a or b)


def negation(a: Value) -> Value:
    """``not a`` of a condition."""
    return ~a if isinstance(a, np.ndarray) else not a


def caster(name: str) -> Callable[[Value], Value]:
    """A conversion to a number type, from anything that lanes hold."""
    if name == "bool":
        return _to_bool
    dtype = np.dtype(name)
    if dtype.kind == "f":
        kind = dtype.type
        return lambda v: (
            v if isinstance(v, kind) else v.astype(dtype, copy=False) if isinstance(v, np.ndarray) else kind(v)
        )
    held = np.dtype("int64" if dtype.kind == "i" else "uint64")
    bits = dtype.itemsize * 8
    sign = 1 << (bits - 1) if dtype.kind == "i" else 0
    whole = (1 << bits) - 1

    def to_integer(v: Value) -> Value:
        if isinstance(v, np.ndarray):
            if v.dtype.kind == "f":
                v = from_float(v, dtype)
            return v.astype(held) if dtype == held else v.astype(dtype).astype(held)
        if isinstance(v, float | np.floating):
            v = from_float(np.asarray(v), dtype).item()
        return ((int(v) + sign) & whole) - sign

    return to_integer


def from_float(values: "NDArray[Any]", dtype: "np.dtype[Any]") -> "NDArray[Any]":
    """Floats as integers, as the hardware converts them: rounded towards zero, and cut to the range of the register.

    The register of an 8-bit integer has 16 bits, of which 8 are then taken. What is no number becomes 0, or the highest
    bit alone if the float or the integer has 64 bits.

    Source
    ------
    PTX ISA 9.0, ``cvt.rzi``; which register Numba converts to is read from its PTX.
    """
    register = np.dtype(f"{dtype.kind}{max(dtype.itemsize, 2)}")
    info = np.iinfo(register)
    whole = np.trunc(values.astype(np.float64))
    low, high, nan = whole <= float(info.min), whole >= float(info.max), np.isnan(whole)
    inside = np.where(low | high | nan, 0, whole).astype(register)
    highest = np.array(1 << (8 * register.itemsize - 1), f"u{register.itemsize}").view(register)
    wide = values.dtype.itemsize == 8 or register.itemsize == 8
    cut = np.where(low, register.type(info.min), np.where(high, register.type(info.max), inside))
    return np.where(nan, highest if wide else register.type(0), cut).astype(dtype)


def _to_bool(v: Value) -> Value:
    return v.astype(bool) if isinstance(v, np.ndarray) else bool(v)
