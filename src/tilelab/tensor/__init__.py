"""Tensors: storage and a layout over it, cut, printed and written through, under CuTe's names."""

from tilelab.tensor.printing import format_tensor, print_tensor
from tilelab.tensor.tensor import Tensor, make_identity_tensor, make_tensor
from tilelab.tensor.tiles import inner_partition, local_partition, local_tile, outer_partition

__all__ = [
    "Tensor",
    "format_tensor",
    "inner_partition",
    "local_partition",
    "local_tile",
    "make_identity_tensor",
    "make_tensor",
    "outer_partition",
    "print_tensor",
]
