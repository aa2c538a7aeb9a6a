"""The whole path without a GPU: grade, export, run with a CPU in the GPU's place, import; what an import decides."""

import errno
import fcntl
import json
import os
import shlex
import shutil
import signal
import sqlite3
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from classroom import hand_in, make_course, solved
from click.testing import CliRunner
from patience import PATIENCE

from tilelab.cli.main import cli
from tilelab.grading.cuda_answers import read_cuda
from tilelab.grading.errors import GradingError
from tilelab.grading.timed.bundle import make_bundle, read_bundle, result_line, write_bundle
from tilelab.grading.timed.conductor import Conductor
from tilelab.grading.timed.pending import FOLDER, Pending
from tilelab.grading.timed.running import run_bundle
from tilelab.grading.timed.thresholds import Thresholds, read_thresholds
from tilelab.grading.timed.wanted import Candidate, Measured, Wanted, handed_in

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "autograder" / name) for name in ("tricks", "corpora")]

from kernels import TILED, TILES, changed  # noqa: E402  (from the folder that was just put on the path)
from tricks import CUDA_TRICKS, NO_SOURCE, PYTHON_TRICKS  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("timed")]

NAIVE = Candidate("the coalesced naive kernel", "naive")
TIMED = "practice_1_timed", "practice_1_explanation"


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course with practice 1, which two learners have handed in, graded without a GPU. Tests work on copies."""
    root = tmp_path_factory.mktemp("timed") / "course"
    course = make_course(root, "practice", problems=["practice_1"])
    wrong = 'kernel = r"""__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {}"""'
    launch = '\nlaunch = {"grid": 1, "block": 1}'
    for student, changes in {"ada": {}, "ben": {"practice_1_kernel_answer": wrong + launch}}.items():
        hand_in(course, student, "practice", ("practice_1.ipynb", solved("practice_1", changes)))
    results = {result.student: result for result in course.grade_all("practice", ["ada", "ben"], workers=2)}
    assert (results["ada"].score, results["ada"].pending) == (6, 4)
    assert (results["ben"].score, results["ben"].pending) == (2, 1)
    return root


@pytest.fixture
def course(graded, tmp_path):
    from tilelab.grading.course import Course

    shutil.copytree(graded, tmp_path / "course")
    return Course(tmp_path / "course")


def grades(course):
    with sqlite3.connect(course.root / "gradebook.db") as database:
        rows = database.execute(
            "select a.student_id, b.name, g.auto_score, g.manual_score, g.needs_manual_grade from grade g "
            "join base_cell b on b.id = g.cell_id join submitted_notebook n on n.id = g.notebook_id "
            "join submitted_assignment a on a.id = n.assignment_id"
        ).fetchall()
    return {(student, cell): rest for student, cell, *rest in rows}


def as_if_measured(bundle, file, gain=1.45, name="NVIDIA H200", outcome="timed", words="", emulated=False):
    """Write results as a GPU would have: every first candidate is so many times as fast as the others."""
    lines = []
    for number, wanted in bundle.wanted.items():
        first, *others = (one.name for one in wanted.candidates)
        samples = {first: [[0.3, 0.3, 0.3]] * 15} | {other: [[0.3 * gain] * 3] * 15 for other in others}
        about = {"ceilings": {"flops": 65e12, "bandwidth": 4.2e12}, "seconds": 2.0}
        device = {"name": name, "emulated": emulated}
        found = Measured(outcome, words, device, wanted.shape, samples if outcome == "timed" else {}, about)
        lines.append(result_line(bundle, number, found))
    file.write_text("".join(lines))
    return file


def calibrate(course, full=1.3):
    from tilelab.grading.timed.thresholds import FILE, with_device

    entry = {"name": "NVIDIA H200", "date": "2026-11-30", "driver": "", "fp32_tflops": 65.0, "copy_tb_s": 4.2}
    with_device(course.root / FILE, entry | {"practice_1_timed": {"full": full, "half": 1.1}})


def invoke(*arguments):
    done = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    return done.exit_code, done.output


def test_the_whole_path_with_a_cpu_in_the_gpus_place_decides_nothing(course, tmp_path):
    before = grades(course)
    bundle, results = tmp_path / "b.json", tmp_path / "r.jsonl"
    code, said = invoke("jobs", "export", "practice", "--course", course.root, "--out", bundle)
    assert (code, "3 jobs, 2 measurements" in said) == (0, True), said
    assert not {"ada", "ben"} & set(bundle.read_text().replace('"', " ").split())
    code, said = invoke("jobs", "run", bundle, "--out", results, "--device", "emulated", "--json")
    assert code == 0, said
    rows = json.loads(said.splitlines()[0])["rows"]
    assert [row["outcome"] for row in rows] == ["timed", "timed"]
    code, said = invoke("jobs", "show", results)
    assert (code, said.count("emulation on a CPU")) == (0, 2)
    code, said = invoke("jobs", "import", results, "--course", course.root, "--json")
    assert code == 0, said
    assert [row["decided"] for row in json.loads(said)["rows"]] == [False] * 3
    assert "stood in for the GPU" in said
    assert grades(course) == before


def test_the_order_of_a_bundle_tells_no_names(course):
    orders = {tuple(job.wanted for job in Pending(course).export("practice").jobs) for _ in range(12)}
    assert len(orders) > 1


def test_an_import_decides_what_waited_once_and_changes_nothing_else(course, tmp_path):
    calibrate(course)
    before = grades(course)
    pending = Pending(course)
    file = as_if_measured(pending.export("practice"), tmp_path / "r.jsonl")
    settled = {(one.student, one.cell): one for one in pending.settle(file)}
    assert all(one.decided for one in settled.values()), settled
    after = grades(course)
    assert after["ada", "practice_1_timed"] == [3.0, None, 0]
    assert after["ada", "practice_1_explanation"] == [2.0, None, 0]
    assert after["ben", "practice_1_explanation"] == [2.0, None, 0]
    decided = {("ada", TIMED[0]), ("ada", TIMED[1]), ("ben", TIMED[1])}
    assert set(settled) == decided
    assert {key: row for key, row in after.items() if key not in decided} == {
        key: row for key, row in before.items() if key not in decided
    }
    ada = next(result for result in course.results("practice") if result.student == "ada")
    assert (ada.score, ada.pending) == (10, 0)
    page = (course.root / "feedback" / "ada" / "practice" / "practice_1.html").read_text()
    assert "tilelab-roofline" in page
    assert "all points from 1.3, half from 1.1" in page
    again = list(pending.settle(file))
    assert [one.decided for one in again] == [False] * 3
    assert {one.words for one in again} == {"it was decided before: nothing is changed"}
    assert grades(course) == after
    assert course.grade("practice", "ada").status == "kept"
    with pytest.raises(GradingError, match="nothing to export"):
        pending.export("practice")


@pytest.mark.parametrize(("gain", "points"), [(1.0, 0.0), (1.2, 1.5), (1.31, 3.0)])
def test_points_follow_the_gain_that_was_measured(course, tmp_path, gain, points):
    calibrate(course)
    pending = Pending(course)
    list(pending.settle(as_if_measured(pending.export("practice", ["ada"]), tmp_path / "r.jsonl", gain)))
    assert grades(course)["ada", "practice_1_timed"][0] == points


def test_what_is_refused_earns_nothing_and_what_is_undecided_waits(course, tmp_path):
    calibrate(course)
    pending = Pending(course)
    bundle = pending.export("practice")
    list(
        pending.settle(as_if_measured(bundle, tmp_path / "r.jsonl", outcome="undecided", words="the device is shared"))
    )
    assert grades(course)["ada", "practice_1_timed"] == [0.0, None, 1]
    list(pending.settle(as_if_measured(bundle, tmp_path / "r.jsonl", outcome="refused", words="C[0,0] is nan")))
    assert grades(course)["ada", "practice_1_timed"] == [0.0, None, 0]


def test_on_a_device_that_is_not_calibrated_points_wait_unless_the_shipped_ratios_are_accepted(course, tmp_path):
    pending = Pending(course)
    file = as_if_measured(pending.export("practice"), tmp_path / "r.jsonl", name="a toaster")
    settled = list(pending.settle(file))
    assert {one.cell for one in settled} == set(TIMED)
    assert not any(one.decided for one in settled)
    assert all("a toaster is not calibrated" in one.words for one in settled)
    timed = next(one for one in Pending(course, accept_shipped=True).settle(file) if one.cell == "practice_1_timed")
    assert (timed.decided, timed.after) == (True, 3.0)
    assert "as shipped" in timed.words


def test_a_submission_handed_in_since_is_not_decided(course, tmp_path):
    calibrate(course)
    pending = Pending(course)
    file = as_if_measured(pending.export("practice"), tmp_path / "r.jsonl")
    handed_in_now = course.root / "submitted" / "ada" / "practice" / "practice_1.ipynb"
    handed_in_now.write_text(handed_in_now.read_text() + "\n")
    before = grades(course)
    settled = {one.student: one for one in pending.settle(file)}
    assert "another submission was handed in since" in settled["ada"].words
    assert settled["ben"].decided
    assert {key: row for key, row in grades(course).items() if key[0] == "ada"} == {
        key: row for key, row in before.items() if key[0] == "ada"
    }


def test_what_a_person_has_graded_meanwhile_stays(course, tmp_path):
    calibrate(course)
    pending = Pending(course)
    file = as_if_measured(pending.export("practice"), tmp_path / "r.jsonl")
    with course.gradebook() as gradebook:
        gradebook.find_grade("practice_1_timed", "practice_1", "practice", "ada").manual_score = 2.5
        gradebook.db.commit()
    settled = {(one.student, one.cell): one for one in pending.settle(file)}
    assert "a person has graded it" in settled["ada", "practice_1_timed"].words
    assert grades(course)["ada", "practice_1_timed"][1] == 2.5


@pytest.mark.parametrize(("step", "committed"), [("_store_scores", False), ("_move", True)])
def test_an_import_that_is_stopped_is_finished_by_the_next(course, tmp_path, monkeypatch, step, committed):
    from tilelab.grading import ledger as module

    class Killed(BaseException):
        """Stands for the end of the process."""

    def stopped(*arguments):
        raise Killed

    calibrate(course)
    pending = Pending(course)
    file = as_if_measured(pending.export("practice", ["ada"]), tmp_path / "r.jsonl")
    before = grades(course)
    with monkeypatch.context() as patch:
        patch.setattr(module if step == "_move" else module.Ledger, step, stopped)
        with pytest.raises(Killed):
            list(pending.settle(file))
    assert (grades(course) != before) == committed
    settled = {one.cell: one for one in pending.settle(file)}
    assert settled["practice_1_timed"].decided != committed
    assert grades(course)["ada", "practice_1_timed"] == [3.0, None, 0]
    assert course.grade("practice", "ada").score == 10
    assert "tilelab-roofline" in (course.root / "feedback" / "ada" / "practice" / "practice_1.html").read_text()
    assert not list((course.root / "autograded").glob("*/.*"))


@pytest.mark.parametrize("text", ["{", "", "[]", "\xff", '{"nbformat": 4}'])
def test_a_graded_notebook_that_cannot_be_read_costs_nobody_else_anything(course, tmp_path, text):
    calibrate(course)
    file = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl")
    damaged = course.root / "autograded" / "ada" / "practice" / "practice_1.ipynb"
    damaged.chmod(0o644)
    damaged.write_bytes(text.encode("latin-1"))
    code, said = invoke("jobs", "export", "practice", "--course", course.root, "--out", tmp_path / "b.json")
    assert code == 0
    assert "1 jobs" in said
    assert "practice_1.ipynb' cannot be read; grade it again with --force" in said
    settled = list(Pending(course).settle(file))
    assert [(one.student, one.decided) for one in settled] == [("ada", False), ("ada", False), ("ben", True)]
    assert "cannot be read: grade it again" in settled[0].words


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=lambda text: text[:9])
def test_a_graded_notebook_that_cannot_be_read_is_graded_anew(course, text):
    before = grades(course)
    damaged = course.root / "autograded" / "ada" / "practice" / "practice_1.ipynb"
    damaged.chmod(0o644)
    damaged.write_text(text)
    assert {one.student: one.score for one in course.results("practice")} == {"ada": 6, "ben": 2}
    done = {one.student: (one.status, one.score) for one in course.grade_all("practice", ["ada", "ben"], workers=1)}
    assert done == {"ada": ("graded", 6), "ben": ("kept", 2)}
    assert grades(course) == before


def test_who_is_not_in_the_gradebook_any_more_is_graded_anew(course, tmp_path):
    before = grades(course)
    file = as_if_measured(Pending(course).export("practice", ["ben"]), tmp_path / "r.jsonl")
    with course.gradebook() as gradebook:
        gradebook.remove_student("ben")
    assert [one.words for one in Pending(course).settle(file)] == [
        "the gradebook has no grade of it: grade it, and export again"
    ]
    done = {one.student: (one.status, one.score) for one in course.grade_all("practice", ["ada", "ben"], workers=1)}
    assert done == {"ada": ("kept", 6), "ben": ("graded", 2)}
    assert grades(course) == before


def test_a_submission_that_is_gone_is_said(course, tmp_path):
    calibrate(course)
    file = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl")
    shutil.rmtree(course.root / "submitted" / "ada")
    settled = {one.student: one for one in Pending(course).settle(file)}
    assert settled["ada"].words == "what was handed in is gone"
    assert settled["ben"].decided


def test_an_import_that_finds_the_disk_full_changes_nothing_and_says_so_once(course, tmp_path, monkeypatch):
    calibrate(course)
    file, before = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl"), grades(course)

    def full(source, target, **_):
        raise OSError(errno.ENOSPC, "No space left on device", str(source))

    with monkeypatch.context() as patch:
        patch.setattr(shutil.copytree, "__defaults__", (False, None, full, False, False))
        code, said = invoke("jobs", "import", file, "--course", course.root)
    said = " ".join(said.split())
    assert (code, "nothing was changed: [Errno 28] No space left on device" in said) == (1, True), said
    assert said.count("No space left") == 1
    assert grades(course) == before


def test_an_import_into_a_gradebook_that_lost_its_grades_says_so(course, tmp_path):
    calibrate(course)
    file = as_if_measured(Pending(course).export("practice", ["ada"]), tmp_path / "r.jsonl")
    with sqlite3.connect(course.root / "gradebook.db") as database:
        database.execute("delete from grade")
    assert {one.words for one in Pending(course).settle(file)} == {
        "the gradebook has no grade of it: grade it, and export again"
    }


def test_a_student_who_handed_nothing_in_is_named(course, tmp_path):
    code, said = invoke("jobs", "export", "practice", "--course", course.root, "--student", "zoe")
    assert (code, "'zoe' has not handed in 'practice'" in said) == (1, True), said


def test_an_old_export_decides_what_it_measured_after_a_second_export_and_a_regrade(course, tmp_path):
    """A forced regrade makes the points wait again; what was measured of the same answers still decides them."""
    calibrate(course)
    pending = Pending(course)
    first = as_if_measured(pending.export("practice"), tmp_path / "1.jsonl")
    second = as_if_measured(pending.export("practice"), tmp_path / "2.jsonl", gain=1.0)
    assert [one.decided for one in pending.settle(first)] == [True] * 3
    decided = grades(course)
    assert [one.decided for one in pending.settle(second)] == [False] * 3
    assert grades(course) == decided
    list(course.grade_all("practice", ["ada", "ben"], force=True, workers=1))
    assert grades(course)["ada", "practice_1_timed"] == [0.0, None, 1]
    assert [one.decided for one in pending.settle(first)] == [True] * 3
    assert grades(course) == decided


def test_what_a_late_submission_loses_follows_its_timed_points(course, tmp_path):
    policy = course.root / "course.toml"
    due = "# practice = 2027-04-12T23:59:00Z"
    assert due in policy.read_text()
    policy.write_text(policy.read_text().replace(due, "practice = 2026-11-28T23:59:00Z"))
    (course.root / "submitted" / "ada" / "practice" / "timestamp.txt").write_text("2026-11-30 12:00:00 UTC")
    course = type(course)(course.root)
    calibrate(course)
    graded = course.grade("practice", "ada")
    assert (graded.score, graded.penalty) == (6, 1.2)
    list(Pending(course).settle(as_if_measured(Pending(course).export("practice", ["ada"]), tmp_path / "r.jsonl")))
    graded = course.grade("practice", "ada")
    assert (graded.status, graded.score, graded.penalty) == ("kept", 10, 2.0)


@pytest.mark.parametrize("left", ["nothing", "half a page", "the old page"])
def test_feedback_that_a_stopped_import_did_not_write_is_written_by_the_next(course, tmp_path, monkeypatch, left):
    class Killed(BaseException):
        """Stands for the end of the process."""

    def stopped(self, *_):
        if left == "nothing":
            shutil.rmtree(page.parent)
        elif left == "half a page":
            page.write_text(page.read_text()[:5000])
        raise Killed

    calibrate(course)
    pending = Pending(course)
    file = as_if_measured(pending.export("practice", ["ada"]), tmp_path / "r.jsonl")
    page = course.root / "feedback" / "ada" / "practice" / "practice_1.html"
    with monkeypatch.context() as patch:
        patch.setattr(type(course), "write_feedback", stopped)
        with pytest.raises(Killed):
            list(pending.settle(file))
    assert not page.exists() or "tilelab-roofline" not in page.read_text()
    decided = grades(course)
    assert [one.decided for one in pending.settle(file)] == [False] * 2
    assert "tilelab-roofline" in page.read_text()
    assert grades(course) == decided
    written = page.stat().st_mtime_ns
    list(pending.settle(file))
    assert page.stat().st_mtime_ns == written


def free(folder):
    """Tell whether nobody holds the lock of a course."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(held)
    return True


