"""The steps of an operation, told by the code that does it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from tilelab.draw.layouts import layout as draw_layout
from tilelab.draw.picture import side_by_side
from tilelab.layout.compose import as_tile, compose, composition
from tilelab.layout.divide import divided, flat_divide, logical_divide, tiled_divide, zipped_divide
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inverse import complement
from tilelab.layout.layout import Layout, as_layout

_DIVISIONS = (logical_divide, zipped_divide, tiled_divide, flat_divide)


class Explanation:
    """The steps of one operation: text when printed, HTML with pictures in a notebook.

    Attributes
    ----------
    title : str
        The operation with its operands.
    steps : list of str
        One line each, with the numbers the operation itself used.
    result : Layout or None
        What came out; ``None`` where there is no result.
    error : LayoutError or None
        Why not.
    """

    def __init__(self, title: str, operands: list[Layout], run: Callable[[list[str]], Any]) -> None:
        self.title, self.operands = title, operands
        self.steps: list[str] = []
        self.result: Layout | None = None
        self.error: LayoutError | None = None
        try:
            self.result = run(self.steps)
        except LayoutError as error:
            self.error = error

    def __repr__(self) -> str:
        lines = [f"{i}. {step}" for i, step in enumerate(self.steps, 1)]
        return "\n".join([self.title, *lines, self._outcome()])

    def _outcome(self) -> str:
        if self.error is not None:
            return f"no result: {self.error}"
        found = f"= {self.result!r}"
        covers, extra = getattr(self.result, "covers", True), getattr(self.result, "extra", 0)
        if extra:
            found += f", {extra} coordinates outside"
        return found if covers else f"{found}, and some elements in no tile"

    def _repr_html_(self) -> str:
        shown = [x for x in [*self.operands, self.result] if isinstance(x, Layout) and x.size <= 1024]
        steps = "".join(f"<li>{escape(step)}</li>" for step in self.steps)
        picture = side_by_side([draw_layout(x) for x in shown], self.title).svg if shown else ""
        return (
            f'<div class="tilelab-explain" style="overflow-x:auto"><p><strong>{escape(self.title)}</strong></p>'
            f"<ol>{steps}</ol><p><strong>{escape(self._outcome())}</strong></p>{picture}</div>"
        )


def explain(operation: Callable[..., Any], *operands: Any) -> Explanation:
    """Tell the steps of a composition, a complement or a division.

    Parameters
    ----------
    operation
        ``composition``, ``complement``, or ``logical_divide`` and the divisions made of it.
    *operands
        What the operation is called with.

    Returns
    -------
    Explanation
        Its steps come from the operation's own run, so their numbers are those it used. An operation that has no
        result is explained up to where it fails.

    Raises
    ------
    LayoutError
        For another operation, or operands that are no layouts.

    Examples
    --------
    >>> print(explain(complement, Layout(4, 2), 24))
    complement of 4:2 in 24
    1. mode 4:2 starts at 2, filled so far up to 1: 2:1 fills the gap
    2. 24 elements hold 3 times the 8 filled so far: 3:8
    3. complement = (2,3):(1,8)
    = (2,3):(1,8)
    """
    if not operands:
        raise LayoutError("explain wants an operation and its operands, such as explain(composition, a, b)")
    first = as_layout(operands[0])
    if operation is complement:
        cotarget = operands[1] if len(operands) > 1 else None
        room = "" if cotarget is None else f" in {quote(cotarget)}"
        return Explanation(
            f"complement of {first}{room}", [first], lambda told: complement(first, cotarget, trace=told)
        )
    if not isinstance(first, Layout) or len(operands) != 2:
        raise LayoutError(f"explain wants two layouts for this operation, not {quote(operands)}")
    second = operands[1]
    if operation is composition:
        tile = as_tile(second)
        return Explanation(f"A∘B for A = {first}, B = {tile}", [first, tile], lambda told: compose(first, tile, told))
    if operation in _DIVISIONS:

        def run(told: list[str]) -> Layout:
            divided(first, second, told)
            result: Layout = operation(first, second)
            return result

        tiles = [second] if isinstance(second, Layout) else []
        return Explanation(f"{operation.__name__} of {first} by {quote(second)}", [first, *tiles], run)
    name = getattr(operation, "__name__", quote(operation))
    raise LayoutError(f"explain tells composition, complement and the divisions, not {name}")
