"""The numbers that prose may state: each with an id, the value as it is shown, and where it comes from.

Nothing is typed in that code can say: limits and peaks come from `tilelab.hardware`, measurements from the runs in
`benchmarks/records`. Prose names a number by its id, and the book shows the value that stands here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tilelab.hardware.banks import BANK_BYTES, BANKS, WIDTHS
from tilelab.hardware.limits import CAPABILITIES, DEVICES, KIB, WARP
from tilelab.hardware.sectors import SECTOR
from tilelab.measure.records import recorded

MIB = KIB**2
H200 = DEVICES["H200"]


@dataclass(frozen=True)
class KnownNumber:
    """A value as it is shown, what it is, its source, and the badge of the run if it was measured."""

    value: str
    meaning: str
    source: str
    badge: str = ""


def _hardware() -> dict[str, KnownNumber]:
    def known(value: object, meaning: str, name: str) -> KnownNumber:
        return KnownNumber(str(value), meaning, f"tilelab.hardware.{name}")

    chip = H200.capability
    (static,) = {one.shared_static for one in CAPABILITIES.values()}
    return {
        "banks": known(BANKS, "banks of shared memory", "banks.BANKS"),
        "bank-bytes": known(BANK_BYTES, "bytes of a word, which a bank delivers at a time", "banks.BANK_BYTES"),
        "two-words": known(2 * BANK_BYTES, "bytes of two words", "banks.BANK_BYTES"),
        "bank-line": known(BANKS * BANK_BYTES, "bytes that all banks deliver at a time", "banks"),
        "widest-access": known(max(WIDTHS), "bytes that one thread moves at most in one instruction", "banks.WIDTHS"),
        "sector": known(SECTOR, "bytes of a sector of global memory", "sectors.SECTOR"),
        "warp": known(WARP, "threads of a warp", "limits.WARP"),
        "shared-static": known(static // KIB, "KiB of shared memory that a block gets without opting in", "limits"),
        "h200-shared": known(
            chip.shared_optin // KIB, "KiB of shared memory that a block of an H200 can have", "limits"
        ),
        "h200-warps": known(chip.warps_per_sm, "warps that an SM of an H200 can hold", "limits"),
        "registers": known(chip.registers_per_thread, "registers that a thread can have", "limits"),
        "h200-l2": known(H200.l2 // MIB, "MiB of L2 cache of an H200", "limits.DEVICES"),
        "h200-fp32": known(
            f"{H200.fp32 / 1e12:.1f}", "TFLOP/s of an H200 in float32, by its data sheet", "limits.DEVICES"
        ),
    }


def _formats() -> dict[str, KnownNumber]:
    half = np.dtype(np.float16).itemsize
    mantissa = np.finfo(np.float16).nmant
    return {
        "half": KnownNumber(str(half), "bytes of a float16", "numpy.dtype('float16')"),
        "half-pairs": KnownNumber(str(2 * half), "bytes of two float16", "numpy.dtype('float16')"),
        # TF32 is made of float32's exponent and float16's mantissa.
        "tf32-mantissa": KnownNumber(
            str(mantissa), "bits behind the point of a TF32 number", "PTX ISA, and numpy.finfo"
        ),
    }


def _measured(run: str, meaning: str, value: Callable[[dict], str]) -> KnownNumber:
    record = recorded(run)
    if record is None:
        raise LookupError(f"there is no benchmarks/records/{run}.json")
    where = f"{record['recorded']['device']}, {record['recorded']['date'][:10]}"
    return KnownNumber(value(record), meaning, f"benchmarks/records/{run}.json", where)


def _records() -> dict[str, KnownNumber]:
    def share(kernel: str, shown: str) -> Callable[[dict], str]:
        def shown_share(run: dict) -> str:
            [row] = (r for r in run["rows"] if r["kernel"] == kernel and r["M"] == r["N"] == r["K"] == 4096)
            return format(row["percent_of_cublas"], shown)

        return shown_share

    ladder = "ladder_h200"
    return {
        "tiled-share": _measured(ladder, "% of cuBLAS reached by the tiled kernel at 4096³", share("tiled_16", ".0f")),
        "last-rung-share": _measured(
            ladder, "% of cuBLAS reached by the last rung at 4096³", share("warp_tiled", ".1f")
        ),
    }


def _rules() -> dict[str, KnownNumber]:
    return {"chapter-seconds": KnownNumber("15", "seconds that a chapter may take to run", "a rule of this course")}


@cache
def known_numbers() -> dict[str, KnownNumber]:
    """Id -> number."""
    return {**_hardware(), **_formats(), **_records(), **_rules()}
