"""Measuring in turns, with clocks that are not clocks: the logic, not the speed."""

import pytest

from tilelab.measure.rounds import Rule, Sample, Timing, measure_in_turns
from tilelab.measure.statistics import estimate, ratio


def test_candidates_take_turns_and_odd_rounds_go_backwards():
    order = []

    def candidate(name):
        return lambda turn: order.append((turn, name)) or Sample(1.0, 1.0)

    timings = measure_in_turns({name: candidate(name) for name in "ABC"}, Rule(least=3, most=3))
    assert "".join(name for _, name in order) == "ABCCBAABC"
    assert all(len(timing.samples) == 3 for timing in timings.values())


def test_it_stops_once_every_interval_is_narrow_and_not_before():
    noisy = iter([1.0, 2.0, 1.5] + [1.5] * 100)
    timings = measure_in_turns(
        {"steady": lambda turn: Sample(1.0, 1.0), "noisy": lambda turn: Sample(next(noisy), 2.0)},
        Rule(least=3, most=50, width=0.01, seconds=1e9),
    )
    count = len(timings["noisy"].samples)
    assert 3 < count < 50
    assert timings["noisy"].device.width <= 0.01
    assert len(measure_in_turns({"steady": lambda turn: Sample(1.0, 1.0)}, Rule(least=4))["steady"].samples) == 4


def test_it_stops_when_time_is_up_though_not_before_the_least():
    now = iter(range(1000))
    samples = iter(float(n) for n in range(1, 1000))
    timing = measure_in_turns(
        {"drifting": lambda turn: Sample(next(samples), 1.0)},
        Rule(least=4, most=50, seconds=6),
        clock=lambda: next(now),
    )["drifting"]
    assert 4 <= len(timing.samples) < 12
    with pytest.raises(ValueError, match="measure at least one"):
        measure_in_turns({}, Rule(least=0))


@pytest.mark.parametrize(
    ("device", "wall", "said"),
    [
        (1.0, 1.02, ""),
        (0.05, 0.07, ""),
        (0.005, 1.8, "work outside the timed stream"),
        (1.0, 0.5, "the events are not to be trusted"),
        (float("nan"), 0.5, "events say nan ms, the wall 0.5 ms: a clock gave no time"),
        (1.0, float("inf"), "a clock gave no time"),
    ],
)
def test_two_clocks_that_contradict_each_other_are_reported(device, wall, said):
    trouble = Timing((Sample(device, wall),) * 3).disagreement()
    assert said in trouble
    assert bool(trouble) == bool(said)


def test_the_interval_holds_the_median_and_is_the_same_each_time():
    samples = [1.0, 1.1, 0.9, 1.05, 5.0, 0.95, 1.02]
    once = estimate(samples)
    assert once == estimate(samples)
    assert once.value == 1.02
    assert once.low <= once.value <= once.high
    assert estimate([2.0]).width == 0
    with pytest.raises(ValueError, match="nothing was measured"):
        estimate([])


def test_the_interval_covers_the_true_median_about_as_often_as_it_says():
    import random

    draw = random.Random(1)
    covered = 0
    for trial in range(200):
        one = estimate([draw.gauss(10, 1) for _ in range(25)], resamples=300, seed=trial)
        covered += one.low <= 10 <= one.high
    assert 0.87 <= covered / 200 <= 1.0


def test_paired_ratios_are_narrower_than_either_when_both_drift():
    drift = [1.0 + 0.1 * n for n in range(10)]
    assert estimate([2 * d for d in drift]).width > 0.3
    pair = ratio([2 * d for d in drift], drift)
    assert (pair.value, pair.width) == (2.0, 0.0)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        ratio([1.0], [1.0, 2.0])


def test_what_is_no_number_gives_no_median():
    import math

    for samples in ([math.nan, 1.0, 2.0], [1.0, 2.0, math.nan], [math.inf, 1.0]):
        assert math.isnan(estimate(samples).value)
        assert estimate(samples).count == len(samples)
    assert math.isnan(ratio([1.0, 2.0], [0.0, 1.0]).value)
    with pytest.raises(ValueError, match="at most 0 rounds, but at least 7: let most be as large as least"):
        measure_in_turns({}, Rule(most=0))
