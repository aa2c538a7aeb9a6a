"""Explanations carry the numbers of the operation itself."""

import pytest

from tilelab import Layout, LayoutError, complement, composition, explain, logical_divide, zipped_divide


def test_a_composition_step_by_step():
    told = explain(composition, Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    assert told.result == composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    assert str(told).splitlines() == [
        "A∘B for A = (6,2):(8,2), B = (4,3):(3,1)",
        "1. mode 4:3 of B takes from A (2,2):(24,2)",
        "2. mode 3:1 of B takes from A 3:8",
        "3. all modes together reach 5 in A's mode 6:8, which stays below 6",
        "4. one mode of B after the other: A∘B = ((2,2),3):((24,2),8)",
        "= ((2,2),3):((24,2),8)",
    ]


def test_a_composition_that_does_not_exist_is_told_up_to_where_it_fails():
    told = explain(composition, Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3)))
    assert told.result is None
    assert told.error.details["coordinate"] == (2, 1)
    assert "all modes together reach 7 in A's mode 6:1, which carries over 6" in told.steps
    assert "A(7) = 8" in str(told)


def test_complements_and_divisions():
    assert "2:1 fills the gap" in explain(complement, Layout(4, 2), 24).steps[0]
    ragged = explain(logical_divide, Layout((15, 15)), (4, 4))
    assert "mode 0, 15:1, by 4" in ragged.steps
    assert str(ragged).endswith("31 coordinates outside")
    assert str(explain(logical_divide, Layout(24, 1), Layout((3, 2), (1, 4)))).endswith("some elements in no tile")
    zipped = explain(zipped_divide, Layout(24, 1), Layout(4, 2))
    assert zipped.result == zipped_divide(Layout(24, 1), Layout(4, 2))


def test_rich_form_has_the_steps_and_a_picture():
    html = explain(composition, Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))._repr_html_()
    assert html.count("<li>") == 4
    assert "<svg" in html
    assert "A∘B for A = (6,2):(8,2)" in html


def test_what_cannot_be_explained():
    for arguments in [
        (),
        (composition,),
        (composition, 4, 5),
        (sorted, Layout(4), Layout(2)),
        (composition, Layout(4)),
    ]:
        with pytest.raises(LayoutError):
            explain(*arguments) if arguments else explain(composition)
