"""SVG without dependencies: one document that is legible on light and dark pages."""

from __future__ import annotations

from html import escape
from itertools import groupby

from tilelab.draw.picture import Line, Picture, Rect, Text

#: Role -> its colour on a light and on a dark page. Text roles keep a contrast of 4.5:1 with their card.
ROLES = {
    "card": ("#ffffff", "#1b1f24"),
    "ink": ("#1b1f24", "#f0f3f6"),
    "faint": ("#59636e", "#aab4be"),
    "line": ("#6e7781", "#8b949e"),
    "hole": ("#eaeef2", "#30363d"),
}
#: Pages that say which theme they show (Jupyter Book, JupyterLab) are believed; else the browser's wish counts.
_DARK = ("html[data-theme=dark]", "body[data-jp-theme-light=false]")
_UNSAID = ":root:not([data-theme=light]):not(:has(body[data-jp-theme-light=true]))"
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_MARGIN = 8


def _style(roles: set[str]) -> str:
    """Return the rules for the roles in use."""

    def rules(theme: int, scope: str) -> str:
        return "".join(
            f"{scope} .tl-{role}{{fill:{ROLES[role][theme]}}}{scope} .tl-{role}-s{{stroke:{ROLES[role][theme]}}}"
            for role in sorted(roles)
        )

    said = "".join(rules(1, f"{page} .tilelab") for page in _DARK)
    # In a stand-alone file the root is the picture itself, so the last rule names both.
    wished = rules(1, f"{_UNSAID} .tilelab") + rules(1, "svg.tilelab:root")
    return f"{rules(0, '.tilelab')}{said}@media(prefers-color-scheme:dark){{{wished}}}"


def number(value: float) -> str:
    """Return a length without needless digits."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _paint(paint: str, stroke: bool = False) -> str:
    what = "stroke" if stroke else "fill"
    if paint in ROLES:
        return f'class="tl-{paint}{"-s" if stroke else ""}" {what}="{ROLES[paint][0]}"'
    return f'{what}="{paint}"'


def to_svg(picture: Picture) -> str:
    """Return a picture as an SVG document."""
    width, height = picture.width + 2 * _MARGIN, picture.height + 2 * _MARGIN
    roles = {"card", *(item.paint for item in picture.items)} & set(ROLES)
    description = f"<desc>{escape(picture.description)}</desc>" if picture.description else ""
    box = f"{-_MARGIN} {-_MARGIN} {number(width)} {number(height)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tilelab" role="img" aria-label="{escape(picture.title)}" '
        f'width="{number(width)}" height="{number(height)}" viewBox="{box}" font-family="{_FONT}">',
        f"<title>{escape(picture.title)}</title>{description}<style>{_style(roles)}</style>",
        f'<rect x="{-_MARGIN}" y="{-_MARGIN}" width="{number(width)}" height="{number(height)}" rx="6" '
        f"{_paint('card')}/>",
    ]
    for (kind, key), run in groupby(picture.items, _group):
        if kind is Rect:
            parts.append(_rects(key, list(run)))  # type: ignore[arg-type]
        elif kind is Text:
            parts.append(_texts(list(run)))  # type: ignore[arg-type]
        elif kind is Line:
            parts.append(_lines(list(run)))  # type: ignore[arg-type]
    parts.append("</svg>")
    return "\n".join(parts)


def _group(item: Rect | Text | Line) -> tuple[type, object]:
    """Tell which neighbours share one SVG element."""
    if isinstance(item, Rect):
        return Rect, item.paint
    if isinstance(item, Text):
        return Text, (item.size, item.anchor, item.paint, item.bold)
    return type(item), (item.width, item.paint)


def _rects(paint: str, rects: list[Rect]) -> str:
    path = "".join(
        f"M{number(r.x)} {number(r.y)}h{number(r.width)}v{number(r.height)}h{number(-r.width)}z"
        for r in rects
        if not r.note
    )
    parts = [f'<path {_paint(paint)} shape-rendering="crispEdges" d="{path}"/>'] if path else []
    parts += [
        f'<rect x="{number(r.x)}" y="{number(r.y)}" width="{number(r.width)}" height="{number(r.height)}" '
        f"{_paint(paint)}><title>{escape(r.note)}</title></rect>"
        for r in rects
        if r.note
    ]
    return "".join(parts)


def _texts(texts: list[Text]) -> str:
    first = texts[0]
    weight = ' font-weight="600"' if first.bold else ""
    inside = "".join(
        f'<text x="{number(t.x)}" y="{number(t.y + 0.35 * t.size)}">{escape(t.text)}</text>' for t in texts
    )
    return (
        f'<g font-size="{number(first.size)}" text-anchor="{first.anchor}"{weight} pointer-events="none" '
        f"{_paint(first.paint)}>{inside}</g>"
    )


def _lines(lines: list[Line]) -> str:
    first = lines[0]
    path = "".join(f"M{number(t.x1)} {number(t.y1)}L{number(t.x2)} {number(t.y2)}" for t in lines)
    return f'<path fill="none" stroke-width="{number(first.width)}" {_paint(first.paint, True)} d="{path}"/>'
