"""All thirteen problems through nbgrader's own steps: solved, untouched, again, late; and what is exported."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import nbformat
import pytest
from classroom import hand_in, solved
from click.testing import CliRunner
from make_views import AUTOGRADER, MASTERS

from tilelab.cli.main import cli
from tilelab.grading.errors import GradingError
from tilelab.grading.policy import FILE
from tilelab.grading.problems import names, problem
from tilelab.grading.views import learners_copy_of

pytestmark = pytest.mark.slow

ASSIGNMENTS = ("exercises", "practice")
#: Points that wait for a GPU; the rest of what is not earned waits for a person.
WAIT_FOR_GPU = {
    "practice_1_timed": 3,
    "practice_1_explanation": 1,
    "practice_2_table": 1,
    "practice_6_measurement": 4,
    "practice_7_timed": 8,
}


def of(assignment):
    return [name for name in names() if problem(name).assignment == assignment]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_problems_from_submission_to_export(whole_course, tmp_path):
    """One test, so that the class is graded once, whatever the number of test processes."""
    graded = grade_everything(whole_course)
    for assignment in ASSIGNMENTS:
        a_masters_solution_earns_everything_that_can_be_decided_here(graded, assignment)
        an_untouched_copy_earns_nothing_and_waits_for_nobody(graded, assignment)
    feedback_says_why_and_shows_the_rubric(whole_course)
    a_second_grading_gives_the_same(graded, whole_course)
    one_question_can_be_graded_alone(graded, whole_course)
    results_are_exported_in_the_columns_of_others(graded, whole_course, tmp_path)


def grade_everything(whole_course):
    """Results by student and assignment: everything solved, everything untouched."""
    makers = {"solved": solved, "untouched": lambda name: learners_copy_of(MASTERS / f"{name}.md", AUTOGRADER)}
    results = {}
    for student, make in makers.items():
        for assignment in ASSIGNMENTS:
            hand_in(whole_course, student, assignment, *((f"{name}.ipynb", make(name)) for name in of(assignment)))
            results[student, assignment] = whole_course.grade(assignment, student)
    return results


def a_masters_solution_earns_everything_that_can_be_decided_here(graded, assignment):
    result = graded["solved", assignment]
    assert result.status == "graded", result.message
    parts = {f"{name}_{part.name}": part for name in of(assignment) for part in problem(name).parts}
    assert {part.cell for part in result.parts} == set(parts)
    for found in result.parts:
        part = parts[found.cell]
        waits = part.points if part.by_person else WAIT_FOR_GPU.get(found.cell, 0)
        assert (found.score, found.pending) == (part.points - waits, waits), (found.cell, found.lines)
        assert found.needs_person == bool(waits)
        if not part.by_person:
            assert set(found.versions) == {"tilelab", "judge", "check"}


def an_untouched_copy_earns_nothing_and_waits_for_nobody(graded, assignment):
    result = graded["untouched", assignment]
    assert result.status == "graded", result.message
    assert [(part.cell, part.score, part.pending) for part in result.parts if part.score or part.pending] == []
    assert all(part.lines for part in result.parts if not part.cell.endswith("_text"))


def feedback_says_why_and_shows_the_rubric(whole_course):
    feedback = whole_course.root / "feedback" / "untouched" / "practice"
    for name in of("practice"):
        page = (feedback / f"{name}.html").read_text()
        assert "tilelab-report" in page
        assert "def check_" not in page
    assert "what is looked for" in (feedback / "practice_8.html").read_text()
    timed = (whole_course.root / "feedback" / "solved" / "practice" / "practice_7.html").read_text()
    assert "pending, this judge has no GPU" in timed


def a_second_grading_gives_the_same(graded, whole_course):
    for assignment in ASSIGNMENTS:
        again = whole_course.grade(assignment, "solved", force=True)
        assert again.status == "graded"
        assert again.parts == graded["solved", assignment].parts


def one_question_can_be_graded_alone(graded, whole_course):
    folder = whole_course.root / "autograded" / "untouched" / "exercises"
    before = {file.name: file.read_bytes() for file in folder.glob("*.ipynb")}
    command = ["grade", "exercises", "--course", str(whole_course.root), "--student", "untouched"]
    out = CliRunner().invoke(cli, [*command, "--question", "exercise_4", "--force", "--json"])
    assert out.exit_code == 0, out.output
    (row,) = json.loads(out.stdout)["rows"]
    assert row["status"] == "graded"
    assert len(row["parts"]) == len(graded["untouched", "exercises"].parts), "the others are still there"
    after = {file.name: file.read_bytes() for file in folder.glob("*.ipynb")}
    assert {name for name in before if name != "exercise_4.ipynb" and after[name] != before[name]} == set()
    wrong = CliRunner().invoke(cli, ["grade", "exercises", "--course", str(whole_course.root), "--question", "q7"])
    assert wrong.exit_code != 0
    assert "it has exercise_1" in wrong.output


def export(course, *arguments):
    out = CliRunner().invoke(cli, ["export", *arguments, "--course", str(course.root)])
    assert out.exit_code == 0, out.output
    return out.stdout


def results_are_exported_in_the_columns_of_others(graded, whole_course, tmp_path):
    with whole_course.gradebook() as gradebook:
        gradebook.update_or_create_student("solved", first_name="Ada", last_name="=SUM(1)", email="ada@example.org")
        gradebook.update_or_create_student("untouched", lms_user_id="77")
    score = graded["solved", "exercises"].score
    canvas = list(csv.reader(io.StringIO(export(whole_course, "exercises", "--form", "canvas"))))
    assert canvas[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "exercises"]
    assert canvas[1][0].strip() == "Points Possible"
    assert canvas[1][5] == "30"
    assert canvas[2] == ["'=SUM(1), Ada", "", "", "solved", "", f"{score:g}"], "a name is never a formula"
    assert canvas[3][1:] == ["77", "", "untouched", "", "0"]
    moodle = list(csv.DictReader(io.StringIO(export(whole_course, "practice", "--form", "moodle"))))
    assert moodle[0]["Username"] == "solved"
    assert moodle[0]["Email address"] == "ada@example.org"
    assert moodle[0]["Feedback comments"] == "23 points are pending"
    rows = list(csv.DictReader(io.StringIO(export(whole_course, "exercises"))))
    parts = [row for row in rows if row["student"] == "solved" and row["part"] != "together"]
    assert sum(float(row["score"]) for row in parts) == score
    assert "tilelab=" in parts[0]["versions"]
    file = tmp_path / "all.json"
    export(whole_course, *ASSIGNMENTS, "--form", "json", "--out", str(file))
    written = json.loads(file.read_text())
    assert len(written["rows"]) == 4
    practice = graded["solved", "practice"]
    total = 0.35 * score / 30 + 0.65 * practice.score / practice.points
    assert written["totals"] == {"solved": pytest.approx(total, abs=1e-3), "untouched": 0}
    nowhere = ["export", "exercises", "--course", str(whole_course.root), "--out", str(tmp_path / "none" / "x.csv")]
    refused = CliRunner().invoke(cli, nowhere)
    assert refused.exit_code == 1
    assert "x.csv: No such file or directory" in refused.output.replace("\n", "")
    two = CliRunner().invoke(cli, ["export", *ASSIGNMENTS, "--course", str(whole_course.root)])
    assert two.exit_code != 0
    assert "takes one assignment" in two.output


@pytest.mark.slow
def test_lateness_costs_what_the_course_says(course):
    due = datetime.now(UTC) - timedelta(days=1, hours=12)
    text = (course.root / FILE).read_text()
    try:
        (course.root / FILE).write_text(text.replace("[due]", f"[due]\nexercises = {due:%Y-%m-%dT%H:%M:%SZ}"))
        late_course = type(course)(course.root)
        folder = hand_in(late_course, "late", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
        (folder / "timestamp.txt").write_text(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC")
        result = late_course.grade("exercises", "late")
        assert (result.score, result.penalty, result.net) == (4, pytest.approx(0.8), pytest.approx(3.2))
        assert result.seconds_late > 24 * 3600
        row = next(row for row in export(late_course, "exercises", "--form", "canvas").splitlines() if "late" in row)
        assert row.endswith(",3.2")
        again = text.replace("[due]", f"[due]\nexercises = {due - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}")
        (course.root / FILE).write_text(again)
        later = type(course)(course.root)
        (kept,) = (one for one in later.results("exercises") if one.student == "late")
        assert kept.penalty == pytest.approx(1.2), "a date that moved holds for what is graded already"
        (course.root / FILE).write_text(again.replace("per_day = 0.10", "per_day = 0.05"))
        page = course.root / "feedback" / "late" / "exercises" / "exercise_1.html"
        assert "Late submission penalty (Score: -0.8)" in page.read_text()
        out = CliRunner().invoke(cli, ["export", "exercises", "--course", str(course.root)])
        assert "in exercises is not of these grades" in out.stderr
        kept = type(course)(course.root).grade("exercises", "late")
        assert "Late submission penalty (Score: -0.6)" in page.read_text(), "and feedback says so"
        assert type(course)(course.root).stale_feedback("exercises", ["late"]) == []
        assert (kept.status, kept.penalty) == ("kept", pytest.approx(0.6)), (
            "and so does a rule, where nothing is graded"
        )
        (course.root / FILE).write_text(text.replace("[due]", "[due]\nexercizes = 2027-03-01T23:59:00Z"))
        with pytest.raises(GradingError, match="'exercizes', which is no assignment; there are exercises, practice"):
            type(course)(course.root).results("exercises")
    finally:
        (course.root / FILE).write_text(text)
        with course.gradebook() as gradebook:
            gradebook.find_assignment("exercises").duedate = None
            gradebook.db.commit()


def test_each_master_states_its_time_and_points():
    for name in names():
        text = nbformat.writes(learners_copy_of(MASTERS / f"{name}.md", AUTOGRADER))
        total = sum(part.points for part in problem(name).parts)
        assert f"**Points** {total:g}" in text, name
        for needed in ("**You need**", "**Time**", "## Predict first", "Hint 1", "Hint 2", "Hint 3", "check("):
            assert needed in text, (name, needed)