def test_imports_at_the_same_time_take_turns_and_each_point_is_decided_once(course, tmp_path, monkeypatch):
    from tilelab.grading.ledger import Ledger

    calibrate(course)
    file = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl")
    seen = []
    for owner, name in ((Ledger, "_store_scores"), (Ledger, "_holds"), (Pending, "_stale")):
        whole = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *given, whole=whole, name=name: seen.append((name, free(course.root))) or whole(*given)
        )
    held = os.open(course.root, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    settled, before = [], grades(course)
    other = threading.Thread(target=lambda: settled.extend(Pending(course).settle(file)), daemon=True)
    other.start()
    other.join(0.5)
    assert other.is_alive()
    assert grades(course) == before
    os.close(held)
    other.join(20)
    assert [one.decided for one in settled] == [True] * 3
    assert {name for name, _ in seen} == {"_stale", "_store_scores"}
    assert not any(is_free for _, is_free in seen)
    assert free(course.root)


def test_a_part_that_the_thresholds_file_does_not_know_is_named(course, tmp_path):
    from tilelab.grading.timed.thresholds import FILE

    file = course.root / FILE
    text = file.read_text()
    file.write_text(text.replace("[practice_1_timed]", "[practice_1_times]"))
    code, said = invoke("jobs", "export", "practice", "--course", course.root, "--out", tmp_path / "b.json")
    assert (code, "says nothing of 'practice_1_timed'" in said) == (1, True), said
    file.unlink()
    code, said = invoke("jobs", "export", "practice", "--course", course.root, "--out", tmp_path / "b.json")
    assert (code, "cannot read thresholds.toml: " in said) == (1, True), said


def test_foreign_and_changed_results_are_refused(course, tmp_path):
    pending = Pending(course)
    bundle = pending.export("practice")
    file = as_if_measured(bundle, tmp_path / "r.jsonl")
    before = grades(course)
    foreign = make_bundle(b"x" * 32, [("practice_1_timed", next(iter(bundle.wanted.values())))], Thresholds({}))
    with pytest.raises(GradingError, match="did not export"):
        list(pending.settle(as_if_measured(foreign, tmp_path / "f.jsonl")))
    file.write_text(file.read_text().replace("0.3,", "0.2,"))
    code, said = invoke("jobs", "import", file, "--course", course.root)
    assert (code, "was changed since it was signed" in said) == (1, True)
    (tmp_path / "n").write_text("nothing")
    with pytest.raises(GradingError, match="holds no results"):
        list(pending.settle(tmp_path / "n"))
    shutil.rmtree(course.root / FOLDER)
    with pytest.raises(GradingError, match="did not export"):
        list(pending.settle(file))
    assert grades(course) == before


def test_pending_says_where_there_is_no_gpu_how_to_go_on(course):
    code, said = invoke("grade", "practice", "--pending", "--course", course.root)
    assert code == 1
    assert "3 parts of 2 submissions wait for a GPU" in said
    assert "tilelab jobs export practice" in said


def test_pending_says_where_nothing_waits(course, tmp_path):
    calibrate(course)
    list(Pending(course).settle(as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl")))
    code, said = invoke("grade", "practice", "--pending", "--course", course.root)
    assert (code, "no points of practice wait for a GPU" in said) == (0, True), said
    code, said = invoke("jobs", "export", "practice", "--course", course.root, "--out", tmp_path / "b.json")
    assert (code, "nothing to export" in said) == (1, True), said


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda jobs: (jobs / "key").unlink(), "is gone, so no results can be checked"),
        (lambda jobs: (jobs / "key").chmod(0o640), "others can read"),
        (lambda jobs: (jobs / "key").write_text("ab" * 32), "was changed since it was signed"),
        (lambda jobs: (jobs / "key").write_text(""), "is no key"),
        (lambda jobs: next(jobs.glob("*.json")).write_text('{"jobs": '), "is damaged: export again"),
        (lambda jobs: next(jobs.glob("*.json")).write_text("[]"), "is damaged: export again"),
    ],
)
def test_an_import_without_what_the_export_kept_changes_nothing(course, tmp_path, broken, words):
    calibrate(course)
    file, before = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl"), grades(course)
    broken(course.root / FOLDER)
    code, said = invoke("jobs", "import", file, "--course", course.root)
    assert (code, words in " ".join(said.split())) == (1, True), said
    assert grades(course) == before


