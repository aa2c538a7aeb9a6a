"""Points that hang on a time: they wait for a GPU, and are decided by what was measured there. Times as answers."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer, Judgement
from tilelab.grading.judge import Verdict
from tilelab.grading.timed.thresholds import Mark
from tilelab.grading.timed.wanted import YOURS, Candidate, Measured, Wanted, handed_in
from tilelab.grading.values import number
from tilelab.hardware.limits import Device, HardwareError, device

#: What reports call a learner's other kernel, and those of the course.
YOUR_TILED = "your tiled kernel"
CALLED = {
    "naive": "the coalesced naive kernel",
    "tiled_16": "the course's tiled kernel",
    "register_2x2": "the course's 2 × 2 kernel",
}


#: Share of a card's fp32 peak below which no product of this course runs on it.
SLOWEST = 1e-3


def waits_for_gpu(found: Judgement, how: str) -> Verdict:
    """Leave a part's points pending where the kernel is right for every shape; a wrong kernel is not timed.

    Parameters
    ----------
    found : Judgement
        How the kernel did in the trials for correctness.
    how : str
        What will be timed, and what it must reach.
    """
    if found.share < 1:
        return Verdict(0.0, ("timed: only a kernel that is right everywhere is timed", *found.lines[:1]))
    if found.answer is not None and found.answer.in_python:
        return Verdict(0.0, ("timed: only a kernel in CUDA C++ is timed",))
    return Verdict(0.0, (f"timed: pending, this judge has no GPU. It will time {how}",), pending=1.0)


def named_device(name: object) -> Device | None:
    """Return the card of that name, or ``None`` for one that the course does not know."""
    if not isinstance(name, str):
        return None
    try:
        return device(name)
    except HardwareError:
        return None


def report_fault(report: object, times: Mapping[str, str], flops: float) -> str:
    """Say why a timing report cannot be, or ``""``.

    Parameters
    ----------
    report : mapping
        ``device`` and the times in milliseconds, as they were handed in.
    times : mapping
        Name of each time that must be there, to what it is the time of.
    flops : float
        Floating-point operations in each of those times, for the card's fp32 peak.
    """
    if not isinstance(report, Mapping):
        return f"a report is a dict with device and times, not {report!r:.60}"
    if not isinstance(report.get("device"), str) or not report["device"].strip():
        return "the report does not name the device"
    card = named_device(report["device"])
    for name, what in times.items():
        found = number(report.get(name))
        if found is None or found <= 0:
            return f"{name}: the time of {what} is a number of milliseconds above 0, not {report.get(name)!r:.40}"
        if found > 1e6:
            return f"{name}: {found:g} ms is more than a quarter of an hour; times are in milliseconds"
        if card is not None and flops / (found * 1e-3) > 1.1 * card.fp32:
            rate = flops / (found * 1e-3) / 1e12
            return (
                f"{name}: {found:g} ms would be {rate:.1f} TFLOP/s, and {card.name} has {card.fp32 / 1e12:g} in fp32: "
                "was the GPU done when the clock was read? Is TF32 off?"
            )
        if card is not None and flops / (found * 1e-3) < SLOWEST * card.fp32:
            return (
                f"{name}: {found:g} ms would be less than a thousandth of what {card.name} can do: times are in "
                "milliseconds, and those of the GPU"
            )
    return ""


def courses(rung: str) -> Candidate:
    """Return a rung of the course's ladder as a candidate."""
    return Candidate(CALLED.get(rung, f"the course's {rung}"), rung)


def want(asked: Mapping[str, Any], first: CudaAnswer | None, others: Mapping[str, CudaAnswer] | None = None) -> Wanted:
    """Return the measurement that a part needs.

    Parameters
    ----------
    asked : mapping
        What the thresholds file says of the part: ``shape``, ``own``, ``against``.
    first : CudaAnswer or None
        The learner's kernel; the course's own where there is none.
    others : mapping, optional
        Further kernels of the learner's that it is compared with, by what reports call them.
    """
    one = courses(asked["own"]) if first is None else handed_in(YOURS, first)
    more = [handed_in(name, answer) for name, answer in (others or {}).items()]
    M, N, K = asked["shape"]
    return Wanted((M, N, K), (one, *more, courses(asked["against"])))


def by_gain(measured: Measured, mark: Mark | None, below: str, half: str) -> Verdict:
    """Decide points by how many times faster the learner's kernel is than the fastest of the others.

    The interval decides: points are earned where a gain that earns them lies within it, so doubt counts for the
    learner.

    Parameters
    ----------
    measured : Measured
        What came out.
    mark : Mark or None
        What is asked for on this device; ``None`` where nobody has said.
    below, half : str
        What to try next, where no points are earned and where half of them are.
    """
    if undecided := why_undecided(measured, mark):
        return undecided
    assert mark is not None
    others = [name for name in measured.samples if name != YOURS]
    over = measured.fastest(others)
    gain, yours, theirs = measured.gain(over), measured.time(YOURS), measured.time(over)
    share = 1.0 if gain.high >= mark.full else 0.5 if gain.high >= mark.half else 0.0
    size = " × ".join(map(str, measured.shape))
    lines = [
        f"timed on {measured.device['name']} at {size}: yours {yours.value:.3g} ms, {over} {theirs.value:.3g} ms",
        f"yours is {gain.value:.3g} times as fast ({gain.low:.3g} to {gain.high:.3g} in {gain.count} rounds); "
        f"all points from {mark.full:g}, half from {mark.half:g} ({mark.where})",
    ]
    if share < 1:
        lines.append(f"what to try next: {half if share else below}")
    if "over" in measured.about:
        lines.append(f"{measured.about['over']}: no more rounds were begun")
    lines += [f"{name}: {words}" for name, words in measured.about.get("disagreements", {}).items()]
    lines += [f"{name}: not compared with: {words}" for name, words in measured.about.get("dropped", {}).items()]
    return Verdict(share, tuple(lines))


def by_nearness(said: object, measured: Measured, mark: Mark | None, what: str) -> Verdict:
    """Decide points by how near a ratio that a learner reports is to the judge's own."""
    if undecided := why_undecided(measured, mark):
        return undecided
    assert mark is not None
    first, *others = measured.samples
    gain, told = measured.gain(measured.fastest(others), first).value, number(said)
    if told is None:
        return Verdict(0.0, (f"{what}: {said!r:.40} is no number",))
    near = abs(told - gain) <= mark.within * gain
    return Verdict(
        float(near),
        (
            f"{what}: {told:g} is {'near' if near else 'far from'} the judge's own on {measured.device['name']}, "
            f"{gain:.3g}; up to {100 * mark.within:g} % off counts",
        ),
    )


def why_undecided(measured: Measured, mark: Mark | None) -> Verdict | None:
    """Return the verdict on what needs no comparison: a kernel that is refused earns nothing, the rest waits on."""
    where = str(measured.device["name"])
    if measured.emulated:
        return Verdict(0.0, ("timed: pending, a CPU stood in for the GPU", measured.words), pending=1.0)
    if measured.outcome == "refused":
        return Verdict(0.0, (f"timed: on {where} {measured.words}",))
    if measured.outcome == "undecided":
        return Verdict(0.0, (f"timed: pending: {measured.words}",), pending=1.0)
    if mark is None:
        return Verdict(0.0, (f"timed: pending: {where} is not calibrated for this part",), pending=1.0)
    return None
