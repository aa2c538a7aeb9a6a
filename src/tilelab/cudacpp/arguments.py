"""Arrays and scalars on their way into a kernel: numpy, torch and CuPy alike, checked before anything runs."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.cudacpp.errors import LaunchError, brief
from tilelab.cudacpp.source import SIZES, Parameter

_FORMATS = {
    "float32": "f", "float64": "d", "float16": "e", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "bool": "?",
}  # fmt: skip
#: More elements than a 32-bit index can count.
INDEX_LIMIT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Array:
    """An array argument, whichever library it comes from. ``device`` is ``cpu`` or ``gpu``."""

    value: Any
    name: str
    dtype: str
    shape: tuple[int, ...]
    itemsize: int
    pointer: int
    device: str
    ordinal: int
    writable: bool = True

    @property
    def bytes(self) -> int:
        """Length in bytes."""
        return math.prod(self.shape) * self.itemsize


@dataclass(frozen=True)
class Scalar:
    """A scalar argument, packed as the kernel's parameter type."""

    value: int | float | bool
    packed: bytes
    dtype: str


Argument = Array | Scalar


def _is_array(value: Any) -> bool:
    known = hasattr(value, "data_ptr") or hasattr(value, "__cuda_array_interface__")
    return known or type(value).__name__ in ("ndarray", "memmap")


def address(value: Any) -> int:
    """Where an array of numpy, torch or CuPy starts in memory."""
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    if hasattr(value, "__cuda_array_interface__"):
        return int(value.data.ptr)
    return int(value.ctypes.data)


def _array(value: Any, parameter: Parameter) -> Array:
    who = f"argument {parameter.name or '?'}"
    dtype, writable = str(value.dtype).removeprefix("torch."), True
    if hasattr(value, "data_ptr"):  # torch
        contiguous, itemsize = value.is_contiguous(), value.element_size()
        kind, ordinal = value.device.type, value.device.index or 0
        if kind not in ("cpu", "cuda"):
            raise LaunchError(f"{who} lives on {kind!r}; a kernel reads memory of the CPU (emulated) or of a CUDA GPU")
        device = "gpu" if kind == "cuda" else "cpu"
    elif hasattr(value, "__cuda_array_interface__"):
        contiguous, itemsize = value.flags.c_contiguous, value.itemsize
        device, ordinal = "gpu", value.device.id
    else:
        contiguous, itemsize = value.flags.c_contiguous, value.itemsize
        device, ordinal, writable = "cpu", 0, bool(value.flags.writeable)
    shape = tuple(int(extent) for extent in value.shape)
    if not contiguous:
        raise LaunchError(
            f"{who} is not contiguous (a transposed view or a slice); a kernel sees a bare pointer, so pass a "
            "contiguous copy, or pass the base array and its strides"
        )
    if parameter.dtype and dtype != parameter.dtype:
        mend = ": numpy has none, so pass a torch.bfloat16 tensor" if parameter.dtype == "bfloat16" else ""
        raise LaunchError(f"{who} is {dtype}, but the kernel declares {parameter}, which is {parameter.dtype}{mend}")
    if math.prod(shape) == 0:
        raise LaunchError(f"{who} has shape {shape}: there is nothing to compute on")
    if math.prod(shape) > INDEX_LIMIT:
        raise LaunchError(f"{who} has {math.prod(shape)} elements; an int index of a kernel counts to {INDEX_LIMIT}")
    if parameter.written and not writable:
        raise LaunchError(f"{who} is a read-only array, but the kernel declares {parameter} and may write: pass a copy")
    return Array(value, parameter.name, dtype, shape, itemsize, address(value), device, ordinal, writable)


