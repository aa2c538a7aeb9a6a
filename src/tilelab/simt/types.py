"""Types as Numba infers them for a GPU: what an operator gives, and what a variable is where branches meet.

The rules are those of numba-cuda's typing context, recorded in ``tests/data/simt/numba_typing.json``: integers are
computed in 64 bits, signed if any operand is; float32 with an integer is float64; float32 with float32 stays float32.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

#: What a kernel's file imports, as from Numba.
__all__ = [
    "boolean", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64",
]  # fmt: skip


@dataclass(frozen=True)
class Scalar:
    """A number type. Callable like Numba's, in kernels (a cast) and on the host (a NumPy scalar)."""

    name: str
    kind: str
    """``b``, ``i``, ``u`` or ``f``."""
    bits: int

    @cached_property
    def dtype(self) -> "np.dtype[Any]":
        """The NumPy dtype that arrays of it have."""
        return np.dtype(self.name if self.kind != "b" else "bool")

    @cached_property
    def held(self) -> "np.dtype[Any]":
        """The dtype in which lanes hold it: integers in 64 bits, since arithmetic on them is in 64 bits."""
        if self.kind in "iu":
            return np.dtype("int64" if self.kind == "i" else "uint64")
        return self.dtype

    @property
    def wide(self) -> "Scalar":
        """The integer type in which it is computed with."""
        return uint64 if self.kind == "u" else int64

    def __call__(self, value: Any = 0) -> Any:
        return self.dtype.type(value)

    def __getitem__(self, _: Any) -> "Scalar":
        """``float32[:, :]`` in a signature; the simulator takes types from the arguments."""
        return self

    def __str__(self) -> str:
        return self.name


