"""Candidates measured in turns, A B A B …, until each median is known well enough."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilelab.measure.statistics import Estimate, estimate


@dataclass(frozen=True)
class Sample:
    """One timing by two clocks, in milliseconds a call: the device's events, and the wall from start to full stop."""

    device: float
    wall: float


@dataclass(frozen=True)
class Rule:
    """When to stop: not before ``least`` rounds, at ``most``, after ``seconds``, or once every interval is narrow."""

    least: int = 7
    most: int = 50
    width: float = 0.01
    seconds: float = 20.0


DEFAULT_RULE = Rule()


@dataclass(frozen=True)
class Timing:
    """All samples of one candidate."""

    samples: tuple[Sample, ...]

    @property
    def device(self) -> Estimate:
        """Milliseconds a call by the device's events."""
        return estimate([sample.device for sample in self.samples])

    @property
    def wall(self) -> Estimate:
        """Milliseconds a call by the wall clock."""
        return estimate([sample.wall for sample in self.samples])

    def disagreement(self, share: float = 0.1, slack: float = 0.03) -> str:
        """How the two clocks contradict each other; empty if they agree.

        Parameters
        ----------
        share, slack
            The wall may show ``share`` of the device's time and ``slack`` milliseconds a call more: that is what
            starting and waiting cost. It can hardly show less.
        """
        device, wall = self.device.value, self.wall.value
        if not (math.isfinite(device) and math.isfinite(wall)):
            return f"events say {device:.4g} ms, the wall {wall:.4g} ms: a clock gave no time"
        if wall > device * (1 + share) + slack:
            return f"events say {device:.4g} ms, the wall {wall:.4g} ms: work outside the timed stream, or on the CPU"
        if device > wall * (1 + share) + slack:
            return f"events say {device:.4g} ms, the wall only {wall:.4g} ms: the events are not to be trusted"
        return ""


def measure_in_turns(
    candidates: Mapping[str, Callable[[int], Sample]],
    rule: Rule = DEFAULT_RULE,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Timing]:
    """Measure candidates in turns.

    Parameters
    ----------
    candidates
        Name -> a function that measures one call in round ``i``. Odd rounds go through them backwards, so that nobody
        always follows the same neighbour.
    rule
        When to stop.
    clock
        Seconds, for ``rule.seconds``.

    Returns
    -------
    dict
        Name -> its samples, as many for each.
    """
    if rule.least < 1:
        raise ValueError(f"at least {rule.least} rounds is not enough: measure at least one")
    if rule.most < rule.least:
        raise ValueError(f"at most {rule.most} rounds, but at least {rule.least}: let most be as large as least")
    samples: dict[str, list[Sample]] = {name: [] for name in candidates}
    start = clock()
    for turn in range(rule.most):
        for name in list(candidates)[:: -1 if turn % 2 else 1]:
            samples[name].append(candidates[name](turn))
        if turn + 1 < rule.least:
            continue
        if clock() - start > rule.seconds:
            break
        if all(estimate([s.device for s in taken], 200).width <= rule.width for taken in samples.values()):
            break
    return {name: Timing(tuple(taken)) for name, taken in samples.items()}
