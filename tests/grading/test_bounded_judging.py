"""An answer that keeps its check busy costs its own question: the check is ended, the others are judged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import until

from tilelab.grading.bounded import LEAST, BoundedJudge, _bench
from tilelab.grading.budgets import budget
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Judge

CHECKS = Path(__file__).parents[2] / "autograder" / "checks"
#: Each keeps a check busy in its own way; the second and third in C, where Python's signal handlers do not run.
BUSY = {
    "in Python": "while True: pass",
    "in the interpreter's own arithmetic": "answers['order'] * 0 or 7 ** (10 ** 9)",
    "in a regular expression": "import re; re.match('(a|a)*b', 'a' * 60)",
    "while it swallows what is raised": "while True:\n            try: time.sleep(60)\n            except: pass",
}


def judge_with(folder, body, limits="[every]\njudge_seconds = 1\n"):
    checks = folder / "checks"
    checks.mkdir()
    text = (
        "import os, time\nfrom tilelab.grading.judge import Verdict\n"
        f"def check_order(answers):\n    if answers.get('order') == 'odd':\n        {body}\n"
        "    return Verdict(1.0, ('fine',))\n"
    )
    (checks / "exercise_1.py").write_text(text)
    (folder / "limits.toml").write_text(limits)
    return BoundedJudge(checks, "ada", folder / "limits.toml")


def judged(judge, order):
    return judge.judge("exercise_1_order", 1, [{"version": 1, "problem": "exercise_1", "answers": {"order": order}}])


@pytest.mark.parametrize("body", BUSY.values(), ids=BUSY)
def test_an_answer_without_an_end_costs_its_own_question(tmp_path, body):
    judge = judge_with(tmp_path, body)
    odd, other = judged(judge, "odd"), judged(judge, "column-major")
    assert (odd.earned, odd.pending) == (0, 0)
    assert "looked at for 1 s and there was no end to it" in odd.lines[0]
    assert (other.earned, other.lines) == (1, ("fine",))


def test_after_one_of_them_the_others_of_a_submission_have_less_time(tmp_path):
    judge = judge_with(tmp_path, "os.kill(os.getpid(), 14)", "[every]\njudge_seconds = 80\n[exercise_1.table]\n")
    said = [judged(judge, "odd").lines[0] for _ in range(4)]
    assert [line.partition(" s and")[0].rpartition(" ")[2] for line in said] == ["80", "40", f"{LEAST:g}", f"{LEAST:g}"]


def test_a_check_that_ends_its_process_leaves_the_points_to_a_person(tmp_path):
    odd = judged(judge_with(tmp_path, "os._exit(0)"), "odd")
    assert (odd.earned, odd.pending) == (0, 1)
    assert "a person will look at it" in odd.lines[0]


def test_a_process_that_is_killed_between_two_questions_or_while_it_judges_is_replaced(tmp_path):
    judge = judge_with(tmp_path, "pass")
    for _ in range(2):
        assert judged(judge, "row-major").earned == 1
        _bench()._process.kill()
        _bench()._process.wait()
    marker = tmp_path / "once"
    body = (
        f"\n        if not os.path.exists({str(marker)!r}): open({str(marker)!r}, 'w').close(); os.kill(os.getpid(), 9)"
    )
    (tmp_path / "again").mkdir()
    assert judged(judge_with(tmp_path / "again", body), "odd").earned == 1


def test_a_process_that_is_stopped_is_ended_from_outside(tmp_path, monkeypatch):
    monkeypatch.setattr("tilelab.grading.bounded.GRACE", 0.2)
    assert "no end to it" in judged(judge_with(tmp_path, "os.kill(os.getpid(), 19)"), "odd").lines[0]


def test_what_a_check_prints_is_no_verdict_and_a_changed_check_is_loaded(tmp_path):
    judge = judge_with(
        tmp_path, "print('[1.0, [], 0]', flush=True); os.write(1, b'[1.0, [], 0]\\n'); return Verdict(0.0)"
    )
    assert judged(judge, "odd").earned == 0
    file = tmp_path / "checks" / "exercise_1.py"
    file.write_text(file.read_text().replace("Verdict(0.0)", "Verdict(0.5)"))
    os.utime(file, ns=(1, 1))
    assert judged(judge, "odd").earned == 0.5


def test_it_says_what_the_judge_itself_says():
    record = {"version": 1, "problem": "exercise_1", "answers": {"order": "column-major"}}
    for judge in (Judge(CHECKS), BoundedJudge(CHECKS)):
        found = judge.judge("exercise_1_order", 1, [record])
        assert (found.earned, found.lines) == (1, Judge(CHECKS).judge("exercise_1_order", 1, [record]).lines)


def test_nothing_is_left_of_a_grader_that_was_killed():
    start = (
        "from tilelab.grading.bounded import _bench\n_bench().start()\nprint(_bench()._process.pid, flush=True)\n"
        "import time; time.sleep(60)"
    )
    grader = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    number = int(grader.stdout.readline())
    grader.kill()
    grader.wait()
    grader.stdout.close()
    assert until(lambda: not Path(f"/proc/{number}").exists())


@pytest.mark.parametrize("value", ["0", "-1", "true", '"soon"'])
def test_a_limit_that_cannot_be_meant_is_refused(tmp_path, value):
    (tmp_path / "limits.toml").write_text(f"[exercise_1.order]\njudge_seconds = {value}\n")
    with pytest.raises(GradingError, match=r"limit judge_seconds = .*: give a positive number"):
        budget(tmp_path / "limits.toml", "exercise_1")
