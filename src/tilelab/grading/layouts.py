"""Layouts as answers, judged as functions: two that give the same offset for every coordinate are the same answer.

A layout may be handed in as a `Layout`, as text ``"(8,2):(2,1)"``, as a pair of shape and stride, or, where no shape
and stride say it, as a swizzled layout (text: ``"Sw<2,0,3> o 0 o (8,8):(8,1)"``) or as the table of its offsets, row by
row.
"""

import ast
import re
import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.values import whole
from tilelab.layout import ComposedLayout, Layout, LayoutError, Swizzle

#: Coordinates that a layout answer may have: all of them are evaluated.
MOST = 1 << 16
#: The example here and in messages is the right answer of no problem.
FORMS = "a Layout, text such as '(8,2):(2,1)', a pair (shape, stride), or the table of its offsets"
#: How a swizzled layout is written: the swizzle's three numbers, an offset, the layout inside.
_SWIZZLED = re.compile(r"\s*+Sw<(\d{1,2}),(\d{1,2}),(\d{1,2})>\s*+o\s*+(\d{1,9})\s*+o\s*+(.+)", re.S)
#: A pair of shape and stride as Python or C++ writes it: with the name of what makes it, or as a pair of pairs.
_CALLED = re.compile(
    r"\s*+(?:(?:\w{1,20}(?:\.|::))?(?:Layout|make_layout)\s*+|(?=\(\s*+\())(\([\s\d,()\[\]_-]{1,2000}\))\s*+;?\s*+"
)
_MAKERS = re.compile(r"\b(?:cute::)?make_(?:shape|stride|tuple)(?=\s{0,9}\()")


@dataclass(frozen=True)
class LayoutAnswer:
    """A layout as it was meant: extents of its top-level modes, and the offset of each coordinate.

    Attributes
    ----------
    text : str
        How to name it in a message.
    extents : tuple of int
        Size of each top-level mode; a nested mode counts as one.
    offset : callable
        From one coordinate per mode to the offset.
    """

    text: str
    extents: tuple[int, ...]
    offset: Callable[..., int]

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        count = 1
        for extent in self.extents:
            count *= extent
        return count

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """All coordinates, the first mode running fastest."""
        coordinate = [0] * len(self.extents)
        for _ in range(self.size):
            yield tuple(coordinate)
            for mode, extent in enumerate(self.extents):
                coordinate[mode] += 1
                if coordinate[mode] < extent:
                    break
                coordinate[mode] = 0

    @property
    def offsets(self) -> list[int]:
        """The offset of each coordinate, in the order of `coordinates`."""
        return [self.offset(*coordinate) for coordinate in self.coordinates()]

    @property
    def cosize(self) -> int:
        """How many elements a buffer for it needs."""
        return max(self.offsets) + 1


def read_layout(value: object) -> LayoutAnswer:
    """Read a layout that was handed in.

    Raises
    ------
    GradingError
        It is none, it has more than `MOST` coordinates, or a negative offset. The message is for the learner.
    """
    if _is_table(value):
        return _from_table(value)
    layout: Layout | ComposedLayout
    try:
        match value:
            case Layout() | ComposedLayout():
                layout = value
            case str() if found := _SWIZZLED.fullmatch(value):
                bits, base, shift, offset = map(int, found.groups()[:4])
                layout = ComposedLayout(Swizzle(bits, base, shift), offset, Layout.parse(found[5]))
            case str() if found := _CALLED.fullmatch(_MAKERS.sub("", value[:4000])):
                return read_layout(_pair(found[1]))
            case str() if ":" not in value:
                raise GradingError(
                    f"not a layout: {value!r:.60} has no : before strides. Write shape:stride, as in '(8,2):(2,1)'"
                )
            case str():
                layout = Layout.parse(value)
            case [shape, stride]:
                layout = Layout(_tuples(shape), _tuples(stride))
            case {"shape": shape, "stride": stride} | {"shape": shape, "strides": stride}:
                layout = Layout(_tuples(shape), _tuples(stride))
            case _:
                raise GradingError(f"not a layout: {reprlib.repr(value):.80}. Hand in {FORMS}")
    except LayoutError as error:
        raise GradingError(f"not a layout: {error}") from None
    if layout.size > MOST:
        raise GradingError(f"{layout} has {layout.size:,} coordinates, the limit here is {MOST:,}")
    inner = layout.inner if isinstance(layout, ComposedLayout) else layout
    extents = tuple(mode.size for mode in inner) if inner.rank > 1 else (layout.size,)
    answer = LayoutAnswer(str(layout), extents, layout)
    if min(answer.offsets) < 0:
        raise GradingError(f"{layout} has negative offsets: a buffer begins at 0")
    return answer


def _pair(text: str) -> Any:
    """Read a pair that is written as Python writes it; what is none comes back as it is, without its blanks."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [text]


def meant(value: object) -> LayoutAnswer | str:
    """Return the layout that was handed in, or why there is none, for the learner."""
    if value is None:
        return "not answered yet"
    try:
        return read_layout(value)
    except GradingError as error:
        return str(error)


def _is_table(value: object) -> bool:
    """Whether it is a table of offsets; a pair is read as shape and stride, but no extent of a shape is 0."""
    if not isinstance(value, list | tuple) or not all(isinstance(row, list | tuple) for row in value):
        return False
    return len(value) > 2 or (len(value) == 2 and any(whole(offset) == 0 for offset in value[0]))


def _from_table(value: Any) -> LayoutAnswer:
    rows, columns = len(value), len(value[0])
    if any(len(row) != columns for row in value) or not columns:
        raise GradingError("the table of offsets has rows of different lengths")
    if rows * columns > MOST:
        raise GradingError(f"the table has {rows * columns:,} offsets, the limit here is {MOST:,}")
    for i, row in enumerate(value):
        for j, offset in enumerate(row):
            if (place := whole(offset)) is None or not 0 <= place < 1 << 40:
                raise GradingError(f"cell ({i},{j}) holds {offset!r:.40}, an offset is a whole number from 0 on")
    return LayoutAnswer("your table of offsets", (rows, columns), lambda i, j: int(value[i][j]))


def _tuples(value: Any) -> Any:
    """JSON has lists where a layout has tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def collision(answer: LayoutAnswer) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the first two coordinates that share an offset, or ``None``."""
    seen: dict[int, tuple[int, ...]] = {}
    for coordinate in answer.coordinates():
        offset = answer.offset(*coordinate)
        if offset in seen:
            return seen[offset], coordinate
        seen[offset] = coordinate
    return None


def shown(coordinate: tuple[int, ...]) -> str:
    """Write a coordinate as the course does: ``(1,2)``."""
    return f"({','.join(map(str, coordinate))})"
