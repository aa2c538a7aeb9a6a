"""Reading integer tuples as they are printed, by CuTe or by Python."""

from __future__ import annotations

import re
from typing import Any

from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import MAX_DEPTH, check

#: Brackets, commas, integers, ``_4`` for 4, and ``_`` or ``None`` alone; no two of them run together.
_READABLE = re.compile(r"(?:[\s,()\[\]]|(?<![\w-])(?:_?-?\d+|_|None)(?![\w-]))+", re.ASCII)


def parse_tuple(text: str, what: str = "integer tuple") -> Any:
    """Return the integer tuple that a text shows: ``(4,(2,3))``, ``(_4,_6)``, ``8``; ``_`` alone is ``None``.

    ``(8)`` is a tuple of one, as CuTe prints it.

    Raises
    ------
    LayoutError
        For anything else, quoting the text.
    """
    from ast import literal_eval  # most programs never read a text

    if not isinstance(text, str):
        raise LayoutError(f"a text such as '(4,6)' was wanted, not {quote(text)} ({type(text).__name__})")
    value: Any = ()
    if _READABLE.fullmatch(text):
        python = re.sub(r"_(?=-?\d)", "", text).replace("_", "None")
        python = re.sub(r"(?<=[^\s,(])\s*\)", ",)", python)
        try:
            value = literal_eval(f"({python}\n,)")
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = ()
    if len(value) != 1:
        form = f"write it as '(4,(2,3))', nested at most {MAX_DEPTH} deep"
        raise LayoutError(f"cannot read {what} {quote(text)}; {form}")
    return check(value[0], f"{what} {quote(text)}: it", (type(None),))
