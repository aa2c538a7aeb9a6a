"""The script that records whether every rung is right, on the CPU, emulated: what it passes, and what it does not."""

import shutil
import sys
from pathlib import Path

import pytest

from tilelab.kernels.ladder import rung

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import record_correctness  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")
SHAPES = [(1, 3, 15), (33, 17, 35), (1, 1, 1), (16, 16, 16), (15, 33, 79)]


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setattr(record_correctness, "DEVICE", "cpu")


def test_a_right_rung_is_right_and_how_close_to_the_bound_is_said():
    (row,) = record_correctness.check({"tiled_16": rung("tiled_16")}, SHAPES, seed=1)
    assert (row["rung"], row["shapes"], row["wrong"], row["first"]) == ("tiled_16", 5, 0, "")
    assert 0 < row["worst share of the bound"] <= 1


def test_products_that_are_wrong_somewhere_or_leave_their_place_are_counted():
    def lacking(A, B, C, m, n, k):
        C.copy_(A @ B)
        C[-1, -1] = float("nan")

    def rounded(A, B, C, m, n, k):
        C.copy_(A.bfloat16().float() @ B.bfloat16().float())

    def beyond(A, B, C, m, n, k):
        C.copy_(A @ B)
        torch.as_strided(C, (1,), (1,), C.storage_offset() + m * n)[0] = 0

    rows = record_correctness.check({"lacking": lacking, "rounded": rounded, "beyond": beyond}, SHAPES, seed=1)
    assert [row["wrong"] for row in rows] == [5, 5, 5]
    assert [row["first"].partition(": ")[2][:11] for row in rows] == ["worst error", "worst error", "wrote outsi"]
