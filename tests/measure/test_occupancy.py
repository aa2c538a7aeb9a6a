"""Occupancy by the calculator's arithmetic, rooflines, machine code by line, recorded runs."""

import json
from pathlib import Path

import pytest

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.errors import BuildError
from tilelab.hardware.limits import capability
from tilelab.kernels.ladder import rung
from tilelab.measure import records, roofline
from tilelab.measure.occupancy import curve, occupancy, resident
from tilelab.measure.resources import parse_sass, resources

RECORDS = Path(__file__).parents[2] / "benchmarks" / "records"


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "share", "limited_by"),
    [
        ("sm_90", 256, 32, 2048, 1.0, "registers and warps"),
        ("sm_90", 256, 40, 2048, 0.75, "registers"),
        ("sm_90", 256, 64, 2048, 0.5, "registers"),
        ("sm_90", 256, 16, 0, 1.0, "warps"),
        ("sm_90", 32, 16, 0, 0.5, "block slots"),
        ("sm_90", 128, 32, 100 * 1024, 0.125, "shared memory"),
        ("sm_90", 128, 255, 0, 0.125, "registers"),
        ("sm_86", 1024, 32, 0, 32 / 48, "warps"),
        ("sm_90", 1024, 64, 0, 0.5, "registers"),
    ],
)
def test_residency(arch, threads, registers, shared, share, limited_by):
    found = resident(capability(arch), threads, registers, shared)
    assert found.share == pytest.approx(share)
    assert found.limited_by == limited_by
    assert f"limited by {limited_by}" in str(found)


def test_a_block_that_fits_no_sm_is_refused():
    with pytest.raises(ValueError, match="does not fit on an SM of sm_90"):
        resident(capability("sm_90"), 1024, 128, 0)
    for numbers in ((0, 32, 0), (-32, 32, 0), (32, -1, 0), (32, 32, -1)):
        with pytest.raises(ValueError, match="a block has 1 thread or more"):
            resident(capability("sm_90"), *numbers)
    points = dict(curve(capability("sm_90"), registers=128))
    assert points[512] == 0.25
    assert points[1024] == 0


def needs_nvcc():
    try:
        nvcc.find()
    except BuildError as reason:
        pytest.skip(str(reason))


def test_a_rungs_own_occupancy():
    import numpy as np

    needs_nvcc()
    a = np.zeros((64, 64), "f4")
    found = occupancy(rung("tiled_16").kernel, a, a.copy(), a.copy(), 64, 64, 64)
    assert (found.block, found.shared) == (256, 2048)
    assert found.registers == resources(rung("tiled_16").kernel).registers
    assert 0 < found.share <= 1


def test_nothing_that_knows_registers(monkeypatch):
    monkeypatch.setattr(nvcc, "find", lambda: (_ for _ in ()).throw(BuildError("no nvcc")))
    with pytest.raises(BuildError, match=r"known to nvcc or to a GPU, and neither is here"):
        resources(rung("naive").kernel)


LISTING = """
\t.section\t.text.other,"ax",@progbits
        //## File "/tmp/x/kernel.cu", line 9
        /*0000*/                   EXIT ;
\t.section\t.text.k,"ax",@progbits
        //## File "/tmp/x/kernel.cu", line 2
        /*0000*/                   LDG.E R2, desc[UR4][R2.64] ;
        /*0010*/              @!P0 FFMA R4, R2, R3, R4 ;
        //## File "/usr/include/helper.h", line 77 inlined at "/tmp/x/kernel.cu", line 3
        /*0020*/                   FFMA R4, R2, R3, R4 ;
        //## File "/tmp/x/kernel.cu", line 3
        /*0030*/                   STG.E desc[UR4][R2.64], R4 ;
"""


def test_machine_code_by_source_line():
    found = parse_sass(LISTING, "one\ntwo\nthree", "k")
    assert [(line.line, line.text) for line in found] == [(2, "two"), (3, "three")]
    assert found[0].mix == {"LDG.E": 1, "FFMA": 2}
    assert found[1].instructions == ("STG.E desc[UR4][R2.64], R4",)


def test_roofs_and_dots():
    roof = roofline.Roof("H200, data sheet", 66.9e12, 4.8e12)
    assert roof.ridge == pytest.approx(13.9, abs=0.05)
    assert roof.at(0.25) == pytest.approx(1.2e12)
    dot = roofline.product_dot("naive", 4096, 4096, 4096, 26.1)
    assert dot.rate == pytest.approx(5.27e12, rel=1e-3)
    assert dot.intensity == pytest.approx(2 * 4096 / 12)
    assert dot.kind == "compulsory"
    assert roofline.product_dot("x", 64, 64, 64, 1.0, measured_bytes=1e6).kind == "measured"
    assert roofline.above(roof, [dot]) == []
    impossible = roofline.product_dot("too fast", 4096, 4096, 4096, 1.0)
    assert roofline.above(roof, [impossible]) == [impossible]
    with pytest.raises(ValueError, match="compulsory or measured"):
        roofline.Dot("x", 1, 1, 1, "requested")
    with pytest.raises(ValueError, match="above zero"):
        roofline.Dot("x", 1, 0, 1, "measured")


def test_charts_are_drawn_and_refuse_what_is_impossible():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from tilelab.measure.charts import ladder_chart

    roof = roofline.Roof("H200", 66.9e12, 4.8e12)
    axes = roofline.roofline(roof, [roofline.product_dot("naive", 4096, 4096, 4096, 26.1)])
    assert {text.get_text() for text in axes.texts} >= {"naive", "66.9 TFLOP/s", "4.8 TB/s", "bytes: compulsory"}
    with pytest.raises(ValueError, match=r"too fast runs at 137 TFLOP/s, above the roof's 66\.9"):
        roofline.roofline(roof, [roofline.product_dot("too fast", 4096, 4096, 4096, 1.0)])
    recorded = records.read_record(RECORDS / "ladder_h200.json")
    axes = ladder_chart(recorded["rows"], 4096, 4096, 4096)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[:3] == ["cuBLAS through torch", "cuBLAS through CuPy", "naive_uncoalesced"]
    with pytest.raises(ValueError, match=r"no row for 3×3×3; there are 1024×1024×1024, "):
        ladder_chart(recorded["rows"], 3, 3, 3)
    plt.close("all")


@pytest.mark.parametrize("file", sorted(RECORDS.glob("*_h200.json")), ids=lambda file: file.stem)
def test_recorded_runs_are_whole(file):
    found = records.read_record(file)
    assert found["rows"]
    assert found["recorded"]["device"] == "NVIDIA H200"
    for claim in found["targets"]:
        again = records.target(claim["name"], claim["value"], claim["bound"], claim["sense"])
        assert again["ok"] == claim["ok"]


def test_what_is_no_recorded_run_is_refused(tmp_path):
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"rows": [], "targets": [], "where": {}, "recorded": {"date": ""}}))
    with pytest.raises(ValueError, match=r"x\.json is no recorded run: it has no recorded\.device, recorded\.driver"):
        records.read_record(file)


def test_reports(capsys):
    rows = [{"what": "a", "ms": 1.23456}, {"what": "longer", "ms": 12345.6, "more": True}]
    records.report(rows, [records.target("t", float("nan"), 1, "<=")], {"device": "none", "deep": {}}, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "what       ms  more",
        "------  -----  ----",
        "a       1.235",
        "longer  12346   yes",
        "FAILS  t: nan <= 1",
        "device none",
    ]
    with pytest.raises(SystemExit) as ended:
        records.conclude(rows, [records.target("t", 1, 1, ">=")], {}, as_json=True)
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["targets"][0]["ok"] is True
