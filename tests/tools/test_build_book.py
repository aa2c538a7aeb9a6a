"""Building the book: a failing cell is shown and fails the build; changed code is never shown with old outputs."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = """---
file_format: mystnb
kernelspec: {name: python3}
---

# A page

```{code-cell} ipython3
%s
```
"""


@pytest.fixture
def small_book(tmp_path):
    """Return a function that builds a book of one page with one cell, and gives the process and the page."""
    for folder in ["tools", "book", "src", "benchmarks/records"]:
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "build_book.py", tmp_path / "tools")
    shutil.copytree(ROOT / "book" / "_ext", tmp_path / "book" / "_ext")
    shutil.copytree(ROOT / "book" / "_static", tmp_path / "book" / "_static")
    for name in ["_config.yml", "constraints.txt"]:
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/page\n")

    def build(cell: str | None = None) -> tuple[subprocess.CompletedProcess, Path]:
        if cell is not None:
            (tmp_path / "book" / "page.md").write_text(PAGE % cell)
        command = [sys.executable, tmp_path / "tools" / "build_book.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done, tmp_path / "_build" / "html" / "book" / "page.html"

    return build


@pytest.mark.slow
def test_a_failing_cell_fails_the_build_and_shows_its_traceback(small_book):
    done, _ = small_book("def divide(a):\n    return a / 0\n\ndivide(7)")
    assert done.returncode != 0
    assert "return a / 0" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "The book is built" not in done.stdout

    again, _ = small_book()
    assert again.returncode != 0, "a second build of a failing page succeeded"


@pytest.mark.slow
def test_a_page_runs_again_when_the_package_changes(small_book, tmp_path):
    module = tmp_path / "src" / "answer.py"
    cell = f"import sys; sys.path.insert(0, {str(module.parent)!r}); import answer; print('says', answer.VALUE)"
    module.write_text("VALUE = 'before'\n")
    done, page = small_book(cell)
    assert done.returncode == 0, done.stderr
    assert "says before" in page.read_text()
    module.write_text("VALUE = 'after'\n")
    done, page = small_book()
    assert done.returncode == 0, done.stderr
    assert "says after" in page.read_text()


@pytest.fixture
def build_book(tmp_path):
    """Return the tool as a module whose root is a folder with one file in it."""
    (tmp_path / "constraints.txt").write_text("torch==1\n")
    spec = importlib.util.spec_from_file_location("build_book", ROOT / "tools" / "build_book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = tmp_path
    module.BUILD, module.CACHE = tmp_path / "_build", tmp_path / "_build" / ".jupyter_cache"
    module.OUTPUT = {"learner": tmp_path}
    return module


@pytest.mark.parametrize("name", ["src/tilelab/a.py", "benchmarks/records/a.json", "constraints.txt", "my_ladder.json"])
def test_outputs_are_stale_when_a_file_they_depend_on_changes(build_book, tmp_path, name):
    before = build_book.environment_key()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("changed")
    assert build_book.environment_key() != before


def test_outputs_are_stale_when_another_version_is_installed(build_book, monkeypatch):
    before = build_book.environment_key()
    monkeypatch.setattr(build_book.metadata, "distributions", lambda: [])
    assert build_book.environment_key() != before


def test_another_extension_reads_pages_again_and_runs_nothing(build_book, tmp_path):
    build_book.drop_stale_outputs()
    executed, read = build_book.CACHE / "global.db", tmp_path / "_build" / ".doctrees" / "page"
    read.parent.mkdir()
    for file in (executed, read):
        file.write_text("kept")
    build_book.drop_stale_outputs()
    assert read.exists()
    extension = tmp_path / "book" / "_ext" / "new.py"
    extension.parent.mkdir(parents=True)
    extension.write_text("")
    build_book.drop_stale_outputs()
    assert executed.exists()
    assert not read.exists()
