"""What a learner sees of a measurement: both kernels under the device's roofline. And the table for an instructor."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tilelab.draw.colours import DISTINCT
from tilelab.draw.picture import Line, Picture, Rect, Text
from tilelab.draw.svg import to_svg
from tilelab.grading.timed.wanted import Measured
from tilelab.measure.roofline import Dot, Roof, product_dot

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 460, 250, 58, 26, 42


def drawing(measured: Measured) -> str:
    """Return a roofline with a dot for each kernel, as an SVG for a notebook; ``""`` where nothing was timed."""
    ceilings = measured.about.get("ceilings", {})
    if measured.outcome != "timed" or measured.emulated or not ceilings:
        return ""
    roof = Roof(str(measured.device["name"]), float(ceilings["flops"]), float(ceilings["bandwidth"]))
    times = {name: measured.time(name).value for name in measured.samples}
    if min(times.values()) <= 0:
        return ""
    dots = [product_dot(name, *measured.shape, time) for name, time in times.items()]
    return f'<div class="tilelab-roofline">{to_svg(roofline(roof, dots))}</div>'


def roofline(roof: Roof, dots: Sequence[Dot]) -> Picture:
    """Draw the roof and the dots, both axes logarithmic; bytes are the compulsory ones."""
    lowest = min(dot.rate for dot in dots)
    x_low, x_high = min(roof.ridge, dots[0].intensity) / 4, max(roof.ridge, dots[0].intensity) * 4
    y_low, y_high = lowest / 3, roof.flops * 1.6

    def at(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / x_low) / math.log(x_high / x_low)
        up = math.log(y / y_low) / math.log(y_high / y_low)
        return LEFT + across * (WIDTH - LEFT - 10), TOP + (1 - up) * (HEIGHT - TOP - BOTTOM)

    items: list[Rect | Text | Line] = []
    floor = HEIGHT - BOTTOM
    items += [Line(LEFT, floor, WIDTH - 10, floor, 1, "line"), Line(LEFT, TOP, LEFT, floor, 1, "line")]
    start = max(x_low, y_low / roof.bandwidth)
    corners = [at(x, roof.at(x)) for x in (start, roof.ridge, x_high)]
    items += [Line(*a, *b, 2, "faint") for a, b in pairwise(corners)]
    items.append(Text(WIDTH - 12, corners[1][1] - 10, f"{roof.flops / 1e12:.3g} TFLOP/s", 11, "end", "faint"))
    last = float(TOP)
    for number, dot in enumerate(sorted(dots, key=lambda dot: -dot.rate)):
        x, y = at(dot.intensity, dot.rate)
        colour = DISTINCT[number % len(DISTINCT)]
        label = max(y, last + 15)
        last = label
        note = f"{dot.name}: {dot.rate / 1e12:.3g} TFLOP/s"
        items.append(Rect(x - 5, y - 5, 10, 10, colour, note))
        items.append(Line(x - 7, y, x - 16, label, 1, "line"))
        items.append(Text(x - 19, label, note, 11, "end", "ink", bold=dot.name == "yours"))
    items.append(Text(LEFT, 10, f"{roof.name}, float32", 12, "start", "ink", bold=True))
    middle = (LEFT + WIDTH) / 2
    items.append(Text(middle, HEIGHT - 12, "FLOP per byte that must be moved at least", 11, "middle", "faint"))
    for x in (x for x in (1, 10, 100, 1000, 10_000) if x_low < x < x_high):
        items.append(Text(at(x, y_low)[0], floor + 12, f"{x:g}", 10, "middle", "faint"))
    for y in (y for y in (0.01, 0.1, 1, 10, 100, 1000) if y_low < y * 1e12 < y_high):
        items.append(Text(LEFT - 6, at(x_low, y * 1e12)[1], f"{y:g} T", 10, "end", "faint"))
    return Picture(WIDTH, HEIGHT, title=f"roofline of {roof.name} with {len(dots)} kernels", items=items)


def row_of(name: str, measured: Measured) -> dict[str, Any]:
    """Return a measurement as an instructor reads it: times, samples, clocks."""
    clocks = [one["sm_mhz"] for one in measured.about.get("clocks", []) if "sm_mhz" in one]
    row: dict[str, Any] = {"measurement": name[:8], "device": measured.device["name"], "outcome": measured.outcome}
    if measured.samples:
        first, *others = measured.samples
        over = measured.fastest(others)
        gain, mine, theirs = measured.gain(over, first), measured.time(first), measured.time(over)
        walls = sorted(sample[0] for sample in measured.samples[first])
        row |= {
            "kernel": first,
            "ms": mine.value,
            "ms by the wall": walls[len(walls) // 2],
            "against": over,
            "its ms": theirs.value,
            "gain": gain.value,
            "interval": [gain.low, gain.high],
            "samples": gain.count,
        }
    return row | {
        "SM MHz": f"{min(clocks)}–{max(clocks)}" if clocks else "",
        "seconds": measured.about.get("seconds", 0.0),
        "words": measured.words,
    }
