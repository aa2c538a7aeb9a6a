"""Nothing is lost: kills at any moment, a locked gradebook, a full disk."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from classroom import hand_in, make_course, solved
from patience import PATIENCE, until
from sandboxes import command_lines, to_its_end

from tilelab.grading.course import Course
from tilelab.grading.errors import GradingError
from tilelab.grading.evaluate import evaluate
from tilelab.grading.ledger import Ledger
from tilelab.grading.sandbox.processes import texts

#: On one worker, where what all of them start from is made once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ledger")]

WRONG = {"exercise_1_order_answer": 'order = "row-major"'}
STUDENTS = {f"s{number}": WRONG if number % 3 == 0 else {} for number in range(6)}
GRADE = (
    "from tilelab.cli.grade import command; "
    "command(['exercises', '--course', {course!r}, '--workers', '2', '--json', *{more}])"
)


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """A class that nobody has graded. Tests work on copies."""
    course = make_course(tmp_path_factory.mktemp("ledger") / "course", "exercises", problems=["exercise_1"])
    for student, changes in STUDENTS.items():
        folder = hand_in(course, student, "exercises", ("exercise_1.ipynb", solved("exercise_1", changes)))
        (folder / "timestamp.txt").write_text("2026-01-01 10:00:00 UTC")
    return course.root


@pytest.fixture(scope="module")
def evaluated(handed_in):
    """Two submissions run and judged: what the ledger is given to record."""
    return {job.student: evaluate(job) for job in Course(handed_in)._jobs("exercises", ["s0", "s1"], True)}


@pytest.fixture
def course(handed_in, tmp_path):
    shutil.copytree(handed_in, tmp_path / "course")
    return Course(tmp_path / "course")


def grades(root):
    """Everything that the gradebook says about the class, without its own numbers for rows."""
    with sqlite3.connect(root / "gradebook.db") as database:
        return sorted(
            database.execute(
                "select a.student_id, b.name, g.auto_score, g.manual_score, g.needs_manual_grade, a.timestamp, "
                "n.late_submission_penalty from grade g join base_cell b on b.id = g.cell_id "
                "join submitted_notebook n on n.id = g.notebook_id "
                "join submitted_assignment a on a.id = n.assignment_id"
            ).fetchall()
        )


def leftovers(root):
    """What a half-done write leaves."""
    return [path.name for path in (root / "autograded").glob("*/.*")]


def command(root, *more):
    return [sys.executable, "-c", GRADE.format(course=str(root), more=more)]


def in_processes(mark):
    """Processes of a grader that runs on a course: itself, its workers, the sandboxes around kernels."""
    return [pid for pid, text in texts("environ") if mark in text]


@pytest.fixture(scope="module")
def undisturbed(handed_in, tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(handed_in, root)
    assert to_its_end(command(root), 400).returncode == 0
    expected = grades(root)
    assert len(expected) == 3 * len(STUDENTS)
    return expected


KILLS_OF_ONE_CLASS = 5
KINDS = ("grader", "worker", "judge", "kernel")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_kills_at_random_moments_lose_and_repeat_nothing(
    handed_in, undisturbed, tmp_path, pytestconfig, record_property
):
    """As many kills as are asked for, five while a class is graded: of grader, workers, judges, kernels."""
    killed = []
    while (left := pytestconfig.getoption("kills") - len(killed)) > 0:
        root = tmp_path / f"course-{len(killed)}"
        shutil.copytree(handed_in, root)
        killed += graded_under_kills(root, undisturbed, random.Random(len(killed)), min(left, KILLS_OF_ONE_CLASS))
    record_property("killed", killed)
    print(f"{len(killed)} kills: {', '.join(f'{killed.count(kind)} of a {kind}' for kind in sorted(set(killed)))}")


def graded_under_kills(root, undisturbed, chance, number):
    """Grade a class, killing what belongs to it so many times; return what was killed."""
    mark = f"TILELAB_TEST_RUN={os.getpid()}-{root.name}"
    environment = {**os.environ, **dict([mark.split("=")])}
    grader, killed = None, []
    while len(killed) < number:
        if grader is None or grader.poll() is not None:
            # A class that is graded already is graded once more: kills must meet work.
            done = grader is not None and grader.returncode == 0
            quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
            grader = subprocess.Popen(command(root, *["--force"] * done), env=environment, **quiet)
        kind = chance.choice(KINDS)
        while not victims_of(grader, mark)[kind] and grader.poll() is None:
            time.sleep(0.05)
        time.sleep(chance.uniform(0.1, 3 if kind == "grader" else 0.5))
        try:
            os.kill(chance.choice(victims_of(grader, mark)[kind]), signal.SIGKILL)
        except (ProcessLookupError, IndexError):  # it has ended by itself meanwhile
            continue
        killed.append(kind)
        if kind == "grader":
            grader.wait(PATIENCE)
    if grader.poll() is None:
        grader.wait(400)
    done = to_its_end(command(root), 400, env=environment)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    assert grades(root) == undisturbed
    assert leftovers(root) == []
    assert {path.name for path in (root / "autograded").iterdir()} == set(STUDENTS)
    assert '"status": "failed"' not in done.stdout
    again = to_its_end(command(root), 400, env=environment)
    assert again.returncode == 0, again.stderr[-2000:]
    assert again.stdout.count('"status": "kept"') == len(STUDENTS), "something was graded again"
    assert until(lambda: not in_processes(mark))
    assert until(lambda: not any(str(root) in line for line in command_lines()))
    return killed


def victims_of(grader, mark):
    """The processes of a grader that runs: itself, its workers, where checks work, the kernels in their sandboxes."""
    own = in_processes(mark)
    return {
        "grader": [grader.pid] if grader.poll() is None else [],
        "worker": [pid for pid in own if pid != grader.pid and "multiprocessing" in command_line(pid)],
        "judge": [pid for pid in own if "tilelab.grading.bounded" in command_line(pid)],
        "kernel": sorted(pid for pid in children_of_all(own) if "ipykernel" in command_line(pid)),
    }


def children_of_all(pids):
    from tilelab.grading.sandbox.processes import descendants

    return {child for pid in pids for child in descendants(pid)}


def command_line(pid):
    try:
        return Path("/proc", str(pid), "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


class Killed(BaseException):
    """Stands for the end of the process at one line."""


@pytest.mark.parametrize("moment", ["_store", "_stored", "_move"])
@pytest.mark.parametrize("before", [True, False], ids=["at the start of", "at the end of"])
@pytest.mark.parametrize("graded_before", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["first", "again"])
def test_stopped_at_each_step_and_started_again(course, evaluated, monkeypatch, moment, before, graded_before):
    """Each step of a record, stopped before and after it, for a first grade and for a second one."""
    from tilelab.grading import ledger as module

    if graded_before:
        ledger = Ledger(course.api.coursedir, course.api.config)
        ledger.record(evaluated["s0"])
        ledger.close()
        old = grades(course.root)
        folder = course.root / "submitted" / "s0" / "exercises"
        shutil.copy(course.root / "submitted" / "s1" / "exercises" / "exercise_1.ipynb", folder)
        (folder / "timestamp.txt").write_text("2026-01-02 10:00:00 UTC")
    else:
        old = []
    expected = 4 if graded_before else 3
    outcome = evaluate(course._jobs("exercises", ["s0"], True)[0]) if graded_before else evaluated["s0"]
    owner = module if moment == "_move" else Ledger
    step = getattr(owner, moment)

    def stopped(*arguments):
        if not before:
            step(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, moment, stopped)
        ledger = Ledger(course.api.coursedir, course.api.config)
        with pytest.raises(Killed):
            ledger.record(outcome)
        ledger.close()
    committed = moment == "_move" or (moment == "_stored" and not before)
    assert (grades(course.root) != old) == committed
    result = course.grade("exercises", "s0")
    assert result.score == expected
    assert result.status == ("kept" if committed else "graded")
    assert leftovers(course.root) == []


def test_a_gradebook_that_is_locked_for_a_while_is_waited_for(course, evaluated):
    """Ten seconds, with the patience that the grader has."""
    ledger = Ledger(course.api.coursedir, course.api.config)
    begun = time.monotonic()
    holder = subprocess.Popen(
        [sys.executable, "-c", "import sqlite3, sys, time; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
         "d.execute('begin exclusive'); print('held', flush=True); time.sleep(10)", str(course.root / "gradebook.db")],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    with holder:
        holder.stdout.readline()
        ledger.record(evaluated["s0"])
    ledger.close()
    assert time.monotonic() - begun > 9, "nobody held it"
    assert len(grades(course.root)) == 3


def test_a_gradebook_that_stays_locked_is_named_and_keeps_its_grades(course, evaluated):
    assert course.grade("exercises", "s0").score == 3
    old = grades(course.root)
    ledger = Ledger(course.api.coursedir, course.api.config, patience=0.2)
    with sqlite3.connect(course.root / "gradebook.db", isolation_level=None) as other:
        other.execute("begin immediate")
        with pytest.raises(GradingError, match=r"locked by another program for 0\.2 s: nothing was changed"):
            ledger.record(evaluated["s1"])
        other.execute("rollback")
    other.close()
    ledger.close()
    assert grades(course.root) == old
    assert leftovers(course.root) == []
    assert (course.root / "autograded" / "s0" / "exercises" / "exercise_1.ipynb").is_file()
    assert not (course.root / "autograded" / "s1" / "exercises").exists()


FULL = """
import sys
from pathlib import Path
from tilelab.grading.course import Course
course = Course(sys.argv[1])
first = course.grade("exercises", "s0")
print(first.status, first.score)
room = open(course.root / "ballast", "wb", buffering=0)
try:
    while True: room.write(bytes(1024))
