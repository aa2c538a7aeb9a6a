"""How much of the machine learner-written code may use."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from tilelab.grading.sandbox.errors import SandboxError

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one sandbox.

    Parameters
    ----------
    memory : int
        Bytes all processes of the sandbox may hold together, files in its ``/tmp`` and home included.
    processes : int
        Processes and threads at once.
    file_size : int
        Bytes of the largest file.
    scratch : int
        Bytes of all files in the home folder, and again in ``/tmp``.
    seconds : float
        Wall time of a run (a kernel's time is counted by its executor).
    output : int
        Bytes kept of each of stdout and stderr; what comes after is read and dropped.
    cpus : int
        Threads that numerical libraries start (``OMP_NUM_THREADS`` and its like).

    Raises
    ------
    SandboxError
        For a limit that is not positive.
    """

    memory: int = 2048 * MIB
    processes: int = 128
    file_size: int = 64 * MIB
    scratch: int = 256 * MIB
    seconds: float = 60.0
    output: int = MIB
    cpus: int = 2

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise SandboxError(f"limit {field.name} = {value!r}: give a positive number")

    def changed(self, table: Mapping[str, Any]) -> "Limits":
        """Return these limits with some replaced, as a table of a TOML file names them.

        Parameters
        ----------
        table : mapping
            Limit name to value; sizes in bytes, or as text such as ``"512 MiB"``.

        Raises
        ------
        SandboxError
            For a name that is no limit, or a size that cannot be read.
        """
        known = [field.name for field in fields(self)]
        for name in table:
            if name not in known:
                raise SandboxError(f"unknown limit {name!r}: the limits are {', '.join(known)}")
        return replace(self, **{name: as_bytes(value) for name, value in table.items()})


def as_bytes(value: Any) -> Any:
    """Return ``"512 MiB"`` as 536870912 and leave numbers alone.

    Raises
    ------
    SandboxError
        For text that is not a number followed by KiB, MiB or GiB.
    """
    if not isinstance(value, str):
        return value
    number, _, unit = value.strip().partition(" ")
    scale = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}.get(unit.strip())
    if scale is None or not number.isdigit():
        raise SandboxError(f"size {value!r}: write a number of bytes, or such as '512 MiB' (KiB, MiB, GiB)")
    return int(number) * scale