boolean = Scalar("bool", "b", 1)
int8, int16, int32, int64 = (Scalar(f"int{b}", "i", b) for b in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (Scalar(f"uint{b}", "u", b) for b in (8, 16, 32, 64))
float16, float32, float64 = (Scalar(f"float{b}", "f", b) for b in (16, 32, 64))
SCALARS = (
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    float32,
    float64,
)
_BY_DTYPE = {s.dtype: s for s in SCALARS}


@dataclass(frozen=True)
class Vector:
    """``float32x4`` and its like: 2 to 4 numbers in one register group, loaded and stored as one."""

    name: str
    base: Scalar
    count: int

    @cached_property
    def dtype(self) -> "np.dtype[Any]":
        """A structured dtype with the fields x, y, z, w."""
        return np.dtype([(axis, self.base.dtype) for axis in self.fields], align=False)

    @property
    def fields(self) -> str:
        """The names of its components, one letter each."""
        return "xyzw"[: self.count]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Array:
    """A view of memory. ``roots`` names the arguments or allocations it may point into."""

    element: Scalar | Vector
    ndim: int
    space: str
    """``global``, ``shared``, ``local`` or ``const``."""
    roots: frozenset[str]

    def __str__(self) -> str:
        return f"array({self.element}, {self.ndim}d, {self.space})"


@dataclass(frozen=True)
class Tuple:
    """A tuple of values."""

    items: tuple["Type", ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


@dataclass(frozen=True)
class Nothing:
    """``None``: what a function without a value returns."""

    def __str__(self) -> str:
        return "none"


Type = Scalar | Vector | Array | Tuple | Nothing
none = Nothing()

#: Numba's vector types and their CUDA names.
VECTORS: dict[str, Vector] = {}
_CUDA_NAMES = {
    int8: "char", int16: "short", int32: "int", int64: "longlong",
    uint8: "uchar", uint16: "ushort", uint32: "uint", uint64: "ulonglong",
    float32: "float", float64: "double",
}  # fmt: skip
for _base, _cuda in _CUDA_NAMES.items():
    for _count in (2, 3, 4):
        VECTORS[f"{_base}x{_count}"] = VECTORS[f"{_cuda}{_count}"] = Vector(f"{_base}x{_count}", _base, _count)


class TypingFault(TypeError):
    """Types that do not go together; the message says which."""


def of_dtype(dtype: Any) -> Scalar:
    """The number type of a NumPy dtype.

    Raises
    ------
    TypingFault
        Complex, structured, object and other dtypes.
    """
    found = _BY_DTYPE.get(np.dtype(dtype))
    if found is None:
        raise TypingFault(f"arrays of {np.dtype(dtype)} are not simulated; use one of {', '.join(map(str, SCALARS))}")
    return found


def of_value(value: Any) -> Scalar:
    """The type of a number passed to a kernel or found in its globals.

    Python's float is float64; its int is int64, and uint64 from 2**63 on.

    Raises
    ------
    TypingFault
        No number, or an int of more than 64 bits.
    """
    if isinstance(value, bool | np.bool_):
        return boolean
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise TypingFault(f"{value} does not fit into 64 bits; a kernel has integers from -2**63 to 2**64 - 1")
        return int64 if value < 1 << 63 else uint64
    if isinstance(value, float):
        return float64
    if isinstance(value, np.generic):
        return of_dtype(value.dtype)
    raise TypingFault(f"{value!r} is no number")


def unify(a: Type, b: Type) -> Type:
    """The type of a variable that is ``a`` on one way and ``b`` on another; also of ``min(a, b)``.

    Raises
    ------
    TypingFault
        They have nothing in common.
    """
    if a == b:
        return a
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return _unify_scalars(a, b)
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
        return Tuple(tuple(unify(x, y) for x, y in zip(a.items, b.items, strict=True)))
    if isinstance(a, Array) and isinstance(b, Array) and (a.element, a.ndim, a.space) == (b.element, b.ndim, b.space):
        return Array(a.element, a.ndim, a.space, a.roots | b.roots)
    raise TypingFault(f"it is {a} on one way and {b} on another")


def _unify_scalars(a: Scalar, b: Scalar) -> Scalar:
    if a.kind == "b" or b.kind == "b":
        return b if a.kind == "b" else a
    if a.kind == b.kind:
        return a if a.bits >= b.bits else b
    if "f" in a.kind + b.kind:
        number, real = (b, a) if a.kind == "f" else (a, b)
        exact = float16 if number.bits == 8 else float32 if number.bits == 16 else float64
        return exact if exact.bits > real.bits else real
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        return float64
    return {8: int16, 16: int32, 32: int64}[unsigned.bits]


def _integers(a: Scalar, b: Scalar) -> Scalar:
    return uint64 if a.kind == b.kind == "u" else int64


def _arithmetic(a: Scalar, b: Scalar) -> Scalar:
    if a.kind != "f" and b.kind != "f":
        return _integers(a, b)
    if a.kind == b.kind == "f":
        return _unify_scalars(a, b)
    number, real = (b, a) if a.kind == "f" else (a, b)
    small = number.kind == "b" or number == int8
    exact = float16 if small else float32 if number in (int16, uint8) else float64
    return exact if exact.bits > real.bits else real


def binary(op: str, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """What ``a op b`` gives, and the types in which its operands are taken.

    Parameters
    ----------
    op
        As written: ``+ - * / // % ** << >> & | ^``.
    a, b
        Types of the operands.

    Returns
    -------
    result, left, right

    Raises
    ------
    TypingFault
        Bits of a float.
    """
    floats = "f" in a.kind + b.kind
    if op in ("<<", ">>", "&", "|", "^"):
        if floats:
            raise TypingFault(f"{a} {op} {b} asks for the bits of a float")
        if op in ("<<", ">>"):
            whole = uint64 if a.kind == "u" else int64
            return whole, whole, uint64 if b.kind == "u" else int64
        if a.kind == b.kind == "b":
            return boolean, boolean, boolean
        whole = _integers(a, b)
        return whole, whole, whole
    common = _arithmetic(a, b)
    if op == "/" and not floats:
        return float64, float64, float64
    if op in ("//", "%", "**") and common is float16:
        common = float32
    if op == "**" and a.kind == "f" and b.kind != "f":
        base = float32 if a.bits < 64 else float64
        return base, base, int64
    return common, common, common


def unary(op: str, a: Scalar) -> Scalar:
    """What ``op a`` gives, for ``-``, ``+``, ``~`` and ``not``."""
    if op == "not":
        return boolean
    if op == "~" and a.kind == "f":
        raise TypingFault(f"~{a} asks for the bits of a float")
    if op == "~" and a.kind == "b":
        return boolean
    return a if a.kind == "f" else uint64 if a.kind == "u" else int64


#: Numbers that Numba takes for a float32 where a function of the GPU's library has a form for it.
SINGLE = (boolean, int8, int16, uint8, float16, float32)
#: Functions that have a form of their own for float16.
_HALF = ("sqrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "floor", "ceil", "trunc", "fabs")


def of_math(name: str, *operands: Scalar) -> Scalar:
    """What a function of ``math`` gives: its operand's float type, float64 for integers that may not fit a float32."""
    first = operands[0]
    if len(operands) == 1:
        if first == float16:
            return float16 if name in _HALF else float32
        return first if first.kind == "f" else float64
    single = all(t in SINGLE or (name == "pow" and t == int32) for t in operands) and first in SINGLE
    if name in ("atan2", "hypot"):
        single &= any(t.kind == "f" for t in operands)
    return float32 if single else float64


def of_numpy(*operands: Scalar) -> Scalar:
    """What a function of NumPy gives: the widest of its floats; of integers float32 up to 16 bits, else float64.

    Raises
    ------
    TypingFault
        A float16, for which Numba has none of them.
    """
    if float16 in operands:
        raise TypingFault("Numba's functions of NumPy take no float16; write float32(...) around it")
    floats = [t for t in operands if t.kind == "f"]
    if floats:
        return float64 if float64 in floats else float32
    return float32 if all(t.bits <= 16 for t in operands) else float64
