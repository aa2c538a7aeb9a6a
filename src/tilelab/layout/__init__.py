"""The layout algebra and its text forms, under CuTe's names."""

from __future__ import annotations

from typing import Any

# Names in rows: one a line would make this file the longest of all.
# fmt: off
# isort: off
from tilelab.layout.basis import ArithTuple, E
from tilelab.layout.compose import composition
from tilelab.layout.construct import (
    make_fragment_like, make_identity_layout, make_layout, make_layout_like, make_ordered_layout,
)
from tilelab.layout.divide import Division, flat_divide, logical_divide, tiled_divide, zipped_divide
from tilelab.layout.errors import LayoutError
from tilelab.layout.fit import fit_layout
from tilelab.layout.inttuple import (
    check, checked_shape, compatible, congruent, coordinates, crd2crd, depth, has_none, idx2crd, is_int, leaves,
    prefix_product, product, product_each, rank, weakly_congruent,
)
from tilelab.layout.inverse import (
    complement, domain_distribute, left_inverse, max_alignment, max_common_layout, max_common_vector, nullspace,
    right_inverse,
)
from tilelab.layout.layout import Layout, LayoutLeft, LayoutRight, crd2idx, slice_, slice_and_offset
from tilelab.layout.printing import format_layout, print_layout
from tilelab.layout.products import (
    blocked_product, flat_product, logical_product, make_layout_tv, raked_product, tile_to_shape, tiled_product,
    zipped_product,
)
from tilelab.layout.recast import downcast, recast, upcast
from tilelab.layout.simplify import coalesce, filter, filter_zeros, flatten_layout, group, select, sort, take
from tilelab.layout.swizzle import ComposedLayout, Swizzle, as_function, linear_bases
from tilelab.layout.tables import offset_table
from tilelab.layout.tuples import (
    append, ceil_div, dice, elem_scale, inner_product, prepend, replace, round_up, shape_div, unflatten, unwrap,
    wrap, zip,
)
from tilelab.layout.values import Shaped
# isort: on

__all__ = [
    "ArithTuple", "ComposedLayout", "Division", "E", "Layout", "LayoutError", "LayoutLeft", "LayoutRight", "Swizzle",
    "append", "blocked_product", "ceil_div", "coalesce", "compatible", "complement", "composition", "congruent",
    "coordinates", "coshape", "cosize", "crd2crd", "crd2idx", "depth", "dice", "domain_distribute", "downcast",
    "elem_scale", "filter", "filter_zeros", "fit_layout", "flat_divide", "flat_product", "flatten", "format_layout",
    "group", "has_none", "idx2crd", "inner_product", "is_int", "left_inverse", "linear_bases", "logical_divide",
    "logical_product", "make_fragment_like", "make_identity_layout", "make_layout", "make_layout_like",
    "make_layout_tv", "make_ordered_layout", "max_alignment", "max_common_layout", "max_common_vector", "nullspace",
    "offset_table", "prefix_product", "prepend", "print_layout", "product", "product_each", "raked_product", "rank",
    "recast", "replace", "right_inverse", "round_up", "select", "shape_div", "size", "slice_", "slice_and_offset",
    "sort", "take", "tile_to_shape", "tiled_divide", "tiled_product", "unflatten", "unwrap", "upcast",
    "weakly_congruent", "wrap", "zip", "zipped_divide", "zipped_product",
]
# fmt: on


def size(value: Any) -> int:
    """Return how many coordinates a layout, a tensor or a shape has."""
    return value.size if isinstance(value, Shaped) else product(checked_shape(value))


def cosize(layout: Any) -> int:
    """Return how many elements a buffer for a layout needs."""
    return as_function(getattr(layout, "layout", layout)).cosize  # type: ignore[no-any-return]


def coshape(layout: Any) -> Any:
    """Return the smallest shape that holds everything a layout gives; the cosize where it gives offsets."""
    return as_function(getattr(layout, "layout", layout)).coshape


def flatten(value: Any) -> Any:
    """Return a layout, or an integer tuple, with all its modes side by side; ``4`` gives ``(4,)``."""
    return flatten_layout(value) if isinstance(value, Shaped) else tuple(leaves(check(value)))
