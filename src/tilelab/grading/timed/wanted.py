"""What is to be measured, and what came out: plain data that travels."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelab.grading.cuda_answers import CudaAnswer
from tilelab.grading.errors import GradingError
from tilelab.measure.statistics import Estimate, estimate, ratio

Shape = tuple[int, int, int]
#: A side of a matrix is shorter: more is no shape that anybody times.
LARGEST_SIDE = 1 << 20
#: The name of the kernel whose points are decided.
YOURS = "yours"


def canonical(value: object) -> bytes:
    """Return plain data as bytes that are the same wherever it has been."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def digest(value: object) -> str:
    """Return what tells one piece of plain data from another."""
    return hashlib.sha256(canonical(value)).hexdigest()


@dataclass(frozen=True)
class Candidate:
    """A kernel to be timed: a rung of the course's own ladder, or a source that was handed in.

    Attributes
    ----------
    name : str
        What reports call it.
    rung : str
        Of the ladder; empty for what was handed in.
    source : str
        What was handed in: CUDA C++.
    launch : mapping
        Its launch rule, as it was handed in.
    tile : int
        What TILE stands for.
    """

    name: str
    rung: str = ""
    source: str = ""
    launch: Mapping[str, Any] = field(default_factory=dict)
    tile: int = 16

    @property
    def handed_in(self) -> bool:
        """Whether a learner wrote it."""
        return not self.rung

    @property
    def answer(self) -> CudaAnswer:
        """What was handed in, as an answer."""
        return CudaAnswer(self.source, self.launch, self.tile)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        if self.rung:
            return {"name": self.name, "rung": self.rung}
        return {"name": self.name, "source": self.source, "launch": dict(self.launch), "tile": self.tile}


def handed_in(name: str, answer: CudaAnswer) -> Candidate:
    """Return a kernel that was handed in as a candidate."""
    return Candidate(name, source=answer.source, launch=dict(answer.launch), tile=answer.tile)


@dataclass(frozen=True)
class Wanted:
    """A measurement that is wanted: candidates on one shape, in turns. The first one's time is the question."""

    shape: Shape
    candidates: tuple[Candidate, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"shape": list(self.shape), "candidates": [one.as_dict() for one in self.candidates]}

    @property
    def digest(self) -> str:
        """What tells it from others; equal ones are measured once."""
        return digest(self.as_dict())


def read_wanted(data: object) -> Wanted:
    """Read plain data as a wanted measurement, or raise `GradingError`: it comes from a file."""
    try:
        match data:
            case {"shape": [int(M), int(N), int(K)], "candidates": [_, *_] as candidates} if is_shape(M, N, K):
                read = tuple(_candidate(one) for one in candidates)
                if len({one.name for one in read}) == len(read):
                    return Wanted((M, N, K), read)
    except (TypeError, KeyError):
        pass
    raise GradingError(f"this is no measurement: {str(data)!r:.100}")


def _candidate(data: Any) -> Candidate:
    match data:
        case {"name": str(name), "rung": str(rung)}:
            return Candidate(name, rung)
        case {"name": str(name), "source": str(source), "launch": dict(launch), "tile": int(tile)}:
            return Candidate(name, "", source, launch, tile)
    raise KeyError(data)


@dataclass(frozen=True)
class Measured:
    """What a measurement gave.

    Attributes
    ----------
    outcome : str
        ``timed``; ``refused``, where the first candidate is wrong, faults or does not end; ``undecided``, where the
        device or the other candidates are in the way.
    words : str
        Why it is not timed.
    device : mapping
        ``name``, ``driver`` and so on; ``emulated`` is true where a CPU stood in.
    shape : tuple of int
        M, N, K that were timed.
    samples : mapping
        Candidate to its samples, each (milliseconds by the wall, by the device's events, by the conductor's clock).
    about : mapping
        Everything else that an instructor may want to see: clocks, shapes tried, seconds it took.
    """

    outcome: str
    words: str
    device: Mapping[str, Any]
    shape: Shape
    samples: Mapping[str, Sequence[Sequence[float]]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "outcome": self.outcome,
            "words": self.words,
            "device": dict(self.device),
            "shape": list(self.shape),
            "samples": [[name, [list(one) for one in taken]] for name, taken in self.samples.items()],  # in this order
            "about": dict(self.about),
        }

    @property
    def emulated(self) -> bool:
        """Whether a CPU stood in for the GPU: then times say nothing."""
        return bool(self.device.get("emulated"))

    @property
    def decides(self) -> bool:
        """Whether points can be decided by it."""
        return self.outcome != "undecided" and not self.emulated

    def times(self, name: str) -> list[float]:
        """Milliseconds of one candidate, round by round.

        The wall clock vouches for the device's events, which tell times apart that it cannot; where it says more than
        they do, it counts itself.
        """
        clock = 0 if name in self.about.get("disagreements", {}) else 1
        return [sample[clock] for sample in self.samples[name]]

    def time(self, name: str) -> Estimate:
        """Milliseconds of one candidate."""
        return estimate(self.times(name))

    def fastest(self, names: Sequence[str]) -> str:
        """Return the fastest of some candidates."""
        return min(names, key=lambda name: self.time(name).value)

    def gain(self, over: str, under: str = YOURS) -> Estimate:
        """Return how many times faster ``under`` is than ``over``: the median of the rounds' ratios."""
        return ratio(self.times(over), self.times(under))


def read_measured(data: object) -> Measured:
    """Read plain data as a measurement's outcome, or raise `GradingError`."""
    match data:
        case {
            "outcome": "timed" | "refused" | "undecided" as outcome,
            "words": str(words),
            "device": dict(device),
            "shape": [int(M), int(N), int(K)],
            "samples": list(samples),
            "about": dict(about),
        } if (
            isinstance(device.get("name"), str)
            and is_shape(M, N, K)
            and _can_be(samples, outcome == "timed")
            and _tells(about)
        ):
            return Measured(outcome, words, device, (M, N, K), dict(samples), about)
    raise GradingError(f"this is no measurement's outcome: {str(data)!r:.100}")


def _can_be(samples: list[Any], timed: bool) -> bool:
    """Tell whether these are samples: as many of every candidate, three numbers each; two candidates, where timed."""
    counts = {}
    for one in samples:
        match one:
            case [str(name), [_, *_] as taken] if name not in counts and all(_is_sample(times) for times in taken):
                counts[name] = len(taken)
            case _:
                return False
    return len(set(counts.values())) == 1 and len(samples) > 1 if samples or timed else True


def is_shape(*sides: object) -> bool:
    """Tell whether these are sides of matrices that somebody may time."""
    return all(type(side) is int and 0 < side < LARGEST_SIDE for side in sides)


def _is_sample(times: object) -> bool:
    return isinstance(times, list) and len(times) == 3 and all(_is_number(time) for time in times)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and abs(value) < 1e40


def _tells(about: Mapping[str, Any]) -> bool:
    """Tell whether what else was noted has the form that reports read."""
    clocks, seconds = about.get("clocks", []), about.get("seconds", 0.0)
    ceilings = about.get("ceilings") or {"flops": 1.0, "bandwidth": 1.0}
    return (
        isinstance(ceilings, dict)
        and all(isinstance(about.get(name, {}), dict) for name in ("dropped", "disagreements"))
        and isinstance(clocks, list)
        and all(isinstance(one, dict) and isinstance(one.get("sm_mhz", 0), int) for one in clocks)
        and isinstance(seconds, int | float)
        and all(_is_number(ceilings.get(name)) and ceilings[name] > 0 for name in ("flops", "bandwidth"))
    )
