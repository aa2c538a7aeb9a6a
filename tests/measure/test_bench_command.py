"""``tilelab bench ladder``: without a GPU it shows the recorded run, and says so."""

import json

import pytest
from click.testing import CliRunner

from tilelab.cli.bench import beside
from tilelab.cli.main import cli
from tilelab.cudacpp.device import gpu_missing


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


@pytest.mark.parametrize(
    ("words", "said"), [(["--sides", "big"], "'big'"), (["--rungs", "fastest"], "no rung 'fastest'")]
)
def test_bad_words(words, said):
    shown = CliRunner().invoke(cli, ["bench", "ladder", *words])
    assert shown.exit_code == 2
    assert said in shown.output


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
        "trouble": "odd",
    }
    assert beside([row], [{**row, "ms": 7.0}])[0] == {
        "kernel": "naive", "M": 1, "N": 2, "K": 3, "ms here": 4.0, "TFLOP/s here": 5.0, "% of cuBLAS here": 6.0,
        "ms": 7.0, "TFLOP/s": 5.0, "% of cuBLAS": 6.0, "trouble": "odd",
    }  # fmt: skip