except OSError: pass
for student in ("s0", "s1"):
    result = course.grade("exercises", student, force=True)
    print(result.status, result.score, result.message)
room.close()
(course.root / "ballast").unlink()
for student in ("s0", "s1"):
    result = course.grade("exercises", student)
    print(result.status, result.score, result.message)
"""


@pytest.mark.slow
def test_a_full_disk_gives_a_true_message_and_keeps_the_grades(course, tmp_path):
    """The course lies on a disk of its own, which is then filled."""
    small = f'cp -r {course.root} /small/course && exec {sys.executable} -c "$0" /small/course'
    walls = ["bwrap", "--dev-bind", "/", "/", "--size", str(24 << 20), "--tmpfs", "/small"]
    if not Path("/small").exists():
        walls = ["bwrap", "--dev-bind", "/", "/", "--size", str(24 << 20), "--tmpfs", "/mnt"]
        small = small.replace("/small", "/mnt")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = to_its_end([*walls, "sh", "-c", small, FULL], 250, env=environment)
    lines = done.stdout.splitlines()
    assert lines[0] == "graded 3.0", done.stderr[-3000:]
    assert lines[1].startswith("failed 3.0"), lines
    assert "No space left" in lines[1] or "disk is full" in lines[1]
    assert lines[2].startswith("failed 0.0")
    assert [line.strip() for line in lines[3:]] == ["kept 3.0", "graded 4.0"]
