"""What learners wrote cannot steer the terminal of whoever reads it."""

import json

import pytest

from tilelab.cli.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünï 🙂 ∘\nnext", "plain, ünï 🙂 ∘\nnext"),
        ("\x1b[2J", r"\u001b[2J"),
        ("a\rb\x9b\x7f\0\t", r"a\u000db\u009b\u007f\u0000\u0009"),
        ("\u202eright to left", r"\u202eright to left"),
        ("\ud800", r"\ud800"),
    ],
)
def test_characters_that_a_terminal_obeys_are_spelled_out(text, shown):
    assert visible(text) == shown
    assert visible(text).encode()


def test_json_stays_what_it_was():
    value = {"a": '\x1b[2J \x9b \u202e \\ " é'}
    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value
