"""Global memory: the 32-byte sectors that a warp asks for, and the part of them it uses."""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.draw.colours import DISTINCT
from tilelab.draw.grid import Cell, grid
from tilelab.draw.picture import Picture
from tilelab.hardware.sectors import SECTOR, sector_access


def coalescing(addresses: Sequence[int | None], width: int = 4, title: str = "") -> Picture:
    """Return a picture with a row for each sector a warp touches and a cell for each element in it.

    Parameters
    ----------
    addresses
        Byte address of each lane, ``None`` for an idle one.
    width
        Bytes a lane moves.
    title
        Shown above; says sectors and efficiency if left out.
    """
    access = sector_access(addresses, width)
    lanes: dict[int, list[int]] = {}
    for lane, address in enumerate(addresses):
        if address is not None:
            lanes.setdefault(address, []).append(lane)
    first = min(access.touched, default=0)
    rows, labels = [], []
    for sector in access.touched:
        row = []
        for start in range(sector * SECTOR, (sector + 1) * SECTOR, width):
            here = lanes.get(start, [])
            text = "" if not here else str(here[0]) if len(here) == 1 else f"{here[0]}+"
            note = f"byte {start - first * SECTOR}: " + (f"lanes {', '.join(map(str, here))}" if here else "not wanted")
            row.append(Cell(text, DISTINCT[0] if here else "hole", note))
        rows.append(row)
        labels.append(f"+{(sector - first) * SECTOR}")
    title = title or f"{access.sectors} sectors, {access.efficiency:.0%} of their bytes wanted"
    caption = "a row is a sector of 32 bytes; a cell names the lane that wants it"
    columns = [str(i * width) for i in range(SECTOR // width)]
    return grid(rows or [[Cell("", "hole")]], title, row_labels=labels or ["-"], column_labels=columns, caption=caption)
