"""The one exception of this floor, and the quoting of what the caller gave."""

from __future__ import annotations

__all__ = ["LayoutError", "quote"]

_LONGEST = 120


class LayoutError(ValueError):
    """A layout, coordinate or operation that cannot be; the message quotes the input and says what would work."""


def quote(value: object) -> str:
    """Return a short one-line form of any value, safe for huge integers and endless nesting."""
    text = _quote(value, 8)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _quote(value: object, levels: int) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return f"<an integer of {value.bit_length()} bits>"
    if value is None:
        return "None"
    if type(value) in (tuple, list):
        if not levels:
            return "(…)"
        parts = [_quote(item, levels - 1) for item in value[:16]]  # type: ignore[index]
        if len(value) > 16:  # type: ignore[arg-type]
            parts.append("…")
        inside = ",".join(parts)
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"  # type: ignore[arg-type]
    if isinstance(value, str):
        return repr(value[:_LONGEST])
    if type(value) in (dict, set, frozenset, bytes, bytearray):
        return f"a {type(value).__name__} of {len(value)}"  # type: ignore[arg-type]
    try:
        return " ".join(repr(value).split())
    except Exception:  # a broken repr must not hide the error that quotes it
        return f"a {type(value).__name__}"
