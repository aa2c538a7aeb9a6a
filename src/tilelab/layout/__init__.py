"""The layout algebra and its text forms."""

from tilelab.layout.errors import LayoutError
from tilelab.layout.inttuple import congruent, coordinates, depth, flatten, idx2crd, product, rank
from tilelab.layout.layout import Layout, LayoutLeft, LayoutRight, crd2idx, slice_and_offset
from tilelab.layout.printing import format_layout, print_layout
from tilelab.layout.simplify import coalesce

__all__ = [
    "Layout",
    "LayoutError",
    "LayoutLeft",
    "LayoutRight",
    "coalesce",
    "congruent",
    "coordinates",
    "cosize",
    "crd2idx",
    "depth",
    "flatten",
    "format_layout",
    "idx2crd",
    "print_layout",
    "product",
    "rank",
    "size",
    "slice_and_offset",
]


def size(value: object) -> int:
    """Return how many coordinates a layout or a shape has."""
    return value.size if isinstance(value, Layout) else product(value)  # type: ignore[arg-type]


def cosize(layout: Layout) -> int:
    """Return how many elements a buffer for a layout needs."""
    return layout.cosize
