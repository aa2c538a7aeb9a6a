"""What the chapters on shared memory say in words holds in the recorded run, also in one that is made anew."""

import re
from functools import cache
from html import unescape
from itertools import pairwise
from math import prod
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tilelab.hardware.limits import DEVICES
from tilelab.kernels.ladder import LADDER, rung
from tilelab.measure.ladders import recorded_ladder
from tilelab.measure.occupancy import resident

ROOT = Path(__file__).parents[2]
PART_TWO = sorted((ROOT / "notebooks").glob("*-*.ipynb"))[7:14]
H200 = DEVICES["H200"]
#: The cubes that chapters 8 to 14 speak of.
SIDES = (1024, 2048, 4096, 8192)


def text_of(html, chapter):
    """What a built chapter shows, without its markup."""
    page = (html / "notebooks" / f"{chapter}.html").read_text(encoding="utf-8")
    return unescape(re.sub(r"<[^>]+>", "", page))


@cache
def ladder():
    """Return the recorded run that the pages show."""
    return recorded_ladder()


def of(kernel, n, key="tflops"):
    """Return one figure of a kernel at n³."""
    return ladder().at(n)[kernel][key]


def test_part_two_is_seven_chapters():
    assert [path.name[:2] for path in PART_TWO] == [f"{n:02}" for n in range(8, 15)]


def test_the_naive_kernel_beats_what_requested_bytes_would_allow():
    assert of("naive", 4096) > 0.25 * H200.bandwidth / 1e12


@pytest.mark.parametrize("n", SIDES)
def test_the_naive_kernel_waits_for_l1_and_not_for_dram(n):
    """Chapter 8."""
    assert of("naive", n, "busiest") == of("naive_uncoalesced", n, "busiest") == "L1"
    assert of("naive", n, "busy_percent") > 80
    assert of("naive", n, "dram_bytes") / of("naive", n, "ms") * 1e3 < 0.25 * H200.bandwidth


@pytest.mark.parametrize("n", SIDES)
def test_passes_of_l1_are_the_lines_that_chapter_8_counts(n):
    assert of("naive", n, "passes") / (n**3 / 32) == pytest.approx(3, abs=0.1)
    assert of("naive_uncoalesced", n, "passes") / (n**3 / 32) == pytest.approx(17, abs=0.1)
    passes = of("naive_uncoalesced", n, "passes") / of("naive", n, "passes")
    times = of("naive_uncoalesced", n, "ms") / of("naive", n, "ms")
    assert times == pytest.approx(passes, rel=0.2), "the times are said to follow the passes"


def test_the_passes_fall_as_the_time_does():
    """Chapter 10, on why tiling gains so little."""
    assert of("naive", 4096, "busiest") == "L1"
    assert of("tiled_16", 4096, "busiest") == "shared memory"
    passes, times = (of("naive", 4096, key) / of("tiled_16", 4096, key) for key in ("passes", "ms"))
    assert passes == pytest.approx(times, rel=0.15)


def test_the_dynamic_kernel_was_timed_with_the_tiles_that_chapter_12_says():
    assert rung("tiled_dynamic").block[:2] == (32, 32)


def test_wider_tiles_are_faster():
    """Statement ``d`` of practice 2."""
    assert of("tiled_32", 4096) > of("tiled_16", 4096) > of("tiled_8", 4096)


def test_steps_are_as_large_as_chapter_14_says():
    tiling = [of("tiled_16", n) / of("naive", n) for n in SIDES]
    registers = [of("register_2x2", n) / of("tiled_16", n) for n in SIDES]
    assert max(tiling) < min(registers), "tiling is called the modest step, registers a large one"
    assert all(of("naive", n) / of("naive_uncoalesced", n) > 3 for n in SIDES)
    assert of("register_8x8", 1024) < of("register_2x2", 1024)
    assert of("register_8x8", 4096) > of("register_2x2", 4096)


def test_not_every_idea_pays_alone():
    times = [of(one.name, 4096, "ms") for one in LADDER]
    assert any(after > before for before, after in pairwise(times))


@pytest.mark.parametrize("n", SIDES)
def test_the_last_rung_stands_beside_the_library(n):
    assert of("warp_tiled", n, "percent_of_cublas") > 90


def test_no_kernel_is_a_hundred_times_below_the_peak():
    """The first bar of chapter 14's picture is the shortest."""
    assert min(row["tflops"] for row in ladder().at(4096).values()) > H200.fp32 / 1e14


def test_the_fastest_rung_has_the_lowest_occupancy():
    """A pitfall of chapter 14."""
    built = ladder().where["builds"]
    warps = {}
    for one in LADDER:
        threads = one.block if isinstance(one.block, int) else prod(one.block)
        held, registers = built[one.name]["static_shared"], built[one.name]["registers"]
        warps[one.name] = resident(H200.capability, threads, registers, held).share
    assert max(warps, key=lambda name: of(name, 4096)) == min(warps, key=warps.get)


@pytest.mark.parametrize("chapter", ["08-naive-matmul", "10-tiled-matmul", "12-dynamic-shared", "14-cublas"])
def test_recorded_numbers_stand_beside_their_device_and_date(html, chapter):
    assert f"recorded on {ladder().where['device']}, {ladder().day}" in text_of(html, chapter)


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
