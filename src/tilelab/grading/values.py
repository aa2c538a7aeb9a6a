"""Single values as answers: whole numbers, numbers, words and statements, in the forms that they are really written."""

import math
from collections.abc import Iterable, Mapping


def whole(value: object) -> int | None:
    """Return a whole number, also one written ``32.0``; ``None`` for anything else, ``True`` included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value
    return int(value) if math.isfinite(value) and value == int(value) else None


def number(value: object) -> float | None:
    """Return a finite number; ``None`` for anything else, ``True`` included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def word(value: object) -> str:
    """Return a word as it is compared: lower case, with ``-`` where a space or ``_`` stood; ``""`` for no text.

    Quotes, brackets and a full stop around it do not count.
    """
    return value.lower().replace("_", "-").replace(" ", "-").strip("-.'\"()[]\n") if isinstance(value, str) else ""


def whole_fault(value: object, what: str, low: int, high: int) -> str:
    """Say what keeps ``value`` from being a whole number from ``low`` to ``high``, or ``""``."""
    if value is None:
        return f"{what} is not answered yet"
    found = whole(value)
    if found is None:
        return f"{what} is a whole number, not {value!r:.40}"
    return "" if low <= found <= high else f"{what} lies between {low} and {high}, not {found}"


def statements_fault(value: object, names: tuple[str, ...]) -> str:
    """Say what keeps ``value`` from being True or False for each of the named statements, or ``""``."""
    if not isinstance(value, Mapping):
        return f"say True or False for each of {', '.join(names)}, not {value!r:.40}"
    open_ones = [name for name in names if value.get(name) is None]
    if open_ones:
        return f"not decided yet: {', '.join(open_ones)}"
    wrong = [name for name in names if not isinstance(value[name], bool)]
    return f"{wrong[0]} is True or False, without quotes, not {value[wrong[0]]!r:.40}" if wrong else ""


def statements_right(value: object, right: Mapping[str, bool]) -> tuple[float, list[str]]:
    """Return which share of the statements is decided rightly, and the names of the others.

    Guessing earns nothing: a wrong decision costs what a right one earns, and the share is never below 0.
    """
    given = value if isinstance(value, Mapping) else {}
    wrong = [name for name, truth in right.items() if given.get(name) is not truth]
    decided_wrongly = sum(isinstance(given.get(name), bool) for name in wrong)
    return max(len(right) - len(wrong) - decided_wrongly, 0) / len(right), wrong


def statements_line(line: str, value: object, names: Iterable[str]) -> str:
    """A judge's line about statements, with what keeps some of them from being read at all."""
    fault = statements_fault(value, tuple(names))
    return f"{line}; {fault}" if fault else line
