"""One measurement a GPU at a time, and what else the GPU is doing meanwhile."""

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.locks import lock
from tilelab.grading.timed.players import Trouble

#: NVML's reasons for low clocks that come from heat or the power supply: then a time is not the kernel's alone.
SLOWED = {
    0x08: "the hardware slows itself down",
    0x20: "it is too hot (software)",
    0x40: "it is too hot (hardware)",
    0x80: "the power supply asks for less",
}


@contextmanager
def one_at_a_time(device: str, waiting: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Hold a device's lock; give its file descriptor, for processes that must hold it too.

    Parameters
    ----------
    device : str
        What names the device on this machine.
    waiting : callable
        Called once if somebody else holds it.

    Raises
    ------
    GradingError
        The lock's file is not to be used.
    """
    file = Path(tempfile.gettempdir()) / f"tilelab-{''.join(c if c.isalnum() else '-' for c in device)}.lock"
    how = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            held = os.open(file, how)  # another user's, perhaps: the system lets nobody create it a second time
        except FileNotFoundError:
            held = os.open(file, how | os.O_CREAT, 0o666)
    except OSError as error:
        raise GradingError(f"the lock {str(file)!r} cannot be used: {error.strerror}") from None
    try:
        if stat.S_IMODE(os.fstat(held).st_mode) != 0o666 and os.fstat(held).st_uid == os.getuid():
            os.fchmod(held, 0o666)  # another user of this machine takes the same lock
        lock(held, waiting)
        yield held
    finally:
        os.close(held)


class Watch:
    """Reads a GPU's clocks and who uses it, by NVML.

    Attributes
    ----------
    name : str
        What names the device on this machine, for its lock.
    """

    def __init__(self, ordinal: int) -> None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        which = visible[ordinal] if ordinal < len(visible) and visible[ordinal] else str(ordinal)
        self.name = f"gpu-{which}"
        try:
            import pynvml
        except ImportError:
            raise GradingError(
                "without nvidia-ml-py nothing would see who else is on the GPU, or that it is slowed down: "
                f"{sys.executable} -m pip install nvidia-ml-py"
            ) from None
        find = pynvml.nvmlDeviceGetHandleByIndex if which.isdigit() else pynvml.nvmlDeviceGetHandleByUUID
        try:
            pynvml.nvmlInit()
            self._gpu = find(int(which) if which.isdigit() else which)
            self.name = str(pynvml.nvmlDeviceGetUUID(self._gpu))
        except pynvml.NVMLError as error:
            raise GradingError(f"the GPU {which!r} cannot be watched: {error}") from None
        self._nvml: Any = pynvml

    def state(self) -> dict[str, Any]:
        """Return clocks (MHz), temperature (°C), power and why clocks are low, as far as the device tells."""
        nvml = self._nvml
        reasons = self._asked(nvml.nvmlDeviceGetCurrentClocksThrottleReasons) or 0
        found = {
            "sm_mhz": self._asked(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            "memory_mhz": self._asked(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
            "celsius": self._asked(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            "milliwatts": self._asked(nvml.nvmlDeviceGetPowerUsage),
        }
        slowed = [words for bit, words in SLOWED.items() if reasons & bit]
        return {name: value for name, value in found.items() if value is not None} | {"slowed": slowed}

    def _asked(self, question: Callable[..., Any], *more: Any) -> int | None:
        """Return what NVML answers; ``None`` for what this device does not tell."""
        try:
            return int(question(self._gpu, *more))
        except self._nvml.NVMLError:
            return None

    def driver(self) -> str:
        """Return the driver's version."""
        try:
            return str(self._nvml.nvmlSystemGetDriverVersion())
        except self._nvml.NVMLError:
            return ""

    def look(self, clocks: list[dict[str, Any]], ours: set[int]) -> None:
        """Note the clocks; raise `Trouble` where the device is slowed down or somebody else is on it."""
        clocks.append(state := self.state())
        if state["slowed"]:
            raise Trouble(f"the device is not at its own speed: {', '.join(state['slowed'])}")
        self.alone(ours)

    def alone(self, ours: set[int]) -> None:
        """Raise `Trouble` where processes that are not among ours are on the device."""
        if extra := self.others(ours):
            raise Trouble(f"the device is shared: {extra} other process{'es are' if extra > 1 else ' is'} on it")

    def others(self, ours: set[int], patience: float = 5.0) -> int:
        """Return how many processes on the GPU are not among ours.

        A process that has just ended may be listed for a moment more. In a container the numbers of processes are
        others than ours; then their count speaks.
        """
        end = time.monotonic() + patience
        while True:
            try:
                listed = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._gpu)
            except self._nvml.NVMLError:
                return 0  # a device that does not tell: what disturbs it widens the interval all the same
            running = {int(one.pid) for one in listed}
            extra = len(running - ours) if running & ours or not ours else max(0, len(running) - len(ours))
            if not extra or time.monotonic() > end:
                return extra
            time.sleep(0.1)
