"""Rounds: every candidate has its turn in each, until the gain is known or the time is over."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median
from typing import TypeVar

from tilelab.grading.timed.enough import HOPELESS_AFTER, Effort, Samples, enough
from tilelab.grading.timed.players import Player, Trouble

T = TypeVar("T")
_lot = secrets.SystemRandom()
#: Calls of each of the course's own kernels in a round; their mean is its sample. The naive one has two speeds, 5 %
#: apart, from call to call: a median of single calls would be now nearer to the one, now to the other.
OWN_CALLS = 3
#: So many times slower than the fastest of those that the first is compared with, a kernel can never be the one.
TOO_SLOW = 2.0
#: Rounds from one look at the device to the next.
LOOK_AFTER = 10


def orders(players: Sequence[T]) -> Iterator[list[T]]:
    """Yield the order of each round: one that is drawn, then its mirror image, then another that is drawn.

    A learner's second kernel costs its author nothing by being slow, so it could burn power just before the turn of
    the kernel that the first one is compared with, if it knew whose turn is next. In a drawn order nobody knows. In a
    mirror image it may guess, where that kernel was its neighbour the round before: in one round of six, of three
    candidates; that hardly moves a median.

    Mirror images keep the spread small. Clocks and temperature drift, so who is later in a round is a little slower
    or faster. In two rounds together everybody is as late as everybody else, and as often before another as after
    it: of each two candidates' ratios half lie on either side, and their median in between. Where every order was
    drawn alone, one side would have more of them now and then, and the median would move there.
    """
    while True:
        drawn = _lot.sample(list(players), len(players))
        yield drawn
        yield drawn[::-1]


def in_turns(
    players: list[Player],
    call: Callable[[Player], list[float]],
    marks: Sequence[float],
    effort: Effort,
    look: Callable[[], None],
    leave: Callable[[Player, str], None],
    over: Callable[[], str],
    own_calls: int = OWN_CALLS,
) -> dict[str, list[list[float]]]:
    """Time candidates in turns until the gain is known, and return their samples, as many of each.

    Parameters
    ----------
    players : list of Player
        The candidates. The first one's time is the question.
    call : callable
        Calls a kernel once and gives its sample.
    marks : sequence of float
        Gains at which points change.
    effort : Effort
        How long to measure.
    look : callable
        Looks at the device before, now and then, and after.
    leave : callable
        Takes a candidate out of ``players`` with what is to be said of it: one that is too slow to be compared with.
    over : callable
        Says that the time is over, or ``""``.
    own_calls : int
        Calls of each of the course's own kernels in a round.

    Raises
    ------
    Trouble
        The time is over before there are enough rounds.
    """
    samples: dict[str, list[list[float]]] = {player.name: [] for player in players}
    for player in players:  # warm: the first launch of a kernel brings its code to the device
        call(player)
    look()
    for rounds, order in enumerate(orders(players), 1):
        for player in order:
            if player.name in samples:
                calls = 1 if player.candidate.handed_in else own_calls
                taken = [fmean(times) for times in zip(*(call(player) for _ in range(calls)), strict=True)]
                samples[player.name].append(taken)
        for name, why in too_slow(samples, players).items():
            del samples[name]
            leave(next(one for one in players if one.name == name), why)
        if rounds % LOOK_AFTER == 0:
            look()
        if enough(samples, marks, effort) or rounds == effort.most_near:
            break
        if words := over():
            if rounds < effort.least:
                raise Trouble(f"{words}, after {rounds} of at least {effort.least} rounds")
            break
    look()
    return samples


def too_slow(samples: Samples, players: Sequence[Player]) -> dict[str, str]:
    """Return which of a learner's further kernels can never be the fastest of the others, and what is to be said."""
    first, *others = samples
    rounds = len(samples[first])
    if rounds < HOPELESS_AFTER:
        return {}
    walls = {name: median(sample[0] for sample in samples[name]) for name in others}
    best = min(walls, key=lambda name: walls[name])
    theirs = {player.name for player in players if player.candidate.handed_in}
    return {
        name: f"{walls[name]:.3g} ms in {rounds} rounds, {best} {walls[best]:.3g} ms"
        for name in others
        if name in theirs and min(sample[0] for sample in samples[name]) > TOO_SLOW * walls[best]
    }
