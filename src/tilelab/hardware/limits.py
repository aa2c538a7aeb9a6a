"""What a chip allows: limits by compute capability, and the peak figures of named devices.

Sources
-------
Limits: CUDA C++ Programming Guide 13, *Compute Capabilities* (tables of technical specifications), and the
allocation units of the CUDA occupancy calculator. Peaks: NVIDIA's data sheets and architecture white papers, named
in :attr:`Device.source`; tensor figures are dense (the sheets' headline figures are with 2:4 sparsity, twice as high).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

KIB = 1024
WARP = 32


class HardwareError(ValueError):
    """A question about hardware that cannot be answered: an unknown chip, an access no instruction can make."""


@dataclass(frozen=True, slots=True)
class Capability:
    """Limits that a compute capability fixes. Sizes are bytes, counts are counts."""

    major: int
    minor: int
    warps_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_optin: int
    """Most shared memory one block may have after opting in (``cudaFuncAttributeMaxDynamicSharedMemorySize``)."""
    shared_static: int = 48 * KIB
    """Most shared memory a block may have without opting in; static arrays never get more."""
    shared_reserved: int = KIB
    """Taken by the system from each block's share of the SM (sm_80 and later)."""
    shared_unit: int = 128
    threads_per_block: int = 1024
    block_dim: tuple[int, int, int] = (1024, 1024, 64)
    grid_dim: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    registers_per_sm: int = 65536
    registers_per_block: int = 65536
    registers_per_thread: int = 255
    register_unit: int = 256
    """Registers are handed out to a warp in multiples of this."""
    warp_unit: int = 4
    """An SM has this many schedulers; registers are shared out among them."""

    @property
    def name(self) -> str:
        """``sm_90`` and the like."""
        return f"sm_{self.major}{self.minor}"

    @property
    def threads_per_sm(self) -> int:
        """Most threads resident on one SM."""
        return self.warps_per_sm * WARP


def _sm(major: int, minor: int, warps: int, blocks: int, shared_kib: int, optin_kib: int) -> Capability:
    chip = Capability(major, minor, warps, blocks, shared_kib * KIB, optin_kib * KIB)
    return chip if major >= 8 else replace(chip, shared_reserved=0, shared_unit=256)


#: Name -> limits.
CAPABILITIES: dict[str, Capability] = {
    chip.name: chip
    for chip in (
        _sm(7, 0, 64, 32, 96, 96),
        _sm(7, 5, 32, 16, 64, 64),
        _sm(8, 0, 64, 32, 164, 163),
        _sm(8, 6, 48, 16, 100, 99),
        _sm(8, 7, 48, 16, 164, 163),
        _sm(8, 9, 48, 24, 100, 99),
        _sm(9, 0, 64, 32, 228, 227),
        _sm(10, 0, 64, 32, 228, 227),
        _sm(10, 3, 64, 32, 228, 227),
        _sm(12, 0, 48, 24, 100, 99),
    )
}


@dataclass(frozen=True, slots=True)
class Device:
    """A card: its capability, its size and its peaks.

    Rates are per second, sizes are bytes; ``None`` means that it has no such unit.
    """

    name: str
    capability: Capability
    sms: int
    l2: int
    memory: int
    bandwidth: float
    """DRAM, bytes/s."""
    fp32: float
    """FMA units, FLOP/s."""
    tf32: float | None
    bf16: float | None
    """Tensor cores with fp32 accumulation, dense, FLOP/s (on sm_70 and sm_75 this is fp16)."""
    fp8: float | None
    source: str

    def ridge(self, kind: str = "fp32") -> float:
        """FLOP per byte of DRAM at which a kernel stops being bound by memory.

        Parameters
        ----------
        kind
            ``fp32``, ``tf32``, ``bf16`` or ``fp8``.
        """
        peak = getattr(self, kind, None) if kind in ("fp32", "tf32", "bf16", "fp8") else None
        if peak is None:
            raise HardwareError(f"{self.name} has no {kind!r} peak; ask for one of fp32, tf32, bf16, fp8 that it has")
        return float(peak) / self.bandwidth


_G, _T, _M = 1e9, 1e12, 1024**2


def _card(
    name: str,
    sm: str,
    sms: int,
    l2_mib: float,
    gb: float,
    gb_s: float,
    tflops: tuple[float, float | None, float | None, float | None],
    source: str,
) -> Device:
    fp32, tf32, bf16, fp8 = (None if t is None else t * _T for t in tflops)
    assert fp32 is not None
    chip = CAPABILITIES[sm]
    return Device(name, chip, sms, round(l2_mib * _M), round(gb * _G), gb_s * _G, fp32, tf32, bf16, fp8, source)


