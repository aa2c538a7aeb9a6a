"""Practice 6: a timing report against cuBLAS, and what it says."""

from collections.abc import Mapping
from typing import Any

from tilelab.grading.problems import Finding, Part, Problem
from tilelab.grading.timing import named_device, report_fault
from tilelab.grading.values import number, statements_fault

SIZE = 1024
#: Of one product.
FLOPS = 2.0 * SIZE**3
TIMES = {"tiled_ms": "the tiled kernel", "cublas_ms": "torch.matmul"}
STATEMENTS = ("a", "b", "c", "d")


def fault_of(report: object) -> str:
    """Say why a report cannot be right on any GPU, or ``""``."""
    if report is None:
        return "not answered yet"
    if fault := report_fault(report, TIMES, FLOPS):
        return fault
    assert isinstance(report, Mapping)
    if report.get("tf32") is not False:
        return "tf32: measure with TF32 off and say so with False; else it is another precision"
    if report["cublas_ms"] > report["tiled_ms"]:
        return "cuBLAS is slower than the tiled kernel in this report: was the first call measured, with its set-up?"
    return ""


def look_at_measurement(answers: Mapping[str, Any]) -> Finding:
    """Whether the report can be at all."""
    fault = fault_of(answers["report"])
    return Finding.undecided("possible; your instructor compares it with a measurement of their own", fault)


def look_at_statement(answers: Mapping[str, Any]) -> Finding:
    """Form alone."""
    fault = statements_fault(answers["statement"], STATEMENTS)
    return Finding.undecided("all decided", fault)


def picture(answers: Mapping[str, Any]) -> object | None:
    """What the learner's times mean as rates, below the card's peak."""
    report = answers.get("report")
    if not isinstance(report, Mapping):
        return None
    times = {name: number(report.get(name)) for name in TIMES}
    rates = {what: FLOPS / (1e-3 * time) for name, what in TIMES.items() if (time := times[name]) and 0 < time < 1e6}
    if not rates:
        return None
    from tilelab.grading.speed_pictures import rates_picture

    card = named_device(report.get("device"))
    return rates_picture(rates, card.fp32 if card else None, card.name if card else "this card")


PROBLEM = Problem(
    name="practice_6",
    assignment="practice",
    parts=(
        Part("measurement", 4, look_at_measurement, ("report",)),
        Part("statement", 2, look_at_statement),
    ),
    picture=picture,
)
