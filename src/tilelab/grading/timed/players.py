"""A candidate in its process, the shapes it is tried on, and the two ways to fail: its own, and the device's."""

import secrets
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tilelab.cudacpp.launch import extents, shared_bytes
from tilelab.grading.errors import GradingError
from tilelab.grading.rules import number_of, numbers_of
from tilelab.grading.timed.arrays import Shape
from tilelab.grading.timed.channel import Companion
from tilelab.grading.timed.wanted import Candidate
from tilelab.hardware.limits import HardwareError, capability, launch_problems
from tilelab.kernels.ladder import rung

#: Shapes for correctness, before anything is timed; as many again are drawn, up to this side.
SHAPES: tuple[Shape, ...] = ((1, 1, 1), (17, 19, 35), (64, 48, 80), (129, 65, 33), (250, 131, 257))
DRAWN, SIDE = 3, 300
#: What stands for them, and for the timed shape, where a CPU emulates.
EMULATED_SHAPES: tuple[Shape, ...] = ((1, 1, 1), (17, 19, 35))
EMULATED_TIMED: Shape = (32, 48, 40)


class Refusal(Exception):
    """A candidate is wrong, faults or does not end; the message is for the learner. ``name`` says which candidate."""

    def __init__(self, words: str, name: str) -> None:
        super().__init__(words)
        self.name = name


class Trouble(Exception):
    """What is in the way is not the learner's fault."""


class Doubt(Trouble):
    """Times contradict each other: the machine was busy with something else, or somebody forges them."""


def blame(candidate: Candidate, words: str) -> Refusal | Trouble:
    """Return what to raise where a candidate fails by itself: the course's own costs no learner anything."""
    return Refusal(words, candidate.name) if candidate.handed_in else Trouble(f"{candidate.name}: {words}")


@dataclass(frozen=True)
class Player:
    """A candidate in its process, by the name that it is loaded under.

    ``late`` is by how many milliseconds each call started later than a kernel that does nothing.
    """

    candidate: Candidate
    worker: Companion
    loaded: str
    late: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.candidate.name

    def launch(self, shape: Shape, architecture: str) -> dict[str, Any]:
        """Work out the launch for a shape, as numbers.

        Raises
        ------
        GradingError
            The rule cannot be worked out, or the device would refuse the launch.
        """
        M, N, K = shape
        if self.candidate.handed_in:
            names, rule = {"M": M, "N": N, "K": K, "TILE": self.candidate.tile}, self.candidate.launch
            grid, block = numbers_of(rule["grid"], names), numbers_of(rule["block"], names)
            shared = number_of(rule.get("shared", 0), names)
        else:
            kernel, asked = (
                rung(self.candidate.rung).kernel,
                SimpleNamespace(M=M, N=N, K=K, A=(M, K), B=(K, N), C=(M, N)),
            )
            grid, block = extents("grid", kernel.grid, asked), extents("block", kernel.block, asked)
            shared = shared_bytes(kernel.shared, asked)
        if shared < 0:
            raise GradingError(f"{shared} bytes of shared memory")
        try:
            problems = launch_problems(capability(architecture), grid, block, 0, shared)
        except HardwareError:  # a chip that we know nothing of: the driver will say it
            problems = []
        if problems:
            raise GradingError("; ".join(problems))
        full = [(*extent, 1, 1)[:3] for extent in (grid, block)]
        return {"grid": full[0], "block": full[1], "shared": shared}


def drawn() -> Shape:
    """Return a shape that nobody knows before."""
    M, N, K = (1 + secrets.randbelow(SIDE) for _ in "MNK")
    return M, N, K
