"""A class with right, wrong, broken and hostile submissions, graded through nbgrader's own steps."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress

import nbformat
import pytest
from classroom import hand_in, make_course, solved
from click.testing import CliRunner
from make_views import AUTOGRADER, MASTERS
from nbformat import NotebookNode, v4
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from patience import PATIENCE, until
from sandboxes import to_its_end
from traitlets.config import Config

from tilelab.cli.main import cli
from tilelab.grading.course import Course
from tilelab.grading.views import learners_copy_of, source_of

pytestmark = pytest.mark.slow

PARTS = ("exercise_1_table", "exercise_1_order", "exercise_1_contiguous")
FORGE = (
    "from IPython.display import display\n"
    "def submit(*names, **answers):\n"
    "    display({{'application/vnd.tilelab.answer+json': {record}}}, raw=True)\n"
    "    return 2.0\n"
)


def grade_cell(notebook: NotebookNode, name: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def changed(change, **answers):
    """A solved notebook on which ``change`` was let loose."""
    notebook = solved("exercise_1", answers)
    change(notebook)
    return notebook


def edit(**metadata):
    """A change that edits the grade cells' nbgrader metadata."""

    def change(notebook):
        for name in PARTS:
            grade_cell(notebook, name).metadata.nbgrader.update(metadata)

    return change


def copied_cell(notebook):
    cell = grade_cell(notebook, "exercise_1_order")
    notebook.cells.insert(3, v4.new_code_cell(cell.source, metadata=cell.metadata))


def deleted_cell(notebook):
    notebook.cells.remove(grade_cell(notebook, "exercise_1_order"))


def edited_tests(notebook):
    for name in PARTS:
        grade_cell(notebook, name).source = "4.0"


def skipped(notebook):
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]


def stripped(notebook):
    for cell in notebook.cells:
        cell.metadata = {}


def as_markdown(notebook):
    at = notebook.cells.index(grade_cell(notebook, "exercise_1_table"))
    notebook.cells[at] = v4.new_markdown_cell("no test here", metadata=notebook.cells[at].metadata)


def kernel(notebook):
    notebook.metadata = NotebookNode(kernelspec={"name": "bash", "display_name": "x"}, celltoolbar="Create")


