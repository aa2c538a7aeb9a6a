"""The book as one document, and as a PDF."""

import importlib.util
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]
TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="module")
def print_book():
    sys.path.insert(0, str(TOOLS))
    spec = importlib.util.spec_from_file_location("print_book", TOOLS / "print_book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(TOOLS))
    return module


def test_the_whole_holds_every_page_and_its_links_stay_inside(html, print_book):
    whole = BeautifulSoup(print_book.whole(), "html.parser")
    assert len(whole.select("article")) == len(print_book.pages())
    names = {element["id"] for element in whole.select("[id]")}
    links = [link["href"][1:] for link in whole.select("article a[href^='#']")]
    assert len(links) > 500
    assert [name for name in links if name not in names] == []
    # Downloads and sources do not travel with the document.
    assert [a["href"] for a in whole.select("article a[href]") if not a["href"].startswith(("#", "https://"))] == []
    assert not whole.select("details:not([open])")
    assert not whole.select(".tl-step[style]")


def test_it_is_printed(html, print_book, capsys):
    print_book.PDF.unlink(missing_ok=True)
    assert print_book.main() == 0
    printed = print_book.PDF.read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 1_000_000
    assert str(print_book.PDF) in capsys.readouterr().out
