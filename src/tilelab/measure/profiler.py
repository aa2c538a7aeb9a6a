"""Nsight Compute's counters of kernels: the traffic of memory, and how busy each part of the GPU was."""

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.measure.bounds import ENOUGH, Bound, judged

_PERCENT = "pct_of_peak_sustained_elapsed"
#: What is asked for, by a name of ours.
COUNTERS = {
    "dram_bytes": "dram__bytes.sum",
    "l2_bytes": "lts__t_bytes.sum",
    "seconds": "gpu__time_duration.sum",
    "passes": "l1tex__data_pipe_lsu_wavefronts.sum",
    "shared_passes": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "memory": f"dram__throughput.avg.{_PERCENT}",
    "L2": f"lts__throughput.avg.{_PERCENT}",
    "L1": f"l1tex__throughput.avg.{_PERCENT}",
    "arithmetic": f"sm__inst_executed_pipe_fma.avg.{_PERCENT}",
    "instruction issue": f"sm__inst_issued.avg.{_PERCENT}",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
#: The parts among them, most specific first: of equals, the first is named.
PARTS = ("arithmetic", "memory", "L2", "L1", "instruction issue")
_UNITS = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}
_UNITS |= {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_UNITS |= {"nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0}


@dataclass(frozen=True)
class Profile:
    """One launch as the profiler saw it: its kernel's name, and a value for each of :data:`COUNTERS`."""

    kernel: str
    values: dict[str, float]

    @property
    def bound(self) -> Bound:
        """The part that was busy for most of the time; L1 is called shared memory where that was most of its work."""
        shares = {part: self.values[part] / 100 for part in PARTS}
        if shares["arithmetic"] >= ENOUGH:
            del shares["instruction issue"]  # for then most of what is issued is the arithmetic
        if self.values["shared_passes"] > self.values["passes"] / 2:
            shares["shared memory"] = shares.pop("L1")
        return judged(shares, "profiler")

    def as_dict(self) -> dict[str, Any]:
        """As a row of a recorded run holds it."""
        parts = {part: self.values[part] for part in (*PARTS, "occupancy")}
        return self.bound.as_dict() | {
            "dram_bytes": self.values["dram_bytes"],
            "l2_bytes": self.values["l2_bytes"],
            "passes": self.values["passes"],
            "shared_passes": self.values["shared_passes"],
            "parts_percent": parts,
        }


def available() -> bool:
    """Whether ``ncu`` is installed."""
    return shutil.which("ncu") is not None


def profile(argv: Sequence[str], seconds: float = 300) -> list[Profile]:
    """Run a program under Nsight Compute: its launches between ``cudaProfilerStart`` and ``cudaProfilerStop``.

    Caches are flushed before each launch; the clocks are left as they are.

    Raises
    ------
    RuntimeError
        ``ncu`` is missing, refused (counters may need more rights) or took longer than ``seconds``, or the program
        failed.
    """
    if not available():
        raise RuntimeError("counters are read with Nsight Compute's ncu, which is not here: install the CUDA toolkit")
    tool = ["ncu", "--clock-control", "none", "--cache-control", "all", "--profile-from-start", "off"]
    tool += ["--csv", "--page", "raw", "--metrics", ",".join(COUNTERS.values())]
    try:
        done = subprocess.run([*tool, *argv], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"ncu did not end within {seconds:g} s") from None
    found = parse(done.stdout)
    if done.returncode or not found:
        raise RuntimeError(f"ncu gave no counters: {(done.stdout + done.stderr).strip()[-800:]}")
    return found


def parse(text: str) -> list[Profile]:
    """Read ``ncu --csv --page raw``: a line of names, a line of units, then a line for each launch.

    Raises
    ------
    ValueError
        A counter is missing.
    """
    start = re.search(r'^"ID"', text, re.M)
    if not start:
        return []
    names, units, *lines = csv.reader(io.StringIO(text[start.start() :]))
    lacking = [counter for counter in COUNTERS.values() if counter not in names]
    if lacking:
        raise ValueError(f"the profiler left out {', '.join(lacking)}")
    found = []
    for line in lines:
        if len(line) != len(names):
            continue
        cell = dict(zip(names, zip(line, units, strict=True), strict=True))
        values = {}
        for name, counter in COUNTERS.items():
            number, unit = cell[counter]
            values[name] = float(number.replace(",", "")) * _UNITS.get(unit, 1.0)
        found.append(Profile(cell["Kernel Name"][0], values))
    return found
