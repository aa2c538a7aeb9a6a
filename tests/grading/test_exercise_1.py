"""Exercise 1: instant checks that give nothing away, trusted checks that give what an answer is worth."""

import re
from pathlib import Path

import pytest

from tilelab.grading.judge import Judge
from tilelab.grading.problems import problem

RIGHT = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
BY_ROWS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
BLANK = [[None] * 4 for _ in range(3)]


@pytest.fixture(scope="module")
def judge():
    return Judge(Path(__file__).parents[2] / "autograder" / "checks")


def score(judge, part, answers):
    record = {"version": 1, "problem": "exercise_1", "answers": answers}
    return judge.judge(f"exercise_1_{part}", problem("exercise_1").part(part).points, [record])


@pytest.mark.parametrize(
    ("table", "points", "words"),
    [
        (RIGHT, 2, "all 12 offsets are right"),
        ([[float(value) for value in row] for row in RIGHT], 2, "all 12"),  # an array of floats holds them too
        (BY_ROWS, 0.33, r"2 of 12 .* not right: \(0,1\)"),  # first and last agree
        ([[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 9, 13]], 1.67, r"not right: \(2,2\), \(2,3\)"),
        ([[value + 1 for value in row] for row in RIGHT], 0, "0 of 12"),
        ([[0, 3, 6, 9], [None] * 4, [None] * 4], 0.67, "4 of 12"),
        (BLANK, 0, "not answered"),
        ([list(column) for column in zip(*RIGHT, strict=True)], 0, "4 rows, the shape asks for 3"),
        ([[0, 3, 6], [1, 4, 7], [2, 5, 8]], 0, "row 0 has 3 numbers"),
        ([["0", "3", "6", "9"]] * 3, 0, "'0'"),
        (None, 0, "not a list of rows"),
        ("0 3 6 9", 0, "not a list of rows"),
        ([[True, 3, 6, 9], *RIGHT[1:]], 1.83, r"11 of 12 .* cell \(0,0\) holds True"),
        ([RIGHT[0], [True, 4, 7, 10], RIGHT[2]], 1.83, r"not right: \(1,0\) cell \(1,0\) holds True"),
        ([["x", 3, 6, 9], [1, "inf", 7, 10], RIGHT[2]], 1.67, r"\(0,0\) holds 'x', cell \(1,1\) holds 'inf'"),
        ([[0, 3, 6, 9], [1, [4], 7, 10], RIGHT[2]], 0, r"cell \(1,1\) holds \[4\]"),
    ],
)
def test_the_table_is_judged_by_cell(judge, table, points, words):
    judged = score(judge, "table", {"table": table})
    assert judged.earned == points
    assert judged.pending == 0
    assert re.search(words, " ".join(judged.lines))


@pytest.mark.parametrize(
    ("part", "answer", "points"),
    [
        ("order", "column-major", 1),
        ("order", "Column major", 1),
        ("order", "col_major", 1),
        ("order", "row-major", 0),
        ("order", None, 0),
        ("order", ["column-major", "row-major"], 0),
        ("contiguous", True, 1),
        ("contiguous", False, 0),
        ("contiguous", 1, 0),
        ("contiguous", "True", 0),
        ("contiguous", None, 0),
    ],
)
def test_the_statements(judge, part, answer, points):
    assert score(judge, part, {part: answer}).earned == points


@pytest.mark.parametrize("answer", ["True", 1, 1.0, "yes"])
def test_a_truth_value_of_another_kind_is_told_how_to_be_written(judge, answer):
    assert "write True or False, without quotes" in score(judge, "contiguous", {"contiguous": answer}).lines[0]
    assert "write True or False, without quotes" in look("contiguous", contiguous=answer).text


def test_an_instant_check_names_a_cell_that_holds_no_number():
    assert "cell (0,0) holds 'x'" in look("table", table=[["x", 3, 6, 9], *RIGHT[1:]]).text
    assert look("order", order="row-major", table=[["x", 3, 6, 9], *RIGHT[1:]]).ok
    assert problem("exercise_1").picture({"table": [["x", 3, 6, 9], *RIGHT[1:]]}) is None


def look(part, **answers):
    return problem("exercise_1").part(part).look(answers)


def test_an_instant_check_names_the_cells_and_not_their_values():
    finding = look("table", table=[[0, 3, 6, 9], [1, 4, 7, 11], [2, 5, 8, 12]])
    assert not finding.ok
    assert "2 of 12 cells are not right: (1,3), (2,3)" in finding.text
    assert "10" not in finding.text
    assert look("table", table=RIGHT).ok
    assert "Which of the two strides" in look("table", table=BY_ROWS).text
    assert "(0,0), (0,1)" in look("table", table=BLANK).text


@pytest.mark.parametrize("order", ["row-major", "column-major"])
@pytest.mark.parametrize("contiguous", [True, False])
def test_an_instant_check_of_a_yes_or_no_does_not_tell_which(order, contiguous):
    assert look("order", order=order).text == look("order", order="column-major").text
    assert look("contiguous", contiguous=contiguous).text == look("contiguous", contiguous=True).text


def test_an_instant_check_compares_a_statement_with_the_learners_own_table():
    assert "agrees" in look("order", order="row-major", table=BY_ROWS).text
    assert not look("order", order="column-major", table=BY_ROWS).ok
    holes = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14]]
    assert look("contiguous", contiguous=False, table=holes).ok
    assert not look("contiguous", contiguous=True, table=holes).ok
    assert look("order", order="row-major", table="no table").ok


@pytest.mark.parametrize(("part", "answer"), [("order", "diagonal"), ("order", None), ("contiguous", "yes")])
def test_an_instant_check_refuses_the_form(part, answer):
    assert not look(part, **{part: answer}).ok


def test_the_picture_shows_the_learners_numbers():
    drawn = problem("exercise_1").picture({"table": [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, None]]})
    assert ">10<" in drawn.svg
    assert ">?<" in drawn.svg
    assert problem("exercise_1").picture({"table": [[1]]}) is None
