"""What a sandbox may use: each limit ends only what is inside, and says which one it was."""

import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from patience import until
from sandboxes import command_lines, own_place

from tilelab.grading.sandbox import cgroups, folders
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.jail import Jail
from tilelab.grading.sandbox.limits import MIB, Limits
from tilelab.grading.sandbox.processes import texts
from tilelab.grading.sandbox.runner import run

pytestmark = pytest.mark.slow


@pytest.fixture(params=["control group", "watch"])
def holder(request, monkeypatch):
    """Have the limits of all processes together held by control groups, and by what there is without them."""
    if request.param == "watch":
        monkeypatch.setattr(cgroups, "make", lambda limits: None)
    elif not cgroups.parents():
        pytest.skip("this user may not make control groups here")
    return request.param


def python(code, limits, **options):
    return run([sys.executable, "-c", code], limits=limits, **options)


def test_the_holder_is_the_one_that_is_meant(holder):
    made = Jail()
    try:
        assert made.memory_limit_by == holder
    finally:
        made.close()


def test_one_process_that_asks_for_too_much_gets_an_error_it_can_survive(holder):
    code = "try:\n    x = bytearray(1 << 30)\nexcept MemoryError:\n    print('survived')"
    done = python(code, Limits(memory=256 * MIB))
    assert (done.ended, done.stdout) == ("itself", b"survived\n")


def test_many_processes_share_the_memory(holder):
    code = """
import os
said, say = os.pipe()
wait, let_go = os.pipe()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        os.close(let_go)
        x = b"x" * (100 << 20)
        os.close(say)
        os.read(wait, 1)
        os._exit(0)
    children.append(child)
os.close(say)
os.read(said, 1)  # it ends once each of them has its memory, or has ended
os.close(let_go)
print(sum(os.waitpid(child, 0)[1] == 0 for child in children))
"""
    done = python(code, Limits(memory=256 * MIB, seconds=120))
    assert done.ended == "memory"
    assert done.stdout in (b"", b"0\n", b"1\n", b"2\n"), "more than two children held 100 MiB each at once"


def test_a_fork_bomb_stops_at_the_limit(holder):
    code = """
import os, time
made = 0
try:
    for _ in range(500):
        if os.fork() == 0:
            time.sleep(200)
            os._exit(0)
        made += 1
except OSError as error:
    print(made, error.strerror, flush=True)
os._exit(0)
"""
    done = python(code, Limits(processes=40, seconds=120))
    assert done.ended == "itself"
    made, _, words = done.stdout.decode().partition(" ")
    assert 20 < int(made) <= 40
    assert words.strip() == "Resource temporarily unavailable"


def test_a_fork_bomb_that_never_stops_ends_with_its_time(holder):
    mark = f"bomb of {os.getpid()}"
    bomb = f"import os  # {mark}\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    done = python(bomb, Limits(processes=40, seconds=1))
    assert done.ended == "time"
    # The kernel clears the processes of an ended namespace away by and by.
    assert until(lambda: not any(mark in line for line in command_lines()))


def test_fork_bombs_in_two_sandboxes_have_a_limit_each(holder):
    """Where no control group counts processes, the count for a user must not be shared."""
    code = "import os, time\nfor _ in range(30):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\nprint('made 30')"
    with ThreadPoolExecutor() as pool:
        for done in pool.map(lambda _: python(code, Limits(processes=40)), range(2)):
            assert done.stdout == b"made 30\n", done.stderr


@pytest.mark.skipif(not cgroups.parents(), reason="this user may not make control groups here")
def test_all_processes_of_a_sandbox_are_in_its_groups():
    """In every tree, that of the processors too where there is one: many busy processes have the share of one then."""
    mark = f"123{os.getpid()}.5"
    code = f"import subprocess\nsubprocess.run(['timeout', '100', 'sleep', '{mark}'])"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(python, code, Limits(seconds=120))
        until(lambda: running.done() or _numbers_of(f"sleep {mark}"))
        sleeping = _numbers_of(f"sleep {mark}")
        groups = [group for place in cgroups.parents() for group in place.glob(f"{cgroups.PREFIX}{os.getpid()}-*")]
        inside = [set((group / "cgroup.procs").read_text().split()) for group in groups]
        for number in sleeping:
            os.kill(int(number), signal.SIGKILL)
        running.result()
    assert len(groups) == len(cgroups.parents())
    assert sleeping
    assert all(set(sleeping) <= members for members in inside)


def _numbers_of(line):
    return [str(pid) for pid, text in texts("cmdline") if text.replace("\0", " ").strip() == line]


