"""The decisions listed in ``book/where-we-differ.md``, where more than one answer would be right."""

import pickle
import re
from pathlib import Path

import pytest

import tilelab as tl
from tilelab import Layout, LayoutError, Swizzle

PAGE = (Path(__file__).parents[2] / "book" / "where-we-differ.md").read_text()


def test_ragged_tiles_are_counted():
    by_mode = tl.logical_divide(Layout((15, 15)), (4, 4))
    assert (by_mode.covers, by_mode.extra) == (True, 256 - 225)
    whole = tl.logical_divide(Layout(10, 3), 4)
    assert (whole, whole.covers, whole.extra) == (Layout((4, 3), (3, 12)), True, 2)
    exact = tl.logical_divide(Layout((4, 6)), 8)
    assert (exact.covers, exact.extra) == (True, 0)


def test_a_tile_that_crosses_modes_raggedly_is_refused_with_advice():
    with pytest.raises(LayoutError, match=r"logical_divide\(layout, \(tile, …\)\)"):
        tl.logical_divide(Layout((3, 4), (4, 1)), 2)
    assert tl.logical_divide(Layout((3, 4), (4, 1)), (2,)).extra == 4


def test_gaps_that_do_not_fit_leave_elements_out_and_say_so():
    assert tl.complement(Layout((3, 2), (1, 4)), 24) == Layout(3, 8)
    division = tl.logical_divide(Layout(24, 1), Layout((3, 2), (1, 4)))
    assert (division.covers, division.extra) == (False, 0)


@pytest.mark.parametrize("operation", [tl.complement, tl.left_inverse])
def test_repeated_offsets_are_refused(operation):
    with pytest.raises(LayoutError, match=r"\(4,4\):\(1,2\)"):
        operation(Layout((4, 4), (1, 2)))
    with pytest.raises(LayoutError, match="stride -1"):
        operation(Layout((4, 3), (-1, 4)))
    operation(Layout((4, 3), (0, 1)))


@pytest.mark.parametrize("operation", [tl.complement, tl.left_inverse, lambda layout: tl.logical_product(layout, 2)])
def test_modes_that_interleave_are_named_although_all_offsets_differ(operation):
    layout = Layout((2, 2), (2, 3))
    assert len({layout(i) for i in range(4)}) == 4
    with pytest.raises(LayoutError, match=r"one after the other; in .* mode 2:3 starts before 4, where mode 2:2 ends"):
        operation(layout)


def test_a_left_inverse_names_the_stride_that_does_not_divide_the_next():
    layout = Layout((3, 2), (2, 7))
    assert len({layout(i) for i in range(6)}) == 6
    with pytest.raises(LayoutError, match="stride 2 does not divide stride 7"):
        tl.left_inverse(layout)


def test_inverses():
    with pytest.raises(LayoutError, match="does not divide"):
        tl.left_inverse(Layout((2, 2), (2, 5)))
    with pytest.raises(LayoutError, match="starts before 4"):
        tl.left_inverse(Layout((2, 2), (2, 3)))
    assert tl.right_inverse(Layout((2, 3), (1, 1))) == Layout(2, 1)


def test_composition_below_and_past_a():
    assert tl.composition(Layout((4, 3), (2, 8)), Layout(4, -1)) == Layout(4, -2)
    with pytest.raises(LayoutError, match="below the first element"):
        tl.composition(Layout((4, 3), (1, 8)), Layout(4, -1))
    assert tl.composition(Layout((4, 3), (1, 7)), Layout((1, 2), (5, 4))).shape == (1, 2)
    assert tl.composition(Layout((4, 6, 1), (2, 3, 0)), Layout(30, 4)) == Layout((6, 5), (3, 0))
    assert tl.composition(Layout((4, 6), (2, 3)), Layout(30, 4)) == Layout(30, 3)


def test_tuples_with_fewer_modes():
    layout = Layout((4, 6, 8))
    assert tl.composition(layout, (2, 3)) == Layout((2, 3), (1, 4))
    assert tl.composition(layout, (2, None)) == Layout((2, 6), (1, 4))
    assert tl.composition(layout, None) == layout
    assert tl.logical_divide(layout, (2,)) == Layout.parse("((2,2),6,8):((1,2),4,24)")
    assert tl.logical_divide(layout, None) == layout


def test_recasting():
    with pytest.raises(LayoutError, match="whole vectors of 2"):
        tl.upcast(Layout((3, 4), (1, 4)), 2)
    for layout in (Layout(4, 2), Layout((4, 4), (1, 1))):
        with pytest.raises(LayoutError, match="stride 1"):
            tl.downcast(layout, 2)
    assert tl.recast(Layout((8, 4)), 16, 32) == Layout((4, 4), (1, 4))
    assert tl.recast(Layout((8, 4)), 32, 16) == Layout((16, 4), (1, 16))
    swizzled = tl.composition(Swizzle(3, 4, 3), Layout((8, 64), (64, 1)))
    assert str(tl.upcast(swizzled, 8)) == "Sw<3,1,3> o 0 o (8,8):(8,1)"
    assert str(tl.downcast(swizzled, 2)) == "Sw<3,5,3> o 0 o (8,128):(128,1)"
    with pytest.raises(LayoutError, match="split"):
        tl.upcast(tl.composition(Swizzle(1, 0, 3), Layout((8, 8), (8, 1))), 2)


def test_swizzled_layouts_are_changed_inside():
    swizzled = tl.composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))
    assert str(tl.slice_and_offset((1, None), swizzled)[0]) == "Sw<2,0,3> o 8 o (8,):(1,)"
    assert str(tl.logical_divide(swizzled, (4, 4))) == "Sw<2,0,3> o 0 o ((4,2),(4,2)):((8,32),(1,4))"
    atom = tl.tile_to_shape(swizzled, (16, 16))
    assert sorted(atom(i) for i in range(256)) == list(range(256))
    assert str(tl.composition(Layout(64, 2), swizzled)) == "64:2 o 0 o Sw<2,0,3> o 0 o (8,8):(8,1)"
    twice = tl.composition(Swizzle(1, 0, 4), swizzled)
    assert [twice(i) for i in range(64)] == [Swizzle(1, 0, 4)(swizzled(i)) for i in range(64)]
    with pytest.raises(LayoutError, match="have no shape"):
        tl.composition(Swizzle(1, 0, 4), Swizzle(2, 0, 3))
    huge = tl.composition(Swizzle(3, 4, 3), Layout((2**20, 2**20), (2**20, 1)))
    assert huge.cosize == 2**40


def test_swizzles_and_swizzled_layouts_are_values():
    swizzled = tl.composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))
    assert len({swizzled, tl.composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1))), Layout(8)}) == 2
    for value, name in ((swizzled, "offset"), (Swizzle(2, 0, 3), "bits")):
        with pytest.raises(AttributeError, match="never changes"):
            setattr(value, name, 1)
        assert pickle.loads(pickle.dumps(value)) == value


def test_text_of_one():
    assert Layout.parse("(8):(2)") == Layout((8,), (2,))
    assert str(Layout((8,), (2,))) == "(8,):(2,)"
    assert Layout((8,), (2,)).text() == "(8):(2)"


def test_every_row_of_the_page_is_a_full_sentence_about_one_decision():
    rows = re.findall(r"^\| .* \| .* \| .* \|$", PAGE.partition("## Decisions")[2], flags=re.M)
    assert len(rows) >= 18