def test_where_the_device_cannot_be_used_pending_fails(course, monkeypatch):
    from tilelab.cudacpp import device

    monkeypatch.setattr(device, "gpu_missing", lambda: None)
    Pending(course).export("practice")
    (course.root / FOLDER / "key").chmod(0o640)
    code, said = invoke("grade", "practice", "--pending", "--course", course.root)
    assert (code, "others can read" in said) == (1, True), said


def test_where_there_is_a_device_grading_does_all_three(course):
    """The command, with a CPU in the GPU's place: it measures, and decides nothing."""
    before, asked = grades(course), ("--course", course.root, "--device", "emulated", "--json")
    code, said = invoke("grade", "practice", "--pending", *asked)
    assert code == 0, said
    assert "3 timed parts stay pending" in said
    rows = json.loads(said.splitlines()[-1])["rows"]
    assert [row["decided"] for row in rows] == [False] * 3
    assert all("stood in for the GPU" in row["what to know"] for row in rows)
    code, said = invoke("grade", "practice", *asked)
    assert [row["pending"] for row in json.loads(said.splitlines()[-1])["rows"]] == [4, 1]
    assert grades(course) == before


# ---- what was asked


@pytest.mark.parametrize(
    ("part", "now", "stale", "words"),
    [
        ("practice_1_timed", "shape = [4096, 4096, 4096]", {TIMED[0]}, "shape was [1024, 1024, 1024] and is [4096, "),
        ("practice_1_timed", 'against = "tiled_16"', {TIMED[0]}, "against was 'naive' and is 'tiled_16'"),
        ("practice_1_explanation", 'own = "register_2x2"', {TIMED[1]}, "own was 'tiled_16' and is 'register_2x2'"),
    ],
)
def test_results_of_another_question_than_the_courses_decide_nothing(course, tmp_path, part, now, stale, words):
    from tilelab.grading.timed.thresholds import FILE

    calibrate(course)
    file = as_if_measured(Pending(course).export("practice", ["ada"]), tmp_path / "r.jsonl")
    said = course.root / FILE
    head, name, rest = said.read_text().partition(f"[{part}]")
    for line in rest.splitlines():
        if line.startswith(now.split()[0]):
            rest = rest.replace(line, now, 1)
            break
    if "tiled_16" in now:
        rest = rest.replace('own = "tiled_16"', 'own = "register_2x2"', 1)
    said.write_text(head + name + rest)
    settled = {one.cell: one for one in Pending(course).settle(file)}
    assert {cell for cell, one in settled.items() if not one.decided} == stale
    for cell in stale:
        assert words in settled[cell].words
        assert settled[cell].words.endswith("export again, and run again")
        assert grades(course)["ada", cell][2] == 1
    again = as_if_measured(Pending(course).export("practice", ["ada"]), tmp_path / "r.jsonl")
    settled = list(Pending(course).settle(again))
    assert {one.cell for one in settled if one.decided} == stale, settled


