"""Runs of the ladder to put into a text or a picture: the recorded one, and the reader's own beside it.

The reader's own is what ``tilelab bench ladder --json > my_ladder.json`` wrote, in the course's folder or in the one
that a notebook runs in.
"""

import json
from dataclasses import dataclass
from typing import Any

from tilelab.measure.records import around, read_record, records_folder

#: The file with the reader's own run.
OWN = "my_ladder.json"
#: What a page says where there is no recorded run.
NO_RUN = "No run of the ladder has been recorded yet.\nOn a machine with a GPU: python benchmarks/record_ladder.py"


@dataclass(frozen=True)
class LadderRun:
    """One run of the ladder: its rows, and where it ran."""

    rows: list[dict[str, Any]]
    where: dict[str, Any]
    recorded: bool
    """Whether this is a run of the course's own; else the reader's."""

    @property
    def day(self) -> str:
        """The date, as ``2026-11-29``."""
        return str(self.where["date"])[:10]

    @property
    def badge(self) -> str:
        """Where, when and on which data it ran."""
        kind = "recorded on" if self.recorded else "your run on"
        where = self.where
        return (
            f"{kind} {where['device']}, {self.day}, CUDA {where['toolkit']};\n"
            f"data {where['distribution']};\nL2 {where.get('l2', 'as it was')}"
        )

    @property
    def sides(self) -> list[int]:
        """Every n of which it has n×n×n."""
        return sorted({row["M"] for row in self.rows if row["M"] == row["N"] == row["K"]})

    def at(self, *shape: int) -> dict[str, dict[str, Any]]:
        """Kernel -> its row at M, N, K, or at n×n×n; empty where that was not measured."""
        wanted = shape if len(shape) == 3 else shape * 3
        return {row["kernel"]: row for row in self.rows if (row["M"], row["N"], row["K"]) == wanted}

    def cublas(self, *shape: int) -> dict[str, Any]:
        """The row of the faster of the ways to cuBLAS.

        Raises
        ------
        ValueError
            The library was not measured at that shape.
        """
        found = [row for name, row in self.at(*shape).items() if name.startswith("cuBLAS")]
        if not found:
            raise ValueError(f"cuBLAS was not measured at {shape}; there are cubes of {self.sides}")
        return min(found, key=lambda row: float(row["ms"]))


def recorded_ladder() -> LadderRun | None:
    """The newest recorded run of the ladder, or nothing where the package stands without the course's folder."""
    folder = records_folder()
    files = [] if folder is None else folder.glob("*ladder*.json")
    runs = [run for run in map(read_record, files) if run["rows"] and "percent_of_cublas" in run["rows"][0]]
    run = max(runs, key=lambda run: str(run["recorded"]["date"]), default=None)
    return None if run is None else LadderRun(run["rows"], run["where"] | run["recorded"], True)


def own_ladder() -> LadderRun | None:
    """The reader's own run, or nothing.

    Raises
    ------
    ValueError
        The file is there and holds no run.
    """
    for folder in around():
        file = folder / OWN
        if file.exists():
            try:
                run = json.loads(file.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(
                    f"{file.name} is no JSON ({error}); write it with tilelab bench ladder --json"
                ) from None
            if not isinstance(run, dict) or not run.get("rows"):
                reason = run.get("not_measured") if isinstance(run, dict) else None
                raise ValueError(f"{file.name} holds no measurement: {reason or 'it has no rows'}")
            return LadderRun(run["rows"], run["where"], False)
    return None
