"""The demo class goes through nbgrader's own exchange: release, fetch, submit, collect, grade."""

import sqlite3
import sys
from pathlib import Path

import pytest
from sandboxes import to_its_end

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_prints_three_rows_with_the_right_scores_and_the_gradebook_holds_them(tmp_path):
    command = [sys.executable, str(ROOT / "autograder" / "demo" / "run.py"), "--keep", str(tmp_path)]
    done = to_its_end(command, 250)
    assert done.returncode == 0, done.stderr[-3000:]
    printed = done.stdout
    right = {"ada": 4.0, "ben": 2.67, "cleo": 3.0}
    for student, score in right.items():
        (row,) = [line for line in printed.splitlines() if f" {student} " in line]
        assert f"{score:g} of 4" in row
    with sqlite3.connect(tmp_path / "course" / "gradebook.db") as database:
        rows = database.execute(
            "select a.student_id, sum(g.auto_score) from grade g join submitted_notebook n on n.id = g.notebook_id "
            "join submitted_assignment a on a.id = n.assignment_id group by a.student_id"
        ).fetchall()
    assert dict(rows) == pytest.approx(right)
    feedback = (tmp_path / "course" / "feedback" / "ben" / "exercises" / "exercise_1.html").read_text()
    assert "table: 10 of 12 offsets are right; not right: (2,2), (2,3)" in feedback
    for line in (ROOT / "autograder" / "checks" / "exercise_1.py").read_text().splitlines():
        assert len(line.strip()) < 20 or line.strip() not in feedback
    assert (tmp_path / "exchange" / "tilelab" / "outbound" / "exercises").is_dir()
