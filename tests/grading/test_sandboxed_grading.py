"""Grading happens in the sandbox, or says that it does not; limits come from the course, question by question."""

import pytest
from classroom import hand_in, solved
from click.testing import CliRunner

from tilelab.cli.main import cli
from tilelab.grading.budgets import Budget, budget
from tilelab.grading.errors import GradingError
from tilelab.grading.evaluate import NO_SANDBOX
from tilelab.grading.execute import ContainedExecute
from tilelab.grading.sandbox import jail
from tilelab.grading.sandbox.limits import MIB

pytestmark = pytest.mark.slow

WHERE = 'import os\norder = "column-major" if os.path.exists("/given") else "row-major"'


def run(course, *arguments):
    return CliRunner().invoke(cli, ["grade", "exercises", "--course", str(course.root), *arguments])


@pytest.mark.slow
def test_the_sandbox_is_on_unless_it_is_switched_off_and_that_is_marked(course):
    notebook = solved("exercise_1", {"exercise_1_order_answer": WHERE})
    hand_in(course, "where", "exercises", ("exercise_1.ipynb", notebook))
    inside = course.grade("exercises", "where")
    assert inside.score == 4
    assert not any(NO_SANDBOX in part.notes for part in inside.parts)
    assert course.grade("exercises", "where", sandboxed=False).status == "kept", "what was graded safely stays"
    outside = course.grade("exercises", "where", force=True, sandboxed=False)
    assert outside.score == 3
    assert all(NO_SANDBOX in part.notes for part in outside.parts)
    html = (course.root / "feedback" / "where" / "exercises" / "exercise_1.html").read_text()
    assert html.count(NO_SANDBOX.split(":")[0]) == 3
    again = course.grade("exercises", "where")
    assert (again.status, again.score) == ("graded", 4), "what was graded without the sandbox is graded again in it"


def test_without_a_sandbox_nothing_is_graded(course, monkeypatch):
    hand_in(course, "waits", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
    jail.bubblewrap.cache_clear()
    monkeypatch.setattr(jail.shutil, "which", lambda name: None)
    try:
        result = run(course, "--student", "waits")
    finally:
        jail.bubblewrap.cache_clear()
    assert result.exit_code == 1
    assert len(result.output.strip().splitlines()) == 1
    assert "bubblewrap" in result.output
    assert "--no-sandbox" in result.output
    assert not (course.root / "autograded" / "waits").exists()


def test_a_course_that_can_be_seen_from_inside_is_not_graded(course, monkeypatch):
    hand_in(course, "seen", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
    show = jail.Jail.__init__

    def too_much(self, limits=None, paths=(), room=None):
        show(self, limits, (*paths, str(course.root)), room)

    monkeypatch.setattr(jail.Jail, "__init__", too_much)
    with pytest.raises(GradingError, match="can be seen"):
        course.grade("exercises", "seen")
    assert not (course.root / "autograded" / "seen").exists()


def test_a_kernel_that_is_not_in_the_sandbox_runs_nothing(monkeypatch):
    from nbformat import v4

    monkeypatch.setattr("tilelab.grading.execute.enclose", lambda manager, limits: None)
    notebook = v4.new_notebook(cells=[v4.new_code_cell("print('ran')")])
    notebook.metadata["kernelspec"] = {"name": "python3"}
    with pytest.raises(RuntimeError, match="not in the sandbox but in a LocalProvisioner"):
        ContainedExecute().preprocess(notebook, {})
    assert notebook.cells[0].outputs == []


def test_limits_of_a_course_a_problem_and_a_question(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text(
        "[every]\nmemory = '1 GiB'\ncell_seconds = 10\n"
        "[exercise_1]\nprocesses = 50\nrestarts = 3\n[exercise_1.order]\ncell_seconds = 60\n"
    )
    found = budget(file, "exercise_1")
    assert (found.limits.memory, found.limits.processes, found.restarts) == (1024 * MIB, 50, 3)
    assert [found.of(part, "cell_seconds") for part in ("table", "order", "")] == [10, 60, 10]
    assert budget(file, "exercise_2").limits.processes == Budget().limits.processes
    assert budget(tmp_path / "none.toml", "exercise_1") == Budget()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[every]\nmemory = 'lots'", "512 MiB"),
        ("[every]\nram = 1", "the limits are memory"),
        ("[every", "is not TOML"),
        ("[exercise_1.speed]\ncell_seconds = 1", "the questions of exercise_1 are table, order, contiguous"),
        ("[exercise_1.order]\nmemory = 1", "is not cell_output or cell_seconds"),
    ],
)
def test_limits_that_cannot_be_meant_name_the_file(tmp_path, text, words):
    file = tmp_path / "limits.toml"
    file.write_text(text)
    with pytest.raises(GradingError, match=words):
        budget(file, "exercise_1")
