"""Every chapter has the same shape, so that a reader knows where to look."""

import re
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
PAGES = [chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]]
CHAPTERS = [page for page in PAGES if re.fullmatch(r"notebooks/\d\d-.*", page)]
#: A longer line would scroll on a laptop's screen.
WIDEST = 76


def cells(chapter):
    return nbformat.read(ROOT / f"{chapter}.ipynb", as_version=4).cells


def units(chapter):
    """Cell ids of each unit, without their common prefix: ``{"1": ["question", "answer", …], …}``."""
    found: dict[str, list[str]] = {}
    for cell in cells(chapter):
        match = re.fullmatch(r"unit-(\d+)-(.*)", cell.id)
        if match:
            found.setdefault(match[1], []).append(match[2])
    return found


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_says_what_it_gives_and_what_it_asks(chapter):
    first = cells(chapter)[0]
    assert first.id == "title"
    assert first.source.startswith("# ")
    for promise in ("**You will be able to**", "**You need**", "**It takes**"):
        assert promise in first.source


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_three_to_six_whole_units(chapter):
    found = units(chapter)
    assert 3 <= len(found) <= 6
    for number, parts in found.items():
        assert parts[0] == "question", f"unit {number} does not begin with its question"
        assert {"answer", "why", "break", "broken", "where"} <= set(parts), f"unit {number} lacks a part"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_heading_carries_the_number_by_which_other_places_name_its_unit(chapter):
    for cell in cells(chapter):
        if match := re.fullmatch(r"unit-(\d+)-question", cell.id):
            assert cell.source.startswith(f"## {match[1]}. ")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_ends_with_what_the_reader_needs(chapter):
    ids = [cell.id for cell in cells(chapter)]
    last = [ids.index(part) for part in ("checkpoints", "pitfalls", "exercises", "next")]
    assert last == sorted(last)
    exercises = [i for i in ids if re.fullmatch(r"exercise-\d+-answer", i)]
    assert len(exercises) >= 3


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_hidden_answer_follows_a_prediction(chapter):
    question = ""
    for cell in cells(chapter):
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            question = cell.source
        if "hide-output" in tags:
            assert "**Predict.**" in question, f"{cell.id} hides an output nobody was asked about"
        if cell.id.startswith("exercise-") and cell.cell_type == "code":
            assert "hide-cell" in tags, f"{cell.id} shows its answer"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_code_fits_the_page(chapter):
    wide = [
        f"{cell.id}: {line}"
        for cell in cells(chapter)
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
        if len(line) > WIDEST
    ]
    assert wide == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_links_between_pages_work_in_jupyter_too(chapter):
    for cell in cells(chapter):
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", cell.source):
                assert (ROOT / "notebooks" / target).exists(), f"{cell.id} links to {target}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_built_chapter_shows_its_pictures(html, chapter):
    page = (html / f"{chapter}.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<svg [^>]*class="tilelab"[^>]*aria-label="([^"]+)"', page)
    assert len(pictures) >= 3
    assert "output traceback" not in page
