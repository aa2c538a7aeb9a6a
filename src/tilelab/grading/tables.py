"""Tables as answers: is it one of the right form, and which cells differ."""

from collections.abc import Callable


def misshapen(table: object, rows: int, columns: int) -> str:
    """Say what keeps ``table`` from being ``rows`` × ``columns`` single values, or ``""`` where nothing does.

    A cell that holds no whole number is no fault of the table: `strange_cells` names it, and it costs only itself.
    """
    if not isinstance(table, list) or not all(isinstance(row, list) for row in table):
        return f"the table is not a list of rows: write {rows} lists of {columns} numbers, not {table!r:.40}"
    if len(table) != rows:
        return f"the table has {len(table)} rows, the shape asks for {rows}"
    for i, row in enumerate(table):
        if len(row) != columns:
            return f"row {i} has {len(row)} numbers, the shape asks for {columns}"
        for j, value in enumerate(row):
            if isinstance(value, list | dict):
                return f"cell ({i},{j}) holds {value!r:.40}, an offset is a whole number"
    return ""


def strange_cells(table: list[list[object]], most: int = 6) -> str:
    """Say which cells hold something that is no whole number, or ``""``; ``None`` is only not filled in yet."""
    found = [
        f"cell ({i},{j}) holds {value!r:.40}"
        for i, row in enumerate(table)
        for j, value in enumerate(row)
        if value is not None and not _whole(value)
    ]
    more = f" and {len(found) - most} more do" if len(found) > most else ""
    return f"{', '.join(found[:most])}{more}; an offset is a whole number" if found else ""


def wrong_cells(table: list[list[object]], right: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """Return the coordinates whose value is not ``right(i, j)``, row by row. `misshapen` must have passed."""
    return [
        (i, j)
        for i, row in enumerate(table)
        for j, value in enumerate(row)
        if not (_whole(value) and value == right(i, j))
    ]


def listed(cells: list[tuple[int, int]], most: int = 6) -> str:
    """Write coordinates for a message: ``(0,1), (2,3)``, and how many more there are after ``most``."""
    text = ", ".join(f"({i},{j})" for i, j in cells[:most])
    return text + (f" and {len(cells) - most} more" if len(cells) > most else "")


def _whole(value: object) -> bool:
    """Whether it is a whole number; an array of floats may hold some too."""
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
