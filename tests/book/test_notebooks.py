"""Notebooks are committed without outputs and with ids, so that a change shows only what changed."""

import subprocess
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard", "*.ipynb"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()


@pytest.mark.parametrize("path", TRACKED)
def test_a_notebook_is_clean(path):
    notebook = nbformat.read(ROOT / path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids), "two cells share an id"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [], f"cell {cell.id} has outputs: clear them before committing"
            assert cell.execution_count is None
