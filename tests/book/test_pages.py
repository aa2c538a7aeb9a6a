"""Every page of the built book, opened in Chromium from loopback."""

from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
TOC = yaml.safe_load((Path(__file__).parents[2] / "_toc.yml").read_text())
PAGES = [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_an_error_and_asks_no_other_host(visit, page):
    seen = visit(f"/{page}.html")
    assert seen.page.locator("article h1").count() == 1
    assert seen.problems == []
    assert seen.foreign == []


def test_index_leads_to_the_welcome_page(visit):
    assert visit("/index.html").page.url.endswith("/book/welcome.html")


def test_chapter_2_shows_the_layout_as_a_picture(visit):
    page = visit("/notebooks/02-shape-stride.html").page
    picture = page.locator(".cell_output svg[role=img]").first
    box = picture.bounding_box()
    assert box["width"] > 100
    assert box["height"] > 50
    drawn = picture.locator("text").all_text_contents()
    assert {str(offset) for offset in range(24)} <= set(drawn)


def test_chapter_2_typesets_its_formula(visit):
    page = visit("/notebooks/02-shape-stride.html").page
    page.wait_for_selector("mjx-container")
    assert page.locator("mjx-container").count() > 0


def test_an_answer_is_hidden_until_the_reader_asks(visit):
    page = visit("/notebooks/02-shape-stride.html").page
    answer = page.locator("details.hide").first
    output = answer.locator(".cell_output")
    assert not output.is_visible()
    answer.locator("summary").click()
    assert output.is_visible()


def test_search_finds_a_chapter_by_a_word_in_it(visit):
    page = visit("/search.html?q=transposition").page
    page.wait_for_selector("#search-results li a")
    assert any("Stride" in text for text in page.locator("#search-results li a").all_inner_texts())
