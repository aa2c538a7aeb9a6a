"""How each kind of finding is said: what happened, where, and how to mend it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilelab.simt import advice, tree
from tilelab.simt.errors import Dim3, Finding
from tilelab.simt.races import Pair
from tilelab.simt.runtime import Argument
from tilelab.simt.words import plural

#: What is told first of one phase: a race may only follow from a barrier that some threads miss, and a bad index
#: from a race.
RANKS = {
    "divergence": 0, "warp": 0, "race": 1, "uninitialised": 2, "bounds": 3, "negative index": 3, "endless": 4,
    "budget": 4,
}  # fmt: skip
#: Why a thread does not fit into a warp instruction.
NOT_NAMED = "is not named in its own mask"
NOT_THERE = "is named in its mask but does not come there"
OTHER_MASK = "names a thread that gives another mask"

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


def element_of(cell: int, width: int, item: int, extents: Sequence[int]) -> tuple[int, ...]:
    """Coordinates of the element in which a cell lies: ``width`` bytes a cell, ``item`` bytes an element."""
    number = cell * width // item
    return coordinates(number, extents) if number < math.prod(extents) else (number,)


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
        hint=advice.mend(sites[a.site], sites[b.site], pair, place),
        severity="warning" if pair.same_value else "error", block=block, threads=threads, phase=phase,
        array=array, space=space, index=index, accesses=(a.kind, b.kind),
        order=(linear_block, phase, RANKS["race"], line_a, line_b),
    )  # fmt: skip


def _between(barriers: tuple[int | None, int | None]) -> str:
    start, stop = barriers
    opening = "from the start" if start is None else f"after the barrier of line {start}"
    return f"{opening}, to the end" if stop is None else f"{opening}, before that of line {stop}"


def race_between_blocks(
    kernel: str,
    kinds: tuple[str, str],
    sites: tuple[tree.Site, tree.Site],
    threads: tuple[Dim3, Dim3],
    blocks: tuple[Dim3, Dim3],
    array: str,
    index: tuple[int, ...],
    order: tuple[int, ...],
    fenced: bool,
) -> Finding:
    """Say a race between two blocks; ``fenced`` tells whether the kernel has a fence that may order them after all."""
    if sites[1].line < sites[0].line:
        kinds, sites, threads, blocks = kinds[::-1], sites[::-1], threads[::-1], blocks[::-1]
    lines = sites[0].line, sites[1].line
    hint = "Let each block write elements of its own, use cuda.atomic, or split the work into two launches."
    if sites[0].atomic and sites[1].atomic:
        hint = advice.atomic(*sites)
    if fenced:
        hint += (
            " If a cuda.threadfence() and an atomic that announces it order them, that holds on a GPU but is not "
            "followed here; cuda.simulate(kernel, checks=False) runs it."
        )
    message = (
        f"{element(array, index)} in global memory: block {blocks[0]} thread {threads[0]} {_VERBS[kinds[0]]} it in "
        f"line {lines[0]} and block {blocks[1]} thread {threads[1]} {_VERBS[kinds[1]]} it in line {lines[1]}; "
        "nothing orders blocks of one launch."
    )
    return Finding(
        kind="race", kernel=kernel, lines=lines, message=message,
        hint=hint,
        block=blocks[0], blocks=blocks, threads=threads, array=array, space="global", index=index, accesses=kinds,
        order=(*order, *map(list(_VERBS).index, kinds)),
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


def unassigned(
    kernel: str, name: str, line: int, assigned: Sequence[int], block: Dim3, thread: Dim3, linear_block: int, phase: int
) -> Finding:
    """Say a read of a variable to which the thread never assigned."""
    where = " and ".join(f"line {n}" for n in assigned)
    return Finding(
        kind="uninitialised", kernel=kernel, lines=(line,),
        message=f"{name} is read in line {line} by thread {thread} of block {block}, phase {phase}, but this thread "
        f"never gave it a value: only {where} would, and it did not come there.",
        hint=f"Assign to {name} before the condition or loop of {where}: a GPU takes whatever its register holds.",
        block=block, threads=(thread,), phase=phase, array=name, space="register", accesses=("read",),
        order=(linear_block, phase, RANKS["uninitialised"], line),
    )  # fmt: skip


def out_of_bounds(
    kernel: str, site: tree.Site, array: str, axis: int, index: int, extent: int, block: Dim3, thread: Dim3,
    linear_block: int, phase: int, sliced: bool,
) -> Finding:  # fmt: skip
    """Say an index outside its array, or outside the slice of it that it counts in."""
    kind = "negative index" if index < 0 else "bounds"
    hint = (
        "On a GPU a negative index does not count from the end; it reads what lies before the array. "
        "Guard the access with a condition."
        if index < 0
        else f"Guard the access with a condition: indices of this axis run from 0 to {extent - 1}."
        if extent
        else "Guard the access with a condition: this axis is empty, so that no index is inside."
    )
    whole = f"a slice of {array}" if sliced else array
    return Finding(
        kind=kind, kernel=kernel, lines=(site.line,),
        message=f"{site.text} in line {site.line}: index {index} of axis {axis} of {whole} (extent {extent}), thread "
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


def _loop(line: int, outer: int | None) -> str:
    return f"the loop of line {line}" + (f" (inside the loop of line {outer})" if outer is not None else "")


def endless(
    kernel: str, fork: tree.Fork, outer: int | None, block: Dim3, thread: Dim3, linear_block: int, phase: int,
    waits: bool = False,
) -> Finding:  # fmt: skip
    """Say that a thread never leaves a loop; ``waits`` if it waits for another, else nothing in it can change."""
    why = "it waits for memory that no thread changes any more" if waits else "nothing in it changes what ends it"
    return Finding(
        kind="endless", kernel=kernel, lines=(fork.line,) if outer is None else (fork.line, outer),
        message=f"{_loop(fork.line, outer)} never ends for thread {thread} of block {block}, phase {phase}: {why} "
        f"(`{fork.text}`).",
        hint="Let some thread that comes there write it; blocks run one after another, and on a GPU in any order."
        if waits
        else "Change something that the condition asks for in every round, or leave the loop by break.",
        block=block, threads=(thread,), phase=phase, order=(linear_block, phase, RANKS["endless"], fork.line),
    )  # fmt: skip


def no_step(
    kernel: str, fork: tree.Fork, block: Dim3, thread: Dim3, linear_block: int, phase: int,
) -> Finding:  # fmt: skip
    """Say that a ``range`` has a step of 0."""
    return Finding(
        kind="endless", kernel=kernel, lines=(fork.line,),
        message=f"{_loop(fork.line, None)} has a step of 0 for thread {thread} of block {block}, phase {phase}: it "
        f"would never end (`{fork.text}`).",
        hint="Let the step differ from 0 for every thread that comes there.",
        block=block, threads=(thread,), phase=phase, order=(linear_block, phase, RANKS["endless"], fork.line),
    )  # fmt: skip


def over_budget(kernel: str, line: int, outer: int | None, steps: int, block: int) -> Finding:
    """Say that a loop did not end."""
    return Finding(
        kind="budget", kernel=kernel, lines=(line,) if outer is None else (line, outer),
        message=f"{_loop(line, outer)} was still running after {plural(steps, 'round')}.",
        hint="See that its condition becomes false for every thread; if it is meant to run that long, "
        "cuda.simulate(kernel, steps=...) gives it more.",
        order=(block, 0, RANKS["budget"], line),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Away:
    """Where a thread is that others wait for at a barrier."""

    barrier: int | None = None
    """Line of the barrier or warp instruction where it waits instead."""
    fork: tree.Fork | None = None
    """The branch or loop around the barrier that led it away."""
    taken: bool = False
    """What the condition of that was for it."""
    left: int = 0
    """Line in which it returned."""
    ended: bool = False
    """Whether it is done with the kernel."""
    leaves: tree.Fork | None = None
    """The branch before the barrier by which it left a loop or its round."""
    went: bool = False
    """What the condition of that was for it."""


def diverged(
    kernel: str, line: int, away: Away, came: Dim3, missing: Dim3, block: Dim3, linear: int, phase: int, count: int,
    threads: int,
) -> Finding:  # fmt: skip
    """Say a barrier that part of a block reaches."""
    lines, since = [line], ""
    hint = "Let every thread reach the barrier: move it out of the condition, and guard the loads and stores instead."
    if away.fork is not None:
        loops = away.fork.text.startswith(("for ", "while "))
        why = "has ended" if loops else f"is {'true' if away.taken else 'false'}"
        since = f", since `{away.fork.text}` in line {away.fork.line} {why} for it"
        where = f"does not come there{since}"
        hint = f"Move the barrier out of the {'loop' if loops else 'branch'} of line {away.fork.line}, so that every "
        hint += "thread reaches it, and guard the loads and stores instead."
        lines.append(away.fork.line)
    elif away.left:
        where = f"has returned in line {away.left}"
        hint = "Let every thread reach the barrier: guard the loads and stores instead of returning early."
        lines.append(away.left)
    elif away.leaves is not None:
        where = f"does not come there, since `{away.leaves.text}` in line {away.leaves.line} is "
        where += f"{'true' if away.went else 'false'} for it"
        hint = f"Let no thread leave by the branch of line {away.leaves.line} before the barrier: guard the loads and "
        hint += "stores instead."
        lines.append(away.leaves.line)
    else:
        where = "has run to the end without it" if away.ended else "does not come there"
    if away.barrier == line:
        where = f"waits there in another round or call{since}"
        hint = "Let all threads come to it in one round and one call: leave none out by continue or by a branch, and "
        hint += "guard the loads and stores instead."
        lines[1:] = []
    elif away.barrier is not None:
        where = f"waits at the barrier of line {away.barrier}{since}"
        hint = "Let all threads meet at one barrier: move it out of the branches."
        lines[1:] = [away.barrier]
    return Finding(
        kind="divergence", kernel=kernel, lines=tuple(lines),
        message=f"the barrier of line {line} is reached by {count:,} of {plural(threads, 'thread')} of block {block}, "
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
