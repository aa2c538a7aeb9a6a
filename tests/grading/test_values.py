"""Single values as answers: numbers of any size, and what is none."""

import pytest

from tilelab.grading.values import number, statements_fault, whole


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3), (3.0, 3), (10**400, 10**400), (True, None), (float("inf"), None), (float("nan"), None), ("inf", None)],
)
def test_whole(value, expected):
    assert whole(value) == expected


@pytest.mark.parametrize(("value", "expected"), [(3, 3.0), (10**400, None), (float("-inf"), None), ("nan", None)])
def test_number(value, expected):
    assert number(value) == expected


def test_a_statement_in_quotes_is_told_how_to_be_written():
    assert "without quotes, not 'True'" in statements_fault({"a": True, "b": "True"}, ("a", "b"))
