"""Races among the accesses of one phase, pair by pair, and how to say them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilelab.simt import tree
from tilelab.simt.errors import Dim3, Finding

RANKS = {"race": 0, "uninitialised": 1, "bounds": 2, "negative index": 2, "warp": 3, "divergence": 4, "budget": 5}
_VERBS = {"read": "reads", "write": "writes", "atomic": "changes (atomically)"}


@dataclass(frozen=True, slots=True)
class Access:
    """One thread touches one cell. ``order`` says which of two came first in the source's own order."""

    cell: int
    thread: int
    warp: int
    epoch: int
    """How many ``syncwarp`` its warp had passed."""
    site: int
    kind: str
    order: tuple[int, ...]
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two accesses that race; the one that comes first in the source's order is first."""

    first: Access
    second: Access
    same_value: bool


def conflict(a: Access, b: Access) -> bool:
    """Whether two accesses of one cell in one phase race."""
    if a.thread == b.thread or (a.kind == b.kind and a.kind in ("read", "atomic")):
        return False
    return not (a.warp == b.warp and a.epoch != b.epoch)


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
    for cell in sorted(cells):
        here = sorted(cells[cell], key=lambda a: (a.order, a.thread))
        writers = [a for a in here if a.kind != "read"]
        if not writers or len({a.thread for a in here}) < 2:
            continue
        same = len({a.value for a in writers}) == 1 and all(a.kind == "write" for a in writers)
        for i, a in enumerate(here):
            for b in here[i + 1 :]:
                if not conflict(a, b):
                    continue
                harmless = same and a.kind == b.kind == "write"
                found.setdefault((a.site, b.site, harmless), Pair(a, b, harmless))
    return list(found.values())


def coordinates(index: int, extents: Sequence[int]) -> tuple[int, ...]:
    """Coordinates of a C-order index."""
    out = []
    for extent in reversed(extents):
        out.append(index % extent)
        index //= extent
    return tuple(reversed(out))


def dims(linear: int, extents: Dim3) -> Dim3:
    """(x, y, z) of a linear thread or block number, x running fastest."""
    return linear % extents[0], linear // extents[0] % extents[1], linear // (extents[0] * extents[1])


def element(array: str, index: Sequence[int]) -> str:
    """``sA[3, 4]``."""
    return f"{array}[{', '.join(map(str, index))}]"


def race_in_block(
    kernel: str,
    pair: Pair,
    sites: list[tree.Site],
    array: str,
    space: str,
    index: tuple[int, ...],
    block: Dim3,
    block_dim: Dim3,
    linear_block: int,
    phase: int,
    barriers: tuple[int | None, int | None],
) -> Finding:
    """Say a race between two threads of one block."""
    a, b = pair.first, pair.second
    line_a, line_b = sites[a.site].line, sites[b.site].line
    threads = (dims(a.thread, block_dim), dims(b.thread, block_dim))
    place = element(array, index)
    message = (
        f"{place} in {space} memory of block {block}, phase {phase} ({_between(barriers)}): thread {threads[0]} "
        f"{_VERBS[a.kind]} it in line {line_a} and thread {threads[1]} {_VERBS[b.kind]} it in line {line_b}, "
        "with no barrier in between."
    )
    if pair.same_value:
        message = message[:-1] + "; both write the same value."
    return Finding(
        kind="race", kernel=kernel, lines=(line_a, line_b), message=message,
        hint=_mend(sites[a.site], sites[b.site], a, b, pair.same_value, place),
        severity="warning" if pair.same_value else "error", block=block, threads=threads, phase=phase,
        array=array, space=space, index=index, accesses=(a.kind, b.kind),
        order=(linear_block, phase, RANKS["race"], line_a, line_b),
    )  # fmt: skip


def _between(barriers: tuple[int | None, int | None]) -> str:
    start, stop = barriers
    opening = "from the start" if start is None else f"after the barrier of line {start}"
    return f"{opening}, to the end" if stop is None else f"{opening}, before that of line {stop}"


