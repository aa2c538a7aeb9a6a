"""Atomic operations on many elements at once, each position in its turn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt.lanes_pieces import Integers


def modify(name: str, data: NDArray[Any], at: Integers, operands: list[NDArray[Any]], used: bool) -> NDArray[Any]:
    """Apply an atomic for each position in turn and return what was there before."""
    whole = {"add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum, "and_": np.bitwise_and,
             "or_": np.bitwise_or, "xor": np.bitwise_xor, "nanmax": np.fmax, "nanmin": np.fmin}.get(name)  # fmt: skip
    if whole is not None and not used:
        whole.at(data, at, operands[0])
        return operands[0]
    old = np.empty(len(at), data.dtype)
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(at) else np.zeros(0, bool)
    start = np.flatnonzero(first)
    turn = np.arange(len(at)) - np.repeat(start, np.diff([*start, len(at)]))
    for n in range(int(turn.max(initial=-1)) + 1):
        lanes = order[turn == n]
        here = at[lanes]
        before = data[here]
        old[lanes] = before
        data[here] = _after(name, before, [o[lanes] for o in operands], whole)
    return old


def _after(name: str, before: NDArray[Any], operands: list[NDArray[Any]], whole: Any) -> NDArray[Any]:
    value = operands[0]
    made: NDArray[Any]
    if whole is not None:
        made = whole(before, value)
    elif name == "exch":
        made = value
    elif name == "inc":
        made = np.where(before >= value, 0, before + 1).astype(before.dtype)
    elif name == "dec":
        made = np.where((before == 0) | (before > value), value, before - 1).astype(before.dtype)
    else:  # cas, compare_and_swap
        made = np.where(before == value, operands[1], before)
    return made