def test_a_check_that_asks_something_else_now_makes_results_stale(course, tmp_path, monkeypatch):
    from tilelab.grading.judge import Judge

    calibrate(course)
    file = as_if_measured(Pending(course).export("practice", ["ada"]), tmp_path / "r.jsonl")
    whole = Judge.timer
    for timer, words in (
        (lambda judge, cell: lambda answers, asked: wanted(TILED), "the course's check has changed"),
        (lambda judge, cell: lambda answers, asked: {}["x"], "the course's check fails on its answers (KeyError: 'x')"),
        (lambda judge, cell: None, "no rule for this part any more"),
    ):
        monkeypatch.setattr(Judge, "timer", timer)
        settled = list(Pending(course).settle(file))
        assert [(one.decided, words in one.words) for one in settled] == [(False, True)] * 2, settled
    monkeypatch.setattr(Judge, "timer", whole)
    assert [one.decided for one in Pending(course).settle(file)] == [True] * 2


# ---- all three in one command, on a GPU that is none


@pytest.fixture
def gpu(monkeypatch):
    """Let commands measure on a GPU that is none; its ``measured`` counts, and ``at`` says what happens at which."""
    from pretend_gpu import pretend_gpu

    from tilelab.cudacpp import device

    class Gpu:
        measured, at = 0, {}

    here, whole = Gpu(), Conductor.measure

    def measure(conductor, *arguments):
        if end := here.at.pop(here.measured + 1, None):
            raise end
        here.measured += 1
        return whole(conductor, *arguments)

    monkeypatch.setattr(device, "gpu_missing", lambda: None)
    monkeypatch.setattr(Conductor, "measure", measure)
    with pretend_gpu(monkeypatch):
        yield here


