"""Times that cannot be: clocks that contradict each other, and less than the device needs at least."""

from collections.abc import Collection, Mapping

from tilelab.grading.timed.arrays import Shape
from tilelab.grading.timed.enough import Samples
from tilelab.grading.timed.players import Doubt
from tilelab.measure.rounds import Sample, Timing

#: Share of its time by which the two clocks of a learner's kernel may differ, besides what starting it costs.
LITTLE = 0.02
#: Milliseconds that a kernel may start later than one that does nothing, in the median of its calls.
LATE = 0.03


def floor(shape: Shape, ceilings: Mapping[str, float]) -> float:
    """Return the milliseconds below which no float32 product of this shape is possible on a device.

    Parameters
    ----------
    shape : tuple of int
        M, N, K.
    ceilings : mapping
        What the device can do at most: ``flops`` and ``bandwidth``, a second.
    """
    M, N, K = shape
    work, traffic = 2.0 * M * N * K, 4.0 * (M * K + K * N + M * N)
    return 1e3 * max(work / ceilings["flops"], traffic / ceilings["bandwidth"])


def doubt(samples: Samples, least: float, handed_in: Collection[str]) -> dict[str, str]:
    """Return in which candidates' samples the wall says more than the events, and how much.

    Parameters
    ----------
    samples : mapping
        What was timed.
    least : float
        Milliseconds that any candidate needs at least.
    handed_in : collection of str
        The candidates that a learner wrote.

    Raises
    ------
    Doubt
        The clocks contradict each other, or a time cannot be.
    """
    disagreements = {}
    for name, taken in samples.items():
        timing = Timing(tuple(Sample(device, wall) for wall, device, _ in taken))
        # Of learners' kernels by little: whoever moved the events of a kernel would hide in what is overlooked.
        if said := timing.disagreement(LITTLE) if name in handed_in else timing.disagreement():
            # The wall is the truth. Where it says more, a kernel of a learner's has its own work to thank, such as
            # what it prints; anything else is the machine.
            if name not in handed_in or not timing.device.value <= timing.wall.value:
                raise Doubt(f"{name}: {said}")
            disagreements[name] = said
        # Passing a message takes longer now and then, never shorter: so the lower quartile speaks.
        wall, outer = timing.wall.value, sorted(sample[2] for sample in taken)[len(taken) // 4]
        if not abs(outer - wall) <= 0.1 * wall + 0.1:
            raise Doubt(f"{name}: its process says {wall:.4g} ms, the judge's own clock {outer:.4g} ms")
        if not wall >= 0.95 * least:
            raise Doubt(f"{name}: {wall:.4g} ms is less than the {least:.4g} ms that this device needs at least")
    return disagreements


def on_time(late: Mapping[str, float]) -> None:
    """See that every candidate's calls started when a kernel that does nothing would have.

    Events lie in memory that a kernel might write. One that moved its start would shorten its time by every clock,
    because what a call waits before its start is no clock's.

    Raises
    ------
    Doubt
        Calls started late.
    """
    for name, much in late.items():
        if not abs(much) <= LATE:
            raise Doubt(f"{name}: its calls started {much:.3g} ms later than a kernel that does nothing")
