"""The small form above every hidden answer, used as a reader would: by keyboard."""

import re
from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
TOC = yaml.safe_load((Path(__file__).parents[2] / "_toc.yml").read_text())
PAGES = [chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]]
CHAPTERS = [page for page in PAGES if re.fullmatch(r"notebooks/\d\d-.*", page)]


@pytest.fixture
def chapter_2(visit):
    return visit("/notebooks/02-shape-stride.html").page


def answer_first(page, text):
    """Tab to the first form, answer, and return the form."""
    form = page.locator("predict-answer").first
    form.locator("input").focus()
    page.keyboard.type(text)
    page.keyboard.press("Tab")
    assert form.locator("button").evaluate("button => button === document.activeElement")
    page.keyboard.press("Enter")
    return form


def test_a_right_answer_opens_the_output_and_is_called_right(chapter_2):
    output = chapter_2.locator("details.hide .cell_output").first
    assert not output.is_visible()
    form = answer_first(chapter_2, "byte 56")
    assert output.is_visible()
    assert form.get_attribute("data-verdict") == "right"
    assert "Right" in form.locator("[role=status]").inner_text()


def test_a_wrong_answer_is_shown_beside_what_the_cell_computed(chapter_2):
    form = answer_first(chapter_2, "14")
    assert form.get_attribute("data-verdict") == "wrong"
    said = form.locator("[role=status]").inner_text()
    assert "14" in said
    assert "56" in said


@pytest.mark.parametrize(
    ("page", "answer", "typed", "verdict"),
    [
        ("12-dynamic-shared", "8192", "8 KiB", "right"),
        ("12-dynamic-shared", "8192", "8 MiB", "wrong"),
        ("10-tiled-matmul", "(5,7)", "5,7", "right"),
        ("10-tiled-matmul", "(5,7)", "7,5", "wrong"),
    ],
)
def test_an_answer_may_be_written_another_way(visit, page, answer, typed, verdict):
    page = visit(f"/notebooks/{page}.html").page
    form = next(f for f in page.locator("predict-answer").all() if f.evaluate("form => form.answer") == answer)
    form.locator("input").focus()
    page.keyboard.type(typed)
    page.keyboard.press("Enter")
    assert form.get_attribute("data-verdict") == verdict


def test_no_answer_opens_nothing(chapter_2):
    answer_first(chapter_2, "")
    assert not chapter_2.locator("details.hide .cell_output").first.is_visible()


def test_a_field_has_a_name_and_its_question_as_description(chapter_2):
    field = chapter_2.get_by_label("Your answer").first
    described = field.get_attribute("aria-describedby")
    assert "Predict" in chapter_2.locator(f"#{described}").inner_text()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_hidden_output_has_a_form_that_takes_the_computed_answer(chromium, site, chapter):
    page = chromium.new_page()
    page.goto(f"{site}/{chapter}.html", wait_until="load")
    forms = page.locator("predict-answer")
    assert forms.count() == page.locator(".cell.tag_hide-output").count() > 0
    judged = 0
    for form in forms.all():
        printed = form.evaluate("form => form.cell.querySelector('details').textContent")
        computed = re.findall(r"^answer: (.+)$", printed, re.MULTILINE)
        form.locator("input").fill(computed[-1] if computed else "a guess")
        form.locator("button").click()
        assert form.get_attribute("data-verdict") == ("right" if computed else "open")
        judged += len(computed)
    page.close()
    assert judged >= 3
