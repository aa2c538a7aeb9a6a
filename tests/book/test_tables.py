"""On a phone every table can be read without scrolling sideways (tables.js)."""

from itertools import pairwise

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def open_at(chromium, site):
    """Return a function that opens a page at a width."""
    context = chromium.new_context()

    def opened(path, width):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(site + path, wait_until="load")
        return page

    yield opened
    context.close()


def too_wide(page):
    return page.locator(".pst-scrollable-table-container").evaluate_all(
        "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
    )


@pytest.mark.parametrize("path", ["/book/cheat-sheet.html", "/book/where-we-differ.html"])
def test_no_table_is_wider_than_a_phone(open_at, path):
    page = open_at(path, 390)
    assert page.locator("table.stacked").count() >= 1
    assert too_wide(page) == 0


def test_a_stacked_cell_carries_the_name_of_its_column(open_at):
    page = open_at("/book/cheat-sheet.html", 390)
    row = page.locator("table.stacked tbody tr").first
    names = row.locator("td").evaluate_all("cells => cells.map(cell => getComputedStyle(cell, '::before').content)")
    assert names == ['"you want"', '"call"', '"gives"']
    boxes = [cell.bounding_box() for cell in row.locator("td").all()]
    assert all(above["y"] < below["y"] for above, below in pairwise(boxes))


def test_turning_the_phone_gives_the_table_back(open_at):
    page = open_at("/book/cheat-sheet.html", 390)
    page.set_viewport_size({"width": 1200, "height": 844})
    page.wait_for_function("!document.querySelector('table.stacked')")
