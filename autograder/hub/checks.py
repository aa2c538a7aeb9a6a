"""What must hold before a hub starts: said before anything is written or started."""

import socket
import tempfile
from pathlib import Path
from shutil import which

import psutil
from deployment import PORTS, Deployment
from hub_config import proxy_program

from tilelab.grading.errors import GradingError


def check_proxy() -> None:
    """Raise `GradingError` where the proxy is not installed."""
    program = proxy_program()
    if not program.is_absolute() and which(str(program)) is None:
        raise GradingError("configurable-http-proxy is not installed: run  make hub-packages")


def check_state(of: Deployment) -> None:
    """Raise `GradingError` where the folder that keeps everything cannot be made or written."""
    try:
        of.state.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=of.state) as probe:
            probe.write(b"x" * 4096)
            probe.flush()
    except OSError as error:
        raise GradingError(
            f"the hub keeps everything in {str(of.state)!r}, which cannot be written ({error.strerror}): mend that, "
            f"or say another folder in [hub] state of {of.file.name}"
        ) from error


def check_ports(of: Deployment) -> None:
    """Raise `GradingError` where one of the hub's ports is taken, with the process that has it."""
    for number in range(of.port, of.port + len(PORTS)):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", number))
            except OSError:
                raise GradingError(
                    f"port {number} is taken{_taken_by(number)}: end what listens there, or say another first port in "
                    f"[hub] port of {of.file.name} (the hub takes {of.port} to {of.port + len(PORTS) - 1})"
                ) from None


def _taken_by(port: int) -> str:
    """Return who listens at a port, where this account may know."""
    try:
        listening = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        pid = next(one.pid for one in listening if one.laddr.port == port and one.pid)
        words = psutil.Process(pid).cmdline()
    except (psutil.Error, StopIteration):
        return ""
    return f" by process {pid} ({' '.join(Path(word).name for word in words[:2])})"
