"""A report in Chromium: the line, the heat map and the slider, without a kernel behind them."""

import numpy as np
import pytest
from test_report import conflict_report, eight_ways

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def page(tmp_path, chromium):
    path = tmp_path / "report.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{conflict_report()._repr_html_()}</body>")
    opened = chromium.new_page(viewport={"width": 900, "height": 900})
    problems = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto(path.as_uri())
    yield opened
    opened.close()
    assert not problems


def test_line_heat_map_and_slider(page):
    line = next(n for n, text in conflict_report().source if "tile[tx, ty]" in text)
    marked = page.locator("tr.tl-warn")
    assert marked.count() == 1
    assert str(line) in marked.inner_text()
    assert "8-way conflict" in marked.inner_text()
    heat = page.locator("svg", has=page.locator("title", has_text="Words wanted of each bank"))
    assert heat.count() == 1
    box = heat.bounding_box()
    assert box["width"] <= 900
    assert box["height"] > 60
    steps = page.locator(".tl-step")
    assert [steps.nth(i).is_visible() for i in range(2)] == [True, False]
    page.locator("input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    assert [steps.nth(i).is_visible() for i in range(2)] == [False, True]


def test_the_kernel_of_the_report_is_right():
    a = np.arange(256, dtype=np.float32).reshape(16, 16)
    out = np.zeros_like(a)
    eight_ways[1, (16, 16)](out, a)
    assert np.array_equal(out, a.T)
