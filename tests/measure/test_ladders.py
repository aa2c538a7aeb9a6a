"""Runs of the ladder for texts and pictures: the recorded one, and the reader's own."""

import json

import pytest

from tilelab.measure import ladders, records


def row(kernel, n, ms):
    return {"kernel": kernel, "M": n, "N": n, "K": n, "ms": ms, "tflops": 2 * n**3 / ms / 1e9, "percent_of_cublas": 1.0}


WHERE = {"date": "2026-02-03T04:05:06", "device": "a card", "toolkit": "13.0", "distribution": "uniform"}
RUN = {"rows": [row("cuBLAS through torch", 64, 1.0), row("cuBLAS through CuPy", 64, 0.5), row("naive", 64, 4.0),
                row("naive", 32, 2.0)], "where": WHERE}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder below an empty one."""
    below = tmp_path / "notebooks"
    below.mkdir()
    monkeypatch.chdir(below)
    return tmp_path


def test_the_recorded_run_is_found_from_the_sources_and_says_where_it_ran(folder):
    run = ladders.recorded_ladder()
    assert run.recorded
    assert run.badge.startswith(f"recorded on {run.where['device']}, {run.day}, CUDA {run.where['toolkit']}")
    assert 4096 in run.sides
    assert run.cublas(4096)["ms"] == min(r["ms"] for n, r in run.at(4096).items() if n.startswith("cuBLAS"))


def test_a_folder_of_records_nearby_comes_first(folder):
    there = folder / "benchmarks" / "records"
    there.mkdir(parents=True)
    assert ladders.recorded_ladder() is None
    record = {**RUN, "targets": [], "recorded": dict.fromkeys(records.RECORDED, "") | WHERE}
    (there / "ladder_x.json").write_text(json.dumps(record))
    assert ladders.recorded_ladder().sides == [32, 64]
    assert records.recorded("ladder_x")["rows"] == RUN["rows"]
    assert records.badge(record) == "recorded on a card, 2026-02-03, CUDA 13.0"
    assert records.recorded("nothing") is None


def test_the_readers_own_run_is_found_above_the_notebook(folder):
    assert ladders.own_ladder() is None
    (folder / ladders.OWN).write_text(json.dumps(RUN))
    mine = ladders.own_ladder()
    assert not mine.recorded
    assert mine.badge.startswith("your run on a card, 2026-02-03")
    assert set(mine.at(64)) == {"cuBLAS through torch", "cuBLAS through CuPy", "naive"}
    assert mine.at(64, 64, 64) == mine.at(64)
    assert mine.cublas(64)["kernel"] == "cuBLAS through CuPy"
    with pytest.raises(ValueError, match=r"not measured at \(32,\)"):
        mine.cublas(32)


@pytest.mark.parametrize(
    ("text", "said"),
    [("no json", "no JSON"), ('{"rows": [], "not_measured": "no GPU answers"}', "no GPU answers"), ("[]", "no rows")],
)
def test_a_file_without_a_run_is_refused(folder, text, said):
    (folder / ladders.OWN).write_text(text)
    with pytest.raises(ValueError, match=said):
        ladders.own_ladder()
