"""Attempts to get out, to look out or to reach something from inside: none may succeed.

Every attempt prints ESCAPED if it succeeds. Those that do no harm are also made outside, where they must succeed: so
a failure inside is the sandbox's doing, and not a slip in the attempt.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from to_its_end import to_its_end

import tilelab
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.runner import run

PRELUDE = """
import ctypes, json, os, signal, socket, subprocess, sys, time
about = json.loads(sys.argv[1])
def escaped(): print("ESCAPED", flush=True)
def call(number, *args):
    return ctypes.CDLL(None).syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
"""

#: Harmless outside, and possible there for any user.
ALSO_OUTSIDE = {
    "read a file of the course": "open(about['secret']).read(); escaped()",
    "list the course": "os.listdir(about['course']); escaped()",
    "write the gradebook": "open(about['gradebook'], 'a').write('777'); escaped()",
    "connect to a server here": "socket.create_connection(('127.0.0.1', about['port']), 2); escaped()",
    "connect to a nameless socket": """
s = socket.socket(socket.AF_UNIX); s.connect("\\0" + about['nameless']); escaped()""",
    "send a datagram away": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9)); escaped()",
    "signal the grader": "os.kill(about['grader'], 0); escaped()",
    "see the grader among the processes": "if str(about['grader']) in os.listdir('/proc'): escaped()",
    "read the grader's environment": "open(f\"/proc/{about['grader']}/environ\", 'rb').read(); escaped()",
    "read the grader's secret variable": "if 'TILELAB_SECRET' in os.environ: escaped()",
    "see other sandboxes": "if about['other'] in os.listdir('/dev/shm'): escaped()",
    "system V shared memory": """
number = call(29, 0, 4096, 0o1600)
if number >= 0: escaped()
call(31, number, 0, None)  # taken away again: nothing else would""",
    "memory in a file without a name": "if call(319, b'x', 0) >= 0: escaped()",
    "trace another process": """
child = subprocess.Popen(['sleep', '5'])
if call(101, 16, child.pid, 0, 0) == 0: escaped()
os.kill(child.pid, signal.SIGKILL)  # Popen.kill takes a traced child that stopped for one that has ended
os.waitpid(child.pid, 0)""",
    "read another process's memory": """
class Vector(ctypes.Structure): _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"12345678")
a = Vector(ctypes.addressof(here), 8); b = Vector(ctypes.addressof(there), 8)
if call(310, os.getpid(), ctypes.byref(a), 1, ctypes.byref(b), 1, 0) == 8: escaped()""",
    "use the kernel's keys": "if call(250, 0, -4, 0) >= 0: escaped()",
}

