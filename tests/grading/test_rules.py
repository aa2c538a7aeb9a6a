"""Launch rules: a small arithmetic, read as data."""

import pytest

from tilelab.grading.errors import GradingError
from tilelab.grading.rules import number_of, numbers_of

NAMES = {"M": 33, "N": 100, "K": 7, "TILE": 16}


@pytest.mark.parametrize(
    ("rule", "number"),
    [
        (48, 48),
        ("48", 48),
        ("TILE * TILE", 256),
        ("(N + TILE - 1) / TILE", 7),
        ("N // TILE", 6),
        ("ceil_div(M, TILE) * ceil_div(N, TILE)", 21),
        ("max(N, M) - min(N, M)", 67),
        ("2 * TILE * TILE * sizeof(float)", 2048),
        ("2*TILE*TILE*sizeof( float )", 2048),
        ("2 * TILE ** 2 * 4;", 2048),
        ("-(-N / TILE)", 7),
        ("N % TILE", 4),
        ("(N + 15) >> 4", 7),
        ("1 << 4", 16),
        ("cdiv(N, TILE)", 7),
        ("ceil(N / TILE)", 7),
        ("math.ceil((N + M) / (2 * TILE))", 5),
        ("16u * 2UL + 1ll", 33),
        ("ceil_div(N, 16.0)", 7),
        (16.0, 16),
    ],
)
def test_a_rule_is_worked_out(rule, number):
    assert number_of(rule, NAMES) == number


@pytest.mark.parametrize(
    ("rule", "numbers"),
    [
        ("ceil_div(N, TILE), ceil_div(M, TILE)", (7, 3)),
        ("(TILE, TILE)", (16, 16)),
        (["ceil_div(N, 32)", 3, 1], (4, 3, 1)),
        ("dim3(ceil_div(N, 32), 3)", (4, 3)),
        ("[TILE, 2]", (16, 2)),
        ({"x": "ceil_div(N, 32)", "y": 3}, (4, 3, 1)),
        (256, (256,)),
        ("N", (100,)),
    ],
)
def test_extents_are_one_to_three_numbers(rule, numbers):
    assert numbers_of(rule, NAMES) == numbers


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("__import__('os').system('true')", "does not know"),
        ("().__class__", "does not know"),
        ("open('x')", "does not know"),
        ("[1 for _ in (1,)]", "does not know"),
        ("lambda: 1", "does not know"),
        ("TILE ** 99", "to the power 99; at most 8"),
        ("1 if M else 2", "does not know"),
        ("'7'", "does not know"),
        ("1.5", "does not know"),
        ("True", "does not know"),
        ("max(*M)", "does not know"),
        ("ceil(N)", "does not know"),
        ("ceil(N / 2 / 3)", "does not know"),
        ("math.floor(N / 2)", "does not know"),
        ("os.ceil(N / 2)", "does not know"),
        ("N << 99", "shifts by 99 places"),
        ("N >> -1", "shifts by -1 places"),
        ("1 << 62 << 62", "too large"),
        ("dim3()", "does not know"),
        ("dim3(1, 2)", "2 numbers"),
        ("1e30", "too large"),
        ("1e400", "does not know"),
        ({"x": 1}, "not {'x': 1}"),
        ("P * 2", "asks for 'P'; it may ask for M, N, K, TILE"),
        ("N / 0", "divides by zero"),
        ("N % (K - 7)", "divides by zero"),
        ("ceil_div(N)", "takes two"),
        ("N +", "cannot read"),
        ("(" * 200 + "1" + ")" * 200, "300 characters"),
        ("(" * 140 + "1" + ")" * 140, ""),
        ("9" * 40, "too large"),
        (10**400, "too large"),
        (2**63, "too large"),
        ("9**9**9", "to the power 9;"),
        ("'a' * 9", "does not know"),
        ("\u0661", "cannot read"),
        ("\ud800", "cannot read"),
        ("N\n+1", "cannot read"),
        ("N * " * 70 + "N", "too large"),
        ("M, N", "2 numbers"),
        (None, "not None"),
        (1.5, "not 1.5"),
        (True, "not True"),
    ],
)
def test_anything_else_is_refused_in_words(rule, words):
    if not words:
        assert number_of(rule, NAMES) == 1
        return
    with pytest.raises(GradingError, match=words.replace("(", r"\(")):
        number_of(rule, NAMES)


@pytest.mark.parametrize(
    "rule",
    ["1, 2, 3, 4", {}, {"x": 1, "w": 2}, {"x": "1, 2"}, "dim3(dim3(1, 2), 3)", [], [1, [2]], ["1, 2"], "(1, (2, 3))"],
)
def test_extents_of_another_number_are_refused(rule):
    with pytest.raises(GradingError):
        numbers_of(rule, NAMES)
