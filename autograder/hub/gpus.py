"""A server with a GPU and one without: what a learner chooses before their server starts, and who gets which GPU."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from deployment import Gpu
from jupyterhub import orm

#: What the form and `Spawner.user_options` call them.
NONE, GPU = "none", "gpu"


class Profiles:
    """The two profiles of a hub, and the seats at its GPUs.

    Parameters
    ----------
    gpu : Gpu
        The course's rule. Without devices there is one profile, and no question.
    teachers : iterable of str
        Who may take a seat when all are taken.
    """

    def __init__(self, gpu: Gpu, teachers: Iterable[str] = ()) -> None:
        self._gpu = gpu
        self._teachers = frozenset(teachers)

    def form(self, spawner: Any) -> str:
        """Return the question as HTML; empty where there is nothing to choose."""
        if not self._gpu.devices:
            return ""
        taken = seats_taken(others(spawner))
        free = self._gpu.seats * len(self._gpu.devices) - sum(taken[device] for device in self._gpu.devices)
        use = memory_in_use()
        rows = "".join(
            f"<li>GPU {device}: {taken[device]} of {self._gpu.seats} seats taken"
            f"{f', {escape(use[device])} of memory in use' if device in use else ''}</li>"
            for device in self._gpu.devices
        )
        off = "" if free > 0 or spawner.user.name in self._teachers else " disabled"
        return (
            f'<p><label><input type="radio" name="profile" value="{NONE}" checked> Without a GPU: all exercises work '
            f"in the simulator</label></p>"
            f'<p><label><input type="radio" name="profile" value="{GPU}"{off}> With a GPU, shared with '
            f"{self._gpu.seats - 1} others: kernels that are idle for {self._gpu.kernel_idle_minutes} minutes end and "
            f"give its memory back, and so does a server after {self._gpu.idle_minutes}</label></p><ul>{rows}</ul>"
        )

    def chosen(self, form: Mapping[str, list[str]]) -> dict[str, str]:
        """Return the answer as user options."""
        return {"profile": GPU if form.get("profile", [NONE]) == [GPU] else NONE}

    def seat(self, spawner: Any) -> list[str]:
        """Give a server that is about to start the GPU with the most free seats, or none; return its arguments.

        Raises
        ------
        NoSeatError
            All seats are taken; the hub shows the learner the words.
        """
        options = {name: value for name, value in spawner.user_options.items() if name != "device"}
        spawner.environment["CUDA_VISIBLE_DEVICES"] = ""
        if options.get("profile") == GPU:
            device = free_device(seats_taken(others(spawner)), self._gpu)
            if device is None and self._gpu.devices and spawner.user.name in self._teachers:
                device = self._gpu.devices[0]
            if device is None:
                raise NoSeatError(self._gpu.seats * len(self._gpu.devices))
            options["device"] = device
            spawner.environment["CUDA_VISIBLE_DEVICES"] = str(device)
        spawner.user_options = spawner.orm_spawner.user_options = options  # so that a hub started anew can count them
        spawner.db.commit()
        return self.idle_rules(self._gpu.kernel_idle_minutes, self._gpu.idle_minutes) if "device" in options else []

    @staticmethod
    def idle_rules(kernel_minutes: int, server_minutes: int = 0) -> list[str]:
        """Return a server's arguments that end what is idle: its kernels, then itself."""
        rules = [f"--MappingKernelManager.cull_idle_timeout={60 * kernel_minutes}"]
        rules += ["--MappingKernelManager.cull_interval=60"]
        return [*rules, f"--ServerApp.shutdown_no_activity_timeout={60 * server_minutes}"] if server_minutes else rules


class NoSeatError(RuntimeError):
    """All seats at a GPU are taken; the hub shows `jupyterhub_message`."""

    def __init__(self, seats: int) -> None:
        super().__init__(f"all {seats} seats at a GPU are taken")
        self.jupyterhub_message = (
            "Every seat at a GPU is taken. Start without one, or try again later: idle servers give theirs back."
        )


def others(spawner: Any) -> list[Mapping[str, Any]]:
    """Return the options of every other server that runs or starts."""
    running = spawner.db.query(orm.Spawner).filter(orm.Spawner.server_id.isnot(None))
    return [one.user_options or {} for one in running if one.id != spawner.orm_spawner.id]


def seats_taken(options: Iterable[Mapping[str, Any]]) -> Counter[int]:
    """Count the servers at each GPU."""
    return Counter(chosen["device"] for chosen in options if chosen.get("device") is not None)


def free_device(taken: Counter[int], gpu: Gpu) -> int | None:
    """Return the GPU with the most free seats; ``None`` where none has one."""
    free = [device for device in gpu.devices if taken[device] < gpu.seats]
    return min(free, key=lambda device: taken[device], default=None)


def memory_in_use() -> dict[int, str]:
    """Return how much memory of each GPU is in use, by ``nvidia-smi``; nothing where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    asked = [program, "--query-gpu=index,memory.used,memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return read_memory(said)


def read_memory(said: str) -> dict[int, str]:
    """Read ``nvidia-smi``'s lines of index, MiB used and MiB there are."""
    found = {}
    for line in said.splitlines():
        index, used, total = (cell.strip() for cell in line.split(","))
        if used.isdigit() and total.isdigit():
            found[int(index)] = f"{int(used) / 1024:.1f} of {int(total) / 1024:.1f} GiB"
    return found
