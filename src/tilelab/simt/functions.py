"""Functions of numbers by the names that the typed tree uses, on one value or on all lanes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.simt.masks import floor_divide, modulo, wrap_signed

Function = Callable[..., Any]


def _by_number(function: Callable[[float], float]) -> Function:
    """A function that NumPy lacks, element by element, in the type it is given."""

    def apply(x: Any) -> Any:
        values = np.asarray(x)
        out = np.array([function(float(v)) for v in values.ravel()], values.dtype).reshape(values.shape)
        return out if isinstance(x, np.ndarray) else out[()]

    return apply


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except (ValueError, OverflowError):
        return math.nan if x < 0 or math.isnan(x) else math.inf


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def _extreme(plain: Function, function: Function) -> Function:
    """The lesser (``plain`` is min) or greater of two, of floats as ``function`` says; -0.0 comes before 0.0."""

    def apply(a: Any, b: Any) -> Any:
        if not isinstance(a, np.ndarray | np.floating) and not isinstance(b, np.ndarray):
            return plain(a, b)
        found = function(a, b)
        if found.dtype.kind != "f":
            return found
        return np.where((a == 0) & (b == 0), -(-a - b) if plain is min else a + b, found)[()]

    return apply


def _half(function: Function) -> Function:
    """In float16, computed in float32 and rounded once."""
    return lambda *args: np.asarray(function(*(np.asarray(a, np.float32) for a in args)), np.float16)[()]


def _bits(bits: int) -> dict[str, Function]:
    mask = (1 << bits) - 1

    def on_bits(function: Callable[[int], int], held: Any = None) -> Function:
        def apply(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return function(int(x) & mask)
            return np.array([function(v & mask) for v in x.tolist()], held or x.dtype)

        return apply

    return {
        f"popc{bits}": lambda x: (
            np.bitwise_count(x.astype(np.uint64) & np.uint64(mask)).astype(x.dtype)
            if isinstance(x, np.ndarray)
            else (int(x) & mask).bit_count()
        ),
        f"clz{bits}": on_bits(lambda v: bits - v.bit_length()),
        f"ffs{bits}": on_bits(lambda v: (v & -v).bit_length(), np.uint64),
        f"brev{bits}": on_bits(lambda v: int(f"{v:0{bits}b}"[::-1], 2)),
    }


FUNCTIONS: dict[str, Function] = {
    name: getattr(np, name)
    for name in (
        "sqrt",
        "exp",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "floor",
        "ceil",
        "trunc",
        "fabs",
        "rint",
        "degrees",
        "radians",
        "exp2",
        "cbrt",
        "fmod",
        "hypot",
        "copysign",
        "isnan",
        "isinf",
        "isfinite",
    )
}
FUNCTIONS |= {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power,
    "min": _extreme(min, np.fmin), "max": _extreme(max, np.fmax),
    "minimum": _extreme(min, np.minimum), "maximum": _extreme(max, np.maximum),
    "divmod": lambda a, b: (wrap_signed(floor_divide(a, b)), modulo(a, b)),
    "abs": lambda x: wrap_signed(abs(x)),
    "erf": _by_number(math.erf), "erfc": _by_number(math.erfc),
    "gamma": _by_number(_gamma), "lgamma": _by_number(_lgamma),
    # computed wider and rounded once more: right but for a rare double rounding
    "fma": lambda a, b, c: np.asarray(
        np.asarray(a, np.longdouble) * np.asarray(b, np.longdouble) + np.asarray(c, np.longdouble)
    ).astype(np.asarray(a).dtype)[()],
}  # fmt: skip
for _bits_of in (8, 16, 32, 64):
    FUNCTIONS |= _bits(_bits_of)
_HALF: dict[str, Function] = {
    "hadd": np.add, "hsub": np.subtract, "hmul": np.multiply, "hdiv": np.divide,
    "hfma": lambda a, b, c: a.astype(np.float64) * b + c,
    "hneg": np.negative, "habs": np.abs, "hmax": np.fmax, "hmin": np.fmin,
    "hsin": np.sin, "hcos": np.cos, "hlog": np.log, "hlog2": np.log2, "hlog10": np.log10, "hexp": np.exp,
    "hexp2": np.exp2, "hexp10": lambda x: np.power(np.float32(10), x), "htanh": np.tanh, "hsqrt": np.sqrt,
    "hrsqrt": lambda x: 1 / np.sqrt(x), "hrcp": lambda x: 1 / x,
    "hfloor": np.floor, "hceil": np.ceil, "htrunc": np.trunc, "hrint": np.rint,
}  # fmt: skip
FUNCTIONS |= {name: _half(function) for name, function in _HALF.items()}
FUNCTIONS |= {
    "heq": lambda a, b: a == b, "hne": lambda a, b: a != b, "hlt": lambda a, b: a < b,
    "hle": lambda a, b: a <= b, "hgt": lambda a, b: a > b, "hge": lambda a, b: a >= b,
}  # fmt: skip
