"""Where the rich display of layouts hooks in: this floor asks, a floor above draws."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

#: What turns a value of this floor into an SVG document; ``tilelab/__init__.py`` sets it.
_draw: Callable[[Any], str] | None = None


def set_drawer(draw: Callable[[Any], str]) -> None:
    """Let ``draw(value)``, which returns an SVG document, serve the rich display of this floor's values."""
    global _draw
    _draw = draw


class RichDisplay:
    """Shows a value as a picture in a notebook and as text elsewhere."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        return _draw(self) if _draw else None

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return SVG, the same SVG as HTML (it follows the page's theme and scrolls when it is wide), and text."""
        bundle = {"text/plain": repr(self)}
        svg = self._repr_svg_()
        if svg is not None:
            bundle["image/svg+xml"] = svg
            bundle["text/html"] = f'<div style="overflow-x:auto">{svg}</div>'
        wanted = [mime for mime in bundle if (not include or mime in include) and mime not in (exclude or ())]
        return {mime: bundle[mime] for mime in wanted}
