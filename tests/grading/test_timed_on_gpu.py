"""The judge on a real GPU: what it refuses, what it times, and that one kernel's end is nobody else's."""

import sys
from pathlib import Path

import pytest

from tilelab.cudacpp.device import gpu_missing
from tilelab.grading.cuda_answers import read_cuda
from tilelab.grading.timed.conductor import Conductor
from tilelab.grading.timed.enough import Effort
from tilelab.grading.timed.watch import SLOWED
from tilelab.grading.timing import courses, want

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "autograder" / name) for name in ("tricks", "corpora")]

from kernels import TILED, TILES, changed  # noqa: E402  (from the folder that was just put on the path)

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(gpu_missing() is not None, reason=str(gpu_missing()))]

PART = {"shape": [1024, 1024, 1024], "own": "tiled_16", "against": "naive"}
STORE = "if (row < M && col < N) C["


@pytest.fixture(scope="module")
def conductor():
    with Conductor("0", Effort(launch=3.0)) as opened:
        yield opened


def measured(conductor, source, launch=TILES):
    return conductor.measure(want(PART, read_cuda(source, launch)), (1.1, 1.3))


def test_a_right_kernel_is_timed_and_its_clocks_agree(conductor):
    found = measured(conductor, TILED)
    assert found.outcome == "timed", found.words
    assert found.about["disagreements"] == {}
    assert not found.emulated
    walls, events, outers = zip(*found.samples["yours"], strict=True)
    assert all(0 < event < wall + 0.05 for wall, event, _ in found.samples["yours"])
    assert min(walls) > found.about["floor_ms"]
    assert len(walls) == len(events) == len(outers) >= Effort().least
    assert all(set(look["slowed"]) <= set(SLOWED.values()) for look in found.about["clocks"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (changed(TILED, (STORE, "if (row < M && col < N && row > 0) C[")), "is nan"),
        (changed(TILED, (STORE, "if (M > 1000) __trap(); " + STORE)), "stops itself"),
        (changed(TILED, (STORE, "while (M > 1000) __nanosleep(100); " + STORE)), "does not end"),
        (changed(TILED, (STORE, "if (M > 1000) const_cast<float*>(A)[1ll << 40] = 0; " + STORE)), "there is no memory"),
        (changed(TILED, (STORE, "const_cast<float*>(A)[0] = 0; " + STORE)), "changed its input A"),
    ],
    ids=["leaves a row", "trap", "hangs", "out of bounds", "input"],
)
def test_a_kernel_that_is_wrong_or_ends_badly_is_refused_and_the_next_one_is_timed(conductor, source, words):
    found = measured(conductor, source)
    assert (found.outcome, words in found.words) == ("refused", True), found.words
    after = conductor.measure(want(PART, None))
    assert after.outcome == "timed", after.words


def test_the_courses_own_kernel_gains_what_a_calibration_asks_for(conductor):
    found = conductor.measure(want(PART, None))
    gain = found.gain(courses("naive").name, next(iter(found.samples)))
    assert gain.value > 1.15
    assert gain.width < 0.03
