"""What the simulator finds, as plain data, and the exceptions that carry it."""

from dataclasses import asdict, dataclass, field
from typing import Any

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a kernel, told by the first place where it shows."""

    kind: str
    """One of ``race divergence warp uninitialised bounds endless budget`` and ``negative index``."""
    kernel: str
    lines: tuple[int, ...]
    """Source lines involved; for a race the earlier access first."""
    message: str
    hint: str
    """One sentence that says how to mend it."""
    severity: str = "error"
    """``error``; or ``warning`` for threads that write the same value to one place."""
    block: Dim3 | None = None
    blocks: tuple[Dim3, ...] = ()
    """Both blocks of a race between blocks."""
    threads: tuple[Dim3, ...] = ()
    phase: int | None = None
    """Barriers the block had passed: 0 before the first."""
    array: str | None = None
    space: str | None = None
    index: tuple[int, ...] | None = None
    accesses: tuple[str, ...] = ()
    """``read``, ``write`` or ``atomic``, in the order of the lines."""
    order: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """Where it stands among the findings of a launch: linear block, phase, rank, lines."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Findings with one key are one mistake, seen in several places."""
        either_way = self.blocks and len(set(self.lines)) == 1  # blocks have no order that the line could tell
        accesses = tuple(sorted(self.accesses)) if either_way else self.accesses
        return (self.kind, self.severity, self.array, self.lines, accesses, len(self.blocks))

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON can hold it."""
        record = asdict(self)
        del record["order"]
        return record

    def __str__(self) -> str:
        return f"{self.kind}: {self.message} {self.hint}"


class SimtError(Exception):
    """Anything the simulator refuses or finds; ``finding`` holds it as data where a kernel was run."""

    def __init__(self, message: str, finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding


class UnsupportedError(SimtError):
    """Python that a kernel cannot use, refused when the kernel is decorated or first typed."""


class LaunchError(SimtError):
    """A launch that the device would refuse, or arguments that do not fit the kernel."""


class RaceError(SimtError):
    """Two threads touch one place, one of them writes, and nothing orders them."""


class DivergenceError(SimtError):
    """A barrier or warp instruction that not all of its threads reach."""


class UninitialisedError(SimtError):
    """A read of shared or local memory that nobody wrote, or of a variable that has no value yet."""


class BoundsError(SimtError):
    """An index outside its array."""


class BudgetError(SimtError):
    """A loop that never ends, or a kernel that ran more loop rounds than it was given."""


ERRORS: dict[str, type[SimtError]] = {
    "race": RaceError,
    "divergence": DivergenceError,
    "warp": DivergenceError,
    "uninitialised": UninitialisedError,
    "bounds": BoundsError,
    "negative index": BoundsError,
    "endless": BudgetError,
    "budget": BudgetError,
}


def error_of(finding: Finding) -> SimtError:
    """The exception that carries a finding."""
    return ERRORS[finding.kind](str(finding), finding)
