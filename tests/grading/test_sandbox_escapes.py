"""Attempts to get out, to look out or to reach something from inside: none may succeed.

Every attempt prints ESCAPED if it succeeds. Those that do no harm are also made outside, where they must succeed: so
a failure inside is the sandbox's doing, and not a slip in the attempt.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sandboxes import command_lines

from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.files import copy_plain_files
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.runner import run

pytestmark = pytest.mark.slow

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
    "system V shared memory": "if call(29, 0, 4096, 0o1600) >= 0: escaped()",
    "memory in a file without a name": "if call(319, b'x', 0) >= 0: escaped()",
    "trace another process": """
child = subprocess.Popen(['sleep', '5'])
if call(101, 16, child.pid, 0, 0) == 0: escaped()
child.kill()""",
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


@pytest.fixture
def about(tmp_path, monkeypatch):
    """What the attempts are after."""
    monkeypatch.setenv("TILELAB_SECRET", "42")
    course = tmp_path / "course"
    course.mkdir()
    (course / "check.py").write_text("SECRET = 42\n")
    (course / "gradebook.db").write_text("2")
    nameless = f"tilelab-test-{os.getpid()}-{time.monotonic_ns()}"
    other = Path("/dev/shm") / f"{nameless}-other"
    other.touch()
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
            "package": str(Path(sys.modules["tilelab"].__file__).parent),
        }
    other.unlink()


def command(code, about):
    return [sys.executable, "-c", PRELUDE + code, json.dumps(about)]


@pytest.mark.parametrize("attempt", ALSO_OUTSIDE)
def test_an_attempt_that_succeeds_outside_fails_inside(attempt, about):
    outside = subprocess.run(command(ALSO_OUTSIDE[attempt], about), capture_output=True, text=True, check=False)
    assert "ESCAPED" in outside.stdout, outside.stderr
    inside = run(command(ALSO_OUTSIDE[attempt], about))
    assert b"ESCAPED" not in inside.stdout


@pytest.mark.parametrize("attempt", INSIDE_ONLY)
def test_an_attempt_fails_inside(attempt, about):
    done = run(command(INSIDE_ONLY[attempt], about), limits=Limits(seconds=20))
    assert done.ended == "itself", "the attempt was not made"
    assert b"ESCAPED" not in done.stdout
    assert b"SyntaxError" not in done.stderr
    assert b"NameError" not in done.stderr


def test_a_process_left_behind_ends_with_the_sandbox():
    mark = f"tilelab-orphan-{os.getpid()}"
    code = f"""
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", {mark!r}])
    os._exit(0)
