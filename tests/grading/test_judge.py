"""The judge: its own faults never cost a learner points, and its checks are out of a kernel's reach."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from tilelab.grading import GradingError
from tilelab.grading.judge import Judge, Verdict

CHECKS = Path(__file__).parents[2] / "autograder" / "checks"
RECORD = {"version": 1, "problem": "exercise_1", "answers": {"order": "column-major"}}


@pytest.mark.parametrize(("share", "pending"), [(math.nan, 0), (-1, 0), (1.5, 0), (0.6, 0.6), (0, math.inf)])
def test_shares_that_no_gradebook_can_hold(share, pending):
    with pytest.raises(GradingError, match="shares must lie in"):
        Verdict(share, pending=pending)


def test_no_folder_of_checks(tmp_path):
    with pytest.raises(GradingError, match=r"no folder of trusted checks at .*nowhere"):
        Judge(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("def check_order(answers): raise KeyError('a fault of ours')", "the check itself failed"),
        ("def check_order(answers): return 'full marks'", "the check itself failed"),
        ("def check_order(answers): return Verdict(float('nan'))", "the check itself failed"),
        ("import no_such_module", "the check itself failed"),
        ("def check_table(answers): pass", "this course has no check for this part"),
    ],
)
def test_a_fault_of_the_check_leaves_the_points_to_a_person(tmp_path, check, words):
    (tmp_path / "exercise_1.py").write_text(f"from tilelab.grading.judge import Verdict\n{check}\n")
    judged = Judge(tmp_path).judge("exercise_1_order", 1, [RECORD])
    assert (judged.earned, judged.pending) == (0, 1)
    assert words in judged.lines[0]


@pytest.mark.parametrize(
    ("source", "words"),
    [("def (", r"exercise_1\.py' does not load: SyntaxError"), ("import no_such_module", "No module")],
)
def test_checks_that_do_not_load_are_named(tmp_path, source, words):
    (tmp_path / "exercise_1.py").write_text(source)
    with pytest.raises(GradingError, match=words):
        Judge(tmp_path).load("exercise_1")


def test_points_that_wait_are_reported_beside_those_earned(tmp_path):
    check = (
        "from tilelab.grading.judge import Verdict\ndef check_order(answers): return Verdict(0.25, ('fast?',), 0.75)\n"
    )
    (tmp_path / "exercise_1.py").write_text(check)
    judged = Judge(tmp_path).judge("exercise_1_order", 4, [RECORD])
    assert judged.head == "1 of 4 points, 3 pending"


def test_what_a_learner_wrote_is_inert_in_the_report():
    judged = Judge(CHECKS).judge("exercise_1_order", 1, [], why_none="<script>alert(1)</script>")
    assert "&lt;script&gt;" in judged.html
    assert "<script" not in judged.html


def test_trusted_checks_are_no_import_away_from_a_kernel():
    code = (
        "import importlib, pkgutil, sys, tilelab.grading\n"
        "for name in ('checks', 'autograder', 'autograder.checks', 'checks.exercise_1', 'exercise_1'):\n"
        "    try: importlib.import_module(name)\n"
        "    except ImportError: continue\n"
        "    sys.exit(name + ' can be imported')\n"
        "names = [m.name for m in pkgutil.walk_packages(tilelab.__path__, 'tilelab.')]\n"
        "assert 'tilelab.grading.problems.exercise_1' in names\n"
        "assert not any('checks' in name for name in names)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
