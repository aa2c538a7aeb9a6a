"""Pictures of banks, sectors and phases say what the hardware floor says."""

import re

import pytest

from tilelab.draw.phases import slider
from tilelab.draw.picture import Text
from tilelab.draw.warp_banks import bank_heat_map, bank_queue
from tilelab.draw.warp_sectors import coalescing


def texts(picture):
    return [item.text for item in picture.items if isinstance(item, Text)]


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (16, 16), (33, 1)])
def test_heat_map_says_how_many_words(stride, ways):
    picture = bank_heat_map([("9 s", [4 * stride * lane for lane in range(32)], 4)])
    shown = texts(picture)
    assert f"9 s  {ways}-way" in shown
    assert shown.count(str(ways)) >= 32 // ways
    assert f"9 s: bank 0 is asked for {ways} word" in picture.svg


def test_queue_names_the_lanes():
    picture = bank_queue([128 * lane for lane in range(4)] + [None] * 28)
    assert {"word 1", "word 4"} <= set(texts(picture))
    assert "bank 0, word 96: lanes 3" in picture.svg
    together = bank_queue([64] * 32)
    assert "0+" in texts(together)


def test_coalescing_shows_each_sector():
    picture = coalescing([4 * lane + 4 for lane in range(32)])
    assert "5 sectors, 80% of their bytes wanted" in texts(picture)
    assert "+128" in texts(picture)
    scattered = coalescing([32 * lane for lane in range(32)])
    assert "32 sectors, 12% of their bytes wanted" in texts(scattered)
    assert coalescing([None] * 32).svg.startswith("<svg")


def test_slider_needs_no_script():
    html = slider([("one", "<b>1</b>"), ("two < three", "<b>2</b>")], "steps")
    assert "<script" not in html
    assert 'type="range"' in html
    assert html.count("display:none") == 1
    assert "two &lt; three" in html
    assert re.search(r'<label for="(tl-steps-\d+)">steps</label> <input type="range" id="\1"', html)
    assert slider([], "none") == ""
