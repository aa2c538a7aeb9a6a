"""The answer record: what crosses, and what is refused in words."""

import math

import pytest

from tilelab.grading import GradingError
from tilelab.grading.answers import MAX_BYTES, read, record


def test_a_record_holds_the_answers_as_plain_data():
    made = record("exercise_1", {"table": ((0, 3), [1, 4]), "order": "row-major", "sure": True, "none": None})
    assert made == {
        "version": 1,
        "problem": "exercise_1",
        "answers": {"table": [[0, 3], [1, 4]], "order": "row-major", "sure": True, "none": None},
    }


def test_arrays_become_lists():
    numpy = pytest.importorskip("numpy")
    made = record("exercise_1", {"table": numpy.arange(6).reshape(2, 3), "one": numpy.int64(7)})
    assert made["answers"] == {"table": [[0, 1, 2], [3, 4, 5]], "one": 7}


def test_a_set_is_recorded_as_one_and_is_no_list():
    made = record("practice_3", {"racing": [{21, 17}, frozenset({18})], "mixed": {2, "x", (1, 2), None}})["answers"]
    assert made == {"racing": [{"set": [17, 21]}, {"set": [18]}], "mixed": {"set": ["x", 2, [1, 2], None]}}


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def holding_itself():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [
        (math.nan, "nan"),
        ([1.0, -math.inf], [1.0, "-inf"]),
        ([10**5000], ["a whole number of 16,610 bits"]),
        ("\ud800", "\\ud800"),
        ({"\udc00": 1}, {"\\udc00": 1}),
        ("\u00e9 \U0001f642", "\u00e9 \U0001f642"),
    ],
)
def test_a_value_that_json_cannot_hold_is_recorded_as_words(answer, recorded):
    assert record("exercise_1", {"table": answer})["answers"] == {"table": recorded}


def test_arrays_hold_such_values_too():
    numpy = pytest.importorskip("numpy")
    assert record("exercise_1", {"table": numpy.array([1.0, numpy.inf])})["answers"] == {"table": [1.0, "inf"]}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (nested(30), "nested more than 20 deep"),
        (nested(500), "nested more than 20 deep"),
        (holding_itself(), "or holds itself"),
        ("x" * MAX_BYTES, "the limit is 1,000,000"),
        (b"bytes", "a bytes cannot be handed in"),
        ({1, b"bytes"}, "a bytes cannot be handed in"),
        (print, "built-in function print"),
        (1 + 2j, "a complex cannot be handed in"),
    ],
)
def test_what_a_learner_cannot_hand_in(answer, words):
    with pytest.raises(GradingError, match=words):
        record("exercise_1", {"table": answer})


GOOD = {"version": 1, "problem": "exercise_1", "answers": {"order": "row-major"}}


def test_the_judge_reads_a_record_and_drops_what_does_not_belong():
    assert read([GOOD | {"score": 100}], "exercise_1") == GOOD


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], "no answer was recorded"),
        ([GOOD, GOOD], "2 answers were recorded in one cell"),
        ([GOOD | {"problem": "exercise_2"}], "for 'exercise_2', this cell belongs to 'exercise_1'"),
        ([GOOD | {"version": 2}], "not an answer record of this version"),
        ([GOOD | {"answers": [1]}], "not an answer record"),
        (["full marks"], "not an answer record"),
        ([GOOD | {"answers": {"order": math.nan}}], "not finite"),
        ([GOOD | {"answers": {"order": nested(5000)}}], "nested too deep"),
        ([GOOD | {"answers": {"order": nested(900)}}], "nested"),
        ([GOOD | {"answers": {"order": 10**5000}}], "a whole number of thousands of digits"),
        ([GOOD | {"answers": {"order": b"bytes"}}], "not plain data"),
    ],
)
def test_what_the_judge_refuses(found, words):
    with pytest.raises(GradingError, match=words):
        read(found, "exercise_1")
