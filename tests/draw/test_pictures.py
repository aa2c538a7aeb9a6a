"""Drawings show the right things in the right places, in SVG and TikZ."""

import re
from xml.etree import ElementTree

import pytest

import tilelab as tl
from tilelab import Layout, LayoutError, Swizzle, draw
from tilelab.draw.grid import Cell, grid

SVG = "{http://www.w3.org/2000/svg}"
TILE, TV = tl.make_layout_tv(Layout((4, 8), (8, 1)), Layout((2, 2), (2, 1)))
PICTURES = {
    "layout": lambda: draw.layout(Layout((4, 6))),
    "nested": lambda: draw.layout(Layout.parse("((2,2),(2,3)):((1,4),(2,8))")),
    "swizzled": lambda: draw.layout(tl.composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))),
    "identity": lambda: draw.layout(tl.make_identity_layout((4, 6))),
    "tensor": lambda: draw.layout(tl.make_tensor(list("abcdefghijklmnopqrstuvwx"), Layout((4, 6), (6, 1)))),
    "tv": lambda: draw.thread_values(TILE, TV),
    "swizzle": lambda: draw.swizzle(Swizzle(3, 0, 3), Layout((8, 8), (8, 1))),
    "banks": lambda: draw.banks(Layout((32, 32), (33, 1))),
    "composition": lambda: draw.composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))),
    "memory": lambda: draw.memory(Layout((4, 4), (5, 1))),
    "traffic": lambda: draw.traffic(Layout((32, 2), (2, 1))),
    "large": lambda: draw.banks(Layout((128, 128), (128, 1))),
    "slices": lambda: draw.layout(Layout((2, 3, 20))),
}


def texts(picture):
    return [element.text for element in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]


def notes(picture):
    return [element.text for element in ElementTree.fromstring(picture.svg).iter(f"{SVG}title")]


@pytest.mark.parametrize("name", PICTURES)
def test_svg_is_well_formed_and_everything_is_inside_its_frame(name):
    root = ElementTree.fromstring(PICTURES[name]().svg)
    x, y, width, height = map(float, root.get("viewBox").split())
    for text in root.iter(f"{SVG}text"):
        assert x <= float(text.get("x")) <= x + width
        assert y <= float(text.get("y")) <= y + height
    assert root.get("aria-label")


@pytest.mark.parametrize("name", PICTURES)
def test_tikz_has_the_same_items_and_no_bare_special_character(name):
    picture = PICTURES[name]()
    tikz = picture.tikz
    assert tikz.count("\\fill") + tikz.count("\\node") + tikz.count("\\draw") == len(picture.items)
    for content in re.findall(r"\) \{(.*)\};$", tikz, flags=re.M):
        assert not re.search(r"(?<!\\)[#%&_]", content), content
    assert tikz.count("{") == tikz.count("}")
    assert tikz.isascii()


def test_thread_values_stand_where_the_layout_puts_them():
    told = notes(draw.thread_values(TILE, TV))
    raked = tl.raked_product(Layout((4, 8), (8, 1)), Layout((2, 2), (2, 1)))
    for i in range(TILE[0]):
        for j in range(TILE[1]):
            value, thread = divmod(raked(i, j), 32)
            assert f"({i},{j}): thread {thread}, value {value}" in told
    with pytest.raises(LayoutError, match="tile"):
        draw.thread_values((2, 2), TV)


def test_a_swizzle_shows_both_layouts():
    shown = texts(draw.swizzle(Swizzle(2, 0, 3), Layout((8, 8), (8, 1))))
    assert {"Sw<2,0,3> before and after", "(8,8):(8,1)", "Sw<2,0,3> o 0 o (8,8):(8,1)"} <= set(shown)
    assert sorted(shown).count("63") == 2


