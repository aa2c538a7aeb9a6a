"""What the theme leaves out for keyboards and screen readers, and accessible.js mends."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def phone(chromium, site):
    """Open a chapter at a phone's width."""
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{site}/notebooks/04-size-cosize.html", wait_until="load")
    page.wait_for_function("document.querySelector('.search-button-field').getAttribute('aria-label') === null")
    yield page
    context.close()


def test_what_scrolls_is_reached_by_keyboard(phone):
    wide = phone.locator(".cell_output .text_html > div").evaluate_all(
        "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth)"
        ".map(box => (box.querySelector('tile-picture') || box).tabIndex)"
    )
    assert len(wide) >= 2
    assert set(wide) == {0}


def test_what_does_not_scroll_is_no_stop_for_the_keyboard(phone):
    narrow = phone.locator(".cell_output .text_html > div").evaluate_all(
        "boxes => boxes.filter(box => box.scrollWidth <= box.clientWidth).map(box => box.tabIndex)"
    )
    assert narrow
    assert set(narrow) == {-1}


def test_buttons_are_called_what_stands_on_them(phone):
    assert phone.locator("details.hide > summary[aria-label]").count() == 0
    assert phone.locator("details.hide > summary").first.inner_text().strip()
    phone.wait_for_selector(".theme-switch-button svg", state="attached")
    phone.wait_for_function("!document.querySelector('.theme-switch-button :is([title], title)')")
