"""A Jupyter server with nbgrader's formgrader over a course, and the browser that opens it."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

CONFIG = """
c.ServerApp.update(ip="127.0.0.1", port={port}, token="", password="", open_browser=False, allow_root=True)
c.ServerApp.root_dir = {root!r}
c.ServerApp.jpserver_extensions = {{"nbgrader.server_extensions.formgrader": True}}
c.IdentityProvider.token = ""
"""


@contextmanager
def serve(course, folder):
    """Serve a course's formgrader, its own files in `folder`, and yield the server's address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    (folder / "jupyter_server_config.py").write_text(CONFIG.format(port=port, root=str(course.root)))
    own = {name: str(folder) for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    environment = {**os.environ, **own, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "jupyter_server"]
    log = folder / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=course.root, env=environment, stdout=said, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"{address}/formgrader/api/assignments", timeout=10).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.3)
        yield address
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def browser():
    """A headless Chromium, the system's where there is one."""
    from playwright.sync_api import sync_playwright

    path = next(filter(os.path.exists, ("/usr/bin/chromium", "/usr/bin/google-chrome")), None)
    options = {"executable_path": path} if path else {}
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(args=flags, **options)
        try:
            yield opened
        finally:
            opened.close()
