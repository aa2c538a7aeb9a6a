"""The house: floors import only downwards, and ``import tilelab`` is light."""

import ast
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "tilelab"
#: From the ground up. A floor may import from itself and from the floors before it.
FLOORS = ["hardware", "layout", "tensor", "draw", "simt", "cudacpp", "kernels", "measure", "grading", "cli"]


def imports_of(file: Path) -> set[str]:
    """Floors of tilelab that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{file}: write imports from the top (from tilelab.… import …), they are checked by name")
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("tilelab.")}
    return found & set(FLOORS)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_only_from_floors_below(floor):
    below = set(FLOORS[: FLOORS.index(floor) + 1])
    for file in (SRC / floor).rglob("*.py"):
        assert imports_of(file) <= below, f"{file.relative_to(SRC)} imports from a floor above {floor}"


def test_every_folder_is_a_floor():
    folders = {p.name for p in SRC.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders == set(FLOORS)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_loads_nothing_heavy():
    loaded = json.loads(run("import json, sys, tilelab; print(json.dumps(sorted(sys.modules)))"))
    heavy = {"numpy", "torch", "matplotlib", "cupy", "IPython", "nbgrader", "click", "rich"}
    assert not heavy & set(loaded)


def test_import_costs_under_a_tenth_of_a_second_over_a_bare_interpreter():
    def cpu_seconds(code):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    run("import tilelab")  # byte code is compiled once
    bare, full = (min(cpu_seconds(code) for _ in range(7)) for code in ["pass", "import tilelab"])
    assert full - bare < 0.1, f"import tilelab costs {full - bare:.3f} s over a bare interpreter"