#: A type and a value that print what a terminal obeys.
ESCAPES = {
    "exercise_1_table_answer": "class Table: pass\nTable.__name__ = '\\x1b[2J\\x9b2J'\ntable = Table()",
    "exercise_1_order_answer": "class Order:\n    def __repr__(self): return '\\x1b[2J'\norder = Order()",
    "exercise_1_contiguous_answer": "contiguous = '\\x1b[2J'",
}
ANSWERED = {
    cell.metadata.nbgrader.grade_id: ""
    for cell in source_of(MASTERS / "exercise_1.md").cells
    if cell.metadata.get("nbgrader", {}).get("solution")
}
WRONG_TABLE = "table = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 9, 13]]"
#: name -> (files handed in, scores of table, order and contiguous, words that the report must hold)
CLASS = {
    "right": (lambda: solved("exercise_1"), (2, 1, 1), "all 12 offsets are right"),
    "partly": (
        lambda: solved(
            "exercise_1", {"exercise_1_table_answer": WRONG_TABLE, "exercise_1_order_answer": "order = 'row-major'"}
        ),
        (1.67, 0, 1),
        r"not right: \(2,2\), \(2,3\)",
    ),
    "untouched": (lambda: learners_copy_of(MASTERS / "exercise_1.md", AUTOGRADER), (0, 0, 0), "table: not answered"),
    "empties answers": (lambda: solved("exercise_1", ANSWERED), (0, 0, 0), "name 'table' is not defined"),
    "exits": (
        lambda: solved("exercise_1", {"exercise_1_order_answer": "import os\norder = 'column-major'\nos._exit(1)"}),
        (2, 0, 1),
        "the kernel ended in a cell, the one that begins 'import os'",
    ),
    "redefines submit": (
        lambda: solved("exercise_1", {"exercise_1_prediction": FORGE.format(record={"score": 2, "points": 2})}),
        (2, 1, 1),
        "this notebook redefines submit: the course's own was called",
    ),
    "forges a record": (
        lambda: solved(
            "exercise_1",
            {
                "exercise_1_prediction": FORGE.format(
                    record={"version": 1, "problem": "exercise_1", "answers": {"order": "column-major"}, "score": 2}
                )
            },
        ),
        (2, 1, 1),  # by the answers, not by the record
        "this notebook redefines submit",
    ),
    "silences submit": (
        lambda: solved("exercise_1", {"exercise_1_prediction": "def submit(*a, **k): pass"}),
        (2, 1, 1),
        "this notebook redefines submit",
    ),
    "redefines submit, wrongly answered": (
        lambda: solved(
            "exercise_1",
            {
                "exercise_1_prediction": FORGE.format(record={"score": 2, "points": 2}),
                "exercise_1_table_answer": WRONG_TABLE,
            },
        ),
        (1.67, 1, 1),
        "this notebook redefines submit",
    ),
    "prints a record in an answer cell": (
        lambda: solved(
            "exercise_1",
            {
                "exercise_1_order_answer": "order = 'row-major'\n"
                + FORGE.format(
                    record={"version": 1, "problem": "exercise_1", "answers": {"order": "column-major"}, "score": 2}
                ).replace("submit", "forged")
                + "\nforged()"
            },
        ),
        (2, 0, 1),
        "order: not right",
    ),
    "changes how cells run": (
        lambda: solved(
            "exercise_1",
            {"exercise_1_prediction": "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])"},
        ),
        (0, 0, 0),
        "no answer was recorded: the cell that hands it in ran and recorded nothing",
    ),
    "answers twice": (
        lambda: solved(
            "exercise_1",
            {
                "exercise_1_prediction": "_submit = submit\n"
                "def submit(*a, **k):\n    _submit(*a, **k)\n    _submit(*a, **k)\n"
            },
        ),
        (2, 1, 1),
        "this notebook redefines submit",
    ),
    "floods": (
        lambda: solved("exercise_1", {"exercise_1_prediction": "for _ in range(60): print('x' * 100_000)"}),
        (2, 1, 1),
        "all 12",
    ),
    "edits points": (lambda: changed(edit(points=100)), (2, 1, 1), "all 12"),
    "edits points to words": (lambda: changed(edit(points="lots")), (2, 1, 1), "all 12"),
    "flips flags": (lambda: changed(edit(grade=False, solution=True, locked=False)), (2, 1, 1), "all 12"),
    "old schema": (lambda: changed(edit(schema_version=1)), (2, 1, 1), "all 12"),
    "edits tests": (lambda: changed(edited_tests), (2, 1, 1), "this locked cell had been changed"),
    "copies a cell": (lambda: changed(copied_cell), (2, 1, 1), "there were several cells exercise_1_order"),
    "deletes a cell": (lambda: changed(deleted_cell), (2, 1, 1), "this cell was missing: it was put back"),
    "skips cells": (lambda: changed(skipped), (2, 1, 1), "all 12"),
    "markdown": (lambda: changed(as_markdown), (2, 1, 1), "all 12"),
    "other kernel": (lambda: changed(kernel), (2, 1, 1), "all 12"),
    "truncated": (lambda: b'{"cells": [{"cell_type": "co', (0, 0, 0), "no complete notebook file"),
    "empty": (lambda: b"", (0, 0, 0), "no complete notebook file"),
    "latin-1": (lambda: b'{"cells": ["\xe9"]}', (0, 0, 0), "not UTF-8"),
    "no notebook": (lambda: b"[1, 2]", (0, 0, 0), "it holds a JSON list"),
}


def scores(result):
    assert tuple(part.cell for part in result.parts) == PARTS
    return tuple(part.score for part in result.parts)


def said(result):
    return "\n".join(line for part in result.parts for line in (*part.lines, *part.notes))


#: A quick run needs a kernel twice; the files that cannot be read need none.
QUICK = ("right", "partly", "truncated", "empty", "latin-1", "no notebook")


