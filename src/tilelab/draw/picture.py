"""A picture as data: rectangles, texts and lines in pixels, y downwards. SVG and TikZ are made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tilelab.layout.display import RichDisplay


@dataclass(frozen=True, slots=True)
class Rect:
    """A filled box; ``note`` shows when a reader points at it. ``paint`` is a colour ``#rrggbb`` or a role."""

    x: float
    y: float
    width: float
    height: float
    paint: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text centred on its height; ``paint`` is a colour or a role, ``anchor`` is start, middle or end."""

    x: float
    y: float
    text: str
    size: float = 13
    anchor: str = "middle"
    paint: str = "ink"
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line; ``paint`` is a colour or a role."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float = 1
    paint: str = "line"


@dataclass(repr=False)
class Picture(RichDisplay):
    """Items on a card of a given size; shows itself in a notebook.

    Paints are colours ``#rrggbb``, which are the same in light and dark, or roles, which follow the theme: ``ink``
    (text on the card), ``faint`` (labels), ``line`` (grid), ``card``, ``hole`` (a place nothing uses).
    """

    width: float
    height: float
    title: str
    description: str = ""
    """What it shows, in words, for those who do not see it."""
    items: list[Rect | Text | Line] = field(default_factory=list)

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        from tilelab.draw.svg import to_svg  # it draws pictures, so it imports this module

        return to_svg(self)

    @property
    def tikz(self) -> str:
        """The picture as a ``tikzpicture`` for LaTeX."""
        from tilelab.draw.tikz import to_tikz

        return to_tikz(self)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file ending in ``.svg``, or to a LaTeX document ending in ``.tex``.

        Raises
        ------
        ValueError
            For another ending.
        """
        from tilelab.draw.tikz import to_document

        path = Path(path)
        if path.suffix not in (".svg", ".tex"):
            raise ValueError(f"cannot tell the format of {path.name!r}; end the name in .svg or .tex")
        path.write_text(self.svg if path.suffix == ".svg" else to_document(self), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<picture: {self.title}>"

    def shifted(self, dx: float, dy: float) -> list[Rect | Text | Line]:
        """Return the items moved by so many pixels, to place them in a larger picture."""
        moved: list[Rect | Text | Line] = []
        for item in self.items:
            if isinstance(item, Rect):
                moved.append(Rect(item.x + dx, item.y + dy, item.width, item.height, item.paint, item.note))
            elif isinstance(item, Text):
                moved.append(Text(item.x + dx, item.y + dy, item.text, item.size, item.anchor, item.paint, item.bold))
            else:
                moved.append(Line(item.x1 + dx, item.y1 + dy, item.x2 + dx, item.y2 + dy, item.width, item.paint))
        return moved


def side_by_side(pictures: list[Picture], title: str, gap: float = 24) -> Picture:
    """Return one picture with the given ones from left to right."""
    told = [f"{picture.title}: {picture.description}" for picture in pictures if picture.description]
    whole = Picture(0, 0, title, " ".join(told))
    for picture in pictures:
        whole.items += picture.shifted(whole.width, 0)
        whole.width += picture.width + gap
        whole.height = max(whole.height, picture.height)
    whole.width -= gap
    return whole