def kept_in(course):
    return sorted("".join(file.suffixes) for file in (course.root / FOLDER).iterdir())


def complete(course, *options, command=("grade", "practice", "--pending")):
    code, said = invoke(*command, "--course", course.root, *options)
    return code, " ".join(said.split())


def waits(course):
    return sum(row[2] for (_, cell), row in grades(course).items() if cell in TIMED)


def test_a_run_in_one_command_keeps_what_it_measured_and_says_where(course, gpu):
    code, said = complete(course)
    assert (code, "3 of 3 decided" in said, gpu.measured) == (0, True, 2), said
    assert kept_in(course) == ["", ".json", ".results.jsonl"]
    (results,) = (course.root / FOLDER).glob("*.results.jsonl")
    assert results.stat().st_mode & 0o777 == 0o600
    assert f"tilelab jobs show {results}" in said
    code, said = invoke("jobs", "show", results)
    assert (code, "1980" in said) == (0, True), said
    assert complete(course)[0] == 0
    assert (gpu.measured, kept_in(course)) == (2, ["", ".json", ".results.jsonl"])


@pytest.mark.parametrize("command", [("grade", "practice", "--pending"), ("grade", "practice")], ids=" ".join)
@pytest.mark.parametrize(
    ("end", "code"),
    [(GradingError("the device does not answer any more"), 1), (KeyboardInterrupt(), 130)],
    ids=["dead", "interrupted"],
)
def test_a_run_that_ends_midway_decides_what_it_measured_and_the_next_goes_on(course, gpu, end, code, command):
    gpu.at[2] = end
    given, said = complete(course, command=command)
    assert given == (0 if code == 1 and "--pending" not in command else code), said
    assert "1 of 2 measurements are kept" in said
    decided = 3 - waits(course)
    assert decided in (1, 2)
    assert f"{decided} of 3 parts are decided" in said
    assert f"tilelab grade practice --pending --course {course.root}" in said
    given, said = complete(course, command=command)
    assert (given, waits(course), gpu.measured) == (0, 0, 2), said
    assert kept_in(course).count(".results.jsonl") <= 2


class Killed(BaseException):
    """Stands for the end of the process."""


def test_a_run_that_is_killed_is_gone_on_with_and_leaves_nothing_behind(course, gpu):
    gpu.at[2] = Killed()
    with pytest.raises(Killed):
        complete(course)
    assert (waits(course), kept_in(course)) == (3, ["", ".json", ".results.jsonl"])
    gpu.at[2] = Killed()
    with pytest.raises(Killed):
        complete(course)
    assert (waits(course), kept_in(course)) == (3, ["", ".json", ".results.jsonl"])
    assert complete(course)[0] == 0
    assert (waits(course), gpu.measured, kept_in(course)) == (0, 2, ["", ".json", ".results.jsonl"])


def test_a_killed_run_is_kept_for_those_whom_the_next_one_leaves_out(course, gpu):
    gpu.at[2] = Killed()
    with pytest.raises(Killed):
        complete(course)
    complete(course, "--student", "ben")
    assert kept_in(course).count(".results.jsonl") == 2
    complete(course)
    assert waits(course) == 0
    assert gpu.measured in (2, 3)  # the measurement that both need is ben's again where the first run had not begun it
    assert kept_in(course).count(".results.jsonl") == 2


@pytest.mark.parametrize("end", [GradingError("the device does not answer any more"), KeyboardInterrupt(), Killed()])
def test_a_run_that_measured_nothing_leaves_nothing(course, gpu, end):
    gpu.at[1] = end
    if isinstance(end, Killed):
        with pytest.raises(Killed):
            complete(course)
    else:
        code, said = complete(course)
        assert (code, "0 of 2" in said) == ((130, True) if isinstance(end, KeyboardInterrupt) else (1, False)), said
    assert (waits(course), kept_in(course)) == (3, [""])


@pytest.mark.parametrize("left", ["nothing of its jobs", "no line", "half a line"])
def test_what_a_kill_left_half_done_is_cleared_away(course, gpu, left):
    bundle = Pending(course).export("practice")
    results = course.root / FOLDER / f"{bundle.number}.results.jsonl"
    results.write_text('{"half a li' if left == "half a line" else "")
    if left == "nothing of its jobs":
        Pending(course).forget(bundle.number)
    assert complete(course)[0] == 0
    assert (waits(course), kept_in(course)) == (0, ["", ".json", ".results.jsonl"])


def test_a_run_that_is_killed_when_all_is_measured_is_gone_on_with(course, gpu, monkeypatch):
    def killed(completion):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("tilelab.grading.timed.complete.Completion.settle", killed)
        with pytest.raises(Killed):
            complete(course)
    assert (waits(course), gpu.measured) == (3, 2)
    assert complete(course)[0] == 0
    assert (waits(course), gpu.measured, kept_in(course)) == (0, 2, ["", ".json", ".results.jsonl"])