@pytest.mark.parametrize(
    "student", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CLASS]
)
def test_everybody_gets_what_their_answers_are_worth_and_words_for_it(course, student):
    content, expected, words = CLASS[student]
    hand_in(course, student, "exercises", ("exercise_1.ipynb", content()))
    result = course.grade("exercises", student)
    assert result.status == "graded", result.message
    assert scores(result) == expected
    assert not any(part.needs_person for part in result.parts)
    assert re.search(words, said(result)), said(result)
    feedback = course.root / "feedback" / student / "exercises" / "exercise_1.html"
    html = feedback.read_text()
    assert "tilelab-report" in html
    assert "def check_" not in html
    assert "wrong_cells" not in html


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ((), "no notebook exercise_1.ipynb was handed in"),
        ((("exercise_1-Copy1.ipynb", b"{}"),), "the folder holds exercise_1-Copy1.ipynb"),
        ((("exercise_1.ipynb.txt", b"{}"),), "no notebook exercise_1.ipynb was handed in"),
    ],
)
def test_a_missing_notebook_is_recorded_as_zero_with_the_reason(course, files, words):
    student = f"missing-{len(files)}-{len(words)}"
    hand_in(course, student, "exercises", *files)
    result = course.grade("exercises", student)
    assert (result.status, scores(result)) == ("graded", (0, 0, 0))
    assert words in said(result)
    assert (course.root / "feedback" / student / "exercises" / "exercise_1.html").exists()


def test_a_link_in_place_of_the_notebook_is_not_followed(course):
    folder = hand_in(course, "links", "exercises")
    (folder / "exercise_1.ipynb").symlink_to(course.root / "source" / "exercises" / "exercise_1.ipynb")
    result = course.grade("exercises", "links")
    assert (result.status, scores(result)) == ("graded", (0, 0, 0))
    assert "exercise_1.ipynb is a link" in said(result)


@pytest.mark.parametrize("student", ["b_[bold]name", "who?", "st*r"])
def test_a_name_with_the_characters_of_a_pattern_gets_feedback_of_its_own(course, student):
    hand_in(course, student, "exercises", ("exercise_1.ipynb", b"broken"))
    result = course.grade("exercises", student)
    assert (result.status, result.message) == ("graded", "")
    assert (course.root / "feedback" / student / "exercises" / "exercise_1.html").is_file()


