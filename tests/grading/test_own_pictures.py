"""Pictures of learners' own answers: of what was handed in, and none where there is nothing to draw."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "corpora"))

from cases import cases, problems
from kernels import SIMULATED, changed

from tilelab.grading.answers import record
from tilelab.grading.problems import problem
from tilelab.grading.problems.practice_3 import BROKEN, races


def drawn(name, **answers):
    return problem(name).picture(record(name, answers)["answers"])


@pytest.mark.slow
@pytest.mark.parametrize("name", problems())
def test_every_problem_draws_the_right_answers_and_survives_none(name):
    right = next(cases(name)).answers
    assert drawn(name, **right) is not None
    assert drawn(name, **dict.fromkeys(right)) is None


def test_times_are_drawn_as_rates_under_the_cards_peak():
    picture = drawn("practice_6", report={"device": "H200", "tiled_ms": 0.288, "cublas_ms": 0.0756, "tf32": False})
    assert "7.46 TFLOP/s, 11% of the peak" in picture.svg
    assert "28.4 TFLOP/s, 42% of the peak" in picture.svg
    assert "fp32 peak 66.9" in picture.svg
    unknown = drawn("practice_6", report={"device": "a card of my own", "tiled_ms": 2, "cublas_ms": "x", "tf32": False})
    assert "1.07 TFLOP/s" in unknown.svg
    assert "peak" not in unknown.svg
    for nothing in (None, "0.3 ms", {}, {"device": "H200", "tiled_ms": 0}, {"device": "H200", "tiled_ms": -1}):
        assert drawn("practice_6", report=nothing) is None


@pytest.mark.parametrize("intensity", [1e-9, 15.92, 206.0, 5e5])
def test_the_learners_own_intensity_is_drawn_under_the_roof(intensity):
    right = next(cases("practice_8")).answers["roofline"]
    picture = drawn("practice_8", roofline={**right, "intensity": intensity})
    assert f"yours {intensity:,.4g} FLOP a byte" in picture.svg
    assert "ridge 206" in picture.svg
    for text in (item for item in picture.items if hasattr(item, "anchor") and item.anchor == "middle"):
        assert 0 <= text.x <= picture.width


@pytest.mark.parametrize("intensity", [0, -3, None, "16", float("nan"), 1e30])
def test_an_intensity_that_cannot_be_is_not_drawn(intensity):
    right = next(cases("practice_8")).answers["roofline"]
    assert drawn("practice_8", roofline={**right, "intensity": intensity}) is None


@pytest.mark.slow
def test_a_kernel_in_python_is_drawn_too():
    assert "323 of 323" in drawn("practice_3", mended=SIMULATED).title
    wrong = changed(SIMULATED, ("acc += shA", "acc = shA"))
    assert "0 of 323" in drawn("practice_3", mended=wrong).title
    assert drawn("practice_3", mended=BROKEN) is None, "a kernel that races has no one product"


@pytest.mark.slow
def test_a_learner_is_told_what_races_in_lines_of_the_listing(capsys):
    races(BROKEN, K=16)
    assert "nothing races" in capsys.readouterr().out
    races(BROKEN, K=32)
    said = capsys.readouterr().out
    listing = BROKEN.splitlines()
    assert said.count("race: ") == 2
    for line, piece in ((21, "acc +="), (17, "shA["), (18, "shB[")):
        assert f"line {line}" in " ".join(said.split())
        assert piece in listing[line - 1]
    races(SIMULATED, K=32)
    assert "nothing races" in capsys.readouterr().out


@pytest.mark.slow
def test_the_check_of_the_mended_kernel_does_not_mend_it():
    found = problem("practice_3").part("mended").look({"mended": BROKEN})
    assert not found.ok
    assert "race: shA[0, 0]" in found.text
    assert "Put cuda.syncthreads()" not in found.text


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "no function is handed in yet"),
        ("def matmul(:", "cannot be read as Python: line 1"),
        ("__global__ void matmul() {}", "check() tries CUDA C++ too"),
        ("def matmul(A): pass", "is no kernel; decorate a function with @cuda.jit"),
        (BROKEN.replace("syncthreads", "syncthread"), "cuda.syncthread does not exist"),
        (BROKEN.partition("\n")[2], "name 'cuda' is not defined"),
    ],
)
def test_a_text_that_does_not_run_is_told_why_in_one_line(source, words, capsys):
    races(source, K=32)
    said = capsys.readouterr().out
    assert words in said
    assert said.count("\n") == 1
