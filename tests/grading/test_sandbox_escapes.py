"""Attempts to get out, to look out or to reach something from inside: none may succeed."""

import os
import sys
import threading
from pathlib import Path

import pytest
from patience import until
from sandboxes import command_lines

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "hostile"))
from escapes import ATTEMPTS, fault_of, targets

from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.files import copy_plain_files
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.runner import run

pytestmark = pytest.mark.slow


@pytest.fixture
def about(tmp_path):
    """What the attempts are after."""
    with targets(tmp_path) as about:
        yield about


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_an_attempt_fails_inside(attempt, about):
    assert fault_of(attempt, about) == ""


def test_a_process_left_behind_ends_with_the_sandbox():
    mark = f"tilelab-orphan-{os.getpid()}"
    code = f"""
import os, sys
started, start = os.pipe()
os.set_inheritable(start, True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        tell = f"import os, time; os.close({{start}}); time.sleep(600)"
        os.execv(sys.executable, [sys.executable, "-c", tell, {mark!r}])
    os._exit(0)
os.close(start)
os.read(started, 1)  # it ends once the other program runs
"""
    assert run([sys.executable, "-c", code]).ok
    # The kernel clears the processes of an ended namespace away by and by.
    assert until(lambda: not any(mark in line for line in command_lines()))


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
    done = run(["g++", *flags, "-c", "a.cpp"], {"a.cpp": bomb}, limits, fetch=["a.o"])
    assert not done.ok
    assert done.files == {}


def test_a_large_object_is_stopped_by_the_limit_on_files():
    source = "char big[1u << 30] = {1};\nint main() {}"
    done = run(["g++", "-o", "a.out", "a.cpp"], {"a.cpp": source}, Limits(seconds=120), fetch=["a.out"])
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