#: Name -> device. H200 and H100 hold the same chip; the memory differs.
DEVICES: dict[str, Device] = {
    card.name: card
    for card in (
        _card("V100", "sm_70", 80, 6, 32, 900, (15.7, None, 125, None), "Volta white paper (SXM2)"),
        _card("T4", "sm_75", 40, 4, 16, 320, (8.1, None, 65, None), "T4 data sheet"),
        _card("A100", "sm_80", 108, 40, 80, 2039, (19.5, 156, 312, None), "A100 80GB SXM data sheet"),
        _card("RTX 3090", "sm_86", 82, 6, 24, 936, (35.6, 35.6, 71, None), "GA102 white paper"),
        _card("A10", "sm_86", 72, 6, 24, 600, (31.2, 62.5, 125, None), "A10 data sheet"),
        _card("L4", "sm_89", 58, 48, 24, 300, (30.3, 60, 121, 242), "L4 data sheet"),
        _card("RTX 4090", "sm_89", 128, 72, 24, 1008, (82.6, 82.6, 165.2, 330.3), "Ada white paper"),
        _card(
            "H100 PCIe", "sm_90", 114, 50, 80, 2000, (51.2, 378, 756, 1513), "H100 data sheet and Hopper white paper"
        ),
        _card("H100", "sm_90", 132, 50, 80, 3350, (66.9, 494.7, 989.4, 1978.9), "H100 SXM5, Hopper white paper"),
        _card("H200", "sm_90", 132, 50, 141, 4800, (66.9, 494.7, 989.4, 1978.9), "H200 SXM data sheet"),
        _card("B200", "sm_100", 148, 126, 180, 7700, (75, 1125, 2250, 4500), "HGX B200 data sheet"),
        _card("RTX 5090", "sm_120", 170, 96, 32, 1792, (104.8, 104.8, 209.5, 419), "RTX Blackwell white paper"),
    )
}


def capability(which: "str | tuple[int, int] | Capability | Device") -> Capability:
    """Limits of a compute capability, or of a named device.

    Parameters
    ----------
    which
        ``"sm_90"``, ``"9.0"``, ``(9, 0)``, ``"H200"``, or an object that this module gave.

    Raises
    ------
    HardwareError
        Nothing is known under that name; the message lists what is.
    """
    if isinstance(which, Capability):
        return which
    if isinstance(which, Device):
        return which.capability
    name = which if isinstance(which, str) else f"sm_{which[0]}{which[1]}"
    key = name if name.startswith("sm_") else f"sm_{name.replace('.', '')}"
    found = CAPABILITIES.get(key.rstrip("a"))
    return found if found is not None else device(name).capability


def device(which: "str | Device") -> Device:
    """A named device; case, spaces and ``NVIDIA`` do not matter, so a driver's name works too.

    Raises
    ------
    HardwareError
        No such device; the message lists those there are.
    """
    if isinstance(which, Device):
        return which

    def words(text: str) -> list[str]:
        return [word for word in text.lower().replace("-", " ").split() if word not in ("nvidia", "geforce")]

    wanted = words(which)
    for card in DEVICES.values():
        if "".join(words(card.name)) == "".join(wanted):
            return card
    # A driver says "NVIDIA H100 80GB HBM3": take the longest name whose words open it.
    opening = [card for card in DEVICES.values() if wanted[: len(words(card.name))] == words(card.name)]
    if opening:
        return max(opening, key=lambda card: len(card.name))
    raise HardwareError(f"nothing is known of {which!r}; known: {', '.join([*DEVICES, *CAPABILITIES])}")


def launch_problems(
    chip: Capability, grid: Sequence[int], block: Sequence[int], static_shared: int = 0, dynamic_shared: int = 0
) -> list[str]:
    """Why a launch would be refused, one sentence each; an empty list if it can run.

    Parameters
    ----------
    chip
        From :func:`capability`.
    grid, block
        Up to three extents, x first.
    static_shared, dynamic_shared
        Bytes of a block. Dynamic memory above what needs no opt-in is assumed to have been opted in for.
    """
    problems = []
    for what, extents, most in (("block", block, chip.block_dim), ("grid", grid, chip.grid_dim)):
        if not 1 <= len(extents) <= 3:
            problems.append(f"{what} {tuple(extents)} has {len(extents)} extents; one to three are possible")
        for axis, extent, limit in zip("xyz", extents, most, strict=False):
            if not 1 <= extent <= limit:
                problems.append(f"{what} extent {axis} = {extent}, but {chip.name} allows 1 to {limit}")
    threads = 1
    for extent in block:
        threads *= extent
    if threads > chip.threads_per_block:
        problems.append(
            f"{threads} threads a block, but {chip.name} allows {chip.threads_per_block}; give each thread more work"
        )
    if static_shared > chip.shared_static:
        problems.append(
            f"{static_shared} bytes of static shared memory a block, but {chip.shared_static} is the most without "
            f"opting in; use dynamic shared memory (up to {chip.shared_optin} bytes on {chip.name})"
        )
    elif static_shared + dynamic_shared > chip.shared_optin:
        problems.append(
            f"{static_shared + dynamic_shared} bytes of shared memory a block, but {chip.name} allows "
            f"{chip.shared_optin} even with opt-in"
        )
    return problems
