"""Layouts as answers: what is the same function is the same answer."""

import pytest

from tilelab.grading.answers import record
from tilelab.grading.errors import GradingError
from tilelab.grading.layouts import collision, read_layout
from tilelab.layout import Layout, Swizzle, composition


def handed_in(value):
    """What the judge sees of a value that a learner hands in."""
    return record("exercise_2", {"layout": value})["answers"]["layout"]


@pytest.mark.parametrize(
    "form",
    [
        "(4,3):(3,1)",
        "(_4,_3):(_3,_1)",
        Layout((4, 3), (3, 1)),
        ((4, 3), (3, 1)),
        {"shape": (4, 3), "stride": (3, 1)},
        "((2,2),3):((3,6),1)",
        "Layout((4, 3), (3, 1))",
        "((4, 3), (3, 1))",
        " Layout (((2, 2), 3), ((3, 6), 1)) ",
        "tl.Layout((4, 3), (3, 1))",
        "make_layout(make_shape(4, 3), make_stride(3, 1));",
        "cute::make_layout(cute::make_shape(4,3), cute::make_stride(3,1))",
        {"shape": (4, 3), "strides": (3, 1)},
        [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]],
    ],
)
def test_all_forms_of_a_layout_are_one_function(form):
    answer = read_layout(handed_in(form))
    assert answer.extents == (4, 3)
    assert [answer.offset(i, j) for i in range(4) for j in range(3)] == list(range(12))
    assert (answer.size, answer.cosize) == (12, 12)


@pytest.mark.parametrize("form", [str, lambda layout: layout], ids=["text", "value"])
def test_a_swizzled_layout_is_the_table_of_its_offsets(form):
    swizzled = composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))
    answer = read_layout(handed_in(form(swizzled)))
    table = read_layout([[8 * i + (j ^ (i & 3)) for j in range(8)] for i in range(8)])
    assert (answer.extents, answer.offsets, answer.cosize) == (table.extents, table.offsets, table.cosize)
    shifted = read_layout("Sw<2,0,3> o 64 o ((2,4),8):((8,16),1)")
    assert (shifted.extents, shifted.offsets) == ((8, 8), [64 + offset for offset in table.offsets])


def test_coordinates_run_through_the_first_mode_first():
    answer = read_layout("(2,3):(3,1)")
    assert list(answer.coordinates()) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert answer.offsets == [0, 3, 1, 4, 2, 5]


def test_two_rows_of_offsets_are_a_table_and_two_of_extents_are_none():
    assert read_layout([[0, 2, 4, 6], [1, 3, 5, 7]]).offsets == list(range(8))
    assert read_layout([[2, 4], [1, 2]]).text == "(2,4):(1,2)"


def test_one_mode_has_one_extent():
    assert read_layout("8:1").extents == (8,)
    assert read_layout("(2,4):(1,2)").extents == (2, 4)
    assert read_layout("((2,4)):((1,2))").extents == (8,)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("4x3", "has no : before strides"),
        ("(32,32),(1,33)", "Write shape:stride"),
        ("4x3:1", "cannot read"),
        (12, "not a layout"),
        ("(1024,1024):(1024,1)", "limit here"),
        ("(4,3):(-3,1)", "negative"),
        ([[0, 1], [2], [3, 4]], "different lengths"),
        ([[0, 1], [2, "x"], [3, 4]], r"\(1,1\)"),
        ([[0, 1], [2, -1], [3, 4]], r"\(1,1\)"),
        ({"shape": [4, 3]}, "not a layout"),
        ({"shape": "x", "stride": [1]}, "not a layout"),
    ],
)
def test_what_is_no_layout_is_refused_in_words(value, words):
    with pytest.raises(GradingError, match=words):
        read_layout(value)


def test_a_collision_names_two_coordinates():
    assert collision(read_layout("(4,4):(1,3)")) == ((3, 0), (0, 1))
    assert collision(read_layout("(4,4):(5,1)")) is None
