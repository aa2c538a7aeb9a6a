"""The ladder as a picture: how far each rung is from the library."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's blue and orange: told apart by every kind of eye, light or dark.
BAR, LIBRARY_BAR = "#0072b2", "#e69f00"


def ladder_chart(rows: Sequence[Mapping[str, Any]], M: int, N: int, K: int, axes: "Axes | None" = None) -> "Axes":
    """Bars of TFLOP/s for one shape, with the share of cuBLAS written at each.

    Parameters
    ----------
    rows
        As :meth:`tilelab.measure.compare.Comparison.as_dicts` gives them, or as a recorded run holds them.
    M, N, K
        Which shape.
    axes
        Where to draw; a new figure where not given.

    Raises
    ------
    ValueError
        No row has that shape; the message lists those that there are.
    """
    import matplotlib.pyplot as plt

    chosen = [row for row in rows if (row["M"], row["N"], row["K"]) == (M, N, K)]
    if not chosen:
        there = sorted({f"{row['M']}×{row['N']}×{row['K']}" for row in rows})
        raise ValueError(f"no row for {M}×{N}×{K}; there are {', '.join(there)}")
    if axes is None:
        axes = plt.subplots(figsize=(7, 0.4 * len(chosen) + 1), layout="constrained")[1]
    names = [str(row["kernel"]) for row in chosen]
    rates = [float(row["tflops"]) for row in chosen]
    colours = [LIBRARY_BAR if name.startswith("cuBLAS") else BAR for name in names]
    places = range(len(chosen))
    axes.barh(places, rates, color=colours)
    # What the interval says of the time, turned into a rate: fast end, slow end.
    spread = [
        [rate - rate * row["ms"] / row["ms_95"][1] for rate, row in zip(rates, chosen, strict=True)],
        [rate * row["ms"] / row["ms_95"][0] - rate for rate, row in zip(rates, chosen, strict=True)],
    ]
    axes.errorbar(rates, places, xerr=spread, fmt="none", ecolor="#5b6770", capsize=2, linewidth=1)
    for place, rate, row in zip(places, rates, chosen, strict=True):
        share = f"{row['percent_of_cublas']:.1f} %" + (f"  ({row['trouble']})" if row.get("trouble") else "")
        axes.annotate(share, (rate, place), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set(xlabel="TFLOP/s (fp32), and share of cuBLAS", title=f"C ({M}×{N}) = A ({M}×{K}) · B ({K}×{N})")
    axes.set_xlim(0, max(rates) * 1.15)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
