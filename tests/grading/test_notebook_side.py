"""What a learner calls, at work, under Validate and under autograde."""

import os

import nbformat
import pytest
from classroom import solved
from nbgrader.validator import Validator

from tilelab.grading import GradingError, check, submit
from tilelab.grading.answers import MIME
from tilelab.grading.problems import problem, split

TABLE = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]


@pytest.fixture
def mode(monkeypatch):
    def set_mode(name):
        if name is None:
            monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
        else:
            monkeypatch.setenv("NBGRADER_EXECUTION", name)

    set_mode(None)
    return set_mode


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would be sent: mime bundles, in order."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.testing.globalipapp import start_ipython  # noqa: F401  (the shell that displays need)

    sent = []
    monkeypatch.setattr("tilelab.grading.notebook_side._shell", lambda: InteractiveShell)
    monkeypatch.setattr("IPython.display.display", lambda value, raw=False: sent.append(value))
    return sent


def test_at_work_submit_records_all_answers_at_once_and_says_how_the_checks_went(mode, shown):
    submit("exercise_1", table=TABLE, order="column-major", contiguous=True)
    (bundle,) = shown
    assert bundle[MIME] == {
        "version": 1,
        "problem": "exercise_1",
        "answers": {"table": TABLE, "order": "column-major", "contiguous": True},
    }
    assert "✓ table: all 12 offsets are right" in bundle["text/plain"]
    assert "✓ contiguous: it agrees with your table" in bundle["text/plain"]


def test_what_is_not_decided_has_a_mark_of_its_own(mode, shown):
    check("exercise_3", degree=16)
    bundle = shown[0]
    assert "○ degree: readable" in bundle["text/plain"]
    assert "○ can be judged; whether it is right is not told here" in bundle["text/html"]
    check("exercise_3", degree=99)
    assert "✗ degree" in shown[-1]["text/plain"]
    assert "○" not in shown[-1]["text/html"]


def test_a_part_can_be_handed_in_by_its_own_name(mode, shown):
    submit("exercise_1_order", order="row-major")
    assert shown[0][MIME]["problem"] == "exercise_1"
    assert shown[0][MIME]["answers"] == {"order": "row-major"}


def test_check_shows_the_learners_own_picture_and_records_nothing(mode, shown):
    check("exercise_1", table=TABLE)
    bundle, picture = shown
    assert MIME not in bundle
    assert ">11<" in picture.svg


def test_under_autograde_submit_only_records(mode, shown):
    mode("autograde")
    submit("exercise_1", table=[["nonsense"]])
    assert MIME in shown[0]
    assert "✗" not in shown[0]["text/plain"]


def test_under_validate_a_failed_check_raises(mode, shown):
    mode("validate")
    with pytest.raises(GradingError, match=r"table: 1 of 12 cells are not right: \(2,3\)"):
        submit("exercise_1", table=[*TABLE[:2], [2, 5, 8, 12]])


def test_in_plain_python_the_words_are_printed(mode, capsys):
    submit("exercise_1", table=TABLE)
    assert "✓ table: all 12 offsets are right" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "answers", "words"),
    [
        ("exercise_99", {"table": TABLE}, "there is no problem 'exercise_99'; there are exercise_1"),
        ("exercise_1", {"tabel": TABLE}, "exercise_1 asks for no 'tabel'; its answers are table, order, contiguous"),
        ("exercise_1_size", {"table": TABLE}, "exercise_1 has no part 'size'; it has table, order, contiguous"),
        ("exercise_1_table", {"order": "row-major"}, "exercise_1_table needs table"),
        ("exercise_1", {}, "no part has all its answers here: table needs table"),
        ("exercise_1", {"table": ...}, "an ellipsis cannot be handed in: Ellipsis"),
    ],
)
def test_a_call_that_cannot_be_meant_says_what_would_work(mode, name, answers, words):
    for call in (check, submit):
        with pytest.raises(GradingError) as caught:
            call(name, **answers)
        assert words in str(caught.value)


def test_a_fault_of_a_check_or_of_the_drawing_stops_nobody(mode, shown, monkeypatch, capsys):
    def fault(answers):
        raise ZeroDivisionError("ours")

    exercise = problem("exercise_1")
    monkeypatch.setitem(exercise.__dict__, "picture", fault)
    monkeypatch.setitem(exercise.parts[0].__dict__, "look", fault)
    check("exercise_1", table=TABLE)
    assert "the instant check itself failed (ZeroDivisionError: ours); the judge will look" in shown[0]["text/plain"]
    assert "could not be drawn" in capsys.readouterr().out


@pytest.mark.parametrize("name", [None, 3, ["exercise_1"], TABLE])
def test_what_is_no_name_of_a_problem_is_quoted(mode, name):
    for call in (check, submit):
        with pytest.raises(GradingError, match=r"name the problem first, such as 'exercise_1', not "):
            call(name, table=TABLE)


def test_an_answer_without_its_name_is_told_how_it_is_written(mode):
    for call in (check, submit):
        with pytest.raises(GradingError, match=r"write table=…, not \[\[0, 3, 6, 9\], "):
            call("exercise_1", TABLE)


class Unspeakable:
    """Refuses to be quoted and to be listed."""

    def __repr__(self):
        raise ValueError("no repr")


class Unlisted:
    def tolist(self):
        raise RuntimeError("still on another device")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Unspeakable(), "an Unspeakable cannot be handed in"),
        (Unlisted(), "its tolist() says RuntimeError: still on another device"),
        (int, "a type cannot be handed in"),
        (1j, "a complex cannot be handed in: 1j"),
        (lambda: 1, "define it with def in a cell"),
    ],
)
def test_what_is_no_data_is_refused_in_words(mode, answer, words):
    for call in (check, submit):
        with pytest.raises(GradingError) as caught:
            call("exercise_1", table=answer)
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("exercise_1_table", ("exercise_1", "table")),
        ("exercise_1", ("exercise_1", "")),
        ("exercise_12_table", ("", "")),
        ("homework", ("", "")),
    ],
)
def test_names_of_grade_cells(cell, parts):
    assert split(cell) == parts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({}, []),
        ({"exercise_1_order_answer": "order = 'diagonal'"}, ["the order is one of 'row-major' and 'column-major'"]),
    ],
)
def test_nbgraders_validate_passes_and_fails_with_the_instant_checks(tmp_path, changes, failed):
    file = tmp_path / "exercise_1.ipynb"
    nbformat.write(solved("exercise_1", changes), file)
    result = Validator().validate(str(file))
    assert "changed" not in result
    errors = [cell["raw_error"] for cell in result.get("failed", [])]
    assert len(errors) == len(failed)
    for error, words in zip(errors, failed, strict=True):
        assert words in error
    assert "NBGRADER_EXECUTION" not in os.environ