def test_who_waited_and_finds_nothing_leaves_nothing(course, gpu, monkeypatch):
    from tilelab.grading.timed.complete import Completion

    with monkeypatch.context() as patch:
        patch.setattr(Pending, "waiting", lambda *_: [])
        with Completion(course, "practice", ["ada", "ben"]) as completion:
            assert (list(completion.measure()), list(completion.settle())) == ([], [])
    assert kept_in(course) == [""]


@pytest.mark.parametrize("damaged", ["*.json", "*.results.jsonl", "key"])
def test_an_earlier_run_that_cannot_be_read_stands_in_nobodys_way(course, gpu, damaged):
    complete(course)
    list(course.grade_all("practice", ["ada", "ben"], force=True, workers=1))
    before = {file.name for file in (course.root / FOLDER).iterdir()}
    (file,) = (course.root / FOLDER).glob(damaged)
    file.write_text("ab" * 32 + "\n")
    assert complete(course)[0] == 0
    assert (waits(course), gpu.measured) == (0, 4)
    assert before < {file.name for file in (course.root / FOLDER).iterdir()}


def test_who_completes_says_that_another_run_holds_the_gpu(course, gpu, monkeypatch):
    from tilelab.grading.timed import watch
    from tilelab.grading.timed.thresholds import FILE

    monkeypatch.setattr(watch, "lock", lambda descriptor, waiting: waiting())
    words = "another run holds this GPU or these results: waiting for it"
    assert words in complete(course)[1]
    assert words in invoke("calibrate", "--file", course.root / FILE)[1]


def test_two_that_complete_one_course_take_turns_and_measure_once(course, gpu):
    Pending(course).export("practice")
    held = os.open(course.root / FOLDER, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    said = []
    other = threading.Thread(target=lambda: said.append(complete(course)), daemon=True)
    other.start()
    other.join(1.0)
    assert (other.is_alive(), gpu.measured) == (True, 0)
    os.close(held)
    other.join(PATIENCE)
    assert "waiting for it" in said[0][1]
    assert waits(course) == 0


@pytest.mark.parametrize("device", ["²", "-1", "cuda"])
def test_a_device_that_is_none_is_said(course, device):
    for command in (("grade", "practice", "--pending"), ("grade", "practice")):
        code, said = complete(course, f"--device={device}", command=command)
        assert (code, f"a GPU's number or emulated, not {device!r}" in said) == (1, True), said


@pytest.mark.parametrize("command", [("grade", "practice", "--pending"), ("grade", "practice")], ids=" ".join)
def test_on_a_device_that_nobody_calibrated_everything_waits_unless_told(course, gpu, tmp_path, command):
    from tilelab.grading.timed.thresholds import FILE, LINE

    said = course.root / FILE
    said.write_text(said.read_text().partition(LINE)[0])
    words = complete(course, command=command)[1]
    assert waits(course) == 3
    assert "NVIDIA H200 is not calibrated" in words
    (results,) = (course.root / FOLDER).glob("*.results.jsonl")
    code, words = invoke("jobs", "import", results, "--course", course.root, "--accept-shipped")
    assert (waits(course), code, "3 of 3 decided" in words) == (0, 0, True), words
    list(course.grade_all("practice", ["ada", "ben"], force=True, workers=1))
    assert waits(course) == 3
    assert complete(course, "--accept-shipped", command=command)[0] == 0
    assert waits(course) == 0


def test_a_calibration_holds_for_the_question_that_it_measured(course, gpu):
    from tilelab.grading.timed.thresholds import FILE

    file = course.root / FILE
    code, said = invoke("calibrate", "--file", file)
    assert code == 0, said
    timed = lambda: read_thresholds(file).mark("practice_1_timed", "NVIDIA H200")  # noqa: E731
    assert timed().where == "calibrated on NVIDIA H200"
    shape = "[practice_1_timed]\nshape = "
    file.write_text(file.read_text().replace(f"{shape}[1024,", f"{shape}[4096,"))
    assert timed() is None
    assert "NVIDIA H200 is not calibrated for this part" in complete(course)[1]
    assert grades(course)["ada", "practice_1_timed"][2] == 1
    assert invoke("calibrate", "--file", file)[0] == 0
    assert timed()


# ---- interrupted, side by side, typed again


def test_an_import_that_is_interrupted_says_what_it_decided(course, tmp_path, monkeypatch):
    from tilelab.grading.ledger import Ledger

    calibrate(course)
    file, whole = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl"), Ledger.amend

    def interrupted(ledger, student, *more):
        if student == "ben":
            raise KeyboardInterrupt
        whole(ledger, student, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "amend", interrupted)
        code, said = invoke("jobs", "import", file, "--course", course.root)
    assert (code, "2 parts are decided and recorded; the same command goes on" in said) == (130, True), said
    assert waits(course) == 1
    assert invoke("jobs", "import", file, "--course", course.root)[0] == 0
    assert waits(course) == 0


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt(), 130), (GradingError("cannot write it"), 1)])
def test_an_export_that_is_not_written_leaves_nothing(course, tmp_path, monkeypatch, end, code):
    from tilelab.grading.timed import bundle

    def stopped(*_):
        raise end

    monkeypatch.setattr(bundle, "write_bundle", stopped)
    given, said = invoke("jobs", "export", "practice", "--course", course.root, "--out", tmp_path / "b.json")
    assert (given, "was not written; the same command exports it" in said) == (code, code == 130), said
    assert kept_in(course) == [""]


def test_feedback_is_written_while_no_other_import_can(course, tmp_path, monkeypatch):
    calibrate(course)
    file = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl")
    seen, whole = [], type(course).write_feedback
    monkeypatch.setattr(type(course), "write_feedback", lambda *given: seen.append(free(course.root)) or whole(*given))
    assert all(one.decided for one in Pending(course).settle(file))
    assert seen == [False, False]


def test_two_that_write_one_learners_feedback_take_turns(course):
    folder = course.root / "autograded" / "ada"
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    said = []
    other = threading.Thread(target=lambda: said.append(course.write_feedback("practice", "ada")), daemon=True)
    other.start()
    other.join(1.0)
    assert other.is_alive()
    os.close(held)
    other.join(PATIENCE)
    assert said == [""]
    shutil.rmtree(folder)
    assert "no feedback" in course.write_feedback("practice", "ada")


