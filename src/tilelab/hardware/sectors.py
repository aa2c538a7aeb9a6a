"""The rule of sectors: global memory moves in pieces of 32 bytes.

One instruction of a warp asks for every 32-byte sector that one of its lanes touches, once each. A warp that reads 32
neighbouring floats asks for 4 sectors; 32 floats a row apart are 32 sectors, of which 1/8 is used.

Source
------
CUDA C++ Best Practices Guide, *Coalesced Access to Global Memory*; Nsight Compute's ``l1tex__t_sectors`` counters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelab.hardware.banks import check_width
from tilelab.hardware.limits import WARP, HardwareError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECTOR = 32


@dataclass(frozen=True, slots=True)
class SectorAccess:
    """What one instruction of one warp asks of global memory."""

    sectors: int
    used: int
    """Distinct bytes the lanes want."""
    touched: tuple[int, ...]
    """Numbers of the sectors (address // 32), ascending."""

    @property
    def minimum(self) -> int:
        """Fewest sectors that could hold the bytes wanted."""
        return -(-self.used // SECTOR)

    @property
    def efficiency(self) -> float:
        """Share of the bytes moved that is wanted; 1 for a warp that asks for nothing."""
        return self.used / (self.sectors * SECTOR) if self.sectors else 1.0


def sector_access(addresses: Sequence[int | None], width: int = 4) -> SectorAccess:
    """Sectors that one global-memory instruction of a warp asks for.

    Parameters
    ----------
    addresses
        Byte address of each lane, at most 32; ``None`` for a lane that takes no part.
    width
        Bytes a lane moves: 1, 2, 4, 8 or 16. Addresses must be multiples of it, so no lane spans two sectors.

    Raises
    ------
    HardwareError
        More than 32 lanes, a width no instruction has, or a misaligned address.

    Examples
    --------
    >>> sector_access([4 * lane for lane in range(32)]).sectors
    4
    >>> sector_access([4 * (lane + 1) for lane in range(32)]).sectors
    5
    """
    check_width(width)
    if len(addresses) > WARP:
        raise HardwareError(f"a warp has {WARP} lanes, not {len(addresses)}")
    wanted = set()
    for lane, address in enumerate(addresses):
        if address is None:
            continue
        if address < 0 or address % width:
            raise HardwareError(f"lane {lane}: address {address} is not a multiple of the {width} bytes it moves")
        wanted.add(address)
    touched = sorted({address // SECTOR for address in wanted})
    return SectorAccess(len(touched), len(wanted) * width, tuple(touched))


def sector_counts(
    addresses: "NDArray[np.integer[Any]]", active: "NDArray[np.bool_] | None" = None, unit: int = SECTOR
) -> "NDArray[np.int64]":
    """Distinct sectors of many warps at once, by NumPy.

    Parameters
    ----------
    addresses
        Shape ``(warps, 32)``: byte addresses, aligned to the width of the access.
    active
        Lanes that take part; all by default.
    unit
        Bytes of a sector. With the width of the access instead, the distinct elements wanted.

    Returns
    -------
    counts
        Shape ``(warps,)``; zero for a warp without an active lane.
    """
    import numpy as np

    pieces = np.asarray(addresses) // unit
    if active is not None:
        pieces = np.where(active, pieces, -1)
    ordered = np.sort(pieces, axis=1)
    counts: NDArray[np.int64] = 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)
    return counts if active is None else counts - (ordered[:, 0] < 0)