def _mend(first: tree.Site, second: tree.Site, a: Access, b: Access, same: bool, place: str) -> str:
    if same:
        return "Let one thread write it (`if i == 0:`), or leave it if any of them may win."
    if a.kind == b.kind == "write" and first is second:
        return f"Give each thread its own element, or use cuda.atomic if they add to {place}."
    if "atomic" in (a.kind, b.kind):
        return "Use cuda.atomic for both, or put cuda.syncthreads() between them."
    shared_loops = [line for line in first.loops if line in second.loops]
    if first is not second and second.line <= first.line and shared_loops:
        return (
            f"Put cuda.syncthreads() after line {first.line}, at the end of the loop of line {shared_loops[-1]}, "
            f"before its next round comes to line {second.line}."
        )
    if first.line == second.line:
        return f"Read into a variable, put cuda.syncthreads() after it, and write then (line {first.line})."
    return (
        f"Put cuda.syncthreads() between line {min(first.line, second.line)} and line {max(first.line, second.line)}."
    )


def race_between_blocks(
    kernel: str,
    kinds: tuple[str, str],
    lines: tuple[int, int],
    threads: tuple[Dim3, Dim3],
    blocks: tuple[Dim3, Dim3],
    array: str,
    index: tuple[int, ...],
    order: tuple[int, ...],
) -> Finding:
    """Say a race between two blocks."""
    if lines[1] < lines[0]:
        kinds, lines, threads, blocks = kinds[::-1], lines[::-1], threads[::-1], blocks[::-1]
    message = (
        f"{element(array, index)} in global memory: block {blocks[0]} thread {threads[0]} {_VERBS[kinds[0]]} it in "
        f"line {lines[0]} and block {blocks[1]} thread {threads[1]} {_VERBS[kinds[1]]} it in line {lines[1]}; "
        "nothing orders blocks of one launch."
    )
    return Finding(
        kind="race", kernel=kernel, lines=lines, message=message,
        hint="Let each block write elements of its own, use cuda.atomic, or split the work into two launches.",
        block=blocks[0], blocks=blocks, threads=threads, array=array, space="global", index=index, accesses=kinds,
        order=order,
    )  # fmt: skip


def uninitialised(
    kernel: str, line: int, array: str, space: str, index: tuple[int, ...], block: Dim3, thread: Dim3,
    linear_block: int, phase: int,
) -> Finding:  # fmt: skip
    """Say a read of memory that nobody wrote."""
    who = "nobody" if space == "shared" else "this thread never"
    return Finding(
        kind="uninitialised", kernel=kernel, lines=(line,),
        message=f"{element(array, index)} in {space} memory is read in line {line} by thread {thread} of block {block}, "
        f"phase {phase}, but {who} wrote it.",
        hint=f"Write every element of {array} before it is read: the memory starts with whatever was there.",
        block=block, threads=(thread,), phase=phase, array=array, space=space, index=index, accesses=("read",),
        order=(linear_block, phase, RANKS["uninitialised"], line),
    )  # fmt: skip


def out_of_bounds(
    kernel: str, site: tree.Site, array: str, axis: int, index: int, extent: int, block: Dim3, thread: Dim3,
    linear_block: int, phase: int,
) -> Finding:  # fmt: skip
    """Say an index outside its array."""
    kind = "negative index" if index < 0 else "bounds"
    hint = (
        "On a GPU a negative index does not count from the end; it reads what lies before the array. "
        "Guard the access with a condition."
        if index < 0
        else f"Guard the access with a condition: indices of this axis run from 0 to {extent - 1}."
    )
    return Finding(
        kind=kind, kernel=kernel, lines=(site.line,),
        message=f"{site.text} in line {site.line}: index {index} of axis {axis} of {array} (extent {extent}), thread "
        f"{thread} of block {block}, phase {phase}.",
        hint=hint, block=block, threads=(thread,), phase=phase, array=array, space=site.space, index=(index,),
        accesses=(site.kind,), order=(linear_block, phase, RANKS[kind], site.line),
    )  # fmt: skip
