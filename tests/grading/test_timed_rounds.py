"""Rounds of a timed measurement: the order of turns, what drifts meanwhile, and who burns power before whose turn."""

from collections import Counter
from itertools import islice, permutations

import pytest
from pretend_gpu import H200, TILED, Times, pretend_gpu

from tilelab.grading.cuda_answers import CudaAnswer
from tilelab.grading.timed.calibrate import spread
from tilelab.grading.timed.conductor import Conductor
from tilelab.grading.timed.rounds import orders
from tilelab.grading.timed.thresholds import MOST_SPREAD
from tilelab.grading.timed.wanted import Candidate, Wanted, handed_in

MINE, BASE = (
    "__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) { /* mine */ }",
    "__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) { /* my tiled */ }",
)
YOUR_TILED, OVER = "your tiled kernel", "the course's tiled kernel"
LAUNCH = {"grid": 1, "block": 1}
WANTED = Wanted(
    (1024, 1024, 1024),
    (
        handed_in("yours", CudaAnswer(MINE, LAUNCH, 16)),
        handed_in(YOUR_TILED, CudaAnswer(BASE, LAUNCH, 16)),
        Candidate(OVER, "tiled_16"),
    ),
)
GAIN = 1.26


@pytest.fixture(autouse=True)
def own_lock(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def gains(monkeypatch, times, count):
    with pretend_gpu(monkeypatch, times=times), Conductor("0", ceilings=lambda name: H200) as conductor:
        found = [conductor.measure(WANTED, (1.1, 1.3)) for _ in range(count)]
    assert {one.outcome for one in found} == {"timed"}
    assert all(list(one.samples) == ["yours", YOUR_TILED, OVER] for one in found)
    return [one.gain(OVER).value for one in found]


def test_an_order_is_drawn_and_its_mirror_image_follows():
    drawn = list(islice(orders("abc"), 1200))
    assert all(second == first[::-1] for first, second in zip(drawn[::2], drawn[1::2], strict=True))
    counts = Counter(map(tuple, drawn[::2]))
    assert set(counts) == set(permutations("abc"))
    assert min(counts.values()) > 50
    assert {tuple(one) for one in islice(orders("ab"), 100)} == {("a", "b"), ("b", "a")}


class Burning(Times):
    """The kernel that is not timed for points makes whoever follows it slower, where it thinks that is the other."""

    def __init__(self, seed):
        super().__init__(seed)
        self.of |= {MINE: (0.2945 / GAIN,), BASE: (0.5,)}
        self.turns, self.hot = 0, False

    def __call__(self, source):
        if source == BASE:
            self.turns += 1
            self.hot = self.turns % 2 == 0  # as if the order were the candidates' own, and its mirror image
            return super().__call__(source)
        slower = 1.06 if self.hot else 1.0
        self.hot = self.hot and source == TILED  # all of the course's calls are in one turn
        return slower * super().__call__(source)


def test_who_burns_power_before_whose_turn_is_next_gains_nothing(monkeypatch):
    found = gains(monkeypatch, Burning(3), 6)
    assert all(abs(one / GAIN - 1) < 0.01 for one in found), found


class Drifting(Times):
    """Every call takes a little longer than the one before, as on a device that grows warm."""

    def __init__(self, seed):
        super().__init__(seed)
        self.of |= {MINE: (0.2945 / GAIN,), BASE: (0.33,)}
        self.factor = 1.0

    def __call__(self, source):
        self.factor *= 1.0004
        return self.factor * super().__call__(source)


def test_a_drift_from_turn_to_turn_moves_no_gain_and_spreads_none(monkeypatch):
    found = gains(monkeypatch, Drifting(4), 10)
    assert all(abs(one / GAIN - 1) < 0.005 for one in found), found
    assert spread(found) < MOST_SPREAD / 2
