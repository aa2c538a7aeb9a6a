"""What timed points ask for, as data: chosen for one device, measured anew for others.

A *gain* is how many times faster the course's own kernel is than what timed kernels are compared with. On a device
where it is smaller than on the one for which the thresholds were chosen, they come nearer to 1 by the same share.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError

FILE = "thresholds.toml"
LINE = "# ---- devices, measured by `tilelab calibrate`, which writes everything below this line"
#: A gain below this is too small to grade by, and a spread above that too large.
LEAST_GAIN, MOST_SPREAD = 1.15, 0.02
#: Thresholds of a calibrated device are rounded to this, so that they do not hang on a calibration's third figure.
STEP = 0.05


@dataclass(frozen=True)
class Mark:
    """What one part asks for on one device.

    Attributes
    ----------
    full, half : float
        Gains from which all points and half of them are earned.
    within : float
        For parts that compare a number: the share by which it may be off; 0 elsewhere.
    where : str
        Whose numbers these are, for the report.
    """

    full: float
    half: float
    within: float
    where: str


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a course: what its file says, as plain data."""

    said: Mapping[str, Any]

    @property
    def parts(self) -> dict[str, Mapping[str, Any]]:
        """The timed parts by the name of their grade cell."""
        return {name: part for name, part in self.said.items() if name != "device"}

    def part(self, cell: str) -> Mapping[str, Any]:
        """Return what the file says of one part, or raise `GradingError`."""
        if cell not in self.parts:
            raise GradingError(f"{FILE} says nothing of {cell!r}; it has {', '.join(self.parts) or 'no parts'}")
        return self.parts[cell]

    def device(self, name: str) -> Mapping[str, Any] | None:
        """Return what was measured on a device, or ``None``."""
        found = [one for one in self.said.get("device", []) if one["name"] == name]
        return found[-1] if found else None

    def mark(self, cell: str, device: str, accept_shipped: bool = False) -> Mark | None:
        """Return what a part asks for on a device.

        ``None`` where the device is not calibrated for it; with ``accept_shipped`` the numbers hold as they are.
        """
        part, found = self.part(cell), self.device(device)
        within = float(part.get("within", 0.0))
        if "full" not in part:
            return Mark(math.inf, math.inf, within, device)
        if found is not None and cell in found:
            return Mark(found[cell]["full"], found[cell]["half"], within, f"calibrated on {device}")
        if accept_shipped:
            return Mark(part["full"], part["half"], within, "as shipped, for an NVIDIA H200")
        return None

    def marks(self, cell: str, device: str) -> tuple[float, ...]:
        """Return the gains at which points change, for whoever measures; those as shipped where nothing is known."""
        mark = self.mark(cell, device, accept_shipped=True)
        return (mark.half, mark.full) if mark is not None and mark.full < math.inf else ()

    def ceilings(self, device: str) -> dict[str, float] | None:
        """Return what a calibrated device can do at most, in FLOP/s and bytes/s."""
        found = self.device(device)
        if found is None:
            return None
        return {"flops": 1e12 * found["fp32_tflops"], "bandwidth": 1e12 * found["copy_tb_s"]}


def scaled(chosen: float, gain: float, measured: float) -> float:
    """Return a threshold that was chosen where the course's kernel gained ``gain``, where it gains ``measured``."""
    return round(round((1 + (chosen - 1) * (measured - 1) / (gain - 1)) / STEP) * STEP, 4)


def read_thresholds(file: Path) -> Thresholds:
    """Read a thresholds file.

    Raises
    ------
    GradingError
        It cannot be read, or says something that cannot be meant.
    """
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise GradingError(f"cannot read {file.name}: {error}") from None
    return checked(said)


def checked(said: Mapping[str, Any]) -> Thresholds:
    """Return thresholds from plain data, or raise `GradingError` that names what cannot be meant."""
    for name, part in said.items():
        if name == "device":
            continue
        match part:
            case {"shape": [int(), int(), int()], "own": str(), "against": str()}:
                pass
            case _:
                raise GradingError(f"{FILE}: [{name}] needs shape = [M, N, K], own and against")
        if "full" in part and not 1 < part.get("half", 0) < part["full"] < part.get("gain", 0):
            raise GradingError(f"{FILE}: [{name}] needs 1 < half < full < gain")
    for one in said.get("device", []):
        if not all(key in one for key in ("name", "date", "fp32_tflops", "copy_tb_s")):
            raise GradingError(f"{FILE}: a [[device]] is what `tilelab calibrate` writes; run it again")
    return Thresholds(said)


def with_device(file: Path, entry: Mapping[str, Any]) -> None:
    """Write what was measured on a device into the file; other devices stay, and so does all above the line."""
    text = file.read_text(encoding="utf-8")
    kept = [one for one in read_thresholds(file).said.get("device", []) if one["name"] != entry["name"]]
    head = text.partition(LINE)[0].rstrip() + "\n\n" + LINE + "\n"
    file.write_text(head + "".join(_as_toml(one) for one in [*kept, entry]), encoding="utf-8")


def _as_toml(entry: Mapping[str, Any]) -> str:
    lines = ["", "[[device]]"]
    lines += [f"{key} = {_value(value)}" for key, value in entry.items() if not isinstance(value, Mapping)]
    for key, value in entry.items():
        if isinstance(value, Mapping):
            lines += ["", f"[device.{key}]", *(f"{name} = {_value(found)}" for name, found in value.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:.6g}" if isinstance(value, float) else str(value)
