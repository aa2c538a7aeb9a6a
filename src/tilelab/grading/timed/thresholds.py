"""What timed points ask for, as data: chosen for one device, measured anew for others.

A *gain* is how many times faster the course's own kernel is than what timed kernels are compared with. On a device
where it is smaller than on the one for which the thresholds were chosen, they come nearer to 1 by the same share.
"""

import math
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.timed.wanted import LARGEST_SIDE, is_shape
from tilelab.kernels.ladder import LADDER

FILE = "thresholds.toml"
LINE = "# ---- devices, measured by `tilelab calibrate`, which writes everything below this line"
#: What a device can do at most, in its entry: TFLOP/s and TB/s.
CEILINGS = "fp32_tflops", "copy_tb_s"
#: What of a part says which measurement it needs.
ASKED = "shape", "own", "against"
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
        part, numbers = self.part(cell), None
        where = f"calibrated on {device}"
        if self._calibrated(cell, device):
            numbers = (self.device(device) or {}).get(cell, part)
        elif accept_shipped:
            numbers, where = part, "as shipped, for an NVIDIA H200"
        if numbers is None:
            return None
        return Mark(numbers.get("full", math.inf), numbers.get("half", math.inf), float(part.get("within", 0.0)), where)

    def _calibrated(self, cell: str, device: str) -> bool:
        """Tell whether calibration found a device's times of a part, as it is asked now, good enough to decide by.

        A part without thresholds of its own hangs on those that have some and need the same measurement.
        """
        part, found = self.part(cell), self.device(device)
        like = [name for name, other in self.parts.items() if all(other[what] == part[what] for what in ASKED)]
        hangs_on = [cell] if "full" in part else [name for name in like if "full" in self.parts[name]]
        return found is not None and all(
            name in found and all(found[name].get(what, part[what]) == part[what] for what in ASKED)
            for name in hangs_on
        )

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
        if name != "device":
            _check_part(name, part)
    devices = said.get("device", [])
    if not isinstance(devices, list):
        raise GradingError(f"{FILE}: a device is a [[device]], in two brackets: delete it, and calibrate again")
    for one in devices:
        _check_device(one, said)
    return Thresholds(said)


def _check_part(name: str, part: Any) -> None:
    match part:
        case {"shape": [M, N, K], "own": str(own), "against": str(against)} if is_shape(M, N, K):
            pass
        case _:
            sides = f"whole numbers from 1 to {LARGEST_SIDE - 1:,}"
            raise GradingError(f"{FILE}: [{name}] needs shape = [M, N, K], {sides}, and own and against")
    rungs = [rung.name for rung in LADDER]
    for one in (own, against):
        if one not in rungs:
            raise GradingError(f"{FILE}: [{name}] names the kernel {one!r}; the course has {', '.join(rungs)}")
    if own == against:
        raise GradingError(f"{FILE}: [{name}] compares {own!r} with itself: own and against are different kernels")
    if ("full" in part) == ("within" in part):
        raise GradingError(f"{FILE}: [{name}] needs either full, half and gain, or within")
    if "full" in part and not 1 < _number(part, "half") < _number(part, "full") < _number(part, "gain") < math.inf:
        raise GradingError(f"{FILE}: [{name}] needs 1 < half < full < gain")
    if "within" in part and not 0 < _number(part, "within") < 1:
        raise GradingError(f"{FILE}: [{name}] needs 0 < within < 1, a share")


def _check_device(one: Any, said: Mapping[str, Any]) -> None:
    match one:
        case {"name": str(), "date": str()} if all(0 < _number(one, what) < math.inf for what in CEILINGS):
            parts = [part for part in one.values() if isinstance(part, Mapping)]
            numbers = all(1 < _number(part, "half") < _number(part, "full") < math.inf for part in parts)
            if numbers and all(isinstance(one[cell], Mapping) for cell in said if cell in one):
                return
    named = f" ({one['name']!r:.60})" if isinstance(one, Mapping) and "name" in one else ""
    raise GradingError(
        f"{FILE}: a [[device]]{named} is not as `tilelab calibrate` writes it: delete all of it and calibrate again"
    )


def _number(said: Mapping[str, Any], name: str) -> float:
    """Return a number, or what no comparison holds for."""
    value = said.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def with_device(file: Path, entry: Mapping[str, Any]) -> None:
    """Write what was measured on a device into the file; other devices stay, and so does all above the line.

    Raises
    ------
    GradingError
        Something else than devices stands below the line, or a device above it; or the file cannot be written. It
        is as it was.
    """
    said = read_thresholds(file)
    text, _, below = file.read_text(encoding="utf-8").partition(LINE)
    if "device" in tomllib.loads(text) or tomllib.loads(below).keys() - {"device"}:
        raise GradingError(f"{file.name}: what follows the line {LINE!r} is written anew, so all else stands above it")
    kept = [one for one in said.said.get("device", []) if one["name"] != entry["name"]]
    head = text.rstrip() + "\n\n" + LINE + "\n"
    draft = file.with_name(f".{file.name}.new")  # whole or not at all: a course reads it meanwhile
    try:
        draft.write_text(head + "".join(_as_toml(one) for one in [*kept, entry]), encoding="utf-8")
        read_thresholds(draft)
        shutil.copymode(file, draft)
        draft.replace(file)
    except OSError as error:
        raise GradingError(f"cannot write {str(file)!r}: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


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
