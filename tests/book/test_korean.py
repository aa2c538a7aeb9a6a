"""Ready for a Korean edition: every string can be translated, and the edition builds before anything is.

``make test`` runs ``tools/translate.py check`` first, which extracts the strings and builds from empty catalogues.
"""

import re
from pathlib import Path

import nbformat
import pytest
import yaml
from babel.messages.pofile import read_po
from bs4 import BeautifulSoup

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
BUILD = ROOT / "_build"
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
PAGES = [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]
NOTEBOOKS = [page for page in PAGES if page.startswith("notebooks/")]


def plain(text: str) -> str:
    """Text without the marks of Markdown and without spaces, to compare what two programs made of one source."""
    return re.sub(r"[\s`*_\\]", "", text)


def strings(page: str) -> list[str]:
    """What a translator of a page is given."""
    template = BUILD / "gettext" / f"{page}.pot"
    assert template.exists(), "the strings are not extracted: run tools/translate.py check first (`make test` does)"
    with template.open("rb") as file:
        return [message.id for message in read_po(file) if message.id]


def sentences(markdown: str) -> list[str]:
    """The paragraphs, headings, list items and table cells of a Markdown text."""
    text = re.sub(r"```.*?```|\$\$.*?\$\$", "", markdown, flags=re.DOTALL)
    found = []
    for line in text.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            found += [cell for cell in cells if not re.fullmatch(r"[\s:-]*", cell)]
        else:
            found.append(re.sub(r"^\s*(#+|\d+\.|[-*]|:) ", "", line))
    return [sentence for sentence in found if sentence.strip()]


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_every_sentence_of_a_chapter_can_be_translated(page):
    extracted = plain(" ".join(strings(page)))
    for cell in nbformat.read(ROOT / f"{page}.ipynb", as_version=4).cells:
        if cell.cell_type == "markdown":
            for sentence in sentences(cell.source):
                assert plain(sentence) in extracted, f"{cell.id}: {sentence!r} was not extracted"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_strings(page):
    assert len(strings(page)) > 3


@pytest.mark.parametrize("page", PAGES)
def test_the_korean_edition_has_every_page(page):
    html = (BUILD / "ko" / "_build" / "html" / f"{page}.html").read_text(encoding="utf-8")
    shown = BeautifulSoup(html, "html.parser")
    assert shown.html["lang"] == "ko"
    english = BeautifulSoup((BUILD / "html" / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    assert shown.select_one("article h1").get_text() == english.select_one("article h1").get_text()
    assert re.search("이전|다음", shown.get_text()), "the theme's own words are Korean"
