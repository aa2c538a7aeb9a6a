"""Shared-memory banks: how many words each is asked for, and which lanes wait for which."""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.draw.colours import ramp
from tilelab.draw.grid import Cell, grid
from tilelab.draw.picture import Picture
from tilelab.hardware.banks import BANK_BYTES, BANKS, bank, bank_access

Addresses = Sequence[int | None]


def bank_heat_map(accesses: Sequence[tuple[str, Addresses, int]], title: str = "Words wanted of each bank") -> Picture:
    """Return a picture with a row for each access and a column for each of the 32 banks.

    Parameters
    ----------
    accesses
        For each a label, the byte addresses of one warp (``None`` for an idle lane) and the bytes a lane moves.
    title
        Shown above.

    Notes
    -----
    A cell holds the number of different words that the lanes served together want of that bank: 1 is free of conflicts.
    """
    found = [(label, bank_access(addresses, width)) for label, addresses, width in accesses]
    most = max((access.ways for _, access in found), default=1)
    rows = []
    for label, access in found:
        row = []
        for b in range(BANKS):
            words = access.words.get(b, 0)
            note = f"{label}: bank {b} is asked for {words} word{'s' * (words != 1)}"
            paint = ramp((words - 1) / max(most - 1, 1)) if words else "hole"
            row.append(Cell(str(words) if words else "", paint, note))
        rows.append(row)
    labels = [f"{label}  {access.ways}-way" for label, access in found]
    return grid(rows, title, row_labels=labels, caption="columns: banks 0 to 31; one warp, the worst of each line")


def bank_queue(addresses: Addresses, width: int = 4, title: str = "Lanes at the banks") -> Picture:
    """Return a picture of the lanes that wait at each bank: one row for each word wanted of it.

    Parameters
    ----------
    addresses
        Byte address of each lane, ``None`` for an idle one.
    width
        Bytes a lane moves.
    title
        Shown above.
    """
    waiting: dict[int, dict[int, list[int]]] = {}
    for lane, address in enumerate(addresses):
        if address is not None:
            for word in range(address // BANK_BYTES, (address + max(width, BANK_BYTES) - 1) // BANK_BYTES + 1):
                waiting.setdefault(bank(word * BANK_BYTES), {}).setdefault(word, []).append(lane)
    depth = max((len(words) for words in waiting.values()), default=1)
    rows = []
    for turn in range(depth):
        row = []
        for b in range(BANKS):
            words = sorted(waiting.get(b, {}).items())
            if turn < len(words):
                word, lanes = words[turn]
                text = str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]}+"
                note = f"bank {b}, word {word}: lanes {', '.join(map(str, lanes))}"
                row.append(Cell(text, ramp(turn / max(depth - 1, 1)), note))
            else:
                row.append(Cell("", "hole"))
        rows.append(row)
    labels = [f"word {turn + 1}" for turn in range(depth)]
    caption = "columns: banks 0 to 31; a cell names the lane, + where several share the word"
    return grid(rows, title, row_labels=labels, caption=caption)
