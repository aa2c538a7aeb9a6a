"""The kernel provisioner: Jupyter asks it for a kernel and gets one inside a sandbox.

``jupyter_client`` finds it by the entry point named :data:`NAME`; :func:`choose` needs no entry point. A kernel talks
to the outside by sockets in the one folder that both sides can write, for inside there is no network.
"""

import asyncio
import os
import signal
import subprocess
import time
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner
from traitlets import Bool, Float, Int, List, Unicode

from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.files import copy_plain_files
from tilelab.grading.sandbox.jail import Jail, end, number_one
from tilelab.grading.sandbox.limits import Limits

NAME = "tilelab-sandbox"
CHANNELS = ("shell", "iopub", "stdin", "hb", "control")
START_SECONDS = 60
#: Bytes where both sides write: five sockets and a small file need less.
ROOM_FOR_SOCKETS = 1 << 20
#: Variables of the grader that a kernel may see.
PASSED_ON = ("NBGRADER_EXECUTION",)


class SandboxProvisioner(LocalProvisioner):  # type: ignore[misc]
    """Starts a kernel inside a :class:`~tilelab.grading.sandbox.jail.Jail`; it and all it started end together."""

    memory = Int(Limits.memory, help="bytes of memory, all processes together").tag(config=True)
    processes = Int(Limits.processes, help="processes and threads at once").tag(config=True)
    file_size = Int(Limits.file_size, help="bytes of the largest file").tag(config=True)
    scratch = Int(Limits.scratch, help="bytes of all files in the home folder, and again in /tmp").tag(config=True)
    cpus = Int(Limits.cpus, help="threads that numerical libraries start").tag(config=True)
    seconds = Float(Limits.seconds, help="kept for the executor, which counts the time of cells").tag(config=True)
    output = Int(Limits.output, help="kept for the executor, which limits what cells print").tag(config=True)
    patient = Bool(True, help="wait at the start until the kernel can be reached").tag(config=True)
    show = List(Unicode(), help="further files or folders to show inside, read-only").tag(config=True)

    jail: Jail | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Build the sandbox, point the manager at its sockets, and return how to start the kernel in it.

        Raises
        ------
        SandboxError
            When the kernel is to be restarted: what it left where both sides write is not to be trusted again.
        """
        if self.jail is not None:
            raise SandboxError("a kernel in the sandbox is not restarted: shut it down and start another one")
        manager = self.parent
        folder = kwargs.pop("cwd", None) or os.getcwd()
        variables = {name: value for name in PASSED_ON if (value := (kwargs.get("env") or os.environ).get(name))}
        limits = {name: getattr(self, name) for name in Limits.__dataclass_fields__}
        self.jail = Jail(Limits(**limits), tuple(self.show), ROOM_FOR_SOCKETS)
        copy_plain_files(Path(folder), self.jail.given, self.scratch // 2)  # room to work in is left
        manager.transport = "ipc"
        manager.connection_file = str(self.jail.shared / "k.json")
        manager.ip = str(self.jail.shared / "k")
        for number, channel in enumerate(CHANNELS, start=1):
            setattr(manager, f"{channel}_port", number)
        kwargs = await super().pre_launch(**kwargs)
        # The kernel runs as another user, who must be able to read its connection file.
        if os.getuid() == 0:
            os.chown(manager.connection_file, self.jail.user, self.jail.user)
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return {**kwargs, **quiet, "cmd": self.jail.command(kwargs["cmd"], variables), "env": {}, "cwd": "/"}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the kernel and the watch over its limits."""
        info = await super().launch_kernel(cmd, **kwargs)
        assert self.jail is not None
        self.jail.watch(self.process)
        if self.patient:
            await self.reachable()
        return info

    async def reachable(self) -> None:
        """Wait until the kernel's sockets are there: a client that connects before tries again only 0.1 s later."""
        info = self.connection_info
        sockets = [Path(f"{info['ip']}-{info[f'{channel}_port']}") for channel in CHANNELS]
        deadline = time.monotonic() + START_SECONDS
        while not all(map(Path.exists, sockets)) and self.process and self.process.poll() is None:
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.005)

    async def send_signal(self, signum: int) -> None:
        """Send a signal: an interrupt goes to the kernel itself and its children, anything else ends the sandbox."""
        if self.process is None:
            return
        if signum == signal.SIGINT:
            leader = number_one(self.process.pid)
            if leader is not None:
                # To the group, so that a program that a cell waits for is interrupted with the kernel. A number 1
                # ignores what it does not handle.
                os.killpg(leader, signum)
        elif signum:
            end(self.process)

    async def wait(self) -> int | None:
        """Wait for the end, looking oftener than the base class: a grader waits here for every notebook."""
        while self.process is not None and self.process.poll() is None:
            await asyncio.sleep(0.005)
        code: int | None = await super().wait()
        return code

    def why_it_ended(self) -> str | None:
        """Say which limit ended the kernel, in words for its learner; ``None`` where no limit did."""
        if self.jail is None:
            return None
        if self.jail.ended_for_memory():
            return f"it used more than the {self.jail.limits.memory >> 20} MiB of memory that are allowed"
        words = {"shared files": "it wrote more files than are allowed", "messages": "it sent more than can be taken"}
        return words.get(self.jail.broken or "")

    async def cleanup(self, restart: bool = False) -> None:
        """Clear the sandbox away."""
        await super().cleanup(restart=restart)
        if self.jail is not None:
            self.jail.close()


def choose(manager: Any, **config: Any) -> None:
    """Make a kernel manager start its kernel in a sandbox, whatever Jupyter's settings and the entry points say.

    Parameters
    ----------
    manager : KernelManager
        Its kernel must not have been started.
    config
        Traits of :class:`SandboxProvisioner`.
    """
    factory = KernelProvisionerFactory.instance()
    group = KernelProvisionerFactory.GROUP_NAME
    factory.provisioners[NAME] = EntryPoint(NAME, f"{__name__}:{SandboxProvisioner.__name__}", group)
    manager.kernel_spec.metadata["kernel_provisioner"] = {"provisioner_name": NAME, "config": config}
