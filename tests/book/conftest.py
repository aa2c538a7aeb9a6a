"""The built book, served on loopback, and a Chromium to open it with."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items):
    """Leave what reads the built book out of ``make test-quick``, which does not build it."""
    for item in items:
        if "html" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        """Keep the test's output to the test."""


@pytest.fixture(scope="session")
def html() -> Path:
    """Return the folder of the built book."""
    folder = ROOT / "_build" / "html"
    if not (folder / "index.html").exists():
        pytest.fail("the book is not built: run `make book` first (`make test` does)")
    return folder


@pytest.fixture(scope="session")
def site(html):
    """Serve the built book on loopback and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(html)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class Visit:
    """One opened page: what it asked for, and what its console said."""

    def __init__(self, page, site, path):
        self.page, self.site = page, site
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        page.on("response", lambda r: r.status >= 400 and self.problems.append(f"{r.status} {r.url}"))
        page.goto(site + path, wait_until="networkidle")

    @property
    def foreign(self) -> list[str]:
        """Requests that left the machine."""
        return [url for url in self.requests if not url.startswith((self.site, "data:", "blob:"))]


@pytest.fixture(params=["light", "dark"])
def visit(chromium, site, request):
    """Return a function that opens a page of the book, in the light and in the dark."""
    context = chromium.new_context(
        color_scheme=request.param, viewport={"width": 1200, "height": 900}, reduced_motion="reduce"
    )
    yield lambda path: Visit(context.new_page(), site, path)
    context.close()
