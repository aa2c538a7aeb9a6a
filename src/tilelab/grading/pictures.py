"""Pictures of learners' own answers."""

from collections.abc import Sequence

from tilelab.draw.colours import ramp
from tilelab.draw.grid import Cell, grid
from tilelab.draw.picture import Picture

#: A cell that is not filled in yet.
EMPTY = "#e6e6e6"


def table_picture(table: Sequence[Sequence[int | None]], title: str) -> Picture:
    """Draw a table of offsets, lighter for small ones and darker for large ones, as layouts are drawn.

    Cells that are ``None`` are grey and show a question mark.
    """
    known = [value for row in table for value in row if value is not None]
    lowest, reach = min(known, default=0), max(max(known, default=0) - min(known, default=0), 1)
    cells = [
        [
            Cell("?", EMPTY, f"({i},{j}) is not filled in")
            if value is None
            else Cell(f"{value:g}", ramp((value - lowest) / reach), f"({i},{j}) → {value:g}")
            for j, value in enumerate(row)
        ]
        for i, row in enumerate(table)
    ]
    return grid(cells, title)
