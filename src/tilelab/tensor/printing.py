"""Tensors as text, byte for byte as CuTe C++ prints them. Source: ``cute/util/print_tensor.hpp``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab.layout.errors import LayoutError
from tilelab.layout.inttuple import product
from tilelab.layout.printing import MOST
from tilelab.tensor.storage import kind_of
from tilelab.tensor.tensor import Tensor


def format_tensor(tensor: Any, static: bool = False) -> str:
    """Return what :func:`print_tensor` prints."""
    if not isinstance(tensor, Tensor) or not 1 <= tensor.rank <= 4 or tensor.size > MOST:
        raise LayoutError(
            f"print_tensor prints a tensor of one to four modes and at most {MOST} elements, not {tensor!r}"
        )
    return f"{tensor.text(static)}:\n{''.join(_slices(tensor))}"


def print_tensor(tensor: Tensor, static: bool = False) -> None:
    """Print a tensor and its elements, as ``cute::print_tensor``; one to four modes.

    Raises
    ------
    LayoutError
        For what is no tensor of one to four modes.
    """
    print(format_tensor(tensor, static), end="")


def _slices(tensor: Tensor) -> Iterator[str]:
    sizes = [product(mode) for mode in tensor.shape] if isinstance(tensor.shape, tuple) else [tensor.size]
    if len(sizes) <= 2:
        columns = range(sizes[1]) if len(sizes) == 2 else [None]
        for i in range(sizes[0]):
            yield "".join([_element(tensor, i if j is None else (i, j)) for j in columns]) + "\n"
        return
    for k in range(sizes[-1]):
        if k:
            yield ("-" if len(sizes) == 3 else "=") * (5 * sizes[1]) + "\n"
        yield from _slices(tensor[(*[None] * (len(sizes) - 1), k)])


def _element(tensor: Tensor, coordinate: Any) -> str:
    value = tensor[coordinate]
    kind = str(tensor.storage.dtype).removeprefix("torch.") if kind_of(tensor.storage) else type(value).__name__
    if kind.startswith("bool"):
        return f"{int(value):3d}"
    if kind in ("float16", "bfloat16"):
        return f"{float(value):8.2f}"
    if kind.startswith("float"):
        return f"{float(value):10.2e}" if kind == "float32" else f"{float(value):11.3e}"
    return f"{int(value):5d}" if kind[:3] in ("int", "uin") else f"  {value}"
