"""How each kind of finding is said: what happened, where, and how to mend it."""

from collections.abc import Sequence

from tilelab.simt import tree
from tilelab.simt.errors import Dim3, Finding
from tilelab.simt.races import Access, Pair
from tilelab.simt.runtime import Argument

#: What is told first of one phase: a race may only follow from a barrier that some threads miss, and a bad index
#: from a race.
RANKS = {"divergence": 0, "warp": 0, "race": 1, "uninitialised": 2, "bounds": 3, "negative index": 3, "budget": 4}


_VERBS = {"read": "reads", "write": "writes", "atomic": "changes (atomically)"}


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
        message=f"{element(array, index)} in {space} memory is read in line {line} by thread {thread} of "
        f"block {block}, "
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


def index_in(argument: Argument, cell: int) -> tuple[int, ...]:
    """The index by which an argument calls an element of its memory, if it can be told."""
    rest = cell - argument.offset
    index = []
    for extent, stride in sorted(zip(argument.shape, argument.strides, strict=True), key=lambda p: -p[1]):
        if stride <= 0 or extent == 0:
            return (cell,)
        index.append(min(rest // stride, extent - 1))
        rest -= index[-1] * stride
    if rest:
        return (cell,)
    order = sorted(range(len(index)), key=lambda axis: -argument.strides[axis])
    out = [0] * len(index)
    for place, axis in enumerate(order):
        out[axis] = index[place]
    return tuple(out)


def over_budget(kernel: str, line: int, outer: int | None, steps: int, block: int) -> Finding:
    """Say that a loop did not end."""
    inside = f" (inside the loop of line {outer})" if outer is not None else ""
    return Finding(
        kind="budget", kernel=kernel, lines=(line,) if outer is None else (line, outer),
        message=f"the loop of line {line}{inside} was still running after {steps} rounds.",
        hint="See that its condition becomes false for every thread; if it is meant to run that long, "
        "cuda.simulate(kernel, steps=...) gives it more.",
        order=(block, 0, RANKS["budget"], line),
    )  # fmt: skip


def diverged(
    kernel: str, line: int, other: int | None, came: Dim3, missing: Dim3, returned: bool, block: Dim3, linear: int,
    phase: int, count: int, threads: int,
) -> Finding:  # fmt: skip
    """Say a barrier that part of a block reaches. ``other`` is the barrier where the missing thread waits instead."""
    if other is not None:
        where = f"waits at the barrier of line {other}"
        hint = "Let all threads meet at one barrier: move it out of the branches."
    elif returned:
        where = "has returned"
        hint = "Let every thread reach the barrier: guard the loads and stores instead of returning early."
    else:
        where = "does not come there"
        hint = (
            "Let every thread reach the barrier: move it out of the condition, and guard the loads and stores instead."
        )
    return Finding(
        kind="divergence", kernel=kernel, lines=(line,) if other is None else (line, other),
        message=f"the barrier of line {line} is reached by {count} of {threads} threads of block {block}, "
        f"phase {phase}: thread {came} waits, thread {missing} {where}.",
        hint=hint, block=block, threads=(came, missing), phase=phase,
        order=(linear, phase, RANKS["divergence"], line),
    )  # fmt: skip


def not_all(kernel: str, name: str, line: int, thread: Dim3, why: str, block: Dim3, linear: int, phase: int) -> Finding:
    """Say a warp instruction whose lanes do not fit together."""
    return Finding(
        kind="warp", kernel=kernel, lines=(line,),
        message=f"cuda.{name} in line {line}: thread {thread} of block {block} {why} (phase {phase}).",
        hint="Let all lanes that the mask names execute it together, outside of conditions that split the warp.",
        block=block, threads=(thread,), phase=phase, order=(linear, phase, RANKS["warp"], line),
    )  # fmt: skip
