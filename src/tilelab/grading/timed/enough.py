"""How long to measure: until the gain is known well enough for the marks that hang on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tilelab.measure.statistics import ratio

#: Candidate to its samples, the first one's time is the question: (by the wall, by events, by the conductor's clock).
Samples = Mapping[str, Sequence[Sequence[float]]]
#: Rounds after which a kernel that is four times too slow for any points is measured no more.
HOPELESS_AFTER = 3
#: How near a mark may come to the gain's interval before more is measured.
NEAR = 0.005


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    At least ``least`` rounds; until the gain's interval is at most ``width`` wide; where a mark lies within it up to
    ``most_near`` rounds, else up to ``most``.
    """

    least: int = 25
    most: int = 60
    most_near: int = 100
    width: float = 0.01
    #: Seconds that a timed launch may take, and every other question.
    launch: float = 10.0
    patience: float = 60.0
    #: Seconds after which no more rounds begin; and for all trials of one kernel that was handed in. On an H200 a
    #: measurement takes 4 s, and a trial some hundredths of one.
    total: float = 240.0
    trials: float = 60.0


def hopeless(samples: Samples, marks: Sequence[float]) -> bool:
    """Tell whether the first candidate is so slow that no more rounds can earn it anything."""
    wall = {name: min(sample[0] for sample in taken) for name, taken in samples.items()}
    first, *others = wall.values()
    return bool(marks) and 4 * min(others) < min(marks) * first


def enough(samples: Samples, marks: Sequence[float], effort: Effort) -> bool:
    """Tell whether the gain is known well enough, or no more rounds are worth while."""
    first, *others = samples
    rounds = len(samples[first])
    if rounds == HOPELESS_AFTER and hopeless(samples, marks):
        return True
    if rounds < effort.least or (rounds - effort.least) % 5:
        return False
    times = {name: [sample[1] for sample in taken] for name, taken in samples.items()}
    fastest = min(others, key=lambda name: median(times[name]))
    gain = ratio(times[fastest], times[first], resamples=300)
    near = any(gain.low * (1 - NEAR) <= mark <= gain.high * (1 + NEAR) for mark in marks)
    if rounds >= (effort.most_near if near else effort.most):
        return True
    return gain.width <= effort.width and not near
