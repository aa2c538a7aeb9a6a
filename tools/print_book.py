"""Print the built book into one PDF, with the Chromium that the browser tests use.

The articles of all pages are put behind one another. Hidden answers are opened and a step-through shows all its
steps, for paper does not answer. Links between pages become links inside the document; links to files beside the pages
are left out, for the document travels without them.
"""

import shutil
import subprocess
import sys
import tempfile
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from build_book import BUILD, ROOT

HTML = BUILD / "html"
WHOLE = HTML / "_print.html"  # where the theme's styles and MathJax are found
PDF = BUILD / "tilelab.pdf"
STYLE = """
@page { size: A4; margin: 18mm 16mm; }
html { font-size: 11px; } body { background: none; }
article { break-before: page; } article:first-of-type { break-before: auto; }
h1, h2, h3, thead, .cell_input { break-after: avoid; } svg, img, tr, .cell_output pre { break-inside: avoid; }
svg.tilelab, img { max-width: 100%; height: auto; } pre { white-space: pre-wrap; }
.tl-steps p { break-after: avoid; }
.headerlink, .copybtn, summary, .tl-steps input { display: none !important; }
/* The cheat sheet is one sheet of paper, on both sides. */
[id="book/cheat-sheet/"] { zoom: .8; } [id="book/cheat-sheet/"] :is(h2, table) { margin: .5rem 0; }
[id="book/cheat-sheet/"] :is(td, th) { padding: .1rem .5rem; }
"""
#: The book as jupyter-book numbers it has no other list of its pages in their order.
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())


def pages() -> list[str]:
    """Return the pages in their order."""
    return [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]


def inside(page: str, address: str) -> str:
    """Return an address of a page as one of the whole document."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return address
    file = (HTML / f"{page}.html").parent / unquote(parts.path) if parts.path else HTML / f"{page}.html"
    target = file.resolve().relative_to(HTML.resolve())
    name = target.with_suffix("").as_posix()
    if name in pages():
        return f"#{name}/{parts.fragment}"
    return target.as_posix()


def article(page: str) -> Tag:
    """Return a page's article, ready to stand among others."""
    found = BeautifulSoup((HTML / f"{page}.html").read_text(encoding="utf-8"), "html.parser").select_one("article")
    for element in found.select("[id]"):
        element["id"] = f"{page}/{element['id']}"
    for element in found.select("[href], [src]"):
        for name in ("href", "src"):
            if element.get(name) and not element[name].startswith("data:"):
                element[name] = inside(page, element[name])
    for link in found.select("a[href]"):
        if not link["href"].startswith("#") and not urlsplit(link["href"]).scheme:
            link.decompose() if link.select(".viewcode-link") else link.unwrap()
    for details in found.select("details"):
        details["open"] = ""
    for step in found.select(".tl-step"):
        del step["style"]
    for script in found.select("script"):
        if script.get("type") != "math/tex":
            script.decompose()
    found["id"] = f"{page}/"
    return found


def whole() -> str:
    """Return the whole book as one page."""
    first = BeautifulSoup((HTML / f"{pages()[0]}.html").read_text(encoding="utf-8"), "html.parser")
    for element in first.head.select("[href], [src]"):
        for name in ("href", "src"):
            if element.get(name):
                element[name] = inside(pages()[0], element[name])
    for script in first.head.select("script[src]"):
        if "mathjax" not in script["src"].lower():
            script.decompose()
    style = first.new_tag("style")
    style.string = STYLE
    first.head.append(style)
    first.html["data-theme"] = "light"
    first.body.clear()
    for page in pages():
        first.body.append(article(page))
    return str(first)


def chromium() -> str:
    """Return the browser's path."""
    found = next(filter(None, map(shutil.which, ["chromium", "google-chrome", "chromium-browser"])), None)
    if found is None:
        sys.exit("make pdf needs Chromium: apt-get install chromium, or Google Chrome")
    return found


def main() -> int:
    """Put the pages together, print them, and return the exit code."""
    if not (HTML / "index.html").exists():
        sys.exit("the book is not built: run `make book` first")
    WHOLE.write_text(whole(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={profile}"]
        flags += ["--virtual-time-budget=60000", f"--print-to-pdf={PDF}", WHOLE.as_uri()]
        done = subprocess.run([chromium(), *flags], capture_output=True, text=True, check=False)
    WHOLE.unlink()
    if done.returncode or not PDF.exists():
        print(done.stderr[-2000:], file=sys.stderr)
        return done.returncode or 1
    print(f"The book is printed:\n    {PDF}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
