"""Colours that a colour-blind reader can tell apart, and the text colour that is legible on each."""

from __future__ import annotations

#: Okabe and Ito's eight, lightened where dark text must stand on them (*Color Universal Design*, 2008).
DISTINCT = ("#56b4e9", "#e69f00", "#5ec7a2", "#f0e442", "#d991bb", "#f08a4b", "#8fa8d8", "#c9c9c9")
#: Ends of the ramp: light yellow to strong blue; lightness falls all the way, so it reads without colour too.
RAMP = ("#fff7d6", "#f3e3a1", "#b9d3c2", "#7fb6d6", "#4a8fc7")

DARK_TEXT, LIGHT_TEXT = "#15181c", "#ffffff"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def ramp(part: float) -> str:
    """Return the colour of a part of the way, 0 to 1, from light to dark."""
    place = min(max(part, 0.0), 1.0) * (len(RAMP) - 1)
    i = min(int(place), len(RAMP) - 2)
    mixed = [round(a + (b - a) * (place - i)) for a, b in zip(_channels(RAMP[i]), _channels(RAMP[i + 1]), strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Return the contrast of two colours, 1 to 21 (WCAG 2.2)."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def text_on(paint: str) -> str:
    """Return the text colour that stands out more from a colour; on a role, the ink that follows the theme with it."""
    if not paint.startswith("#"):
        return "ink"
    return max((DARK_TEXT, LIGHT_TEXT), key=lambda text: contrast(text, paint))
