"""TikZ: the same pictures for a paper, as one ``tikzpicture`` or as a document of its own."""

from __future__ import annotations

from tilelab.draw.picture import Picture, Rect, Text
from tilelab.draw.svg import ROLES, number

_ESCAPES = {c: f"\\{c}" for c in "#$%&_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "∘": r"$\circ$",
    "→": r"$\to$",
    "×": r"$\times$",
    "…": r"\dots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_ANCHORS = {"start": "west", "middle": "center", "end": "east"}
_POINTS = 0.75  # a CSS pixel in points


def to_tikz(picture: Picture) -> str:
    """Return a picture as a ``tikzpicture``, in its colours for light pages."""
    lines = [r"\begin{tikzpicture}[x=1pt,y=-1pt]"]
    for item in picture.items:
        if isinstance(item, Rect):
            corner = _point(item.x + item.width, item.y + item.height)
            lines.append(rf"\fill[{_colour('fill', item.paint)}] {_point(item.x, item.y)} rectangle {corner};")
        elif isinstance(item, Text):
            size = number(item.size * _POINTS)
            bold = r"\bfseries" if item.bold else ""
            font = rf"font=\fontsize{{{size}}}{{{size}}}\selectfont\ttfamily{bold}"
            style = f"anchor={_ANCHORS[item.anchor]},inner sep=0pt,{_colour('text', item.paint)},{font}"
            lines.append(rf"\node[{style}] at {_point(item.x, item.y)} {{{_escaped(item.text)}}};")
        else:
            style = f"{_colour('draw', item.paint)},line width={number(item.width * _POINTS)}pt"
            lines.append(rf"\draw[{style}] {_point(item.x1, item.y1)} -- {_point(item.x2, item.y2)};")
    return "\n".join([*lines, r"\end{tikzpicture}"])


def to_document(picture: Picture) -> str:
    """Return a picture as a LaTeX document of its own."""
    head = "\\documentclass[tikz,border=4pt]{standalone}\n\\begin{document}\n"
    return f"{head}{to_tikz(picture)}\n\\end{{document}}\n"


def _point(x: float, y: float) -> str:
    return f"({number(x * _POINTS)},{number(y * _POINTS)})"


def _colour(what: str, paint: str) -> str:
    colour = ROLES[paint][0] if paint in ROLES else paint
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"{what}={{rgb,255:red,{red};green,{green};blue,{blue}}}"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in text)
