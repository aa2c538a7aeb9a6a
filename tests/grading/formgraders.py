"""A Jupyter server with nbgrader's formgrader over a course."""

import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from patience import PATIENCE, until

# With another port than it was given it would be another's server that is asked here.
CONFIG = """
c.ServerApp.update(ip="127.0.0.1", port={port}, port_retries=0)
c.ServerApp.update(token="", password="", open_browser=False, allow_root=True)
c.ServerApp.root_dir = {root!r}
c.ServerApp.jpserver_extensions = {{"nbgrader.server_extensions.formgrader": True}}
c.IdentityProvider.token = ""
"""


@contextmanager
def serve(course, folder):
    """Serve a course's formgrader, its own files in `folder`, and yield the server's address."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "hub"))
    from running import free_port

    port = free_port()
    (folder / "jupyter_server_config.py").write_text(CONFIG.format(port=port, root=str(course.root)))
    own = {name: str(folder) for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    environment = {**os.environ, **own, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "jupyter_server"]
    log = folder / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=course.root, env=environment, stdout=said, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"

    def answers():
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            urllib.request.urlopen(f"{address}/formgrader/api/assignments", timeout=PATIENCE).close()
        except OSError:
            return False
        return True

    try:
        assert until(answers), log.read_text()[-3000:]
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE)
