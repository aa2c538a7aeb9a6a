"""The one exception of this floor, and the quoting of what the caller gave."""

from __future__ import annotations

from typing import Any

_LONGEST = 120


class LayoutError(ValueError):
    """A layout, coordinate or operation that cannot be; the message quotes the input and says what would work.

    ``details`` holds the parts of the message as values; for a composition ``a``, ``b``, ``mode``, ``coordinate``,
    ``right`` and ``candidate``.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


def quote(value: object, levels: int = 8) -> str:
    """Return a short one-line form of any value, safe for huge integers and endless nesting."""
    text = _quote(value, levels)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _quote(value: Any, levels: int) -> str:
    kind = type(value)
    if isinstance(value, int) and value.bit_length() > 256:
        return f"<an integer of {value.bit_length()} bits>"
    if kind is tuple or kind is list:
        if not levels:
            return "…"
        inside = ",".join([_quote(item, levels - 1) for item in value[:16]] + ["…"] * (len(value) > 16))
        if kind is list:
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, (str, bytes)):
        return repr(value[:_LONGEST])
    if kind in (dict, set, frozenset, bytearray) and len(value) > 16:
        return f"a {kind.__name__} of {len(value)}"
    try:
        return " ".join(repr(value).split())
    except Exception:  # a broken repr must not hide the error that quotes it
        return f"a {kind.__name__}"
