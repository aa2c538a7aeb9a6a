"""What bounds a kernel: the part that is busy for most of its time, or latency where none is."""

import json
import os
import sys
from pathlib import Path

import pytest

from tilelab.kernels.ladder import LADDER
from tilelab.measure.bounds import ENOUGH, Bound, estimated, judged
from tilelab.measure.compare import LIBRARY
from tilelab.measure.profiler import COUNTERS, parse, profile
from tilelab.measure.roofline import product_dot

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from record_ladder import add_profiles  # noqa: E402

RECORD = BENCHMARKS / "records" / "ladder_h200.json"
LISTING = (Path(__file__).parents[1] / "data" / "ncu_ladder_1024.csv").read_text()
ROWS = json.loads(RECORD.read_text())["rows"]
PROFILED = [row for row in ROWS if row["bound_told_by"] == "profiler"]


@pytest.mark.parametrize(
    ("shares", "by", "text"),
    [
        ({"arithmetic": 0.78, "memory": 0.02}, "arithmetic", "arithmetic, 78 %"),
        ({"arithmetic": 0.37, "shared memory": 0.59}, "latency", "latency (shared memory 59 %)"),
        ({"arithmetic": 0.12, "L1": 1.02}, "L1", "L1, 100 %"),
        ({"memory": 0.6, "arithmetic": 0.1}, "memory", "memory, 60 %"),
    ],
)
def test_the_busiest_part_bounds_if_it_is_busy_enough(shares, by, text):
    bound = judged(shares, "estimate")
    assert (bound.by, str(bound)) == (by, text)


def test_of_nothing_nothing_is_said():
    with pytest.raises(ValueError, match="nothing is known"):
        judged({}, "estimate")


FLOPS, BANDWIDTH = 60e12, 4e12


@pytest.mark.parametrize(
    ("shape", "milliseconds", "passes", "by"),
    [
        ((4096, 4096, 4096), 2 * 4096**3 / FLOPS * 1e3, 0, "arithmetic"),
        # A product of thin matrices moves more than it computes.
        ((65536, 1, 1024), 4 * 65536 * 1024 / BANDWIDTH * 1e3, 0, "memory"),
        ((4096, 4096, 4096), 60.0, 3.0, "latency"),
        ((4096, 4096, 4096), 60.0, 6.0, "shared memory"),
        ((1024, 1024, 1024), 10.0, 0.1, "latency"),
        ((1024, 1024, 1024), 10.0, 0, "unknown"),
    ],
)
def test_estimates_from_the_least_work_of_each_part(shape, milliseconds, passes, by):
    found = estimated(shape, milliseconds, FLOPS, BANDWIDTH, passes)
    assert (found.by, found.told_by) == (by, "estimate")


def test_one_pass_for_each_multiply_add_takes_four_times_as_long_as_the_arithmetic():
    found = estimated((512, 512, 512), 1.0, FLOPS, BANDWIDTH, passes=1.0, part="L1")
    assert found.busiest == "L1"
    assert found.share == pytest.approx(4 * 2 * 512**3 / FLOPS / 1e-3)


# ---- the profiler


def test_a_profilers_listing_is_read():
    found = parse(LISTING)
    assert [one.kernel for one in found[: len(LADDER)]] == ["matmul"] * len(LADDER)
    assert len(found) > len(LADDER), "the library's launches come last"
    by_name = dict(zip((one.name for one in LADDER), found, strict=False))
    compulsory = 3 * 4 * 1024**2
    for one in found:
        assert set(one.values) == set(COUNTERS)
        # The result may stay in the L2, so at least the inputs moved.
        assert one.values["dram_bytes"] > 0.6 * compulsory
    assert by_name["naive_uncoalesced"].values["passes"] > 3 * by_name["naive"].values["passes"]
    assert by_name["tiled_16"].values["shared_passes"] > by_name["tiled_16"].values["passes"] / 2
    assert by_name["naive"].values["shared_passes"] < 0.01 * by_name["naive"].values["passes"]


def test_a_listing_that_lacks_a_counter_is_refused():
    with pytest.raises(ValueError, match=r"the profiler left out dram__bytes\.sum"):
        parse(LISTING.replace("dram__bytes.sum", "dram__something.sum"))
    assert parse("==ERROR== no permission") == []


def test_no_profiler(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RuntimeError, match="install the CUDA toolkit"):
        profile(["true"])


def test_a_profiler_that_does_not_end(tmp_path, monkeypatch):
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\nexec sleep 20\n")
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RuntimeError, match=r"ncu did not end within 0\.2 s"):
        profile(["true"], seconds=0.2)


@pytest.mark.parametrize(
    ("seen", "said"), [(3, "shows as nothing"), (len(LADDER), "the library at .* shows no launch")]
)
def test_profiles_that_lack_a_launch_change_no_row(monkeypatch, seen, said):
    shape = (1024, 1024, 1024)
    names = [*(one.name for one in LADDER), *LIBRARY]
    rows = [{"kernel": name, "bound": "unknown"} | dict(zip("MNK", shape, strict=True)) for name in names]
    monkeypatch.setattr("tilelab.measure.profiler.profile", lambda argv, seconds: parse(LISTING)[:seen])
    with pytest.raises(RuntimeError, match=said):
        add_profiles(rows, [shape], 1.0)
    assert {row["bound"] for row in rows} == {"unknown"}
    monkeypatch.setattr("tilelab.measure.profiler.profile", lambda argv, seconds: parse(LISTING))
    add_profiles(rows, [shape], 1.0)
    assert {row["kernel"] for row in rows if row["bound"] == "unknown"} == {LIBRARY[0]}


# ---- what was recorded


def test_every_rung_was_profiled_and_the_bounds_differ():
    names = {row["kernel"] for row in PROFILED}
    assert names >= {one.name for one in LADDER}
    assert len({row["bound"] for row in PROFILED}) > 2
    for row in ROWS:
        again = Bound.of(row)
        assert row.items() >= again.as_dict().items()
        assert (again.share >= ENOUGH) == (again.by == again.busiest)


@pytest.mark.parametrize("one", LADDER, ids=lambda one: one.name)
def test_the_passes_that_a_rung_states_are_those_that_the_profiler_counted(one):
    [row] = [row for row in PROFILED if row["kernel"] == one.name and row["M"] == row["K"] == 4096]
    counted = row["passes"] / (4096**3 / 32)
    assert one.passes == pytest.approx(counted, rel=0.15)
    assert one.loads_from == ("shared memory" if row["shared_passes"] > row["passes"] / 2 else "L1")


def test_the_naive_kernel_moves_more_than_it_must():
    """Measured bytes put a dot further left than compulsory ones, and the dot says which they are."""
    [row] = [row for row in PROFILED if row["kernel"] == "naive" and row["M"] == row["K"] == 4096]
    least = product_dot("naive", 4096, 4096, 4096, row["ms"])
    measured = product_dot("naive", 4096, 4096, 4096, row["ms"], measured_bytes=row["dram_bytes"])
    assert (least.kind, measured.kind) == ("compulsory", "measured")
    assert measured.intensity < least.intensity / 2
