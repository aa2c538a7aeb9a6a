"""What an access pattern, given as a layout, costs: shared-memory banks and global-memory sectors."""

from __future__ import annotations

from typing import Any

from tilelab.draw.colours import ramp
from tilelab.draw.grid import Cell
from tilelab.draw.layouts import table
from tilelab.draw.picture import Picture
from tilelab.hardware.banks import BANKS, BankAccess, bank, bank_access
from tilelab.hardware.limits import WARP
from tilelab.hardware.sectors import SECTOR, SectorAccess, sector_access
from tilelab.layout.errors import LayoutError, quote
from tilelab.layout.inttuple import product_each, show
from tilelab.layout.layout import as_layout


def bank_conflicts(pattern: Any, element_bytes: int = 4) -> list[BankAccess]:
    """Return what each instruction of a warp costs the banks of shared memory.

    Parameters
    ----------
    pattern
        A layout of elements. Mode 0 is the lane, at most 32; the others, one index together, are the instructions.
    element_bytes
        Bytes of an element, moved by a lane in one instruction: 1, 2, 4, 8 or 16.

    Examples
    --------
    >>> from tilelab import Layout
    >>> [access.ways for access in bank_conflicts(Layout((32, 1), (32, 1)))]
    [32]
    """
    return [bank_access(lanes, element_bytes) for lanes in _instructions(pattern, element_bytes)]


def sectors(pattern: Any, element_bytes: int = 4) -> list[SectorAccess]:
    """Return which 32-byte sectors of global memory each instruction of a warp asks for; see `bank_conflicts`."""
    return [sector_access(lanes, element_bytes) for lanes in _instructions(pattern, element_bytes)]


def _instructions(pattern: Any, element_bytes: int) -> list[list[int | None]]:
    pattern = as_layout(pattern, "an access pattern")
    sizes = product_each(pattern.shape)
    if sizes[0] > WARP:
        raise LayoutError(f"mode 0 of {pattern!r} has {sizes[0]} lanes; a warp has {WARP}")
    count = pattern.size // sizes[0]
    return [[pattern(i * sizes[0] + lane) * element_bytes for lane in range(sizes[0])] for i in range(count)]


def banks(value: Any, element_bytes: int = 4) -> Picture:
    """Draw a layout in shared memory: each element with its bank, of 32 banks of 4 bytes.

    The caption says how many ways a warp conflicts that reads along each mode.

    Parameters
    ----------
    value
        A layout or swizzled layout.
    element_bytes
        Bytes of an element; one of more than 4 bytes is shown with its first bank.
    """
    value = as_layout(value)

    def look(coordinate: Any) -> Cell:
        offset = value(coordinate)
        number = bank(offset * element_bytes)
        return Cell(str(number), ramp(number / (BANKS - 1)), f"{show(coordinate)}: offset {offset}, bank {number}")

    return table(
        value.shape, look, f"banks of {value!r}, {element_bytes} bytes an element", _along_modes(value, element_bytes)
    )


def _along_modes(value: Any, element_bytes: int) -> str:
    sizes = product_each(value.shape)
    ways = []
    for mode, size in enumerate(sizes):
        lanes: list[int | None] = [
            value(tuple([lane if k == mode else 0 for k in range(len(sizes))]) if len(sizes) > 1 else lane)
            * element_bytes
            for lane in range(min(size, WARP))
        ]
        most = bank_access(lanes, element_bytes).ways
        ways.append(f"{'no conflict' if most == 1 else f'{most}-way conflict'} along mode {mode}")
    return f"a warp has {', '.join(ways)}"


def traffic(pattern: Any, element_bytes: int = 4) -> Picture:
    """Draw which sectors the instructions of a warp ask for: one row an instruction, one cell a lane."""
    pattern = as_layout(pattern, "an access pattern")
    accesses = sectors(pattern, element_bytes)
    if len(accesses) > WARP:
        raise LayoutError(f"{quote(pattern)} has {len(accesses)} instructions; draw.traffic draws at most {WARP}")
    lanes = product_each(pattern.shape)[0]
    numbers = {number: i for i, number in enumerate(sorted({t for access in accesses for t in access.touched}))}

    def look(coordinate: Any) -> Cell:
        instruction, lane = coordinate
        offset = pattern(instruction * lanes + lane)
        sector = offset * element_bytes // SECTOR
        paint = ramp(numbers[sector] / max(len(numbers) - 1, 1))
        return Cell(str(sector), paint, f"instruction {instruction}, lane {lane}: offset {offset}, sector {sector}")

    counts = ", ".join(str(access.sectors) for access in accesses[:8]) + ("…" if len(accesses) > 8 else "")
    return table(
        (len(accesses), lanes), look, f"sectors of {pattern!r}", f"sectors asked for by each instruction: {counts}"
    )
