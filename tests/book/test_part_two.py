"""What the chapters on shared memory say in words still holds in what they compute and in what was recorded."""

import json
import re
from html import unescape
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
PART_TWO = sorted((ROOT / "notebooks").glob("*-*.ipynb"))[7:14]


def text_of(html, chapter):
    """What a built chapter shows, without its markup."""
    page = (html / "notebooks" / f"{chapter}.html").read_text(encoding="utf-8")
    return unescape(re.sub(r"<[^>]+>", "", page))


def ladder():
    return json.loads((ROOT / "benchmarks" / "records" / "ladder_h200.json").read_text())


def rate(kernel, n):
    [row] = [r for r in ladder()["rows"] if (r["kernel"], r["M"], r["N"], r["K"]) == (kernel, n, n, n)]
    return row["tflops"]


def test_part_two_is_seven_chapters():
    assert [path.name[:2] for path in PART_TWO] == [f"{n:02}" for n in range(8, 15)]


def test_the_naive_kernel_beats_what_requested_bytes_would_allow():
    from tilelab.hardware.limits import DEVICES

    assert rate("naive", 4096) > 0.25 * DEVICES["H200"].bandwidth / 1e12


def test_steps_are_as_large_as_chapter_14_says():
    sides = (1024, 2048, 4096, 8192)
    tiling = [rate("tiled_16", n) / rate("naive", n) for n in sides]
    registers = [rate("register_2x2", n) / rate("tiled_16", n) for n in sides]
    assert max(tiling) < min(registers), "tiling is called the modest step, registers a large one"
    assert all(rate("naive", n) / rate("naive_uncoalesced", n) > 3 for n in sides)
    assert rate("register_8x8", 1024) < rate("register_2x2", 1024)
    assert rate("register_8x8", 4096) > rate("register_2x2", 4096)


@pytest.mark.parametrize("chapter", ["08-naive-matmul", "10-tiled-matmul", "12-dynamic-shared", "14-cublas"])
def test_recorded_numbers_stand_beside_their_device_and_date(html, chapter):
    recorded = ladder()["recorded"]
    shown = text_of(html, chapter)
    assert f"recorded on {recorded['device']}, {recorded['date'][:10]}" in shown


#: Put before a chapter's first cell: a machine on which nobody installed the CUDA toolkit.
WITHOUT_NVCC = """
from tilelab.cudacpp import errors, nvcc


def missing():
    raise errors.BuildError("no nvcc")


nvcc.find = missing
"""


@pytest.mark.slow
@pytest.mark.parametrize("chapter", ["12-dynamic-shared", "13-building", "14-cublas"])
def test_a_chapter_says_so_where_there_is_no_nvcc(chapter, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    notebook = nbformat.read(ROOT / "notebooks" / f"{chapter}.ipynb", as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(WITHOUT_NVCC))
    where = {"metadata": {"path": str(ROOT / "notebooks")}}
    NotebookClient(notebook, timeout=120, resources=where).execute()
    printed = "".join(o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", []))
    assert "There is no nvcc here" in printed
