"""Races among the accesses of one phase, pair by pair."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Access:
    """One thread touches one cell. ``order`` says which of two came first in the source's own order."""

    cell: int
    thread: int
    warp: int
    lane: int
    epoch: int
    """How many ``syncwarp`` its thread had passed."""
    site: int
    kind: str
    order: tuple[int, ...]
    value: bytes | None = None
    """What a write puts into the cell."""
    known: Sequence[int] | None = None
    """For each lane of its warp, up to which epoch that lane's accesses come before this one; ``None`` where all lanes
    of a warp pass every ``syncwarp`` together."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two accesses that race; the one that comes first in the source's order is first."""

    first: Access
    second: Access
    same_value: bool
    one_warp: bool = False
    """Whether all that race between these two places are threads of one warp."""


def conflict(a: Access, b: Access) -> bool:
    """Whether two accesses of one cell in one phase race."""
    if a.thread == b.thread or (a.kind == b.kind and a.kind in ("read", "atomic")):
        return False
    return a.warp != b.warp or not _ordered(a, b)


def _ordered(a: Access, b: Access) -> bool:
    """Whether a ``syncwarp`` that both lanes take part in, or a chain of them, lies between two accesses of a warp."""
    if a.known is None or b.known is None:
        return a.epoch != b.epoch
    return b.known[a.lane] >= a.epoch or a.known[b.lane] >= b.epoch


def racing_pairs(accesses: Iterable[Access]) -> list[Pair]:
    """One example for each pair of places that race, the lowest cell first.

    Parameters
    ----------
    accesses
        Those of one block in one phase to one piece of memory.
    """
    cells: dict[int, list[Access]] = {}
    for access in accesses:
        cells.setdefault(access.cell, []).append(access)
    found: dict[tuple[int, int, bool], Pair] = {}
    apart: set[tuple[int, int, bool]] = set()
    """Places between which threads of different warps race."""
    for cell in sorted(cells):
        here = sorted(cells[cell], key=lambda a: (a.order, a.thread))
        writers = [a for a in here if a.kind != "read"]
        if not writers or len({a.thread for a in here}) < 2:
            continue
        # where another thread reads it too, what is written may hang on that: then equal values prove nothing
        read = any(a.kind == "read" and any(conflict(a, b) for b in writers) for a in here)
        same = len({a.value for a in writers}) == 1 and all(a.kind == "write" for a in writers) and not read
        for i, a in enumerate(here):
            for b in here[i + 1 :]:
                if not conflict(a, b):
                    continue
                harmless = same and a.kind == b.kind == "write"
                key = (a.site, b.site, harmless)
                found.setdefault(key, Pair(a, b, harmless))
                if a.warp != b.warp:
                    apart.add(key)
    return [replace(pair, one_warp=key not in apart) for key, pair in found.items()]
