"""course.toml: weights, due dates, lateness; and progress kept on the reader's own machine."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilelab.cli.main import cli
from tilelab.grading import check, progress, submit
from tilelab.grading.errors import GradingError
from tilelab.grading.policy import FILE, Late, Policy, read_policy
from tilelab.grading.problems import names

HOUR = 3600
TABLE = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]


def policy(tmp_path, text):
    file = tmp_path / FILE
    file.write_text(text)
    return read_policy(file)


def test_lateness_costs_a_share_for_each_day_begun_after_the_grace():
    late = Late(grace_minutes=15, per_day=0.1, most=0.35)
    shares = [late.share(s) for s in (0, 900, 901, 24 * HOUR + 900, 24 * HOUR + 901, 90 * HOUR, 900 * HOUR)]
    assert shares == pytest.approx([0, 0, 0.1, 0.1, 0.2, 0.35, 0.35])
    assert Late().share(1e9) == 0


def test_the_courses_own_file_is_read():
    ours = read_policy(Path(__file__).parents[2] / "autograder" / FILE)
    assert sum(ours.weights.values()) == pytest.approx(1)
    assert set(ours.weights) == {"exercises", "practice"}


def test_no_file_means_no_rules(tmp_path):
    assert read_policy(tmp_path / FILE) == Policy()


def test_due_dates_are_utc(tmp_path):
    said = policy(tmp_path, "[due]\na = 2027-03-01T23:59:00Z\nb = 2027-03-01T23:59:00+02:00\nc = 2027-03-01T23:59:00\n")
    assert said.due["a"] == said.due["c"] == datetime(2027, 3, 1, 23, 59, tzinfo=UTC)
    assert said.due["b"] == datetime(2027, 3, 1, 21, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[weights]\na = 0.5\nb = 0.6\n", "add up to 1.1"),
        ("[weights]\na = 2\n", "between 0 and 1"),
        ("[weights]\na = true\n", "between 0 and 1"),
        ("[late]\nper_week = 0.1\n", "per_week"),
        ("[late]\ngrace_minutes = -1\n", "grace_minutes"),
        ("[late]\nmost = 'all'\n", "late.most"),
        ("[due]\nexercises = 'monday'\n", "due.exercises"),
        ("[penalties]\n", r"\[penalties\]"),
        ("[late\n", "cannot read"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(tmp_path, text, words):
    with pytest.raises(GradingError, match=words):
        policy(tmp_path, text)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    file = tmp_path / "deep" / "progress.json"
    monkeypatch.setenv("TILELAB_PROGRESS", str(file))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return file


def of(name):
    return next(one for one in progress.progress() if one.problem == name)


def test_working_on_a_problem_is_remembered(kept, capsys):
    assert of("exercise_1").fine == 0
    check("exercise_1", table=TABLE, order="diagonal")
    assert (of("exercise_1").fine, of("exercise_1").handed_in) == (1, 0)
    submit("exercise_1", order="column-major")
    assert (of("exercise_1").fine, of("exercise_1").handed_in, of("exercise_1").parts) == (1, 1, 3)
    assert of("exercise_1").open == 1, "where only the form was looked at, nobody said that it is fine"
    check("exercise_1", table=[[0] * 4] * 3)
    assert of("exercise_1").fine == 0, "what is no longer fine is no longer said to be"
    shown = CliRunner().invoke(cli, ["progress"])
    assert "exercise_1" in shown.output
    rows = json.loads(CliRunner().invoke(cli, ["progress", "--json"]).output)["rows"]
    assert [row["problem"] for row in rows] == list(names())


@pytest.mark.parametrize("empty", [None, math.nan, "  ", [], {"a": None}, [[None]]])
def test_an_answer_that_holds_nothing_is_not_handed_in(kept, capsys, empty):
    submit("exercise_1", order="column-major")
    submit("exercise_1", order=empty)
    assert of("exercise_1").handed_in == 0
    assert "holding no answer yet: order" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["autograde", "validate"])
def test_a_judges_run_leaves_no_trace(kept, monkeypatch, capsys, mode):
    monkeypatch.setenv("NBGRADER_EXECUTION", mode)
    submit("exercise_1", table=TABLE)
    assert not kept.exists()


def test_it_can_be_turned_off(kept, monkeypatch, capsys, tmp_path):
    usual = tmp_path / "tilelab" / "progress.json"
    usual.parent.mkdir()
    usual.write_text('{"parts": {"exercise_3_degree": {"earned": 1.0}}}')
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("TILELAB_PROGRESS", "")
    check("exercise_1", table=TABLE)
    assert progress.read() == {}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"parts": 3}', '{"parts": {"exercise_1_table": 7}}'])
def test_a_file_that_is_not_ours_is_no_trouble(kept, capsys, content):
    kept.parent.mkdir()
    kept.write_text(content)
    check("exercise_1", table=TABLE)
    assert of("exercise_1").fine == 1


def test_a_place_that_cannot_be_written_is_no_trouble(kept, capsys):
    kept.parent.write_text("a file where a folder should be")
    check("exercise_1", table=TABLE)
    assert "all 12" in capsys.readouterr().out