#: Harmful or root's alone outside.
INSIDE_ONLY = {
    "read root's folder": "if [n for n in os.listdir('/root') if n != '.pyenv']: escaped()",
    "read the password file": "open('/etc/shadow').read(); escaped()",
    "write to the system": "open('/usr/bin/tilelab-was-here', 'w'); escaped()",
    "write to this Python": "open(os.path.join(sys.prefix, 'was-here'), 'w'); escaped()",
    "write to the package": "open(about['package'] + '/was_here.py', 'w'); escaped()",
    "write to the root folder": "os.mkdir('/was-here'); escaped()",
    "write to /etc": "open('/etc/passwd', 'w'); escaped()",
    "remount the system for writing": "if call(165, None, b'/usr', None, 32 | 4096, None) == 0: escaped()",
    "mount": "if call(165, b'none', b'/tmp', b'tmpfs', 0, None) == 0: escaped()",
    "unmount": "if call(166, b'/usr', 2) == 0: escaped()",
    "change the root": "os.chroot('/tmp'); escaped()",
    "make a user namespace": "if ctypes.CDLL(None).unshare(0x10000000) == 0: escaped()",
    "make a mount namespace": "if ctypes.CDLL(None).unshare(0x20000) == 0: escaped()",
    "clone into a user namespace": """
if call(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) >= 0: escaped()""",
    "clone3 into a user namespace": """
arguments = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
if call(435, arguments, 64) >= 0: escaped()""",
    "a sandbox in the sandbox": """
if subprocess.run(['bwrap', '--bind', '/', '/', 'true']).returncode == 0: escaped()""",
    "a namespace by the system's tool": """
if subprocess.run(['unshare', '-rn', 'true']).returncode == 0: escaped()""",
    "enter the namespaces of number 1": """
fd = os.open('/proc/1/ns/net', os.O_RDONLY)
if call(308, fd, 0) == 0: escaped()""",
    "the files of number 1": """
for name in os.listdir('/proc/1/fd'):
    if os.path.isfile(f'/proc/1/fd/{name}'): open(f'/proc/1/fd/{name}', 'r+b').write(b'777'); escaped()""",
    "the root of number 1": "if os.path.exists('/proc/1/root' + about['secret']): escaped()",
    "take over a number 1 that is not filtered": """
open('/proc/1/mem', 'r+b')
if 'Seccomp:\t2' not in open('/proc/1/status').read(): escaped()""",
    "end number 1": """
os.kill(1, signal.SIGKILL); time.sleep(0.2)
if '1' not in os.listdir('/proc'): escaped()""",
    "become root": "os.setuid(0); escaped()",
    "become root by su": "if subprocess.run(['su', '-c', 'true'], stdin=subprocess.DEVNULL).returncode == 0: escaped()",
    "gain capabilities": """
status = dict(line.split(':\\t') for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)
if any(int(status[name], 16) for name in ('CapEff', 'CapPrm', 'CapInh', 'CapBnd', 'CapAmb')): escaped()""",
    "make a device node": "os.mknod('/tmp/disk', 0o060666, os.makedev(254, 0)); escaped()",
    "open a disk or the kernel's log": """
for name in ('vda', 'sda', 'nvme0n1', 'mem', 'kmsg', 'kvm', 'fuse', 'vsock', 'loop0', 'nvidia0', 'nvidiactl'):
    if os.path.exists('/dev/' + name): escaped()""",
    "make a file among the devices": "open('/dev/was-here', 'w'); escaped()",
    "open the terminal": "os.open('/dev/tty', os.O_RDWR); escaped()",
    "a socket to the virtual machine's host": "socket.socket(40, socket.SOCK_STREAM); escaped()",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); escaped()",
    "a packet socket": "socket.socket(17, socket.SOCK_RAW); escaped()",
    "a kernel crypto socket": "socket.socket(38, socket.SOCK_SEQPACKET); escaped()",
    "an interface besides lo": "if [n for _, n in socket.if_nameindex() if n != 'lo']: escaped()",
    "load a kernel program": "if call(321, 5, ctypes.create_string_buffer(128), 128) >= 0: escaped()",
    "an io_uring": "if call(425, 8, ctypes.create_string_buffer(256)) >= 0: escaped()",
    "count hardware events": "if call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0) >= 0: escaped()",
    "set the clock": "if call(227, 0, (ctypes.c_long * 2)(0, 0)) == 0: escaped()",
    "rename the machine": "if call(170, b'x', 1) == 0: escaped()",
    "change the kernel's settings": "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x'); escaped()",
    "press the system key": "open('/proc/sysrq-trigger', 'w').write('h'); escaped()",
    "join another control group": """
import glob
for file in glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True): open(file, 'w').write('0'); escaped()""",
    "another architecture's calls": """
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # mov eax, getpid; int 0x80; ret
number = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
if number == os.getpid(): escaped()""",
    "the calls of the x32 interface": "if call(0x40000000 + 39) == os.getpid(): escaped()",
}

ATTEMPTS = {**ALSO_OUTSIDE, **INSIDE_ONLY}


@contextmanager
def targets(folder: Path) -> Iterator[dict[str, Any]]:
    """Make what the attempts are after, in a folder, and tell where it is."""
    os.environ["TILELAB_SECRET"] = "42"
    course = folder / "course"
    course.mkdir()
    (course / "check.py").write_text("SECRET = 42\n")
    (course / "gradebook.db").write_text("2")
    nameless = f"tilelab-test-{os.getpid()}-{time.monotonic_ns()}"
    other = Path("/dev/shm") / f"{nameless}-other"
    other.touch()
    try:
        with socket.socket() as server, socket.socket(socket.AF_UNIX) as local:
            server.bind(("127.0.0.1", 0))
            server.listen()
            local.bind(f"\0{nameless}")
            local.listen()
            yield {
                "course": str(course),
                "secret": str(course / "check.py"),
                "gradebook": str(course / "gradebook.db"),
                "port": server.getsockname()[1],
                "nameless": nameless,
                "other": other.name,
                "grader": os.getpid(),
                "package": str(Path(tilelab.__file__).parent),
            }
    finally:
        other.unlink()
        del os.environ["TILELAB_SECRET"]


def command(code: str, about: dict[str, Any]) -> list[str]:
    """Return the command that makes an attempt."""
    return [sys.executable, "-c", PRELUDE + code, json.dumps(about)]


def fault_of(name: str, about: dict[str, Any]) -> str:
    """Make an attempt, outside too where that does no harm; return what is wrong, or ``""`` where it was held."""
    if name in ALSO_OUTSIDE:
        argv = command(ALSO_OUTSIDE[name], about)
        try:
            outside = to_its_end(argv, 20)
        except subprocess.TimeoutExpired:
            return "the attempt does not end outside"
        if "ESCAPED" not in outside.stdout:
            return f"the attempt fails outside too: {outside.stderr[-300:]}"
    done = run(command(ATTEMPTS[name], about), limits=Limits(seconds=20))
    if b"ESCAPED" in done.stdout:
        return "ESCAPED"
    if done.ended != "itself" or b"SyntaxError" in done.stderr or b"NameError" in done.stderr:
        return f"the attempt was not made: {done.ended} {done.stderr.decode(errors='replace')[-300:]}"
    return ""
