"""What keeps a kernel from being faster: the part of the GPU that is busy for most of its time, or none.

A part that is busy for at least 60 % of a kernel's time bounds it; that is the line that NVIDIA's profiler draws too.
Where no part is that busy, the kernel waits: for data on its way, at barriers, for blocks that are too few to fill the
GPU. Its bound is latency then.

How busy a part is comes from a profiler, or is estimated from below: the work that the part has to do at least, over
the most it can do in the time that was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: From which share of the time on a part counts as the bound.
ENOUGH = 0.6
#: FP32 lanes and load/store lanes of an SM, of every chip since 2020 but the A100: a clock sees four warps multiply
#: and add, and one warp's load pass to L1 and shared memory.
MULTIPLIERS, LOADERS = 128, 32


@dataclass(frozen=True)
class Bound:
    """What bounds a kernel.

    Parameters
    ----------
    by
        ``arithmetic``, ``memory`` (DRAM), ``L2``, ``L1``, ``shared memory``, ``instruction issue``, ``latency``; or
        ``unknown``, where nobody counted what a kernel loads and neither arithmetic nor DRAM is busy enough.
    busiest
        The part that is busy for most of the time; the same, where that is what bounds.
    share
        For which share of the time it is busy, at least.
    told_by
        ``profiler`` or ``estimate``.
    """

    by: str
    busiest: str
    share: float
    told_by: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Bound":
        """The bound that a row of a ladder holds, measured here or recorded."""
        return cls(row["bound"], row["busiest"], row["busy_percent"] / 100, row["bound_told_by"])

    def as_dict(self) -> dict[str, Any]:
        """As a row of a ladder holds it."""
        percent = 100 * self.share
        return {"bound": self.by, "busiest": self.busiest, "busy_percent": percent, "bound_told_by": self.told_by}

    def __str__(self) -> str:
        busy = f"{100 * self.share:.0f} %"
        return f"{self.by}, {busy}" if self.by == self.busiest else f"{self.by} ({self.busiest} {busy})"


def judged(shares: Mapping[str, float], told_by: str, otherwise: str = "latency") -> Bound:
    """The bound, from the share of the time for which each part is busy.

    Parameters
    ----------
    shares
        Of the parts that are known.
    told_by
        As in :class:`Bound`.
    otherwise
        What to say where none of them is busy enough: ``unknown`` where a part is missing that might be.

    Raises
    ------
    ValueError
        No part is named.
    """
    if not shares:
        raise ValueError("nothing is known of any part of the GPU")
    busiest = max(shares, key=lambda part: shares[part])
    share = min(1.0, shares[busiest])
    return Bound(busiest if share >= ENOUGH else otherwise, busiest, share, told_by)


def estimated(
    shape: tuple[int, int, int],
    milliseconds: float,
    flops: float,
    bandwidth: float,
    passes: float = 0.0,
    memory_bytes: float = 0.0,
    part: str = "shared memory",
) -> Bound:
    """The bound of a product C (M×N) = A (M×K) · B (K×N) in float32, from its time and the least work of each part.

    Parameters
    ----------
    shape, milliseconds
        (M, N, K), and the time that was measured.
    flops, bandwidth
        FLOP/s and bytes/s that the device reaches at most.
    passes
        Passes through the load/store pipe for each multiply-add of a warp; 0 where nobody knows.
    memory_bytes
        DRAM traffic where it is known; the compulsory bytes where not, each matrix moved once.
    part
        What those passes go to: ``L1`` or ``shared memory``.
    """
    M, N, K = shape
    seconds, steps = milliseconds * 1e-3, float(M) * N * K
    compulsory = 4.0 * (M * K + K * N + M * N)
    shares = {
        "arithmetic": 2 * steps / flops / seconds,
        "memory": max(compulsory, memory_bytes) / bandwidth / seconds,
    }
    if passes:
        # Of each unit's warps: multiply-adds, 4 a clock; passes, 1 a clock.
        shares[part] = passes * shares["arithmetic"] * MULTIPLIERS / LOADERS
    return judged(shares, "estimate", "latency" if passes else "unknown")
