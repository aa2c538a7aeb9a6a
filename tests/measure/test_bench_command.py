"""``tilelab bench ladder``: without a GPU it shows the recorded run, and says so."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilelab.cli.bench import beside
from tilelab.cli.main import cli
from tilelab.cudacpp.device import gpu_missing

RECORD = Path(__file__).parents[2] / "benchmarks" / "records" / "ladder_h200.json"


@pytest.mark.skipif(gpu_missing() is None, reason="there is a GPU, which would be measured")
def test_the_recorded_run_where_there_is_no_gpu():
    shown = CliRunner().invoke(cli, ["bench", "ladder", "--sides", "4096", "--rungs", "naive,warp_tiled"])
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0].startswith("not measured here: ")
    assert [line.split()[0] for line in lines[3:7]] == ["cuBLAS", "cuBLAS", "naive", "warp_tiled"]
    assert lines[-1].startswith("recorded on NVIDIA H200")
    as_json = json.loads(CliRunner().invoke(cli, ["bench", "ladder", "--json"]).output)
    assert as_json["rows"] == []
    assert as_json["not_measured"]


@pytest.mark.skipif(gpu_missing() is None, reason="there is a GPU, which would be measured")
def test_nothing_recorded_is_hidden_and_what_is_not_recorded_is_named():
    rows = json.loads(RECORD.read_text())["rows"]
    shown = CliRunner().invoke(cli, ["bench", "ladder"])
    assert shown.exit_code == 0, shown.output
    there = re.findall(r"^(\S.*?) +(\d+) +(\d+) +(\d+) ", shown.output, re.M)
    assert there == [tuple(str(row[key]) for key in ("kernel", "M", "N", "K")) for row in rows]
    some = CliRunner().invoke(cli, ["bench", "ladder", "--sides", "512,4095x4097x4093"]).output.splitlines()
    assert some[1].startswith("not recorded: 512; recorded are 1024, 2048, 4096, 8192, 4095x4097x4093")
    assert "4097" in some[4]
    none = CliRunner().invoke(cli, ["bench", "ladder", "--sides", "512"])
    assert none.exit_code == 1
    assert "nothing to show" in none.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sides", "big"], "'big' is no size; write cubes such as 1024"),
        (["--sides", "0"], "'0' is no size"),
        (["--sides", "-5"], "'-5' is no size"),
        (["--sides", "1024,"], "'' is no size"),
        (["--sides", "1e3"], "'1e3' is no size"),
        (["--sides", "64x64"], "'64x64' is no size"),
        (["--sides", "50000"], "matrices of more than 2147483647 elements"),
        (["--rungs", "fastest"], "no rung 'fastest'"),
        (["--rungs", "naive,"], "no rung ''"),
    ],
)
def test_bad_words(words, said):
    shown = CliRunner().invoke(cli, ["bench", "ladder", *words])
    assert shown.exit_code == 2
    assert said in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot be read as a recorded ladder"),
        ("[1]", "it has no rows, targets, where, recorded"),
        ('{"rows": []}', "it has no targets, where, recorded"),
        ((RECORD.parent / "timer_h200.json").read_text(), "its rows have no 'bound'"),
        (b"\xff\xfe\x00", "cannot be read as a recorded ladder"),
    ],
)
def test_a_file_that_is_no_recorded_ladder(tmp_path, content, said):
    file = tmp_path / "x.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    shown = CliRunner().invoke(cli, ["bench", "ladder", "--recorded", str(file)])
    assert shown.exit_code == 1, shown.output
    assert said in " ".join(shown.output.split())


@pytest.mark.skipif(gpu_missing() is None, reason="there is a GPU, which would be measured")
def test_no_gpu_and_no_record(tmp_path):
    shown = CliRunner().invoke(cli, ["bench", "ladder", "--recorded", str(tmp_path / "none.json")])
    assert shown.exit_code == 1
    assert "there is no recorded run at" in shown.output


def test_rows_stand_beside_one_another():
    row = {
        "kernel": "naive",
        "M": 1,
        "N": 2,
        "K": 3,
        "ms": 4.0,
        "tflops": 5.0,
        "percent_of_cublas": 6.0,
        "bound": "latency",
        "busiest": "arithmetic",
        "busy_percent": 37.2,
        "bound_told_by": "estimate",
        "trouble": "odd",
    }
    assert beside([row], [{**row, "ms": 7.0, "bound_told_by": "profiler"}])[0] == {
        "kernel": "naive", "M": 1, "N": 2, "K": 3, "ms here": 4.0, "TFLOP/s here": 5.0, "% of cuBLAS here": 6.0,
        "bound here": "~ latency (arithmetic 37 %)", "ms": 7.0, "TFLOP/s": 5.0, "% of cuBLAS": 6.0,
        "bound": "latency (arithmetic 37 %)", "trouble": "odd",
    }  # fmt: skip
