"""Signatures in front of a kernel: ``@cuda.jit("void(float32[:], float32)")`` fixes the types of numbers."""

import re
from typing import Any

from tilelab.simt import types
from tilelab.simt.types import SCALARS, Scalar

_NAMES = {s.name: s for s in SCALARS} | {
    f"{s.kind}{s.bits // 8}": s for s in SCALARS if s.kind != "b"
} | {
    "boolean": types.boolean, "bool_": types.boolean, "b1": types.boolean, "intp": types.int64, "intc": types.int32,
    "int_": types.int64, "float_": types.float32, "double": types.float64,
}  # fmt: skip


class Signature:
    """What a signature says.

    Attributes
    ----------
    parameters
        For each parameter its number type, or that of an array's elements; ``None`` where it says nothing known here.
    result
        The type that a device function gives, or ``None``.
    """

    def __init__(self, parameters: list[Scalar | None], result: Scalar | None = None) -> None:
        self.parameters, self.result = parameters, result


def signature_of(given: Any) -> Signature | None:
    """The signature in what ``cuda.jit`` was given: a text, a tuple of types, or a list of one of those.

    ``None`` if there is none, or several of which a launch would have to choose.
    """
    if isinstance(given, list):
        return signature_of(given[0]) if len(given) == 1 else None
    if isinstance(given, tuple):
        return Signature([_known(part) for part in given])
    if not isinstance(given, str):
        return None
    result, bracket, parameters = given.strip().rstrip(")").partition("(")
    if not bracket:
        result, parameters = "", result
    parts = re.split(r",(?![^\[]*\])", parameters) if parameters.strip() else []
    return Signature([_named(part) for part in parts], _named(result))


def _known(part: Any) -> Scalar | None:
    return part if isinstance(part, Scalar) else None


def _named(text: str) -> Scalar | None:
    return _NAMES.get(text.partition("[")[0].strip())
