"""Drawings of layouts and the rich display."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tilelab import Layout, LayoutError
from tilelab.draw import layout as draw_layout

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_every_offset_stands_in_its_cell():
    layout = Layout((4, 6), (6, 1))
    root = ElementTree.fromstring(layout._repr_svg_())
    placed = {(float(t.get("x")), float(t.get("y"))): t.text for t in root.iter(f"{SVG}text")}
    cells = [place for place in placed if place[1] > 46 and place[0] > 20]
    columns, rows = sorted({x for x, _ in cells}), sorted({y for _, y in cells})
    assert (len(rows), len(columns)) == (4, 6)
    assert all(placed[x, y] == str(layout(i, j)) for i, y in enumerate(rows) for j, x in enumerate(columns))


def test_notes_tell_coordinate_and_offset():
    root = ElementTree.fromstring(Layout.parse("((2,2),3):((1,4),8)")._repr_svg_())
    assert "((1,1),2): offset 21" in [title.text for title in root.iter(f"{SVG}title")]


@pytest.mark.parametrize("text", ["8:2", "():()", "(2,3,4):(1,2,6)", "(2,3,2,2):(1,2,6,12)", "(4,3):(-1,4)"])
def test_any_rank_is_drawn(text):
    layout = Layout.parse(text)
    assert {str(layout(i)) for i in range(layout.size)} <= set(texts(layout._repr_svg_()))


def test_large_layouts_stay_small_files():
    assert len(Layout((32, 32), (33, 1))._repr_svg_()) < 160_000  # each of its cells answers
    large = Layout((128, 128))._repr_svg_()
    assert len(large) < 400_000
    assert "0 (first) to 16383 (last); light is small, dark is large" in texts(large)
    assert any("of 1000×1000" in text for text in texts(Layout((1000, 1000))._repr_svg_()))


def test_the_display_of_a_notebook_loads_the_drawing_floor_only_when_asked():
    code = """
import json, sys
import tilelab
layout = tilelab.Layout((4, 6))
before = "tilelab.draw" in sys.modules
bundle = layout._repr_mimebundle_()
print(json.dumps([before, "tilelab.draw" in sys.modules, sorted(bundle), bundle["text/plain"]]))
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert json.loads(out) == [False, True, ["image/svg+xml", "text/html", "text/plain"], "(4,6):(1,4)"]


def test_mime_types_can_be_chosen():
    layout = Layout(8)
    assert set(layout._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert "text/html" not in layout._repr_mimebundle_(exclude=["text/html"])


def test_no_request_leaves_the_picture():
    svg = Layout((4, 6))._repr_svg_()
    assert not [mark for mark in ("href", "url(", "@import", "<script") if mark in svg]


def test_saving(tmp_path):
    picture = draw_layout(Layout((4, 6)))
    picture.save(tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag == f"{SVG}svg"
    with pytest.raises(ValueError, match="png"):
        picture.save(tmp_path / "a.png")


def test_what_is_not_a_layout():
    with pytest.raises(LayoutError, match="7"):
        draw_layout(7)
