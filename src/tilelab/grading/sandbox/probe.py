"""Looks around from where it runs and prints what it found, as JSON.

It is run inside the sandbox, by itself and in a kernel, so it needs the standard library alone; its arguments are paths
that must not be in sight. What the findings mean, :mod:`tilelab.grading.sandbox.preflight` says.
"""

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable

AF_VSOCK = 40
CLONE_NEWUSER = 0x10000000
#: Device nodes that are harmless: they hold nothing and reach nothing.
HARMLESS_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}


def attempt(action: Callable[[], None]) -> str:
    """Return "done", or the name of the error that stopped an action."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "done"


def new_user_namespace() -> None:
    """Try to become root of a user namespace, in a child so that nothing sticks."""
    child = os.fork()
    if child == 0:
        library = ctypes.CDLL(None, use_errno=True)
        os._exit(0 if library.unshare(CLONE_NEWUSER) == 0 else ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, "unshare")


def connect_out() -> None:
    """Try to send towards a documentation address (RFC 5737), to which nobody answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("192.0.2.1", 9))


def vsock() -> None:
    """Try to open a socket to the host of a virtual machine."""
    socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()


def write_to(folder: str) -> str:
    """Try to make a file in a folder."""
    path = os.path.join(folder, f"tilelab-probe-{os.getpid()}")

    def make() -> None:
        with open(path, "x"):
            os.unlink(path)

    return attempt(make)


def look_around(hidden: list[str]) -> dict[str, object]:
    """Return what can be seen and done from here."""
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    devices = [
        entry.path for entry in os.scandir("/dev")
        if entry.name not in HARMLESS_DEVICES and not entry.is_dir() and not entry.is_symlink()
    ]  # fmt: skip
    return {
        "processes": sum(name.isdigit() for name in os.listdir("/proc")),
        "user": os.getuid(),
        "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapBnd"], 16),
        "no_new_privileges": status["NoNewPrivs"].strip() == "1",
        "filtered": status["Seccomp"].strip() == "2",
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
        "network": attempt(connect_out),
        "vsock": attempt(vsock),
        "user_namespace": attempt(new_user_namespace),
        "devices": sorted(devices),
        "writable": [folder for folder in ("/", "/etc", "/usr", "/dev", sys.prefix) if write_to(folder) == "done"],
        "in_sight": [path for path in hidden if os.path.lexists(path)],
        "variables": sorted(os.environ),
    }


if __name__ == "__main__":
    print(json.dumps(look_around(sys.argv[1:])))
