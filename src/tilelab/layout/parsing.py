"""Reading integer tuples as they are printed, by CuTe or by Python."""

from __future__ import annotations

import re
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import MAX_DEPTH

_TOKEN = re.compile(r"\s*(_?-?\d{1,19}(?![\d.])|_|None|[(),\[\]])", re.ASCII)
_CLOSING = {"(": ")", "[": "]"}


def parse_tuple(text: str, what: str = "integer tuple") -> Any:
    """Return the integer tuple that a text shows: ``(4,(2,3))``, ``(_4,_6)``, ``8``; ``_`` alone is ``None``.

    ``(8)`` is a tuple of one, as CuTe prints it.

    Raises
    ------
    LayoutError
        For anything else, quoting the text and the place.
    """
    if not isinstance(text, str):
        raise LayoutError(f"a text such as '(4,6)' was wanted, not {quote(text)} ({type(text).__name__})")
    open_tuples: list[tuple[str, list[Any]]] = []
    position, value_due, done = 0, True, None
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or (done is not None):
            raise _unreadable(text, position, what)
        token = match.group(1)
        if token in _CLOSING:
            if not value_due:
                raise _unreadable(text, position, what)
            if len(open_tuples) == MAX_DEPTH:
                raise LayoutError(f"{what} is nested deeper than {MAX_DEPTH}: {quote(text)}")
            open_tuples.append((token, []))
        elif token == ",":
            if value_due or not open_tuples:
                raise _unreadable(text, position, what)
            value_due = True
        else:
            if token in ")]":
                if not open_tuples or _CLOSING[open_tuples[-1][0]] != token:
                    raise _unreadable(text, position, what)
                value: Any = tuple(open_tuples.pop()[1])
            elif not value_due:
                raise _unreadable(text, position, what)
            else:
                value = None if token in ("_", "None") else int(token.lstrip("_"))
            value_due = False
            if open_tuples:
                open_tuples[-1][1].append(value)
            else:
                done = (value,)
        position = match.end()
    if done is None:
        raise _unreadable(text, position, what)
    return done[0]


def _unreadable(text: str, position: int, what: str) -> LayoutError:
    return LayoutError(f"cannot read {what} {quote(text)} at character {position + 1}; write it as '(4,(2,3))'")
