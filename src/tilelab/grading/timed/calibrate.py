"""Calibration: what the course's own kernels gain on a device, and how much that varies, for the thresholds file."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from statistics import median
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.timed.conductor import Conductor
from tilelab.grading.timed.thresholds import ASKED, LEAST_GAIN, MOST_SPREAD, Thresholds, scaled
from tilelab.grading.timed.wanted import Wanted
from tilelab.grading.timing import courses

#: Measurements of each part, each as long as a learner's.
TIMES = 9


def spread(values: list[float]) -> float:
    """Return the distance between the 5th and the 95th percentile, as a share of the median."""
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return (at(0.95) - at(0.05)) / median(ordered)


def pairs(thresholds: Thresholds) -> dict[str, Wanted]:
    """Return what is measured for each part that has thresholds: the course's kernel against the other."""
    wanted = {}
    for cell, part in thresholds.parts.items():
        if "full" in part:
            M, N, K = part["shape"]
            wanted[cell] = Wanted((M, N, K), (courses(part["own"]), courses(part["against"])))
    return wanted


def calibrate(thresholds: Thresholds, conductor: Conductor, times: int = TIMES) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure, and yield for each part what the thresholds file will say of it on this device.

    A part whose gain is too small, or varies too much, has ``fault`` instead of thresholds.

    Raises
    ------
    GradingError
        The device is slowed down or shared.
    """
    for cell, wanted in pairs(thresholds).items():
        part, gains = thresholds.part(cell), []
        for _ in range(times):
            measured = conductor.measure(wanted)
            if measured.outcome != "timed":
                raise GradingError(f"{cell} cannot be calibrated: {measured.words}")
            first, *others = measured.samples
            gains.append(measured.gain(others[0], first).value)
        gain, found = median(gains), spread(gains)
        entry: dict[str, Any] = {"gain": gain, "spread": found}
        if found > MOST_SPREAD:
            entry["fault"] = f"the gain varies by {100 * found:.1f} %, {100 * MOST_SPREAD:g} % is the most to grade by"
        elif gain < LEAST_GAIN:
            entry["fault"] = f"the course's own kernel gains only {gain:.2f}: no points can hang on it"
        else:
            entry |= {what: scaled(part[what], part["gain"], gain) for what in ("full", "half")}
        yield cell, entry


def entry_of(conductor: Conductor, thresholds: Thresholds, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a device's entry in the thresholds file; each part says which measurement its numbers are of."""
    head = {
        "name": conductor.device["name"],
        "date": datetime.now(UTC).date().isoformat(),
        "driver": conductor.device["driver"],
        "fp32_tflops": conductor.ceilings["flops"] / 1e12,
        "copy_tb_s": conductor.ceilings["bandwidth"] / 1e12,
    }
    return head | {
        cell: {what: thresholds.part(cell)[what] for what in ASKED} | dict(entry)
        for cell, entry in found.items()
        if "fault" not in entry
    }