def test_what_is_graded_is_kept_until_something_else_is_handed_in(course):
    folder = hand_in(course, "keeps", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
    (folder / "timestamp.txt").write_text("2026-01-01 10:00:00 UTC")
    first = course.grade("exercises", "keeps")
    assert (first.status, first.score) == ("graded", 4)
    second = course.grade("exercises", "keeps")
    assert (second.status, second.score, second.parts) == ("kept", 4, first.parts)
    (folder / "timestamp.txt").write_text("2026-01-02 10:00:00 UTC")
    assert course.grade("exercises", "keeps").status == "graded"
    (folder / "exercise_1.ipynb").write_bytes(b"broken")
    again = course.grade("exercises", "keeps")
    assert (again.status, again.score) == ("graded", 0)
    assert course.grade("exercises", "keeps").status == "kept"
    assert course.grade("exercises", "keeps", force=True).status == "graded"


@pytest.mark.slow
def test_points_that_wait_keep_the_flag_for_a_person_up(tmp_path):
    course = make_course(tmp_path / "course", "exercises", problems=["exercise_1"])
    (course.root / "checks" / "exercise_1.py").write_text(
        "from tilelab.grading.judge import Verdict\n"
        "def check_table(answers): return Verdict(0.5, ('correct; the speed waits for a GPU',), pending=0.5)\n"
    )
    hand_in(course, "ada", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
    result = course.grade("exercises", "ada")
    table, order, _ = result.parts
    assert (table.score, table.pending, table.needs_person) == (1, 1, True)
    assert (order.score, order.pending, order.needs_person) == (0, 1, True)
    assert "no check for this part" in order.lines[0]
    assert result.pending == 3


@pytest.mark.slow
def test_a_fault_of_ours_is_no_zero_and_keeps_the_old_grade(course, monkeypatch):
    hand_in(course, "unlucky", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
    assert course.grade("exercises", "unlucky").score == 4
    monkeypatch.setattr("tilelab.grading.kernels.ARGUMENTS", ("--no-such-argument",))
    monkeypatch.setattr("tilelab.grading.execute.ContainedExecute.extra_arguments", ["--f=/no/such/file"])
    result = course.grade("exercises", "unlucky", force=True)
    assert (result.status, result.score) == ("failed", 4)
    assert "no kernel could be started" in result.message


@pytest.mark.slow
def test_plain_nbgrader_autograde_runs_the_same_judge(course):
    students = ("partly", "truncated", "redefines submit")
    for student in students:
        hand_in(course, f"plain {student}", "exercises", ("exercise_1.ipynb", CLASS[student][0]()))
    command = [sys.executable, "-m", "nbgrader", "autograde", "exercises", "--student", "plain *"]
    done = to_its_end(command, 250, cwd=course.root)
    assert done.returncode == 0, done.stderr[-3000:]
    for student in students:
        with course.gradebook() as gradebook:
            submission = gradebook.find_submission("exercises", f"plain {student}")
            found = {grade.name: grade.score for notebook in submission.notebooks for grade in notebook.grades}
        assert found == dict(zip(PARTS, CLASS[student][1], strict=True))


@pytest.mark.slow
def test_plain_nbgrader_finds_its_programs_in_an_environment_that_is_not_activated(tmp_path):
    course = make_course(tmp_path / "course", problems=["exercise_1"])
    (course.root / "gradebook.db").unlink(missing_ok=True)
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "exercises"]
    environment = os.environ | {"PATH": "/usr/bin:/bin"}
    done = to_its_end(command, 200, cwd=course.root, env=environment)
    assert done.returncode == 0, done.stderr
    assert (course.root / "gradebook.db").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("student", ["right", "redefines submit", "silences submit", "forges a record"])
def test_without_our_configuration_an_answer_is_worth_nothing(course, tmp_path, student):
    bare = NbGraderAPI(config=Config(CourseDirectory={"root": str(tmp_path), "course_id": "bare"}))
    (tmp_path / "source").symlink_to(course.root / "source")
    assert bare.generate_assignment("exercises")["success"]
    folder = tmp_path / "submitted" / "ada" / "exercises"
    folder.mkdir(parents=True)
    nbformat.write(CLASS[student][0](), folder / "exercise_1.ipynb")
    assert bare.autograde("exercises", "ada")["success"]
    with Gradebook(bare.coursedir.db_url, "bare") as gradebook:
        assert gradebook.find_submission("exercises", "ada").score == 0


def run(*arguments):
    return CliRunner().invoke(cli, ["grade", *map(str, arguments)])


def test_the_command_prints_a_table_and_json(course):
    for student, content in (("tab-1", CLASS["partly"]), ("tab-2", CLASS["truncated"])):
        hand_in(course, student, "exercises", ("exercise_1.ipynb", content[0]()))
    table = run("exercises", "--course", course.root, "--student", "tab-1")
    assert table.exit_code == 0, table.output
    assert "2.67 of 4" in table.stdout
    out = run("exercises", "--course", course.root, "--student", "tab-2", "--json")
    assert out.exit_code == 0
    (row,) = json.loads(out.stdout)["rows"]
    assert (row["student"], row["status"], row["score"], row["points"]) == ("tab-2", "graded", 0, 4)
    assert "no complete notebook" in row["parts"][0]["report"][0]


@pytest.mark.slow
def test_what_a_learner_prints_cannot_steer_the_instructors_terminal(course, tmp_path):
    hand_in(course, "escapes", "exercises", ("exercise_1.ipynb", solved("exercise_1", ESCAPES)))
    nbformat.write(solved("exercise_1", ESCAPES), tmp_path / "exercise_1.ipynb")
    graded = ["grade", "exercises", "--course", str(course.root), "--student", "escapes"]
    for command in (graded, ["check", str(tmp_path / "exercise_1.ipynb")]):
        for form in ([], ["--json"]):
            result = CliRunner().invoke(cli, command + form)
            assert result.exit_code == 0, result.output
            assert "[2J" in result.output
            assert not set("\x1b\x9b") & set(result.output)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_grading_says_what_is_graded_and_goes_on_later(tmp_path, workers):
    course = make_course(tmp_path / "course", "exercises", problems=["exercise_1"])
    cells = ("prediction", "table_answer", "order_answer", "contiguous_answer")  # each may take 30 s
    slow = solved("exercise_1", {f"exercise_1_{cell}": "import time; time.sleep(25)" for cell in cells})
    for student, content in {"a": solved("exercise_1"), "b": slow, "c": slow, "d": slow}.items():
        hand_in(course, student, "exercises", ("exercise_1.ipynb", content))
    line = "from tilelab.cli.main import cli; cli()"
    command = [sys.executable, "-c", line, "grade", "exercises", "--course", str(course.root)]
    said = tmp_path / "said"
    with said.open("w") as out:
        options = {"stdout": out, "stderr": subprocess.STDOUT, "start_new_session": True}
        grading = subprocess.Popen([*command, "--workers", str(workers)], **options)
    started = course.root / "autograded" / "a" / "exercises" / "exercise_1.ipynb"
    assert until(lambda: started.exists() or grading.poll() is not None), said.read_text()
    os.killpg(grading.pid, signal.SIGINT)  # as a terminal does: to all of them
    try:
        assert grading.wait(PATIENCE) == 130, said.read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(grading.pid, signal.SIGKILL)
    assert "at work when it was stopped: " in said.read_text()
    assert said.read_text().strip().splitlines()[-1] == (
        "stopped: 1 of 4 submissions are graded and recorded (a); the same command goes on with the rest"
    )
    assert course.graded("exercises", ["a", "b"]) == ["a"]


def files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in str(path)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("homework", "--course", "COURSE"), "no assignment 'homework' in this course; it has exercises"),
        (("exercises", "--course", "COURSE", "--student", "nobody"), "'nobody' has not handed in 'exercises'"),
        (("exercises", "--course", "nowhere"), "no course folder 'nowhere'"),
        (("exercises", "--course", "EMPTY"), "it has no nbgrader_config.py"),
        (("exercises", "--course", "NEW"), "has no gradebook: run nbgrader generate_assignment"),
        (("exercises", "--course", "ZERO"), "has no gradebook"),
        (
            ("exercises", "--course", "clone/autograder"),
            "run .venv/bin/python tools/make_views.py source && cd autograder",
        ),
        (("exercises", "--course", "CHECK"), "exercise_1.py' does not load: SyntaxError"),
        (("exercises", "--course", "PLAIN"), "does not use the judge"),
        (("exercises", "--course", "CORRUPT"), "gradebook"),
        (("exercises", "--course", "BROKEN"), "nbgrader_config.py"),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_is_written(course, tmp_path, arguments, words):
    config = (course.root / "nbgrader_config.py").read_text()
    for name, content in {
        "EMPTY": None,
        "NEW": config,
        "CORRUPT": config,
        "ZERO": config,
        "clone/autograder": config,
        "CHECK": config,
        "PLAIN": "c = get_config()",
        "BROKEN": "(",
    }.items():
        (tmp_path / name / "checks").mkdir(parents=True)
        if content is not None:
            (tmp_path / name / "nbgrader_config.py").write_text(content)
    (tmp_path / "CORRUPT" / "gradebook.db").write_text("this is no database, but it is long enough to look at" * 50)
    (tmp_path / "ZERO" / "gradebook.db").touch()
    (tmp_path / "clone" / "tools").mkdir()
    (tmp_path / "clone" / "tools" / "make_views.py").touch()
    shutil.copy(course.root / "gradebook.db", tmp_path / "CHECK")
    shutil.copytree(course.root / "source", tmp_path / "CHECK" / "source")
    (tmp_path / "CHECK" / "submitted" / "ada" / "exercises").mkdir(parents=True)
    (tmp_path / "CHECK" / "checks" / "exercise_1.py").write_text("def (")
    names = ("EMPTY", "NEW", "PLAIN", "CORRUPT", "BROKEN", "ZERO", "clone/autograder", "CHECK")
    places = {"COURSE": course.root} | {name: tmp_path / name for name in names}
    before = files_of(course.root) | files_of(tmp_path)
    result = run(*(places.get(argument, argument) for argument in arguments))
    assert result.exit_code == 1
    assert words in result.output
    assert result.output.startswith("Error: ")
    assert len(result.output.strip().splitlines()) == 1
    assert files_of(course.root) | files_of(tmp_path) == before


@pytest.mark.slow
def test_nobody_has_handed_in(tmp_path):
    course = make_course(tmp_path / "course", "exercises")
    result = run("exercises", "--course", course.root)
    assert result.exit_code == 1
    assert "nobody has handed in 'exercises' yet" in result.output


def test_the_gradebook_is_nbgraders_own(course):
    hand_in(course, "sql", "exercises", ("exercise_1.ipynb", b"broken"))
    course.grade("exercises", "sql")
    with sqlite3.connect(course.root / "gradebook.db") as database:
        rows = database.execute(
            "select g.auto_score, g.needs_manual_grade from grade g join submitted_notebook n on n.id = g.notebook_id "
            "join submitted_assignment a on a.id = n.assignment_id where a.student_id = 'sql'"
        ).fetchall()
    assert rows == [(0.0, 0)] * 3


def test_the_course_in_the_repository_is_one():
    assert Course(AUTOGRADER).api.coursedir.course_id == "tilelab"