def _scalar(value: Any, parameter: Parameter) -> Scalar:
    who = f"argument {parameter.name or '?'}"
    try:
        plain = value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):  # an array of more than one element, of whichever library
        plain = value
    if not isinstance(plain, bool | int | float):
        raise LaunchError(f"{who} is {brief(value)}, but the kernel declares {parameter}: pass a number")
    dtype = parameter.dtype
    if not dtype:
        raise LaunchError(
            f"{who} has type {parameter.ctype}, and what that is the text does not tell: write the type itself "
            "(float, double, int, long long, …), or typedef … or using … in the same source; of a struct pass the "
            "members one by one, or an array"
        )
    if dtype not in _FORMATS or struct.calcsize(_FORMATS[dtype]) != SIZES[parameter.ctype]:
        raise LaunchError(f"{who} has type {parameter.ctype}, which cannot be passed by value; pass a pointer")
    whole = "int" in dtype
    if whole and isinstance(plain, bool):
        raise LaunchError(f"{who} is {plain}, but the kernel declares {parameter}: pass a whole number")
    if whole and isinstance(plain, float):
        raise LaunchError(f"{who} is {brief(plain)}, but the kernel declares {parameter}: pass a whole number")
    try:
        packed = struct.pack("<" + _FORMATS[dtype], plain)
    except (struct.error, OverflowError):
        raise LaunchError(f"{who} is {brief(plain)}, which does not fit {parameter.ctype}") from None
    return Scalar(plain, packed, dtype)


def bind(parameters: Sequence[Parameter], values: Sequence[Any], name: str) -> tuple[Argument, ...]:
    """Match values with a kernel's parameters.

    Raises
    ------
    LaunchError
        Wrong number, wrong dtype, not contiguous, empty, too large, on different devices, or an output that overlaps
        another argument.
    """
    if len(values) != len(parameters):
        declared = ", ".join(map(str, parameters))
        raise LaunchError(f"{name} takes {len(parameters)} arguments ({declared}), {len(values)} were given")
    bound: list[Argument] = []
    for parameter, value in zip(parameters, values, strict=True):
        if parameter.pointer and not _is_array(value):
            kind_of = any(base.__name__ == "ndarray" for base in type(value).__mro__)  # np.matrix, masked arrays
            mend = (
                f"a kernel sees the memory alone, so pass numpy.asarray({parameter.name})"
                if kind_of
                else "pass an array"
            )
            raise LaunchError(
                f"argument {parameter.name} is {brief(value)}, but the kernel declares {parameter}: {mend}"
            )
        if not parameter.pointer and _is_array(value) and value.ndim:
            raise LaunchError(
                f"argument {parameter.name} is an array, but the kernel declares {parameter}: pass a number"
            )
        bound.append(_array(value, parameter) if parameter.pointer else _scalar(value, parameter))
    arrays = [(p, a) for p, a in zip(parameters, bound, strict=True) if isinstance(a, Array)]
    places = sorted({f"{a.device}:{a.ordinal}" for _, a in arrays})
    if len(places) > 1:
        which = ", ".join(f"{a.name} on {a.device}" for _, a in arrays)
        raise LaunchError(f"the arrays live on different devices ({which}); move them to one")
    for i, (p, a) in enumerate(arrays):
        for q, b in arrays[:i]:
            overlap = a.pointer < b.pointer + b.bytes and b.pointer < a.pointer + a.bytes
            if overlap and (p.written or q.written):
                raise LaunchError(
                    f"{q.name} and {p.name} share memory, and the kernel writes to "
                    f"{p.name if p.written else q.name}: give the output its own array"
                )
    return tuple(bound)


def host_bytes(array: Array) -> bytes:
    """Contents of a CPU array."""
    return bytes(_host_view(array.value))


def store(array: Array, content: bytes) -> None:
    """Write bytes back into a CPU array, in place."""
    _host_view(array.value)[:] = content


def _host_view(value: Any) -> memoryview:
    import numpy

    if hasattr(value, "data_ptr"):
        import torch

        value = value.detach().reshape(-1).view(torch.uint8).numpy()
    return numpy.asarray(value).reshape(-1).view(numpy.uint8).data
