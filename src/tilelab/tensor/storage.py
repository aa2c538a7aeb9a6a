"""Memory that tensors read and write: numpy, torch and CuPy arrays, lists, and coordinates counted on the fly."""

from __future__ import annotations

from typing import Any

from tilelab.layout.errors import LayoutError, quote


def kind_of(array: Any) -> str:
    """Return whose array a value is: ``numpy``, ``torch``, ``cupy``, or ``""``."""
    root = type(array).__module__.partition(".")[0]
    return root if root in ("numpy", "torch", "cupy") and hasattr(array, "shape") else ""


def flat_view(array: Any) -> Any:
    """Return an array's memory as one axis that shares it, from its first element on; a list as it is.

    Raises
    ------
    LayoutError
        When the elements have holes between them, or the value is no storage.
    """
    if isinstance(array, (list, bytearray)):
        return array
    kind = kind_of(array)
    if not kind:
        raise LayoutError(f"storage is a numpy, torch or CuPy array, a list or an offset, not {quote(array)}")
    if array.ndim == 1:
        step = array.stride(0) if kind == "torch" else array.strides[0] // array.itemsize
        dense = step == 1 or len(array) < 2
    else:  # elements in the order of memory, whatever the order of the axes
        strides = array.stride() if kind == "torch" else array.strides
        order = sorted(range(array.ndim), key=lambda axis: -strides[axis])
        array = array.permute(order) if kind == "torch" else array.transpose(order)
        dense = array.is_contiguous() if kind == "torch" else bool(array.flags.c_contiguous)
    if not dense:
        raise LayoutError(
            f"this {kind} array of shape {tuple(array.shape)} has holes in memory; pass the array it views"
        )
    return array.reshape(-1)


def strided(flat: Any, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """Return a view of one-axis memory, sharing it, with shape and strides in elements."""
    kind = kind_of(flat)
    if kind == "torch":
        return flat.as_strided(shape, stride, flat.storage_offset() + offset)
    import importlib

    tricks = importlib.import_module(f"{kind}.lib.stride_tricks")
    steps = tuple([step * flat.itemsize for step in stride])
    return tricks.as_strided(flat[offset:], shape, steps)


def alike(flat: Any, values: Any, dtype: Any = None) -> Any:
    """Return values (a list, or an array of any library) as an array of the library and device that own the memory."""
    kind = kind_of(flat)
    if kind == "torch":
        import torch

        return torch.as_tensor(values, dtype=dtype, device=flat.device)
    if kind == "cupy":
        import cupy

        return cupy.asarray(values, dtype=dtype)
    return values


def described(flat: Any) -> str:
    """Return how CuTe names memory when it prints a tensor: ``ptr[32b](0x7f…)``."""
    kind = kind_of(flat)
    if not kind:
        return "list"
    address = flat.data_ptr() if kind == "torch" else flat.data.ptr if kind == "cupy" else flat.ctypes.data
    return f"ptr[{8 * flat.itemsize}b](0x{address:x})"
