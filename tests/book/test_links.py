"""Every link inside the book leads somewhere, notebooks can be downloaded, and no page is heavy."""

import gzip
import json
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
PAGES = [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]
#: Bytes of a page as it goes over the wire.
HEAVIEST = 1_500_000


@cache
def names_in(file: Path) -> frozenset[str]:
    """Ids that a link into a page can name."""
    page = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
    return frozenset({element["id"] for element in page.select("[id]")} | {a["name"] for a in page.select("a[name]")})


def broken(file: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    page = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
    for link in page.select("a[href], link[href], script[src], img[src]"):
        address = urlsplit(link.get("href") or link.get("src"))
        if address.scheme or address.netloc:
            continue
        target = (file.parent / unquote(address.path)).resolve() if address.path else file
        if target.is_dir():
            target /= "index.html"
        name = unquote(address.fragment)
        if not target.exists() or (name and target.suffix == ".html" and name not in names_in(target)):
            found.append(address.geturl())
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(html, page):
    assert broken(html / f"{page}.html") == []


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "there.html").write_text("<h1 id='top'>There</h1>")
    page = tmp_path / "page.html"
    page.write_text("<a href='there.html#top'></a><a href='there.html#bottom'></a><a href='gone.html'></a>")
    assert broken(page) == ["there.html#bottom", "gone.html"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_light(html, page):
    assert len(gzip.compress((html / f"{page}.html").read_bytes(), 6)) < HEAVIEST


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("notebooks/")])
def test_the_download_button_gives_the_notebook(html, page):
    file = html / f"{page}.html"
    links = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser").select("a[href$='.ipynb']")
    [address] = {link["href"] for link in links if "_sources" in link["href"]}
    assert json.loads((file.parent / address).resolve().read_text(encoding="utf-8"))["nbformat"] == 4
