"""Numbers and names in sentences."""

from collections.abc import Iterable
from difflib import get_close_matches


def plural(count: int, word: str) -> str:
    """``1 warp``, ``8 warps``; ``1,024 warps`` from a thousand on."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def article(number: int) -> str:
    """``a`` or ``an``, as the number is spoken."""
    return "an" if str(number)[0] == "8" or number in (11, 18) else "a"


def one(kind: object) -> str:
    """A type with its article: ``an int32``, ``a uint8``, ``an array(float32, 1d, global)``."""
    return f"{'an' if str(kind)[0] in 'ai' else 'a'} {kind}"


def meant(name: str, names: Iterable[str], prefix: str = "") -> str:
    """``; did you mean cuda.syncthreads?`` if there is a name that a wrong one is near to, else nothing."""
    there = {n.lower(): n for n in names if not n.startswith("_")}
    near = get_close_matches(name.lower(), there, 1, 0.7)
    return f"; did you mean {prefix}{there[near[0]]}?" if near else ""
