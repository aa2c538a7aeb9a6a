"""Pictures of learners' own answers."""

from collections.abc import Callable, Mapping, Sequence

from tilelab.draw.colours import ramp
from tilelab.draw.grid import Cell, grid
from tilelab.draw.picture import Picture
from tilelab.grading.cuda_answers import CudaAnswer, Shape, product
from tilelab.grading.errors import GradingError
from tilelab.grading.layouts import read_layout
from tilelab.hardware.banks import BANKS

#: A cell that is not filled in yet.
EMPTY = "#e6e6e6"
#: Elements that are right and wrong: far apart in lightness too, for every eye.
RIGHT, WRONG = "#dce9f5", "#8c3b00"
#: Coordinates of a layout that a picture still shows readably.
LARGEST = 2048


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


def layout_picture(value: object, title: str) -> Picture | None:
    """Draw a layout that was handed in as the table of its offsets; ``None`` where it is none or too large to read."""
    try:
        answer = read_layout(value)
    except GradingError:
        return None
    if answer.size > LARGEST or len(answer.extents) > 2:
        return None
    rows, columns = answer.extents if len(answer.extents) == 2 else (1, answer.size)
    table = [
        [answer.offset(*((i, j) if len(answer.extents) == 2 else (j,))) for j in range(columns)] for i in range(rows)
    ]
    return table_picture(table, f"{title}: {answer.text}")


def bank_picture(value: object, title: str) -> Picture | None:
    """Draw in which of the 32 banks each float32 of a matrix lies; ``None`` where it is no matrix."""
    try:
        answer = read_layout(value)
    except GradingError:
        return None
    if answer.size > LARGEST or len(answer.extents) != 2:
        return None
    rows, columns = answer.extents
    banks = [[answer.offset(i, j) % BANKS for j in range(columns)] for i in range(rows)]
    return table_picture(banks, f"{title}: {answer.text}")


def holders_picture(rows: Mapping[str, Sequence[Sequence[int]]], elements: int) -> Picture:
    """Draw which thread holds each element of a vector.

    Parameters
    ----------
    rows : mapping
        Name of a division to what each thread holds.
    elements : int
        Length of the vector.
    """
    cells = []
    for holds in rows.values():
        owner = {element: t for t, mine in enumerate(holds) for element in mine}
        last = max(len(holds) - 1, 1)
        cells.append(
            [
                Cell(f"T{owner[e]}", ramp(owner[e] / last), f"element {e}: thread {owner[e]}")
                if e in owner
                else Cell("?", EMPTY, f"element {e}: no thread")
                for e in range(elements)
            ]
        )
    return grid(cells, "which thread holds each element", row_labels=list(rows))


def product_picture(read: Callable[[], CudaAnswer], shape: Shape) -> Picture | None:
    """Draw where a kernel's product is right; ``None`` where it does not run here at all.

    Parameters
    ----------
    read : callable
        Gives the kernel that was handed in.
    shape : tuple of int
        M, N, K.
    """
    try:
        answer = read()
        found = product(answer, shape, seed=1)
    except GradingError:
        return None
    if found is None:
        return None
    right, c = found
    cells = [
        [
            Cell("" if good else "×", RIGHT if good else WRONG, f"C[{i},{j}] = {value:.6g}")
            for j, (good, value) in enumerate(zip(*rows, strict=True))
        ]
        for i, rows in enumerate(zip(right, c, strict=True))
    ]
    m, n, k = shape
    tile = f" TILE={answer.tile}" if answer.tile_argument else ""
    return grid(cells, f"C for M={m} N={n} K={k}{tile}: {int(right.sum())} of {m * n} elements right, × is wrong")


def verdict_picture(rows: Sequence[Sequence[bool]], title: str, row_labels: list[str], columns: list[str]) -> Picture:
    """Draw what works and what does not: a tick or a cross in each cell."""
    cells = [[Cell("✓" if fine else "×", RIGHT if fine else WRONG) for fine in row] for row in rows]
    return grid(cells, title, row_labels=row_labels, column_labels=columns)
