"""Kernels in the sandbox for the executor, some of them started ahead.

A kernel takes longer to start than most notebooks to run. Started ahead it gets ready while another notebook is
judged and written.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync

from tilelab.grading.sandbox.files import plain_files
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.provisioner import choose

#: A kernel's own warnings are noise in the grader's terminal; a history would be a file.
ARGUMENTS = ("--IPKernelApp.log_level=ERROR", "--HistoryManager.hist_file=:memory:")
#: Limits that the sandbox itself holds; the others are the executor's.
HELD = ("memory", "processes", "file_size", "scratch", "cpus", "seconds")


def enclose(manager: Any, limits: Limits, patient: bool = True) -> None:
    """Make a manager start its kernel in the sandbox, under these limits."""
    choose(manager, patient=patient, **{name: getattr(limits, name) for name in HELD})


class Kernels:
    """Kernels started ahead, one for each set of limits. The process that makes this must close it."""

    def __init__(self) -> None:
        self._ahead: dict[tuple[str, Limits], Any] = {}
        self._nowhere = TemporaryDirectory(prefix="tilelab-nowhere-")

    def start_ahead(self, name: str, limits: Limits) -> None:
        """Start a kernel without waiting for it, unless there is one already."""
        if (name, limits) not in self._ahead:
            manager = AsyncKernelManager(kernel_name=name)
            enclose(manager, limits, patient=False)
            run_sync(manager.start_kernel)(cwd=self._nowhere.name, extra_arguments=list(ARGUMENTS))
            self._ahead[name, limits] = manager

    def take(self, name: str, limits: Limits, folder: str | None) -> Any | None:
        """Return a kernel that was started ahead, if there is one and it lacks no file of the notebook's folder."""
        if folder and plain_files(Path(folder)):
            return None
        return self._ahead.pop((name, limits), None)

    def close(self) -> None:
        """End what nobody took."""
        for manager in self._ahead.values():
            run_sync(manager.shutdown_kernel)(now=True)
        self._ahead = {}
        self._nowhere.cleanup()
