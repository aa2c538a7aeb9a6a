"""How a race is mended: which barrier, where, and what to do where a barrier would not be reached by all threads."""

from tilelab.simt import tree
from tilelab.simt.races import Pair


def mend(first: tree.Site, second: tree.Site, pair: Pair, place: str) -> str:
    """Advise on a race between two threads of one block.

    Parameters
    ----------
    first, second
        Where the two accesses stand.
    pair
        The accesses, the one that comes first in the source's order first.
    place
        The element, as ``s[3]``.
    """
    a, b = pair.first, pair.second
    if pair.same_value:
        return "Let one thread write it (`if i == 0:`), or leave it if any of them may win."
    if first.atomic and second.atomic:
        return atomic(first, second)
    if a.kind == b.kind == "write" and first.line == second.line:
        own = f"Give each thread its own element, or use cuda.atomic if they add to {place}"
        return f"{own}{_calls(first, second)}."
    if "atomic" in (a.kind, b.kind):
        return "Use cuda.atomic for both, or put cuda.syncthreads() between them."
    first, second, again = _meeting(first, second)
    loops = [line for line in first.loops if line in second.loops]
    backwards = again or _backwards(first, second)
    apart = _apart(first, second)
    if first is not second and backwards and loops:
        advice, gone = _at_the_end(first, second, loops[-1]), [*first.without(), *second.without()]
    elif first.line == second.line:
        advice, gone = _in_one_line(first.line, apart, pair.one_warp), first.without()
    else:
        earlier, later = sorted((first, second), key=lambda site: site.line)
        gone = earlier.without()
        between = [f.line for f in later.without() if f.varies and f not in gone and f.line > earlier.line]
        advice = _between(earlier.line, min([later.line, *between]), apart, pair.one_warp)
    parting = [f for f in dict.fromkeys(gone) if f.varies]
    if parting and "cuda.syncthreads()" in advice and "cuda.syncwarp()" not in advice:
        advice += (
            f" Let no thread leave by {_named(parting)} before that, for it would miss the barrier: guard the loads "
            "and stores instead."
        )
    return advice


def _backwards(first: tree.Site, second: tree.Site) -> bool:
    """Whether the access that comes second stands before the other, so that it belongs to a later round or call."""
    return (second.line, second.kind == "write") < (first.line, first.kind == "write")


def _meeting(first: tree.Site, second: tree.Site) -> tuple[tree.Site, tree.Site, bool]:
    """Two places of one function between which the barrier belongs: the accesses, or the calls that lead to them.

    The third value tells whether the second of them is meant in a later round of a loop around both.
    """
    onwards: list[tuple[int, tree.Site, tree.Site]] = []
    rounds: list[tuple[int, tree.Site, tree.Site]] = []
    for one in first.ways():
        for other in second.ways():
            for depth, (a, b) in enumerate(zip(one, other, strict=False)):
                if a.home is not b.home:
                    break
                last = a is first and b is second
                if a.line < b.line or (last and not _backwards(a, b)):
                    onwards.append((depth, a, b))
                elif set(a.loops) & set(b.loops):
                    rounds.append((depth, a, b))
                if a.line != b.line:
                    break
    for found in (onwards, rounds):
        if found:
            _, a, b = max(found, key=lambda place: place[0])
            return a, b, found is rounds
    return first, second, False


def atomic(first: tree.Site, second: tree.Site) -> str:
    """Advise the atomics that do what two statements do."""
    uses = " and ".join(dict.fromkeys(f"{s.atomic} in line {s.line}" for s in (first, second)))
    return f"Use {uses}: it reads, changes and writes in one step, which no other thread can split."


def _calls(first: tree.Site, second: tree.Site) -> str:
    """Where the device function that writes is called, if it is one."""
    assert first.home is not None
    assert second.home is not None
    lines = sorted({use.line for home in (first.home, second.home) for use in home.uses})
    if len(lines) < 2:
        return ""
    called = " and ".join(f"line {line}" for line in lines)
    return f"; if the later write is to stay, put cuda.syncthreads() between the calls of {first.kernel} in {called}"


def _apart(first: tree.Site, second: tree.Site) -> list[tree.Fork]:
    """Branches and loops around both accesses that not all threads of a block go through together."""
    return [fork for fork in first.around() if fork.varies and fork in second.around()]


def _named(forks: list[tree.Fork]) -> str:
    return " and ".join(f"`{fork.text}` of line {fork.line}" for fork in forks)


def _at_the_end(first: tree.Site, second: tree.Site, loop: int) -> str:
    around = first.around()
    start = max(i for i, fork in enumerate(around) if fork.line == loop)
    inside = [fork for fork in around[start + 1 :] if fork.varies]
    out = f", outside {_named(inside)}" if inside else ""
    text = (
        f"Put cuda.syncthreads() after line {first.line}, at the end of the loop of line {loop}{out}, before its next "
        f"round comes to line {second.line}."
    )
    outer = [fork for fork in around[: start + 1] if fork.varies]
    return f"{text} {_together(outer)}" if outer else text


def _together(forks: list[tree.Fork]) -> str:
    """What must be done first where a barrier would stand in a branch or loop that not all threads go through."""
    return f"Let all threads go through {_named(forks)} for that, and guard the loads and stores inside instead."


def _warp(where: str, apart: list[tree.Fork]) -> str:
    return (
        f"put cuda.syncwarp() {where} (the threads are of one warp; name its lanes in a mask if not all come there): "
        f"cuda.syncthreads() would not do, since not all threads come into {_named(apart)}."
    )


def _in_one_line(line: int, apart: list[tree.Fork], one_warp: bool) -> str:
    if not apart:
        return f"Read into a variable, put cuda.syncthreads() after it, and write then (line {line})."
    if one_warp:
        return f"Read into a variable in line {line}, write it after that, and {_warp('between the two', apart)}"
    if any(fork.loops for fork in apart):
        return (
            f"Read into a variable, put cuda.syncthreads() after it, and write then (line {line}). {_together(apart)}"
        )
    return (
        f"Read into a variable in line {line} and end {_named(apart)} there, put cuda.syncthreads() after it, outside "
        "where all threads come, and write then under the same condition."
    )


def _between(line: int, later: int, apart: list[tree.Fork], one_warp: bool) -> str:
    where = f"between line {line} and line {later}"
    if not apart:
        return f"Put cuda.syncthreads() {where}."
    if one_warp:
        advice = _warp(where, apart)
        return advice[0].upper() + advice[1:]
    if any(fork.loops for fork in apart):
        return f"Put cuda.syncthreads() {where}. {_together(apart)}"
    return (
        f"Put cuda.syncthreads() {where}, but outside {_named(apart)}, into which not all threads come: end the branch "
        f"after line {line} and open it again for line {later}."
    )
