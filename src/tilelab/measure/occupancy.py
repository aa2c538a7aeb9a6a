"""How many warps of a kernel an SM holds at once, and what keeps it from holding more.

The arithmetic of NVIDIA's occupancy calculator: registers are handed out to a warp in units, shared memory to a block
in units with a share for the system, and the scarcest of threads, registers, shared memory and block slots decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.cudacpp.errors import brief
from tilelab.cudacpp.kernel import Kernel
from tilelab.hardware.limits import WARP, Capability, capability
from tilelab.measure.resources import resources


@dataclass(frozen=True)
class Occupancy:
    """Residency of one kernel on one SM. ``limits`` has how many blocks each resource would allow.

    ``limited_by`` names all that allow no more than ``blocks``, joined by "and".
    """

    block: int
    registers: int
    shared: int
    blocks: int
    warps: int
    share: float
    limited_by: str
    limits: dict[str, int]

    def __str__(self) -> str:
        return (
            f"{self.share:.0%}: {self.blocks} blocks of {self.block} threads ({self.warps} warps) on an SM, limited by "
            f"{self.limited_by} ({self.registers} registers a thread, {self.shared} shared bytes a block)"
        )


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def resident(chip: Capability, threads: int, registers: int, shared: int) -> Occupancy:
    """Occupancy from a kernel's numbers.

    Parameters
    ----------
    chip
        From :func:`tilelab.hardware.limits.capability`.
    threads
        Of a block.
    registers
        Of a thread.
    shared
        Bytes of a block, static and dynamic together.

    Raises
    ------
    ValueError
        Such a block cannot run at all.
    """
    if threads < 1 or registers < 0 or shared < 0:
        raise ValueError(f"{threads} threads, {registers} registers, {shared} bytes: a block has 1 thread or more")
    warps = -(-threads // WARP)
    limits = {"warps": chip.warps_per_sm // warps, "block slots": chip.blocks_per_sm}
    if registers:
        # Registers belong to the SM's schedulers, each of which holds whole warps.
        a_warp = _up(registers * WARP, chip.register_unit)
        limits["registers"] = chip.registers_per_sm // chip.warp_unit // a_warp * chip.warp_unit // warps
    if shared:
        limits["shared memory"] = chip.shared_per_sm // _up(shared + chip.shared_reserved, chip.shared_unit)
    blocks = min(limits.values())
    # Of equals, the one that a kernel's author can do most about is named first.
    order = ("registers", "shared memory", "warps", "block slots")
    limited_by = " and ".join(name for name in order if limits.get(name) == blocks)
    if not 1 <= threads <= chip.threads_per_block or blocks < 1:
        raise ValueError(
            f"a block of {threads} threads with {registers} registers each and {shared} shared bytes does not fit on "
            f"an SM of {chip.name}"
        )
    return Occupancy(
        threads, registers, shared, blocks, blocks * warps, blocks * warps / chip.warps_per_sm, limited_by, limits
    )


def occupancy(kernel: Any, *arguments: Any, device: str | None = None) -> Occupancy:
    """Occupancy of a kernel as it would be launched on these arguments, from its real registers and shared bytes.

    Parameters
    ----------
    kernel
        A :class:`~tilelab.cudacpp.kernel.Kernel`.
    *arguments
        What it would be called with.
    device
        Such as ``sm_86`` or ``H200``; the kernel's own where not given.

    Raises
    ------
    TypeError
        Not a Kernel.
    BuildError
        Neither a GPU nor ``nvcc`` is there to say what the kernel takes.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{brief(kernel)} is no Kernel; give tilelab.cudacpp.Kernel(source, name, …) and its arguments")
    chip = capability(device or kernel.device)
    _, launch = kernel.plan(*arguments)
    used = resources(kernel, chip.name)
    return resident(chip, launch.threads, used.registers, used.static_shared + launch.shared)


def curve(
    chip: Capability,
    registers: int,
    shared: int = 0,
    shared_per_thread: float = 0.0,
    sizes: Sequence[int] = range(32, 1025, 32),
) -> list[tuple[int, float]]:
    """Occupancy over block sizes, all else equal; 0 where a block does not fit.

    Parameters
    ----------
    chip, registers
        As for :func:`resident`.
    shared, shared_per_thread
        Shared bytes of a block, fixed and growing with its threads.
    sizes
        Threads of a block.
    """
    points = []
    for threads in sizes:
        try:
            share = resident(chip, threads, registers, shared + int(shared_per_thread * threads)).share
        except ValueError:
            share = 0.0
        points.append((threads, share))
    return points
