"""Layouts as values: making, reading, coordinates, slices."""

import pickle

import pytest

import tilelab
from tilelab import Layout, LayoutError, LayoutRight, coalesce, slice_and_offset


def test_offsets_by_index_flat_and_nested_coordinate():
    layout = Layout(((2, 2), (2, 3)), ((1, 4), (2, 8)))
    expected = [
        sum(c * d for c, d in zip((i % 2, i // 2 % 2, i // 4 % 2, i // 8), (1, 4, 2, 8), strict=True))
        for i in range(24)
    ]
    assert [layout(i) for i in range(24)] == expected
    assert [layout(c) for c in layout.coordinates()] == expected
    assert [layout(i % 4, i // 4) for i in range(24)] == expected


def test_walkthrough_a():
    layout = Layout((4, 2), (2, 1))
    assert [[layout(i, j) for j in range(2)] for i in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert (layout.size, layout.cosize) == (8, 8)
    padded = Layout.parse("(128,32):(33,1)")
    assert (padded.size, padded.cosize) == (4096, 4223)


@pytest.mark.parametrize("text", ["(4,6):(1,4)", "((2,2),(2,3)):((1,4),(2,8))", "8:2", "((4,2),):((1,16),)", "():()"])
def test_text_round_trip(text):
    layout = Layout.parse(text)
    assert str(layout) == repr(layout) == text
    assert Layout.parse(str(layout)) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout


def test_reads_what_cute_prints():
    assert Layout.parse("(_4,_6):(_1,_4)") == Layout((4, 6), (1, 4))
    assert Layout.parse("(_8):(_-2)") == Layout((8,), (-2,))
    assert Layout.parse(" [4, 6] : [1, 4] ") == Layout((4, 6))


def test_default_strides():
    assert Layout((4, 6)) == Layout.column_major(4, 6) == Layout.parse("(4,6):(1,4)")
    assert Layout((4, 6), LayoutRight) == Layout.row_major(4, 6) == Layout.row_major((4, 6))
    assert Layout.row_major((2, (3, 4))) == Layout.parse("(2,(3,4)):(12,(4,1))")


def test_numpy_integers_and_lists_are_taken():
    numpy = pytest.importorskip("numpy")
    layout = Layout([numpy.int64(4), 6], [numpy.int32(1), 4])
    assert layout == Layout((4, 6))
    assert type(layout.shape[0]) is int
    assert layout(numpy.int64(7)) == 7


def test_a_value():
    layout = Layout((4, 6))
    assert len({layout, Layout((4, 6), (1, 4)), Layout((4, 6), (6, 1))}) == 2
    assert layout != (4, 6)
    with pytest.raises(AttributeError, match="never changes"):
        layout.shape = (1, 2)
    with pytest.raises(AttributeError, match="never changes"):
        del layout._shape


def test_modes_and_transpose():
    layout = Layout.parse("((2,2),6):((1,2),4)")
    assert layout[0] == Layout.parse("(2,2):(1,2)")
    assert list(layout) == [layout[0], layout[-1]]
    assert len(layout) == layout.rank == layout.depth == 2
    assert Layout((6, 4), (1, 6)) == Layout((4, 6), (6, 1)).T
    assert Layout((2, 3, 4)).transpose(2, 0, 1) == Layout((4, 2, 3), (6, 1, 2))


def test_slices_keep_their_offset():
    layout = Layout.parse("((2,2),(2,2)):((1,8),(4,16))")
    assert slice_and_offset((1, None), layout) == (Layout.parse("((2,2),):((4,16),)"), 1)
    assert layout(1, None) == Layout.parse("((2,2),):((4,16),)")
    assert slice_and_offset(((None, 1), (1, None)), layout) == (Layout.parse("(2,2):(1,16)"), 12)
    assert slice_and_offset((1, 2), layout) == (Layout.parse("():()"), 1 + 16)
    assert layout(None) == layout


def test_coalesce():
    assert coalesce(Layout((2, 4), (1, 2))) == Layout(8, 1)
    assert coalesce(Layout((2, 4), (4, 1))) == Layout((2, 4), (4, 1))


def test_shapes_of_layouts_and_lists_compare_like_tuples():
    a, b = Layout((4, 6)), Layout.parse("((2,2),6)")
    assert tilelab.compatible(a, b) and not tilelab.compatible(b, a)  # noqa: PT018
    assert tilelab.compatible(24, [4, 6])
    assert tilelab.weakly_congruent(a, b)
    assert not tilelab.congruent(a, b)


def test_exported_at_the_top():
    assert {*tilelab.layout.__all__, *tilelab.tensor.__all__} <= set(dir(tilelab))


def test_an_unreadable_text_is_quoted():
    with pytest.raises(LayoutError, match=r"'\(4,6'"):
        Layout.parse("(4,6:(1,4)")