time.sleep(0.3)
"""
    assert run([sys.executable, "-c", code]).ok
    time.sleep(0.2)
    assert not any(mark in line for line in command_lines())


def test_links_in_a_submission_are_not_followed(tmp_path):
    secret = tmp_path / "check.py"
    secret.write_text("SECRET")
    submitted = tmp_path / "submitted"
    (submitted / "data").mkdir(parents=True)
    (submitted / "numbers.csv").write_text("1,2")
    (submitted / "exercise_1.ipynb").write_text("{}")
    (submitted / "link.csv").symlink_to(secret)
    (submitted / "data" / "folder").symlink_to(tmp_path)
    os.mkfifo(submitted / "pipe")
    copy = tmp_path / "copy"
    copy_plain_files(submitted, copy)
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*")) == ["numbers.csv"]


@pytest.mark.parametrize("trick", ["ln -s {secret} $SHARED/out", "mkfifo $SHARED/out", "mkdir $SHARED/out"])
def test_what_is_fetched_is_a_plain_file_of_the_sandbox(trick, about):
    find = "SHARED=$(awk '$2 ~ /tilelab-.*.c$/ {print $2}' /proc/mounts); "
    done = run(["sh", "-c", find + trick.format(**about) + "; ls -la $SHARED >&2"], fetch=["out"])
    assert b"out" in done.stderr, "the trick was not played"
    assert done.files == {}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/../../x"])
def test_given_files_stay_in_the_home_folder(name):
    with pytest.raises(SandboxError, match="give a path below the home folder"):
        run(["true"], {name: b""})


ATTACKS_ON_COMPILERS = {
    "an include of a file outside": '#include "{secret}"\nint main() {{ return SECRET; }}',
    "an incbin of a file outside": 'asm(".incbin \\"{secret}\\""); int main() {{}}',
    "an include of a device": '#include "/dev/vda"\nint main() {{}}',
    "an embed of a file outside": 'const char text[] = {{\n#embed "{secret}"\n}};\nint main() {{}}',
}


@pytest.mark.parametrize("attack", ATTACKS_ON_COMPILERS)
def test_a_compiler_sees_nothing_of_the_course(attack, about):
    source = ATTACKS_ON_COMPILERS[attack].format(**about)
    done = run(["g++", "-o", "a.out", "a.cpp"], {"a.cpp": source}, fetch=["a.out"])
    assert done.returncode
    assert done.files == {}
    assert b"SECRET" not in done.stdout + done.stderr.replace(source.encode(), b"").replace(b"return SECRET", b"")


@pytest.mark.parametrize(
    "bomb",
    [
        "template<int N> struct B { static const int v = B<N-1>::v + B<N-2>::v * N; typename B<N-1>::t x[N]; };\n"
        "int a[B<90000>::v];",
        "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(A(A(A(A(A(x))))))))\nB(int f();)",
        '#include "/dev/zero"',
        "#include __FILE__\n#include __FILE__",
        "constexpr long f(long n) { long s = 0; for (;;) s += n; return s; }\nconstexpr long x = f(1);",
    ],
    ids=["templates", "macros", "zeros", "itself", "constexpr"],
)
def test_a_compile_bomb_costs_its_limits_and_no_more(bomb):
    limits = Limits(seconds=2, memory=512 << 20)
    flags = ["-ftemplate-depth=100000", "-fconstexpr-loop-limit=2000000000", "-fconstexpr-ops-limit=200000000000"]
    start = time.monotonic()
    done = run(["g++", *flags, "-c", "a.cpp"], {"a.cpp": bomb}, limits, fetch=["a.o"])
    assert not done.ok
    assert done.files == {}
    assert time.monotonic() - start < 10, "the limit of 2 s did not end it"


def test_a_large_object_is_stopped_by_the_limit_on_files():
    source = "char big[1u << 30] = {1};\nint main() {}"
    done = run(["g++", "-o", "a.out", "a.cpp"], {"a.cpp": source}, Limits(seconds=30), fetch=["a.out"])
    assert not done.ok
    assert done.files == {}


def test_a_constructor_before_main_is_inside_too(about):
    source = f"""
#include <fstream>
#include <cstdio>
struct Early {{ Early() {{
    std::ofstream out("{about["gradebook"]}"); out << 777 << std::flush; std::ifstream in("{about["secret"]}");
    if (in.good()) std::puts("ESCAPED");
    std::puts("early"); }} }} early;
int main() {{}}
"""
    built = run(["g++", "-o", "a.out", "a.cpp"], {"a.cpp": source}, fetch=["a.out"])
    assert built.ok, built.stderr
    done = run(["./a.out"], built.files)
    assert done.stdout == b"early\n"
    assert Path(about["gradebook"]).read_text() == "2"


def test_two_sandboxes_at_once_do_not_see_each_other():
    outputs = []

    def look(name):
        code = f"import os, time; open('/tmp/mine-{name}', 'x'); time.sleep(0.3)\n"
        code += "print([n for n in os.listdir('/tmp') if n.startswith('mine')], len(os.listdir('/dev/shm')))"
        outputs.append(run([sys.executable, "-c", code]).stdout)

    threads = [threading.Thread(target=look, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == [b"['mine-a'] 1\n", b"['mine-b'] 1\n"]
