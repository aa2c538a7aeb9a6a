"""A course in a temporary folder, made once for each test process, with nbgrader already loaded."""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

import tilelab

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "autograder" / "demo"), str(ROOT / "tools")]
# Learners' kernels start in other folders, so the package must be found by an absolute path.
os.environ["PYTHONPATH"] = str(Path(tilelab.__file__).parents[1])


@pytest.fixture(scope="session", autouse=True)
def progress_file(tmp_path_factory):
    """Keep what tests solve out of the home of whoever runs them."""
    os.environ["TILELAB_PROGRESS"] = str(tmp_path_factory.mktemp("progress") / "progress.json")


#: What the sandbox's own look at itself found, by what was asked and how a sandbox is built.
SEEN = {}


@pytest.fixture(autouse=True)
def one_look_at_the_sandbox(monkeypatch, request):
    """Look once for each course whether the sandbox is on, and not before every grade; its own tests look each time."""
    preflight = sys.modules.get("tilelab.grading.sandbox.preflight")
    if preflight is None or request.path.name.startswith("test_sandbox"):
        return
    for name in ("in_a_program", "in_a_kernel"):
        monkeypatch.setattr(preflight, name, partial(remembered, getattr(preflight, name)))


def remembered(look, hidden, show=()):
    jail = sys.modules["tilelab.grading.sandbox.jail"]
    key = (look.__name__, *hidden, None, *show, None, jail.shutil.which("bwrap"), jail.Jail.command)
    if key not in SEEN:
        SEEN[key] = look(hidden, show)
    return SEEN[key]


@pytest.fixture
def open_folder():
    """Return a folder that every user can reach; pytest closes its own to others whenever one is started."""
    with tempfile.TemporaryDirectory(prefix="tilelab-open-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """The course with exercise 1 as assignment ``exercises``, and nobody in it. Tests add students of their own."""
    from classroom import make_course

    return make_course(tmp_path_factory.mktemp("class") / "course", "exercises", problems=["exercise_1"])


@pytest.fixture(scope="session")
def whole_course(tmp_path_factory):
    """The course with all its problems generated, and nobody in it."""
    from classroom import make_course

    return make_course(tmp_path_factory.mktemp("whole") / "course", "exercises", "practice")