def test_feedback_that_cannot_be_written_is_no_job(course, tmp_path, monkeypatch):
    calibrate(course)
    file = as_if_measured(Pending(course).export("practice"), tmp_path / "r.jsonl")
    monkeypatch.setattr(type(course), "write_feedback", lambda *_: "graded, but no feedback: read-only")
    code, said = invoke("jobs", "import", file, "--course", course.root)
    said = " ".join(said.split())
    assert (code, "3 of 3 decided" in said, said.count("read-only")) == (0, True, 2), said


def test_commands_that_messages_tell_can_be_typed_where_names_have_spaces(graded, tmp_path):
    root, out = tmp_path / "my course's", tmp_path / "b c.json"
    shutil.copytree(graded, root)
    said = invoke("grade", "practice", "--pending", "--course", root, "--student", "ada")[1]
    told = shlex.split(said[said.index("tilelab jobs export") :])
    assert told == ["tilelab", "jobs", "export", "practice", "--course", str(root), "--student", "ada"]
    said = invoke("jobs", "export", "practice", "--course", root, "--out", out)[1]
    told = [shlex.split(line) for line in said.splitlines()[1:]]
    assert told[0] == ["tilelab", "jobs", "run", str(out)]
    assert told[1][-4:] == ["import", "--course", str(root), "RESULTS"]
    said = invoke("jobs", "run", out, "--device", "emulated")[1]
    assert f"tilelab jobs import '{tmp_path}/b c.results.jsonl'" in said
    (root / "feedback" / "ada" / "practice" / "practice_1.html").unlink()
    said = invoke("export", "practice", "--course", root)[1]
    assert shlex.join(["tilelab", "grade", "practice", "--course", str(root)]) in said


# ---- running


@pytest.fixture(scope="module")
def emulated():
    """A device that a CPU stands in for."""
    from tilelab.cudacpp.processes import use_runner
    from tilelab.grading.sandbox.emulation import run_inside

    with use_runner(run_inside), Conductor("emulated") as conductor:
        yield conductor


def wanted(source, launch=TILES):
    return Wanted((1024, 1024, 1024), (handed_in("yours", read_cuda(source, launch)), NAIVE))


@pytest.mark.parametrize(
    ("source", "outcome", "words"),
    [
        (TILED, "timed", ""),
        (changed(TILED, ("shA[ti][k] * shB[k][tj]", "shA[ti][k]")), "refused", "elements are wrong"),
        (changed(TILED, ("float acc = 0.0f;", "float acc = 0.0f")), "refused", "line 10: float acc"),
        ('#include "/etc/passwd"\n' + TILED, "refused", "a kernel may include"),
    ],
    ids=["right", "wrong", "does not compile", "a file of the machine"],
)
def test_a_kernel_is_right_on_every_shape_or_is_not_timed(emulated, source, outcome, words):
    found = emulated.measure(wanted(source))
    assert found.outcome == outcome, found.words
    assert words in found.words
    assert found.emulated


def test_a_second_kernel_of_a_learner_that_is_wrong_is_left_out(emulated):
    mine = handed_in("your tiled kernel", read_cuda(changed(TILED, ("acc +=", "acc =")), TILES))
    one = wanted(TILED)
    found = emulated.measure(replace(one, candidates=(one.candidates[0], mine, NAIVE)))
    assert found.outcome == "timed"
    assert list(found.samples) == ["yours", NAIVE.name]
    assert "your tiled kernel" in found.about["dropped"]


@pytest.mark.parametrize(
    ("how", "outcome", "words"),
    [(signal.SIGKILL, "undecided", "by no kernel's doing"), (signal.SIGSEGV, "refused", "the kernel is lost")],
)
def test_a_worker_that_ends_costs_its_own_measurement_alone(emulated, monkeypatch, how, outcome, words):
    """From outside it costs the learner nothing; by a crash it does, which a kernel can bring about."""
    from tilelab.grading.timed import conductor as module

    class Fragile(module.Companion):
        went = 0

        def ask(self, question, *more, **options):
            self.went += question["do"] == "go"
            if self.went == 3:
                os.kill(self.pid, how)
            return super().ask(question, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "Companion", Fragile)
        found = emulated.measure(wanted(TILED))
    assert (found.outcome, words in found.words) == (outcome, True), found.words
    assert emulated.measure(wanted(TILED)).outcome == "timed"


@pytest.mark.parametrize("before", ["zero", "call"])
def test_our_own_process_that_is_lost_costs_one_measurement_alone(emulated, monkeypatch, before):
    whole, lost = getattr(emulated._calls, before), []

    def asked(whom, *more):
        own = emulated._own
        if not lost and own in (whom, getattr(whom, "worker", None)):
            lost.append(own)
            os.kill(own.pid, signal.SIGKILL)
        return whole(whom, *more)

    with monkeypatch.context() as patch:
        patch.setattr(emulated._calls, before, asked)
        found = emulated.measure(wanted(TILED))
    assert (found.outcome, len(lost), "SIGKILL" in found.words) == ("undecided", 1, True), found.words
    assert emulated.measure(wanted(TILED)).outcome == "timed"


def test_a_process_that_compares_and_is_lost_costs_one_measurement_alone(emulated, monkeypatch):
    """As where a kernel takes so much of the device's memory that nothing else has room."""
    from tilelab.grading.timed import conductor as module

    whole, asked = module.Companion.ask, []

    def lost(companion, question, *more, **options):
        if companion is emulated._calls.compares and not asked:
            asked.append(os.kill(companion.pid, signal.SIGKILL))
        return whole(companion, question, *more, **options)

    monkeypatch.setattr(module.Companion, "ask", lost)
    found = emulated.measure(wanted(TILED))
    assert (found.outcome, "the process that compares is lost" in found.words) == ("undecided", True), found.words
    assert emulated.measure(wanted(TILED)).outcome == "timed"


