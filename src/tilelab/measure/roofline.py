"""The roofline: what arithmetic and memory allow, with kernels as dots under it (Williams, Waterman, Patterson, 2009).

The x of a dot is FLOP per byte of DRAM traffic, and a dot says which bytes those are: *compulsory* (each input read
once, each output written once: a bound, not a measurement) or *measured* by a profiler. Bytes that a kernel merely
requests are no x: caches answer most of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("compulsory", "measured")


@dataclass(frozen=True)
class Roof:
    """Peaks of a device: FLOP/s and bytes/s. ``name`` says whose and whether by data sheet or measured."""

    name: str
    flops: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """FLOP per byte at which arithmetic takes over from memory."""
        return self.flops / self.bandwidth

    def at(self, intensity: float) -> float:
        """FLOP/s that the roof allows at an intensity."""
        return min(self.flops, intensity * self.bandwidth)


@dataclass(frozen=True)
class Dot:
    """One kernel: its work, its bytes and its time.

    Parameters
    ----------
    name
        Beside the dot.
    flops, bytes, seconds
        Of one call.
    kind
        Which bytes: ``compulsory`` or ``measured``.
    """

    name: str
    flops: float
    bytes: float
    seconds: float
    kind: str

    def __post_init__(self) -> None:
        """Refuse what is no measurement."""
        if self.kind not in KINDS:
            raise ValueError(f"bytes of kind {self.kind!r}: a dot's bytes are {' or '.join(KINDS)}")
        if min(self.flops, self.bytes, self.seconds) <= 0:
            raise ValueError(f"{self.name}: flops, bytes and seconds are all above zero")

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        """FLOP/s."""
        return self.flops / self.seconds


def product_dot(
    name: str, M: int, N: int, K: int, milliseconds: float, itemsize: int = 4, measured_bytes: float | None = None
) -> Dot:
    """A dot for C (M×N) = A (M×K) · B (K×N).

    Parameters
    ----------
    name, M, N, K, milliseconds
        Of the kernel and its problem.
    itemsize
        Bytes of an element.
    measured_bytes
        DRAM traffic by a profiler; the compulsory bytes where not given.
    """
    least = float(itemsize * (M * K + K * N + M * N))
    kind = "compulsory" if measured_bytes is None else "measured"
    return Dot(name, 2.0 * M * N * K, least if measured_bytes is None else measured_bytes, milliseconds * 1e-3, kind)


def above(roof: Roof, dots: Sequence[Dot], slack: float = 0.02) -> list[Dot]:
    """Dots above the roof: each a mistake in the time, the bytes or the roof. ``slack`` is for the clock."""
    return [dot for dot in dots if not dot.rate <= roof.at(dot.intensity) * (1 + slack)]


def roofline(roof: Roof, dots: Sequence[Dot], axes: "Axes | None" = None) -> "Axes":
    """Draw the roof with its dots.

    Parameters
    ----------
    roof
        What the device allows.
    dots
        Kernels; filled for measured bytes, hollow for compulsory ones.
    axes
        Where to draw; a new figure where not given.

    Raises
    ------
    ValueError
        A dot lies above the roof.
    """
    wrong = above(roof, dots)
    if wrong:
        one, most = wrong[0], roof.at(wrong[0].intensity)
        raise ValueError(
            f"{one.name} runs at {one.rate / 1e12:.3g} TFLOP/s, above the roof's {most / 1e12:.3g} at "
            f"{one.intensity:.3g} FLOP/byte: its time, its bytes or the roof is wrong"
        )
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.subplots(figsize=(7, 4.5), layout="constrained")[1]
    intensities = [dot.intensity for dot in dots] or [roof.ridge]
    low, high = min(*intensities, roof.ridge) / 4, max(*intensities, roof.ridge) * 8
    corners = sorted({low, roof.ridge, high})
    axes.plot(corners, [roof.at(x) / 1e12 for x in corners], color="#5b6770", linewidth=2)
    grey: dict[str, Any] = {"color": "#5b6770", "va": "bottom"}
    axes.annotate(
        f"{roof.flops / 1e12:.3g} TFLOP/s",
        (roof.ridge, roof.flops / 1e12),
        xytext=(0, 3),
        textcoords="offset points",
        **grey,
    )
    slope = (low, roof.at(low) / 1e12)
    axes.annotate(f"{roof.bandwidth / 1e12:.3g} TB/s", slope, xytext=(14, 0), textcoords="offset points", **grey)
    # Labels of dots that nearly coincide would cover one another: each keeps a step below the last.
    step = (roof.flops / min([dot.rate for dot in dots], default=roof.flops)) ** 0.04
    last = roof.flops / 1e12
    for dot in sorted(dots, key=lambda dot: -dot.rate):
        at, fill = (dot.intensity, dot.rate / 1e12), "#0072b2" if dot.kind == "measured" else "none"
        axes.scatter([at[0]], [at[1]], s=45, facecolor=fill, edgecolor="#0072b2", linewidth=1.5, zorder=3)
        last = min(at[1], last / step)
        arrow = {"arrowstyle": "-", "color": "#5b6770", "linewidth": 0.5}
        axes.annotate(dot.name, at, xytext=(at[0] * 1.4, last), arrowprops=arrow, fontsize=8, va="center")
    axes.set(xscale="log", yscale="log", xlabel="FLOP per byte of DRAM traffic", ylabel="TFLOP/s", title=roof.name)
    kinds = sorted({dot.kind for dot in dots})
    axes.text(0.01, 0.02, f"bytes: {' and '.join(kinds)}", transform=axes.transAxes, va="bottom", fontsize=8)
    return axes
