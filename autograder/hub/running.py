"""A hub that runs as a child of this process: started, waited for, and ended with everything it started."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

import psutil
from authenticators import check_authenticator
from checks import check_ports, check_proxy, check_state
from deployment import PORTS, Deployment
from hub_config import MARK, environment
from only_one import check_alone, left_behind

import tilelab
from tilelab.grading.errors import GradingError

HERE = Path(__file__).resolve().parent
#: Seconds until the hub must answer, its services too, and within which it ends when it is told to.
START, END = 300.0, 60.0
#: Names the course.toml to `jupyterhub_config.py`.
COURSE = "TILELAB_COURSE"


class RunningHub:
    """JupyterHub of a course, with its proxy and services, for as long as the ``with`` block lasts.

    Parameters
    ----------
    of : Deployment
        The course; it must be released (`release_course`).
    before : list of str
        A command to put before the hub's, such as a private machine's.
    environment : dict, optional
        More for the hub's environment.

    Raises
    ------
    GradingError
        A port is taken, the proxy is not installed, or the hub does not answer in time.
    """

    def __init__(
        self, of: Deployment, before: list[str] | None = None, variables: dict[str, str] | None = None
    ) -> None:
        self.of = of
        self._before = before or []
        self._variables = variables or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = secrets.token_hex(8)
        self._log_from = 0
        self.log = of.state / "hub.log"

    def __enter__(self) -> "RunningHub":
        """Start the hub and wait until it and the exchange answer."""
        try:
            self.start()
        except BaseException:  # Ctrl-C while it starts: nothing may be left behind
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self.stop()

    @property
    def pid(self) -> int:
        """The hub's process, or that of the private machine around it."""
        assert self._process is not None
        return self._process.pid

    @property
    def processes(self) -> list[psutil.Process]:
        """Everything that the hub started and that still runs."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def start(self) -> None:
        """Start the hub and wait until it and the exchange answer."""
        make_ready(self.of)
        command = [*self._before, sys.executable, "-m", "jupyterhub", "-f", str(HERE / "jupyterhub_config.py")]
        variables = os.environ | environment(self.of) | {COURSE: str(self.of.file), MARK: self._mark} | self._variables
        variables["PYTHONPATH"] = str(Path(tilelab.__file__).parents[1])
        variables["PATH"] += f"{os.pathsep}{os.environ['PATH']}"  # for the proxy, whose node may be anywhere
        variables.pop("CONFIGPROXY_AUTH_TOKEN", None)
        self.log.touch(mode=0o600)
        self.log.chmod(0o600)  # it tells who handed in when
        self._log_from = self.log.stat().st_size
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.of.state, env=variables, stdout=log, stderr=log, start_new_session=True
            )
        self.wait()

    def wait(self, seconds: float = START) -> None:
        """Wait until the hub and the exchange answer through the proxy."""
        base = f"{self.of.at('proxy')}{self.of.base_url}"
        end = time.monotonic() + seconds
        for path in ("hub/health", "services/exchange/health", f"services/{self.of.course}/api"):
            while not answers(base + path):
                if self._process is not None and self._process.poll() is not None:
                    raise GradingError(f"the hub ended; its last words:\n{self.last_words()}")
                if time.monotonic() > end:
                    raise GradingError(f"{base + path} did not answer in {seconds:g} s:\n{self.last_words()}")
                time.sleep(0.2)

    def stop(self) -> None:
        """End the hub, and whatever it leaves behind."""
        if self._process is None:
            return
        started = self.processes
        hub = next((one for one in started if "jupyterhub" in " ".join(_words(one))), None) if self._before else None
        if self._process.poll() is None:
            os.kill(hub.pid if hub else self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(END)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
        end_all({*started, *marked(self._mark)})

    def last_words(self) -> str:
        """Return what the log of this hub calls critical, for others may have talked since, and the log's end."""
        said = self.log.read_bytes()[self._log_from :].decode(errors="replace") if self.log.exists() else ""
        critical = [line for line in said.splitlines() if line.startswith("[C ")]
        return "\n".join([*critical[-5:], said[-3000:]])


def make_ready(of: Deployment) -> None:
    """Check all that must hold before a hub starts, and end what one that was killed left behind.

    Raises
    ------
    GradingError
        It cannot start here, or one runs already.
    """
    check_proxy()
    check_authenticator(of)
    check_state(of)
    check_alone(of)
    if mark := left_behind(of):
        end_all(marked(mark))
    check_ports(of)


def marked(mark: str) -> set[psutil.Process]:
    """Return the processes that have a hub's mark in their environment, as all have that it started."""
    found = set()
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.environ().get(MARK) == mark and one.pid != os.getpid():
                found.add(one)
    return found


def end_all(processes: Iterable[psutil.Process]) -> None:
    """End processes: politely, and after some seconds whether they will or not."""
    left = [one for one in processes if one.is_running()]
    for one in left:
        with suppress(psutil.NoSuchProcess):
            one.terminate()
    for one in psutil.wait_procs(left, timeout=5)[1]:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def answers(url: str) -> bool:
    """Whether something that is not a proxy's excuse answers at an address."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=5) as answer:
            return bool(answer.status < 500)
    except HTTPError as error:
        return error.code in (401, 403)
    except (URLError, OSError):
        return False


def free_port() -> int:
    """Return the first of as many free ports in a row as the hub takes.

    They lie below those that the system gives to whoever asks for any, or another program would have one of them by the
    time that the hub starts.
    """
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    below = max(int(given[0]), 32768) - len(PORTS)
    while True:
        first = SystemRandom().randrange(10_000, below)
        try:
            for number in range(first, first + len(PORTS)):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", number))
        except OSError:
            continue
        return first


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
