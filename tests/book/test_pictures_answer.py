"""Pictures answer to the mouse and to the keyboard, and step-throughs step."""

import pytest

from tilelab import Layout
from tilelab.hardware.banks import bank

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def picture(page, title):
    """The picture that starts with a title; its answer."""
    found = page.locator(f"tile-picture[aria-label^='{title}']").first
    found.scroll_into_view_if_needed()
    return found, found.locator("[role=status]")


def test_pointing_at_a_cell_says_its_coordinate_and_offset(visit):
    page = visit("/notebooks/02-shape-stride.html").page
    found, said = picture(page, "(4,6):(1,4)")
    found.locator("rect[shape-rendering], svg > rect").nth(1 + 1 * 6 + 2).hover()
    assert said.inner_text() == f"(1,2): offset {Layout((4, 6), (1, 4))(1, 2)}"


def test_arrow_keys_go_from_cell_to_cell(visit):
    page = visit("/notebooks/02-shape-stride.html").page
    layout = Layout((4, 6), (1, 4))
    found, said = picture(page, "(4,6):(1,4)")
    found.focus()
    assert said.inner_text() == "(0,0): offset 0"
    for key, coordinate in [("ArrowDown", (1, 0)), ("ArrowRight", (1, 1)), ("End", (1, 5)), ("ArrowUp", (0, 5)),
                            ("ArrowUp", (0, 5)), ("Home", (0, 0)), ("ArrowLeft", (0, 0))]:  # fmt: skip
        page.keyboard.press(key)
        assert said.inner_text() == f"({coordinate[0]},{coordinate[1]}): offset {layout(*coordinate)}"


@pytest.mark.parametrize("pitch", [32, 33])
def test_banks_are_named(visit, pitch):
    page = visit("/notebooks/04-size-cosize.html").page
    layout = Layout((32, 32), (pitch, 1))
    found, said = picture(page, f"banks of {layout}")
    found.focus()
    for key, coordinate in [("ArrowDown", (1, 0)), ("ArrowDown", (2, 0)), ("End", (2, 7))]:
        page.keyboard.press(key)
        offset = layout(*coordinate)
        assert said.inner_text() == f"({coordinate[0]},{coordinate[1]}): offset {offset}, bank {bank(4 * offset)}"


def test_threads_are_named(visit):
    page = visit("/notebooks/08-naive-matmul.html").page
    found, said = picture(page, "naive_uncoalesced: A[row, k]")
    found.focus()
    assert "lane" in said.inner_text()


def test_every_picture_with_cells_is_a_stop_for_the_keyboard_and_has_words(visit):
    page = visit("/notebooks/04-size-cosize.html").page
    found = page.locator("tile-picture").all()
    assert len(found) >= 5
    for one in found:
        assert one.get_attribute("tabindex") == "0"
        assert one.locator("svg > desc").text_content().strip()


def test_the_k_steps_of_the_tiled_product_step(visit):
    page = visit("/notebooks/10-tiled-matmul.html").page
    steps = page.locator(".tl-steps").first
    slider = steps.locator("input[type=range]")
    slider.focus()
    shown = steps.locator(".tl-step:visible")
    first = shown.inner_html()
    assert slider.get_attribute("aria-valuetext").startswith("1 of 3: K step 0")
    page.keyboard.press("ArrowRight")
    assert shown.count() == 1
    assert shown.inner_html() != first
    assert slider.get_attribute("aria-valuetext") == shown.locator("p").first.inner_text()


def test_pictures_answer_from_files_too(chromium, html):
    context = chromium.new_context()
    page = context.new_page()
    page.goto((html / "notebooks" / "02-shape-stride.html").as_uri(), wait_until="load")
    page.locator("tile-picture").first.focus()
    assert page.locator("tile-picture [role=status]").first.inner_text()
    context.close()


@pytest.mark.parametrize(("path", "title", "fits"), [
    ("04-size-cosize", "the memory of (4,4):(5,1)", True),
    ("04-size-cosize", "banks of (32,32):(33,1)", False),
])  # fmt: skip
def test_a_picture_fits_on_a_phone_unless_it_would_be_too_small_to_read(chromium, site, path, title, fits):
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{site}/notebooks/{path}.html", wait_until="load")
    svg = page.locator(f"svg.tilelab[aria-label='{title}']").last
    shown, drawn = svg.bounding_box()["width"], float(svg.get_attribute("width"))
    assert drawn > 390
    assert (shown < 390) == fits
    assert fits or shown == pytest.approx(drawn)
    page.close()
