"""Practice 8: the roofline of a product of the learner's own, and a plan that a person reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.timing import named_device
from tilelab.grading.values import number, whole, word
from tilelab.hardware.limits import DEVICES, HardwareError

BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp8": 1}
BOUNDS = ("memory", "compute")
LARGEST = 1_000_000


#: Where to look, by what is not right.
WHERE = {
    "flops": "a multiply-add counts two, and there are M·N·K of them",
    "bytes": "every element of A, of B and of C once, times the bytes of the type",
    "intensity": "divide your flops by your bytes",
    "bound": "compare the intensity with the ridge of the card for this type",
}


@dataclass(frozen=True)
class Roofline:
    """Where a product stands: what is right for a learner's own shape, type and card."""

    flops: float
    bytes: float
    ridge: float

    @property
    def intensity(self) -> float:
        """Flops per compulsory byte."""
        return self.flops / self.bytes

    @property
    def bound(self) -> str:
        """What takes longer on that card."""
        return "memory" if self.intensity < self.ridge else "compute"


def roofline_of(answer: object) -> Roofline:
    """Work out the roofline of the shape, type and card that were handed in.

    Raises
    ------
    GradingError
        One of the three is missing or not known.
    """
    if not isinstance(answer, Mapping):
        raise GradingError(f"the roofline is a dict, not {answer!r:.60}")
    shape = answer.get("shape")
    if isinstance(shape, Mapping):
        shape = [shape.get(extent) for extent in "MNK"]
    extents = [whole(extent) for extent in shape] if isinstance(shape, list) else []
    m, n, k = extents if len(extents) == 3 else (None, None, None)
    if m is None or n is None or k is None or not all(1 <= extent <= LARGEST for extent in (m, n, k)):
        raise GradingError(f"shape is M, N and K, three whole numbers from 1 to {LARGEST:,}, not {shape!r:.60}")
    kind = type_meant(answer.get("dtype"))
    if kind not in BYTES:
        raise GradingError(f"dtype is one of {', '.join(BYTES)}, not {answer.get('dtype')!r:.40}")
    card = named_device(answer.get("device"))
    if card is None:
        raise GradingError(f"device is one of {', '.join(DEVICES)}, not {answer.get('device')!r:.40}")
    try:
        ridge = card.ridge(kind)
    except HardwareError as error:
        raise GradingError(str(error)) from None
    return Roofline(2.0 * m * n * k, float(BYTES[kind] * (m * k + k * n + m * n)), ridge)


def type_meant(value: object) -> str:
    """Read a type as it is written in the wild: ``torch.bfloat16``, ``float32``, ``FP8``."""
    kind = word(value).removeprefix("torch.")
    return {"float32": "fp32", "bfloat16": "bf16", "float8": "fp8"}.get(kind, kind)


def bound_meant(value: object) -> str:
    """Read a bound, also one that is written ``memory-bound``."""
    return word(value).removesuffix("-bound")


def wrong_numbers(answer: Mapping[str, Any], right: Roofline) -> list[str]:
    """Return which of the numbers are more than 1 % from what the shape gives."""
    wrong = []
    for name in ("flops", "bytes", "intensity"):
        given, due = number(answer.get(name)), getattr(right, name)
        if given is None or abs(given - due) > 0.01 * due:
            wrong.append(name)
    return wrong


def look_at_roofline(answers: Mapping[str, Any]) -> Finding:
    """What is missing, then whether the numbers agree with one another."""
    answer = answers["roofline"]
    try:
        right = roofline_of(answer)
    except GradingError as error:
        return Finding(False, str(error))
    for name in ("flops", "bytes", "intensity"):
        if number(answer.get(name)) is None:
            return Finding(False, f"{name}: a number is asked for, not {answer.get(name)!r:.40}")
    if bound_meant(answer.get("bound")) not in BOUNDS:
        return Finding(False, f"bound is 'memory' or 'compute', not {answer.get('bound')!r:.40}")
    if wrong := wrong_numbers(answer, right):
        return Finding(False, f"not the {wrong[0]} of this shape: {WHERE[wrong[0]]}")
    return Finding.undecided("the numbers are those of your shape; compare the intensity with the ridge for the bound")


def picture(answers: Mapping[str, Any]) -> object | None:
    """The roof of the card, and where the learner's own intensity lies under it."""
    answer = answers.get("roofline")
    try:
        right = roofline_of(answer)
    except GradingError:
        return None
    assert isinstance(answer, Mapping)
    intensity, card = number(answer.get("intensity")), named_device(answer["device"])
    if card is None or intensity is None or not 0 < intensity < LARGEST:
        return None
    from tilelab.grading.speed_pictures import roof_picture

    kind = type_meant(answer["dtype"])
    title = f"your product under the roof of {card.name} in {kind}"
    return roof_picture(intensity, right.ridge, right.ridge * card.bandwidth, title)


PROBLEM = Problem(
    name="practice_8",
    assignment="practice",
    parts=(Part("roofline", 4, look_at_roofline), Part.text("text", 6)),
    picture=picture,
)
