"""No number with a unit stands in prose unless it says where it comes from."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
PAGES = [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]
UNITS = (
    "%|KiB|MiB|GiB|kB|KB|MB|GB|TB|bytes?|bits?|ms|µs|us|ns|s|seconds?|minutes?|hours?|[TG]FLOP(?:/s|S)?|[GT]B/s|[MG]Hz|W"
    "|banks?|sectors?|registers?|wavefronts?|cycles?|warps?|way|ways"
)
NUMBER_WITH_UNIT = re.compile(rf"(?<![\w.,×])\d[\d.,]*[\s\u00a0\u202f]?-?(?:{UNITS})(?![\w])")
#: What is no prose: code and what it printed, formulas, pictures, numbers that name their source, menus of the page.
NO_PROSE = "pre, code, .cell, .math, mjx-container, svg, script, style, .number, .recorded-run, .toctree-wrapper, dl.py"


def prose(html: str) -> list[str]:
    """Texts of a page's paragraphs, headings, list items and table cells, without what is no prose."""
    article = BeautifulSoup(html, "html.parser").select_one("article")
    for element in article.select(NO_PROSE):
        element.replace_with(" … ")
    blocks = article.select("p, li, td, th, dt, dd, h1, h2, h3, h4, figcaption")
    return [" ".join(block.get_text(" ").split()) for block in blocks if not block.select("p, li, dt, dd")]


def typed_in(html: str) -> list[str]:
    """Numbers with a unit that name no source. How long reading takes is a promise and no measurement."""
    texts = (text for text in prose(html) if not text.startswith("It takes"))
    return [f"{m[0]} in: {text}" for text in texts for m in NUMBER_WITH_UNIT.finditer(text)]


@pytest.mark.parametrize("page", PAGES)
def test_no_number_with_a_unit_was_typed_in(html, page):
    assert typed_in((html / f"{page}.html").read_text(encoding="utf-8")) == []


def test_a_number_that_was_typed_in_is_found():
    page = "<article><p>It has 48 KiB, <a class='number'>32 banks</a> and an 8-way conflict of 16×16.</p></article>"
    assert [found.partition(" in: ")[0] for found in typed_in(page)] == ["48 KiB", "8-way"]


@pytest.mark.parametrize("page", PAGES)
def test_every_source_that_a_number_names_is_there(html, page):
    """A number's link leads to a cell of its page, or to a line of the page of numbers."""
    file = html / f"{page}.html"
    pages = {}
    for link in BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser").select("article a.number"):
        path, _, name = link["href"].partition("#")
        target = (file.parent / path).resolve() if path else file
        if target not in pages:
            pages[target] = BeautifulSoup(target.read_text(encoding="utf-8"), "html.parser")
        assert name
        assert pages[target].find(id=name), f"{link.get_text()} leads to {link['href']}, which is not there"


def test_measured_numbers_carry_device_and_date(html):
    page = BeautifulSoup((html / "book" / "part-3.html").read_text(encoding="utf-8"), "html.parser")
    measured = page.select("article p > a.number")
    assert len(measured) >= 2
    for number in measured:
        badge = number.find_next_sibling(class_="recorded-run").get_text()
        assert re.search(r"NVIDIA H200, \d{4}-\d\d-\d\d", badge)


def test_every_record_stands_on_the_page_of_numbers(html):
    page = BeautifulSoup((html / "book" / "numbers.html").read_text(encoding="utf-8"), "html.parser")
    for record in (ROOT / "benchmarks" / "records").glob("*.json"):
        told = " ".join(page.find(id=f"run-{record.stem}").find_next_sibling("dd").get_text(" ").split())
        assert re.search(r"\d{4}-\d\d-\d\d", told)
        assert "python benchmarks/" in told


def test_sources_show_the_values_of_today():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "renew_numbers.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"old numbers in {done.stdout}{done.stderr}; run tools/renew_numbers.py"