def test_a_sandbox_does_not_sweep_away_the_folder_of_a_run(emulated, monkeypatch):
    """Whatever else is graded on the machine meanwhile, and however long it takes."""
    from tilelab.cudacpp.processes import Task
    from tilelab.grading.sandbox import folders
    from tilelab.grading.sandbox.emulation import run_inside

    monkeypatch.setattr(folders, "YOUNG_SECONDS", -1)
    run_inside(Task(["true"]))
    assert emulated.measure(wanted(TILED)).outcome == "timed"


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_full_disk_costs_a_learner_nothing(emulated, monkeypatch, when):
    left = {"at once": 0, "later": 1}[when]

    def full(descriptor, start, size, whole=os.posix_fallocate):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(descriptor, start, size)

    shutil.rmtree(emulated._folder)
    emulated._folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        found = emulated.measure(wanted(TILED))
    assert (found.outcome, "No space left on device" in found.words) == ("undecided", True), found.words
    assert emulated.measure(wanted(TILED)).outcome == "timed"


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    said = read_thresholds(ROOT / "autograder" / "thresholds.toml")
    two = [("practice_1_timed", wanted(TILED)), ("practice_1_timed", wanted(TILED, {**TILES, "shared": 64}))]
    bundle = make_bundle(b"k" * 32, two, said)
    write_bundle(bundle, tmp_path / "b.json")
    results = tmp_path / "r.jsonl"
    run = run_bundle(read_bundle(tmp_path / "b.json"), results, "emulated")
    assert not next(run).kept
    run.close()  # as a crash after the first one would
    with results.open("a") as file:
        file.write('{"half a li')
    again = list(run_bundle(bundle, results, "emulated"))
    assert [one.kept for one in again] == [True, False]
    assert len(results.read_text().splitlines()) == 2
    assert all(one.kept for one in run_bundle(bundle, results, "emulated"))


def test_results_that_find_the_disk_full_are_said_and_those_before_kept(tmp_path, monkeypatch):
    from tilelab.grading.timed import running

    bundle = make_bundle(b"k" * 32, [("practice_1_timed", wanted(TILED, {**TILES, "shared": n})) for n in (0, 64)],
                         read_thresholds(ROOT / "autograder" / "thresholds.toml"))  # fmt: skip
    write_bundle(bundle, tmp_path / "b.json")
    results = tmp_path / "r.jsonl"
    whole, room = running._append, [10_000, 100]

    def full(out, line):
        whole(out, line[: (left := room.pop(0))])
        if left < len(line):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(running, "_append", full)
        code, said = invoke("jobs", "run", tmp_path / "b.json", "--out", results, "--device", "emulated")
    assert (code, "No space left on device. What was measured before stands there" in said) == (1, True), said
    assert [one.kept for one in run_bundle(bundle, results, "emulated")] == [True, False]


def test_a_run_that_is_interrupted_says_how_to_go_on(tmp_path, monkeypatch):
    from tilelab.grading.timed import running

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    write_bundle(make_bundle(b"k" * 32, [], Thresholds({})), tmp_path / "b.json")
    monkeypatch.setattr(running, "run_bundle", interrupted)
    code, said = invoke("jobs", "run", tmp_path / "b.json", "--device", "emulated")
    assert (code, "keeps what was measured: run this again to go on" in " ".join(said.split())) == (130, True), said
    code, said = invoke("jobs", "run", tmp_path / "b.json", "--device", "²")
    assert (code, "a GPU's number or emulated, not '²'" in said) == (1, True), said


def test_two_runs_of_one_bundle_take_turns(tmp_path):
    said = read_thresholds(ROOT / "autograder" / "thresholds.toml")
    bundle = make_bundle(b"k" * 32, [("practice_1_timed", wanted(TILED))], said)
    results, waits, second = tmp_path / "r.jsonl", threading.Event(), []
    run = run_bundle(bundle, results, "emulated")
    assert not next(run).kept
    other = threading.Thread(
        target=lambda: second.extend(run_bundle(bundle, results, "emulated", waiting=waits.set)), daemon=True
    )
    other.start()
    assert waits.wait(20)
    assert list(run) == []
    other.join(20)
    assert [one.kept for one in second] == [True]
    assert len(results.read_text().splitlines()) == 1


def test_a_bundle_without_jobs_is_run_at_once(tmp_path):
    write_bundle(make_bundle(b"k" * 32, [], Thresholds({})), tmp_path / "b.json")
    assert invoke("jobs", "run", tmp_path / "b.json", "--device", "emulated")[0] == 0


def test_a_run_beside_the_results_of_an_earlier_export_says_how_to_go_on(tmp_path):
    first, second = (make_bundle(b"k" * 32, [("practice_1_timed", wanted(TILED))], Thresholds({})) for _ in range(2))
    write_bundle(second, tmp_path / "b.json")
    as_if_measured(first, tmp_path / "b.results.jsonl")
    before = (tmp_path / "b.results.jsonl").read_bytes()
    code, said = invoke("jobs", "run", tmp_path / "b.json", "--device", "emulated")
    said = " ".join(said.split())
    assert (code, "another bundle" in said, "Move the file away, or name another with --out" in said) == (1, True, True)
    assert (tmp_path / "b.results.jsonl").read_bytes() == before


def test_results_cannot_be_written_over_a_bundle_or_nowhere(tmp_path):
    bundle = tmp_path / "b.json"
    write_bundle(make_bundle(b"k" * 32, [], Thresholds({})), bundle)
    before = bundle.read_bytes()
    for out, words in ((bundle, "damaged"), (tmp_path / "no" / "r", "cannot write")):
        code, said = invoke("jobs", "run", bundle, "--device", "emulated", "--out", out)
        assert (code, words in said) == (1, True), said
    assert bundle.read_bytes() == before


def test_what_the_judge_cannot_handle_waits_and_the_next_one_is_measured(emulated):
    odd = Candidate("yours", source=TILED, launch={"block": 1})
    found = emulated.measure(Wanted((1024, 1024, 1024), (odd, NAIVE)))
    assert (found.outcome, found.words) == ("undecided", "the judge itself failed (KeyError: 'grid')")
    assert emulated.measure(wanted(TILED)).outcome == "timed"


# ---- tricks


def test_the_corpus_has_every_known_trick():
    assert {trick.row for trick in (*CUDA_TRICKS, *PYTHON_TRICKS, *NO_SOURCE)} == set(range(35))
    assert all(trick.why for trick in NO_SOURCE)


@pytest.mark.parametrize("row", [16, 22, 24, 25, 33])
def test_tricks_that_a_cpu_can_run_come_out_as_designed(emulated, row):
    from try_all import LARGE, SMALLER

    trick = next(trick for trick in CUDA_TRICKS if trick.row == row)
    found = emulated.measure(wanted(trick.source.replace(LARGE, SMALLER), trick.launch))
    assert found.outcome == "refused", found.words


def test_python_tricks_earn_nothing():
    from try_all import python_tricks

    rows = list(python_tricks())
    assert len(rows) == len(PYTHON_TRICKS)
    assert [row["trick"] for row in rows if not row["ok"]] == []
