"""The rule of shared-memory banks: 32 banks, each one 4-byte word wide.

One instruction of a warp is served in *wavefronts*. Lanes that want the same word share it (broadcast); lanes that want
different words of one bank wait for each other. Up to 4 bytes a lane, the whole warp is served together. With 8 bytes a
lane it is served in two *parts*, its halves, with 16 bytes in four, since 128 bytes is what the banks deliver at once.
Two neighbouring parts are served as one if all their lanes share pairwise: every lane has the address of its neighbour
(lane XOR 1), or every lane that of lane XOR 2. For 8 bytes that joins the two halves, for 16 bytes the quarters of
each half.

The number of wavefronts is the sum over parts of the most words wanted of one bank. A conflict is *n-way* if n words
of one bank are wanted by one part. ``benchmarks/simulator_on_gpu.py`` holds this to Nsight Compute's counters.

Sources
-------
CUDA C++ Programming Guide, *Shared Memory* of compute capability 5.x and later, for the banks; the joining of parts
is a measured rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelab.hardware.limits import WARP, HardwareError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BANKS = 32
BANK_BYTES = 4
WIDTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class BankAccess:
    """What one instruction of one warp costs the banks."""

    parts: int
    """Parts of the warp that are served one after the other: the wavefronts it would take without any conflict."""
    wavefronts: int
    ways: int
    """Most words wanted of one bank by one part of the warp: 1 is free of conflicts."""
    words: dict[int, int]
    """Bank -> most words wanted of it by one part; banks left alone are missing."""

    @property
    def replays(self) -> int:
        """Wavefronts lost to conflicts."""
        return self.wavefronts - self.parts


def bank(address: int) -> int:
    """Bank that holds the byte at a shared-memory address."""
    return address // BANK_BYTES % BANKS


def check_width(width: int) -> None:
    """Raise :class:`HardwareError` unless one lane can move that many bytes in one instruction."""
    if width not in WIDTHS:
        raise HardwareError(f"a lane moves 1, 2, 4, 8 or 16 bytes in one instruction, not {width!r}")


def _parts(addresses: Sequence[int | None], width: int) -> list[list[int]]:
    """Split a warp's addresses into the parts that are served together."""
    lanes = list(addresses) + [None] * (WARP - len(addresses))
    if width <= BANK_BYTES:
        groups = [lanes]
    else:
        size = WARP * BANK_BYTES // width  # lanes that fill 128 bytes
        groups = []
        for start in range(0, WARP, 2 * size):
            pair = lanes[start : start + 2 * size]
            shared = any(
                all(a is None or pair[i ^ step] is None or a == pair[i ^ step] for i, a in enumerate(pair))
                for step in (1, 2)
            )
            groups += [pair] if shared else [pair[:size], pair[size:]]
    return [[a for a in group if a is not None] for group in groups if any(a is not None for a in group)]


def bank_access(addresses: Sequence[int | None], width: int = 4) -> BankAccess:
    """Cost of one shared-memory instruction of a warp.

    Parameters
    ----------
    addresses
        Byte address of each lane, in lane order, at most 32; ``None`` for a lane that takes no part. For ``ldmatrix``
        give the 8 rows of one matrix with a width of 16.
    width
        Bytes a lane moves: 1, 2, 4, 8 or 16. Addresses must be multiples of it.

    Raises
    ------
    HardwareError
        More than 32 lanes, a width no instruction has, or a misaligned address.

    Examples
    --------
    >>> bank_access([4 * 32 * lane for lane in range(32)]).ways
    32
    >>> bank_access([4 * 33 * lane for lane in range(32)]).ways
    1
    """
    check_width(width)
    if len(addresses) > WARP:
        raise HardwareError(f"a warp has {WARP} lanes, not {len(addresses)}")
    for lane, address in enumerate(addresses):
        if address is not None and (address < 0 or address % width):
            raise HardwareError(f"lane {lane}: address {address} is not a multiple of the {width} bytes it moves")
    words: dict[int, int] = {}
    parts = _parts(addresses, width)
    wavefronts = 0
    for group in parts:
        wanted: dict[int, set[int]] = {}
        for address in group:
            first, last = address // BANK_BYTES, (address + width - 1) // BANK_BYTES
            for word in range(first, last + 1):
                wanted.setdefault(word % BANKS, set()).add(word)
        for b, w in wanted.items():
            words[b] = max(words.get(b, 0), len(w))
        wavefronts += max(len(w) for w in wanted.values())
    return BankAccess(len(parts), wavefronts, max(words.values(), default=0), words)


def bank_counts(
    addresses: "NDArray[np.integer[Any]]", width: int = 4, active: "NDArray[np.bool_] | None" = None
) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]":
    """The same for many warps at once, by NumPy.

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
    parts, wavefronts, ways
        Each of shape ``(warps,)``; zero for a warp without an active lane.
    """
    import numpy as np

    check_width(width)
    rows = np.asarray(addresses)
    count = rows.shape[0]
    # A quarter-warp of 16-byte lanes conflicts exactly where its first words do (each takes 4 banks in a row);
    # so a unit of `width` bytes plays the part of a word, and 128 / width units the part of the banks.
    unit = max(width, BANK_BYTES)
    banks = BANKS * BANK_BYTES // unit
    units = rows // unit
    if unit == BANK_BYTES:
        ways = most_in_a_bank(units, banks, active)
        return (ways > 0).astype(np.int64), ways, ways
    size = banks  # lanes in a part
    pairs = units.reshape(count, -1, 2 * size)
    on = None if active is None else active.reshape(pairs.shape)
    lane = np.arange(2 * size)
    joined = np.zeros(pairs.shape[:2], bool)
    for step in (1, 2):
        same = pairs == pairs[:, :, lane ^ step]
        if on is not None:
            same |= ~on | ~on[:, :, lane ^ step]
        joined |= same.all(axis=2)
    whole = most_in_a_bank(pairs.reshape(-1, 2 * size), banks, None if on is None else on.reshape(-1, 2 * size))
    halves = most_in_a_bank(pairs.reshape(-1, size), banks, None if on is None else on.reshape(-1, size))
    whole, halves = whole.reshape(joined.shape), halves.reshape(*joined.shape, 2)
    wavefronts = np.where(joined, whole, halves.sum(axis=2)).sum(axis=1)
    parts = np.where(joined, whole > 0, (halves > 0).sum(axis=2)).sum(axis=1)
    ways = np.where(joined, whole, halves.max(axis=2)).max(axis=1)
    return parts, wavefronts, ways


def most_in_a_bank(
    words: "NDArray[np.integer[Any]]", banks: int = BANKS, active: "NDArray[np.bool_] | None" = None
) -> "NDArray[np.int64]":
    """For each row, the most distinct words that fall into one bank (a word's bank is its rest by ``banks``)."""
    import numpy as np

    count = words.shape[0]
    ordered = words if active is None else np.where(active, words, -1)
    if (ordered[:, 1:] < ordered[:, :-1]).any():
        ordered = np.sort(ordered, axis=1)
    new = np.empty(ordered.shape, bool)
    new[:, 0] = True
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    if active is not None:
        new &= ordered >= 0
    slot = (np.arange(count)[:, None] * banks + (ordered & (banks - 1)))[new]
    most: NDArray[np.int64] = np.bincount(slot, minlength=count * banks).reshape(count, banks).max(axis=1)
    return most
