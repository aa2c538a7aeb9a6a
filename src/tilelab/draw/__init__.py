"""Pictures of layouts, banks, traffic and rooflines."""

from typing import Any

from tilelab.draw.layouts import layout
from tilelab.draw.picture import Picture

__all__ = ["Picture", "layout", "svg_of"]


def svg_of(value: Any) -> str:
    """Return the SVG that a value of the layout floor shows in a notebook."""
    return layout(value).svg