def test_threads_that_ask_at_once_find_the_same_groups():
    cgroups.parents.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cgroups.parents(), range(8)))
    assert all(places == found[0] for places in found)


def test_files_in_memory_count(holder):
    """Both scratch folders together are smaller than the memory; /dev/shm and /tmp have an end of their own."""
    code = """
import os
for folder in ("/tmp", "/dev/shm", "."):
    made = 0
    try:
        for number in range(100):
            with open(f"{folder}/{number}", "wb") as file:
                file.write(bytes(1 << 20))
            made += 1
    except OSError as error:
        print(folder, made < 20, error.strerror)
"""
    done = python(code, Limits(scratch=16 * MIB))
    assert done.stdout.decode().splitlines() == [
        f"{folder} True No space left on device" for folder in ("/tmp", "/dev/shm", ".")
    ]


def test_the_folder_that_both_sides_write_has_an_end(holder):
    code = """
import os
mounts = [line.split()[1] for line in open("/proc/mounts")]
folder = next(mount for mount in mounts if "/tilelab-" in mount and mount.endswith("/c"))
number = 0
while True:
    with open(f"{folder}/{number}", "wb") as file:
        file.write(bytes(1 << 20))
    number += 1
"""
    done = python(code, Limits(memory=512 * MIB, scratch=32 * MIB, seconds=120))
    assert done.ended in ("shared files", "memory")


def test_private_folders_lie_in_memory_only_where_there_is_room(monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda place: usage._replace(free=64 * MIB))
    assert folders.place_for_folders() == tmp_path
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda place: usage._replace(free=8192 * MIB))
    assert str(folders.place_for_folders()) == "/dev/shm"


def test_no_file_is_larger_than_allowed():
    code = "f = open('big', 'wb')\ntry: f.truncate(100 << 20)\nexcept OSError as e: print(e.strerror)"
    assert python(code, Limits(file_size=10 * MIB)).stdout == b"File too large\n"


def test_an_endless_loop_ends_with_its_time():
    code = """
import contextlib, signal
for number in range(1, 65):
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)
while True: pass
"""
    done = python(code, Limits(seconds=1))
    assert done.ended == "time"
    assert done.seconds >= 1


def test_a_program_that_closes_its_output_and_stays_ends_with_its_time():
    done = python("import os, time\nfor n in range(3): os.close(n)\ntime.sleep(60)", Limits(seconds=1))
    assert done.ended == "time"


def test_output_is_kept_up_to_its_limit_and_the_rest_dropped():
    done = python(
        "import os\nfor _ in range(200): os.write(1, b'x' * 100_000)\nos.write(2, b'end')", Limits(output=50_000)
    )
    assert done.ok
    assert (len(done.stdout), done.stderr, done.dropped) == (50_000, b"end", True)


def test_input_reaches_the_program_and_one_that_does_not_read_harms_nobody():
    text = b"x" * 3_000_000
    assert python("import sys; print(len(sys.stdin.buffer.read()))", Limits(), stdin=text).stdout == b"3000000\n"
    assert python("pass", Limits(), stdin=text).ok


def test_what_went_in_comes_back():
    content = bytes(range(256)) * 1000
    done = run(["cp", "a/in", "out"], {"a/in": content}, fetch=["out", "missing"])
    assert done.files == {"out": content}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"memory": "lots"}, "512 MiB"),
        ({"ram": 1}, "the limits are memory"),
        ({"seconds": 0}, "positive"),
        ({"memory": True}, "positive"),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(table, words):
    with pytest.raises(SandboxError, match=words):
        Limits().changed(table)


def test_limits_are_changed_one_by_one():
    changed = Limits().changed({"memory": "512 MiB", "seconds": 5})
    assert (changed.memory, changed.seconds, changed.processes) == (512 * MIB, 5, Limits().processes)


def test_nothing_is_left_behind(monkeypatch):
    """Of this sandbox: others come and go meanwhile, with folders and groups of their own."""
    made, make = [], cgroups.make

    def noted(limits):
        group = make(limits)
        made.extend(group.folders if group else [])
        return group

    monkeypatch.setattr(cgroups, "make", noted)
    with own_place(monkeypatch) as place:
        done = run(["cat", "/proc/mounts"], {"a": b""})
        assert f" {place}/{folders.PREFIX}".encode() in done.stdout, "the sandbox had its folder elsewhere"
        assert list(place.iterdir()) == []
    assert len(made) == len(cgroups.parents())
    assert [group for group in made if group.exists()] == []
