"""Trusted checks of exercise 3: banks of a column-major 32 × 32 tile of float32."""

from typing import Any

from tilelab.grading.judge import Verdict
from tilelab.grading.layouts import meant
from tilelab.grading.problems.exercise_3 import ITEM, TILE, conflicts, tile_fault
from tilelab.grading.values import whole, whole_fault
from tilelab.hardware.banks import BANKS, bank_access
from tilelab.layout import Layout


def check_prediction(answers: dict[str, Any], tile: Layout) -> Verdict:
    """A prediction is worth half for being made."""
    if fault := whole_fault(answers.get("prediction"), "the number of banks", 1, 32):
        return Verdict(0.0, (f"prediction: {fault}",))
    if whole(answers["prediction"]) == len({tile(0, j) % BANKS for j in range(TILE)}):
        return Verdict(1.0, ("prediction: right",))
    return Verdict(0.5, ("prediction: made, and not what the banks do. Take the offsets of row 0 modulo 32",))


def check_degree(answers: dict[str, Any], tile: Layout) -> Verdict:
    """As many turns as threads want different words of the same bank."""
    if fault := whole_fault(answers.get("degree"), "the degree", 1, 1 << 20):
        return Verdict(0.0, (f"degree: {fault}",))
    if whole(answers["degree"]) == bank_access([ITEM * tile(0, j) for j in range(TILE)]).ways:
        return Verdict(1.0, ("degree: right",))
    return Verdict(0.0, ("degree: not right. Count the threads whose offset has the same rest modulo 32",))


def check_layout(answers: dict[str, Any]) -> Verdict:
    """Half for rows that are free, half for columns."""
    answer = meant(answers.get("layout"))
    if isinstance(answer, str):
        return Verdict(0.0, (f"layout: {answer}",))
    if fault := tile_fault(answer):
        return Verdict(0.0, (f"layout: {fault}",))
    faults = conflicts(answer)
    if not faults:
        return Verdict(1.0, (f"layout: {answer.text}: all 32 rows and 32 columns are free of conflicts",))
    rows_free = not any("row" in fault for fault in faults)
    said = "; ".join(faults)
    if not rows_free:
        return Verdict(0.0, (f"layout: {answer.text}: {said}", "where to look: the stride from one column to the next"))
    return Verdict(0.5, (f"layout: {answer.text}: rows are free, but {said}",))


def check_size_and_cosize(answers: dict[str, Any]) -> Verdict:
    """Half each, for the layout that was handed in."""
    if answers.get("size") is None and answers.get("cosize") is None:
        return Verdict(0.0, ("size and cosize: not answered",))
    answer = meant(answers.get("layout"))
    if isinstance(answer, str):
        return Verdict(0.0, (f"size and cosize: judged for your layout, and there is none: {answer}",))
    if fault := tile_fault(answer):
        return Verdict(0.0, (f"size and cosize: your layout cannot hold the tile: {fault}",))
    right = {name: whole(answers.get(name)) == getattr(answer, name) for name in ("size", "cosize")}
    faults = {name: whole_fault(answers.get(name), "it", 1, 1 << 20) or "not right" for name in right}
    said = ", ".join(f"{name} {'right' if fine else faults[name]}" for name, fine in right.items())
    hint = "" if right["cosize"] else ": take the largest offset and add 1"
    return Verdict(sum(right.values()) / 2, (f"size and cosize of {answer.text}: {said}{hint}",))
