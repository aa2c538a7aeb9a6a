"""Points that hang on a time: they wait for a judge with a GPU. And times as answers."""

from collections.abc import Mapping

from tilelab.grading.cuda_answers import Judgement
from tilelab.grading.judge import Verdict
from tilelab.grading.values import number
from tilelab.hardware.limits import Device, HardwareError, device


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
    return ""
