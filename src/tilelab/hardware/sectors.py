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


def warp_traffic(
    addresses: "NDArray[np.integer[Any]]", width: int, active: "NDArray[np.bool_] | None" = None
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Sectors and distinct elements of many warps at once, by NumPy.

    Parameters
    ----------
    addresses
        Shape ``(warps, 32)``: byte addresses, multiples of ``width``.
    width
        Bytes a lane moves.
    active
        Lanes that take part; all by default.

    Returns
    -------
    sectors, elements
        Each of shape ``(warps,)``; zero for a warp without an active lane.
    """
    import numpy as np

    ordered = np.asarray(addresses)
    if active is not None:
        ordered = np.sort(np.where(active, ordered, -1), axis=1)
    elif (ordered[:, 1:] < ordered[:, :-1]).any():
        ordered = np.sort(ordered, axis=1)
    idle = 0 if active is None else (ordered[:, 0] < 0).astype(np.int64)
    pieces = []
    for unit in (SECTOR, width):
        numbers = ordered // unit
        pieces.append(1 + np.count_nonzero(numbers[:, 1:] != numbers[:, :-1], axis=1) - idle)
    return pieces[0], pieces[1]
