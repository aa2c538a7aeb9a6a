"""What a launch is found to do: counts for each place in the source, and findings, kept by both engines."""

import copy
from dataclasses import dataclass

from tilelab.simt import tree
from tilelab.simt.errors import Finding
from tilelab.simt.snapshots import Snapshot

Lanes = tuple[int | None, ...]


@dataclass(slots=True)
class Tally:
    """Counts of one access in the source, over all warps that made it."""

    requests: int = 0
    """Warp instructions."""
    threads: int = 0
    wavefronts: int = 0
    parts: int = 0
    """Wavefronts without any conflict."""
    ways: int = 0
    sectors: int = 0
    least: int = 0
    """Sectors that each request's bytes would fill, packed together."""
    meet: int = 0
    """Atomics: most lanes of a warp that change one element at once."""
    turns: int = 0
    """Atomics: of each warp instruction the most lanes at one element, summed."""
    used: int = 0
    """Distinct bytes wanted, summed over requests."""
    worst: int = 0
    """Wavefronts or sectors of the worst request."""
    example: Lanes = ()
    """Byte addresses of the lanes in the worst request; ``None`` for an idle lane."""


class Ledger:
    """Counts and findings of one launch."""

    def __init__(self, program: tree.Program) -> None:
        self.tallies = [Tally() for _ in program.sites]
        self.forks = [[0, 0] for _ in program.forks]
        """For each fork: warps that came, warps that split."""
        self.runs = [0] * len(program.runs)
        """For each run: threads that passed."""
        self.barriers = 0
        """Barriers passed, summed over blocks."""
        self.findings: dict[tuple[object, ...], Finding] = {}
        self.snapshots: list[Snapshot] = []

    def add(self, finding: Finding) -> None:
        """Note a finding; of one mistake the first place is kept."""
        known = self.findings.get(finding.key)
        if known is None or finding.order < known.order:
            self.findings[finding.key] = finding

    def counts(self) -> dict[str, object]:
        """All that is counted, to go back to."""
        return {
            "tallies": [copy.copy(t) for t in self.tallies], "forks": [list(f) for f in self.forks],
            "runs": list(self.runs), "barriers": self.barriers,
        }  # fmt: skip

    def copy(self) -> dict[str, object]:
        """All that is noted, to go back to."""
        return self.counts() | {"findings": dict(self.findings), "snapshots": list(self.snapshots)}

    def revert(self, mark: dict[str, object]) -> None:
        """Go back to a copy, or in the counts alone; it is then used up."""
        vars(self).update(mark)

    def ordered(self) -> list[Finding]:
        """Findings in the order in which a single block after another would meet them."""
        return sorted(self.findings.values(), key=lambda f: f.order)
