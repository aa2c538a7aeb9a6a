"""Printed forms, byte for byte as CuTe C++ prints them."""

from pathlib import Path

import pytest

from tilelab import Layout, LayoutError, format_layout, print_layout

GOLDEN = Path(__file__).parents[1] / "data" / "print"


@pytest.mark.parametrize(
    ("name", "layout", "static"),
    [
        ("pl_4x6", "(4,6):(1,4)", True),
        ("pl_4x6_row", "(4,6):(6,1)", True),
        ("pl_dyn", "(4,6):(1,4)", False),
        ("pl_nested", "((2,2),(2,3)):((1,4),(2,8))", True),
        ("pl_pad", "(3,5):(40,8)", True),
    ],
)
def test_print_layout(name, layout, static, capsys):
    print_layout(Layout.parse(layout), static=static)
    assert capsys.readouterr().out.encode() == (GOLDEN / f"{name}.txt").read_bytes()


def test_one_mode_is_one_row():
    assert format_layout(Layout((3,), (2,)), static=True) == (
        "(_3):(_2)\n      0   1   2 \n    +---+---+---+\n 0  | 0 | 2 | 4 |\n    +---+---+---+\n"
    )


def test_three_and_four_modes_are_slices():
    text = format_layout(Layout((2, 3, 4)))
    assert text.splitlines()[0] == "(2,3,4):(1,2,6)"
    assert [line for line in text.splitlines() if "_" in line] == [f"(_,_,{k})" for k in range(4)]
    assert "(_,_,1,2)\n" in format_layout(Layout((2, 3, 2, 3)))


def test_what_is_not_a_layout_and_what_is_too_long():
    with pytest.raises(LayoutError, match="not 7"):
        print_layout(7)
    with pytest.raises(LayoutError, match="at most"):
        print_layout(Layout((2**20, 2**20)))


@pytest.mark.parametrize("static", ["yes", 1, None])
def test_static_is_a_truth_value(static):
    with pytest.raises(LayoutError, match="static is True or False"):
        print_layout(Layout((4, 6)), static=static)


@pytest.mark.parametrize(("value", "quoted"), [({4: 6}, "{4: 6}"), ({4, 6}, "{4, 6}"), (bytearray(b"46"), "b'46'")])
def test_bad_input_of_any_kind_is_quoted(value, quoted):
    with pytest.raises(LayoutError) as error:
        Layout(value)
    assert quoted in str(error.value)
