"""Pictures of learners' own numbers about speed: rates below a card's peak, a product under a roof."""

import math
from collections.abc import Mapping

from tilelab.draw.colours import DISTINCT
from tilelab.draw.picture import Line, Picture, Rect, Text

#: Pixels of the longest bar, of a bar's height with its gap, of the names before a bar and of the numbers behind it.
REACH, STEP, NAMES, NUMBERS = 240.0, 34.0, 126.0, 250.0
#: Pixels of a decade of the roofline, and how far it goes each way from the ridge.
DECADE, DECADES = 90.0, (2.5, 1.5)


def rates_picture(rates: Mapping[str, float], peak: float | None, card: str) -> Picture:
    """Draw rates as bars, with the card's peak as the line that no bar can pass.

    Parameters
    ----------
    rates : mapping
        Name to FLOP/s.
    peak : float or None
        The card's peak in FLOP/s, where it is known.
    card : str
        The card's name.
    """
    most = max([*rates.values(), peak or 0.0])
    bottom = 30 + STEP * len(rates)
    picture = Picture(NAMES + REACH + NUMBERS, bottom + 22, f"what your times mean on {card:.40}")
    picture.items.append(Text(0, 10, picture.title, 13, "start", "ink", True))
    for number, (name, rate) in enumerate(rates.items()):
        top = 32 + STEP * number
        said = f"{rate / 1e12:.3g} TFLOP/s" + (f", {rate / peak:.0%} of the peak" if peak else "")
        picture.items += [
            Text(NAMES - 8, top + 11, name, 13, "end", "faint"),
            Rect(NAMES, top, max(REACH * rate / most, 1.0), 22, DISTINCT[number], f"{name}: {said}"),
            Text(NAMES + REACH + 10, top + 11, said, 13, "start"),
        ]
    if peak:
        x = NAMES + REACH * peak / most
        picture.items += [
            Line(x, 26, x, bottom, 2, "ink"),
            Text(x, bottom + 12, f"fp32 peak {peak / 1e12:.3g}", 12, "middle", "faint"),
        ]
    return picture


def roof_picture(intensity: float, ridge: float, peak: float, title: str) -> Picture:
    """Draw a card's roof over the intensity, and where a product of that intensity stands under it.

    Parameters
    ----------
    intensity : float
        FLOP per byte, as the learner has worked it out.
    ridge : float
        FLOP per byte from which on the peak is the bound.
    peak : float
        FLOP/s.
    title : str
        What stands above.
    """
    below, above = DECADES
    left, top, width, height = 106.0, 44.0, DECADE * (below + above), DECADE * below * 0.6
    place = min(max(math.log10(intensity / ridge), -below), above)
    x_ridge, x = left + DECADE * below, left + DECADE * (below + place)
    y = top + 0.6 * DECADE * max(-place, 0.0)
    bottom = top + height
    reachable = peak * min(1.0, intensity / ridge)
    yours = f"yours {intensity:,.4g} FLOP a byte"
    half = 3.8 * len(yours)
    picture = Picture(max(left + width + 8, 8.0 * len(title)), bottom + 46, title)
    picture.items += [
        Text(0, 10, title, 13, "start", "ink", True),
        Line(left, bottom, left + width, bottom, 1, "line"),
        Line(left, top, left, bottom, 1, "line"),
        Line(left, bottom, x_ridge, top, 3, DISTINCT[0]),
        Line(x_ridge, top, left + width, top, 3, DISTINCT[1]),
        Line(x_ridge, top, x_ridge, bottom, 1, "line"),
        Text(left - 6, top, f"{peak / 1e12:.3g} TFLOP/s", 12, "end", "faint"),
        Text(x_ridge, bottom + 14, f"ridge {ridge:.3g}", 12, "middle", "faint"),
        Line(x, y, x, bottom, 2, "ink"),
        Rect(
            x - 5, y - 5, 10, 10, DISTINCT[5], f"at most {reachable / 1e12:.3g} TFLOP/s at {intensity:.4g} FLOP a byte"
        ),
        Text(min(max(x, half), picture.width - half), bottom + 32, yours, 12, "middle", "ink"),
    ]
    return picture
