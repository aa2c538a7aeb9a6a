"""What is said of kernels that are right in the wrong way, of launches that cannot be meant, and of racing lines."""

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "corpora"))

from cases import CHECKS, cases

from tilelab.grading.answers import record
from tilelab.grading.cuda_answers import read_cuda
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Judge
from tilelab.grading.problems import practice_3, practice_5, problem


def answers_of(name, title):
    (case,) = (case for case in cases(name) if case.name == title)
    return record(name, case.answers)["answers"], case


@pytest.mark.parametrize(
    ("name", "title", "part", "words"),
    [
        ("practice_5", "both tiles in a static array that is large enough", "correct", "extern __shared__ array"),
        ("practice_5", "a naive kernel, and the bytes asked for all the same", "correct", "extern __shared__ array"),
        ("practice_3", "another kernel, without any tile", "mended", "to be mended, not replaced"),
        (
            "practice_7",
            "four elements a thread, one after the other, without a tile",
            "correct",
            "nothing in shared memory",
        ),
        (
            "practice_7",
            "four elements a thread, one after the other, without a tile",
            "timed",
            "nothing in shared memory",
        ),
        ("practice_1", "a sum without a first value", "correct", "line 10: float acc; — acc is read before"),
        ("practice_4", "a billion blocks", "edges", "1000000000 blocks of 256 threads, and C has 1536 elements"),
    ],
)
def test_the_report_says_what_is_missing(name, title, part, words):
    judged = answers_of(name, title)[1].judge(Judge(CHECKS))
    assert words in " ".join(judged[part].lines)


def test_instant_checks_see_tiles_that_are_elsewhere():
    for title in ("both tiles in a static array that is large enough", "one of the tiles in a static array"):
        finding = problem("practice_5").part("correct").look(answers_of("practice_5", title)[0])
        assert (finding.ok, finding.text) == (False, practice_5.STATIC)
    finding = problem("practice_3").part("mended").look(answers_of("practice_3", "another kernel, without any tile")[0])
    assert (finding.ok, finding.text) == (False, practice_3.NO_TILE)


@pytest.mark.parametrize("source", ["__global__ void matmul() {}", "@cuda.jit"])
def test_a_grid_may_be_larger_than_needed_but_not_absurd(source):
    source = source.replace("@cuda.jit", "from tilelab.simt import cuda\n@cuda.jit\ndef matmul(): pass")
    assert read_cuda(source, {"grid": "8, 8", "block": "32, 32"}).extents((1, 1, 1)) == ((8, 8), (32, 32))
    with pytest.raises(GradingError, match="was not started"):
        read_cuda(source, {"grid": "1000, 1000", "block": 1024}).extents((100, 100, 1))


def test_two_writes_are_no_pair_of_a_read_and_a_write():
    look = problem("practice_3").part("lines").look
    assert look({"racing": [[17, 18]]}).text.startswith("lines 17 and 18 both write")
    assert look({"racing": [[21, 17], [18, 21]]}).mark == "○"


@pytest.mark.parametrize("extent", [-1, 0, "a", None, 2.5, math.nan, 10**9])
def test_races_takes_whole_numbers(extent, capsys):
    practice_3.races(practice_3.BROKEN, K=extent)
    assert capsys.readouterr().out.startswith("K is a whole number from 1 to 1024, not ")


@pytest.mark.parametrize(
    "odd", [{"set": 3}, {"set": [{"set": 5}]}, [{"set": [21]}, {"set": [1, 2, 3]}], {"a": {"b": 1}}, {}]
)
def test_odd_sets_of_lines_are_no_pairs(odd):
    from tilelab.grading.problems.practice_3 import pairs

    found = pairs(odd)
    assert isinstance(found, str) or found == set()
