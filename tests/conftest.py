"""Options of the whole test run, and the browser."""

import shutil

import pytest
from patience import PATIENCE

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_addoption(parser):
    parser.addoption(
        "--sweep", type=int, default=5_000, metavar="N", help="random pairs in the sweep of compositions (5000)"
    )
    parser.addoption(
        "--kills", type=int, default=4, metavar="N", help="kills of grader, worker and kernel at random moments (4)"
    )


def pytest_collection_modifyitems(config, items):
    """Leave the oracles out unless they are asked for: they compile, and need packages of their own."""
    if "oracle" in config.option.markexpr:
        return
    kept = [item for item in items if item.get_closest_marker("oracle") is None]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture(scope="module")
def chromium():
    """Start one Chromium for a file: while it is open, its event loop is in the way of other tests that need one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, ["chromium", "google-chrome"])), None)
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS, timeout=1000 * PATIENCE)
        for name in ("new_context", "new_page"):
            setattr(browser, name, patient(getattr(browser, name)))
        yield browser
        browser.close()


def patient(make):
    """Have what a browser makes wait for as long as a busy machine may take."""

    def made(**options):
        opened = make(**options)
        opened.set_default_timeout(1000 * PATIENCE)
        return opened

    return made