def test_banks_and_sectors_follow_the_rules_of_the_hardware():
    assert "a warp has 32-way conflict along mode 0, no conflict along mode 1" in texts(
        draw.banks(Layout((32, 32), (32, 1)))
    )
    assert "a warp has no conflict along mode 0, no conflict along mode 1" in texts(
        draw.banks(Layout((32, 32), (33, 1)))
    )
    swizzled = tl.composition(Swizzle(5, 0, 5), Layout((32, 32), (32, 1)))
    assert "a warp has no conflict along mode 0, no conflict along mode 1" in texts(draw.banks(swizzled))
    assert [a.ways for a in draw.bank_conflicts(Layout((32, 2), (32, 1)))] == [32, 32]
    assert [a.sectors for a in draw.sectors(Layout((32, 2), (2, 1)))] == [8, 8]
    assert [a.sectors for a in draw.sectors(Layout((32, 2), (1, 32)))] == [4, 4]
    assert "sectors asked for by each instruction: 8, 8" in texts(draw.traffic(Layout((32, 2), (2, 1))))
    with pytest.raises(LayoutError, match="a warp has 32"):
        draw.bank_conflicts(Layout((64, 2)))


def test_memory_shows_indices_and_holes():
    shown = draw.memory(Layout((4, 4), (5, 1)))
    assert "index at each offset; 16 offsets used, 3 holes, cosize 19" in texts(shown)
    assert sum(note == f"offset {hole}: a hole" for hole in (4, 9, 14) for note in notes(shown)) == 3
    assert "0×4" in texts(draw.memory(Layout((4, 3), (0, 2))))
    with pytest.raises(LayoutError, match="-3"):
        draw.memory(Layout((4, 3), (-1, 4)))


def test_a_coordinate_and_an_element_are_shown_as_such():
    assert {"(0,0)", "(0,1)", "(3,5)"} <= set(texts(PICTURES["identity"]()))
    assert set("abcdefghijklmnopqrstuvwx") <= set(texts(PICTURES["tensor"]()))


def test_elements_of_arrays_are_short_numbers():
    torch = pytest.importorskip("torch")
    tensor = tl.make_tensor(torch.tensor([1 / 3, 2.5, 1e6, 4]), Layout((2, 2)))
    assert {"0.3333", "2.5", "1e+06", "4"} <= set(texts(draw.layout(tensor)))


def test_left_out_slices_are_said():
    assert any("the first 12 of 20 slices" in text for text in texts(PICTURES["slices"]()))


def test_saving_tex(tmp_path):
    PICTURES["memory"]().save(tmp_path / "m.tex")
    assert (tmp_path / "m.tex").read_text().startswith("\\documentclass[tikz")


def test_a_description_says_in_words_what_a_grid_holds():
    told = draw.layout(Layout((4, 6), (1, 4))).description
    assert told == (
        "A grid of 4 rows and 6 columns. Row 0: 0 4 8 12 16 20. Row 1: 1 5 9 13 17 21. Row 2: 2 6 10 14 18 22. "
        "Row 3: 3 7 11 15 19 23."
    )
    assert "And so on." in draw.layout(Layout((8, 2))).description
    assert "32-way conflict along mode 0" in draw.banks(Layout((32, 32), (32, 1))).description


def test_rows_without_text_are_left_out_of_a_description():
    cells = [[Cell("", "hole")], [Cell("x", "#56b4e9")]]
    assert grid(cells, "two rows").description == "A grid of 2 rows and 1 column. Row 1: x."


def test_a_cell_without_a_note_says_where_it_is():
    picture = grid([[Cell("a", "#56b4e9"), Cell("b", "#e69f00", "my own")]], "", row_labels=["k"])
    assert notes(picture)[1:] == ["row k, column 0: a", "my own"]


def test_a_composition_marks_in_a_what_b_chooses():
    first, *others = draw.composition_panels(Layout((4, 6), (6, 1)), Layout(6, 4))
    assert "Row 0: 0 (marked) 1 (marked)" in first.description
    assert "Row 1: 6 7 8" in first.description
    assert all("marked" not in panel.description for panel in others)
