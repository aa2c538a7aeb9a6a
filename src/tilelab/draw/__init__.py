"""Pictures of layouts, thread-value layouts, swizzles, banks, sectors and memory, as SVG and TikZ."""

from typing import Any

from tilelab.draw.access import bank_conflicts, banks, sectors, traffic
from tilelab.draw.explain import Explanation, explain
from tilelab.draw.layouts import composition, composition_panels, layout, memory, swizzle, thread_values
from tilelab.draw.picture import Picture

__all__ = [
    "Explanation",
    "Picture",
    "bank_conflicts",
    "banks",
    "composition",
    "composition_panels",
    "explain",
    "layout",
    "memory",
    "sectors",
    "svg_of",
    "swizzle",
    "thread_values",
    "traffic",
]


def svg_of(value: Any) -> str:
    """Return the SVG that a value of the layout floor shows in a notebook."""
    return layout(value).svg
