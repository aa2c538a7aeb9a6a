"""When a time counts: a slowed or shared device, clocks that contradict each other, how long is long enough."""

import statistics

import pytest
from pretend_gpu import H200, NAIVE, PretendNvml, Times, pretend_gpu

from tilelab.grading.cuda_answers import CudaAnswer
from tilelab.grading.errors import GradingError
from tilelab.grading.timed import watch
from tilelab.grading.timed.bundle import make_bundle
from tilelab.grading.timed.calibrate import calibrate, spread
from tilelab.grading.timed.conductor import Conductor
from tilelab.grading.timed.doubts import LATE, doubt, floor
from tilelab.grading.timed.enough import Effort, enough, hopeless
from tilelab.grading.timed.players import Trouble
from tilelab.grading.timed.rounds import OWN_CALLS
from tilelab.grading.timed.running import run_bundle
from tilelab.grading.timed.thresholds import Mark, Thresholds
from tilelab.grading.timed.wanted import Candidate, Wanted, handed_in
from tilelab.grading.timing import by_gain

MINE = "__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) { /* mine */ }"
OVER = "the coalesced naive kernel"
WANTED = Wanted(
    (1024, 1024, 1024),
    (handed_in("yours", CudaAnswer(MINE, {"grid": 1, "block": 1}, 16)), Candidate(OVER, "naive")),
)
MARK = Mark(1.3, 1.1, 0.0, "calibrated on NVIDIA H200")
PART = {"shape": [1024, 1024, 1024], "own": "tiled_16", "against": "naive", "full": 1.3, "half": 1.1, "gain": 1.44}


@pytest.fixture(autouse=True)
def own_lock(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def nvml(monkeypatch):
    with pretend_gpu(monkeypatch) as said:
        yield said


# ---- events that a kernel moves


@pytest.mark.parametrize("moved", [0.005, 0.02, 0.1, 0.25])
def test_a_kernel_that_moves_its_start_gains_next_to_nothing(monkeypatch, moved):
    """Its time would be shorter by all clocks, if the wait before it were not known."""
    with pretend_gpu(monkeypatch, moved={MINE: (moved, moved)}), Conductor("0") as conductor:
        found = conductor.measure(WANTED)
    if moved > LATE:
        assert (found.outcome, "later than a kernel that does nothing" in found.words) == ("undecided", True)
    else:
        assert found.gain(OVER).value < 0.433 / (0.2805 - LATE)
    assert found.about["late_ms"] == {"yours": pytest.approx(moved), OVER: pytest.approx(0)}


@pytest.mark.parametrize("moved", [0.005, 0.02, 0.1, 0.25])
def test_a_kernel_that_moves_both_its_events_gains_no_more_than_the_wall_overlooks(monkeypatch, moved):
    with pretend_gpu(monkeypatch, moved={MINE: (moved, 0.0)}), Conductor("0") as conductor:
        found = conductor.measure(WANTED)
    assert found.outcome == "timed"
    assert found.gain(OVER).value < 0.433 / (0.2805 - 0.04)
    assert bool(found.about["disagreements"]) == (moved > 0.03)


# ---- a machine that is busy with something else


@pytest.mark.parametrize("busy", [range(9), range(5, 30), range(200)])
def test_a_machine_that_is_busy_while_processes_start_moves_no_clock(monkeypatch, busy):
    """What starting a kernel costs is learnt then: too much of it would be taken off every time."""
    with pretend_gpu(monkeypatch, busy=busy), Conductor("0") as conductor:
        found = conductor.measure(WANTED)
    assert (found.outcome, "again" in found.about) == ("timed", False), found.words


@pytest.mark.parametrize("times", [1, 2, 3])
def test_where_the_machine_is_busy_meanwhile_it_is_measured_again(monkeypatch, times):
    rounds = 70, 235, 400  # the first calls of each time's; before them come idle kernels, and the trials
    busy = {call for first in rounds[:times] for call in range(first, first + 95)}
    with pretend_gpu(monkeypatch, busy=busy), Conductor("0", Effort(25, 25, 25)) as conductor:
        found = conductor.measure(WANTED)
    assert (found.outcome, len(found.about["again"])) == (("timed", times) if times < 3 else ("undecided", 3))
    assert "the wall" in found.about["again"][0]
    assert (by_gain(found, MARK, "", "").pending == 1) == (times == 3)


# ---- a device that is slowed down or shared


@pytest.mark.parametrize("bit", [0x08, 0x20, 0x40, 0x80])
@pytest.mark.parametrize("look", [1, 2, 3, 4])  # before the first round, twice among them, after the last
def test_on_a_device_that_is_slowed_down_points_wait_with_the_reason(nvml, bit, look):
    with Conductor("0", Effort(25, 25, 25)) as conductor:
        assert conductor.measure(WANTED).outcome == "timed"
        assert nvml.looks == 4
        nvml.reasons = [*[0] * (look - 1), bit]
        found = conductor.measure(WANTED)
        nvml.reasons = [0]
        again = conductor.measure(WANTED)
    assert (found.outcome, watch.SLOWED[bit] in found.words) == ("undecided", True)
    assert found.about["clocks"][-1]["slowed"] == [watch.SLOWED[bit]]
    verdict = by_gain(found, MARK, "", "")
    assert (verdict.share, verdict.pending) == (0.0, 1.0)
    assert watch.SLOWED[bit] in " ".join(verdict.lines)
    assert again.outcome == "timed"
    assert by_gain(again, MARK, "", "").share == 1


@pytest.mark.parametrize("bits", [0x01, 0x02, 0x04, 0x10, 0x100])
def test_clocks_that_are_low_for_another_reason_slow_nobody_down(nvml, bits):
    """Idle, set by an application, a power limit, a synchronised boost, a display: not heat, nor the power supply."""
    nvml.reasons = [bits]
    with Conductor("0") as conductor:
        assert conductor.measure(WANTED).outcome == "timed"


@pytest.mark.parametrize("extra", [1, 2])
def test_on_a_shared_device_points_wait_with_the_reason(nvml, monkeypatch, extra):
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(watch.Watch.others, "__defaults__", (0.0,))
    with Conductor("0") as conductor:
        ours = nvml.processes
        nvml.processes = lambda: [*ours(), *range(1, 1 + extra)]
        found = conductor.measure(WANTED)
        nvml.processes = lambda: list(range(1, 1 + extra + len(ours())))  # a container's numbers are others
        also = conductor.measure(WANTED)
        nvml.processes = ours
        again = conductor.measure(WANTED)
    for one in (found, also):
        assert (one.outcome, f"the device is shared: {extra} other process" in one.words) == ("undecided", True)
        assert by_gain(one, MARK, "", "").pending == 1
    assert again.outcome == "timed"


def test_a_process_that_has_just_ended_is_waited_for(nvml, monkeypatch):
    with Conductor("0") as conductor:
        ours, listed = nvml.processes, [1, 1, 1]
        monkeypatch.setattr(watch.time, "sleep", lambda seconds: listed.pop())
        nvml.processes = lambda: [*ours(), *listed[:1]]
        assert conductor.measure(WANTED).outcome == "timed"
    assert listed == []


def test_a_device_that_tells_nothing_is_measured_all_the_same(monkeypatch):
    said = PretendNvml()
    said.silent = True
    with pretend_gpu(monkeypatch, nvml=said), Conductor("0") as conductor:
        found = conductor.measure(WANTED)
    assert found.outcome == "timed"
    assert found.about["clocks"][0] == {"slowed": []}
    assert conductor.device["driver"] == ""


def test_a_run_on_a_slowed_device_leaves_its_points_to_the_next_run(nvml, tmp_path):
    bundle = make_bundle(b"k" * 32, [("practice_1_timed", WANTED)], Thresholds({"practice_1_timed": PART}))
    nvml.reasons = [0x40]
    first = list(run_bundle(bundle, tmp_path / "r.jsonl"))
    assert [(one.measured.outcome, one.kept) for one in first] == [("undecided", False)]
    nvml.reasons = [0]
    second = list(run_bundle(bundle, tmp_path / "r.jsonl"))
    assert [(one.measured.outcome, one.kept) for one in second] == [("timed", False)]
    assert [one.kept for one in run_bundle(bundle, tmp_path / "r.jsonl")] == [True]


def test_nothing_is_calibrated_on_a_slowed_device(nvml):
    nvml.reasons = [0x80]
    with Conductor("0") as conductor, pytest.raises(GradingError, match=r"cannot be calibrated: .* asks for less"):
        list(calibrate(Thresholds({"practice_1_timed": PART}), conductor))


# ---- whose fault it is


@pytest.mark.parametrize(
    ("fault", "outcome", "words"),
    [
        ("cudaErrorECCUncorrectable: uncorrectable ECC error", "undecided", "the device: "),
        ("cudaErrorIllegalAddress: an illegal memory access was encountered", "refused", "where there is no memory"),
    ],
)
def test_a_fault_of_the_device_costs_a_learner_nothing(monkeypatch, fault, outcome, words):
    with pretend_gpu(monkeypatch, faults={MINE: fault}), Conductor("0") as conductor:
        found = conductor.measure(WANTED)
    assert (found.outcome, words in found.words) == (outcome, True), found.words


def test_a_fault_of_the_courses_own_kernel_costs_a_learner_nothing(monkeypatch):
    with pretend_gpu(monkeypatch, faults={NAIVE: "an illegal memory access"}), Conductor("0") as conductor:
        found = conductor.measure(WANTED)
    assert found.outcome == "undecided"


# ---- the same mark each time


@pytest.mark.parametrize(("beside", "share"), [(0.95, 0.5), (1.05, 1.0)])
def test_a_kernel_5_percent_beside_a_mark_gets_the_same_mark_each_time(monkeypatch, beside, share):
    times = Times(seed=1)
    times.of[MINE] = (0.433 / (MARK.full * beside),)
    with pretend_gpu(monkeypatch, times), Conductor("0") as conductor:
        found = [conductor.measure(WANTED, (MARK.half, MARK.full)) for _ in range(8)]
    assert {by_gain(one, MARK, "", "").share for one in found} == {share}
    gains = [one.gain(OVER).value for one in found]
    assert spread(gains) < 0.012
    assert abs(statistics.median(gains) / (MARK.full * beside) - 1) < 0.005
    counts = {len(taken) for one in found for taken in one.samples.values()}
    assert min(counts) >= Effort().least
    assert max(counts) < Effort().most_near


def test_a_kernel_on_a_mark_is_measured_longer_and_doubt_counts_for_it(monkeypatch):
    times = Times(seed=1)
    times.of[MINE] = (0.433 / MARK.full,)
    with pretend_gpu(monkeypatch, times), Conductor("0") as conductor:
        found = conductor.measure(WANTED, (MARK.half, MARK.full))
    assert len(found.samples["yours"]) == Effort().most_near
    assert by_gain(found, MARK, "", "").share == 1


@pytest.mark.parametrize("speeds", [(1, 2), (1, 1, 2), (1, 1, 1, 1.2), (1, 1, 1.05)])
def test_who_is_slow_now_and_then_gains_nothing_by_the_doubt_that_it_makes(monkeypatch, speeds):
    times = Times(seed=2)
    times.of[MINE] = tuple(0.433 / 1.27 * speed for speed in speeds)
    with pretend_gpu(monkeypatch, times), Conductor("0") as conductor:
        found = conductor.measure(WANTED, (MARK.half, MARK.full))
    assert by_gain(found, MARK, "", "").share < 1


def test_a_sample_of_the_courses_own_kernel_is_the_mean_of_some_calls(monkeypatch):
    called = []
    times = Times()
    with pretend_gpu(monkeypatch, lambda source: called.append(source) or times(source)), Conductor("0") as conductor:
        called.clear()
        found = conductor.measure(WANTED)
    rounds = len(found.samples["yours"])
    assert called.count(NAIVE) == 1 + OWN_CALLS * rounds  # one to warm it
    assert called.count(MINE) == found.about["shapes"] + 1 + rounds
    single, mean = (statistics.pstdev(values) for values in ([times(NAIVE) for _ in range(200)],
                                                             [one[1] for one in found.samples[OVER]]))  # fmt: skip
    assert mean < 0.8 * single


def test_what_a_calibration_finds_varies_less_than_is_allowed(nvml):
    with Conductor("0") as conductor:
        ((cell, entry),) = calibrate(Thresholds({"practice_1_timed": PART}), conductor)
    assert (cell, entry["full"], entry["half"]) == ("practice_1_timed", 1.3, 1.1)
    assert entry["spread"] < 0.01
    assert "fault" not in entry


# ---- long enough


def samples(yours, theirs, rounds):
    """Samples that vary by 1 %."""
    return {
        name: [[time * (1 + 0.01 * (i * step % 7 - 3) / 3)] * 3 for i in range(rounds)]
        for name, time, step in (("yours", yours, 1), (OVER, theirs, 3))
    }


@pytest.mark.parametrize(
    ("rounds", "gain", "marks", "is_enough"),
    [
        (20, 1.5, (1.1, 1.3), False),
        (25, 1.5, (1.1, 1.3), True),
        (26, 1.5, (1.1, 1.3), False),  # looked at every five rounds
        (25, 1.3, (1.1, 1.3), False),
        (60, 1.3, (1.1, 1.3), False),
        (100, 1.3, (1.1, 1.3), True),
        (3, 0.27, (1.1, 1.3), True),  # four times too slow for any points
        (3, 0.28, (1.1, 1.3), False),
        (3, 0.1, (), False),
    ],
)
def test_rounds_end_when_the_gain_is_known_well_enough(rounds, gain, marks, is_enough):
    effort = Effort(width=0.02)
    assert enough(samples(1.0, gain, rounds), marks, effort) == is_enough


def test_a_gain_that_stays_wide_is_measured_no_longer_than_the_most():
    wide = Effort(width=1e-6)
    assert not enough(samples(1.0, 1.5, 55), (1.1, 1.3), wide)
    assert enough(samples(1.0, 1.5, 60), (1.1, 1.3), wide)


def test_one_slow_call_makes_no_kernel_hopeless():
    assert not hopeless({"yours": [[9, 9, 9], [1, 1, 1], [9, 9, 9]], OVER: [[1.5] * 3] * 3}, (1.1, 1.3))


# ---- times that cannot be

LEAST = floor((1024, 1024, 1024), H200)


def clocks(wall=0.3, device=0.3, outer=0.3, other=0.44):
    return {"yours": [[wall, device, outer]] * 15, OVER: [[other] * 3] * 15}


def test_no_product_is_faster_than_its_arithmetic_or_its_bytes():
    assert floor((1024, 1024, 1024), H200) == pytest.approx(1e3 * 2 * 1024**3 / 65e12)
    assert floor((1, 1, 1 << 20), H200) == pytest.approx(1e3 * 4 * (2**21 + 1) / 4.2e12)


def test_clocks_that_agree_raise_no_doubt():
    assert doubt(clocks(), LEAST, {"yours"}) == {}


def test_work_that_the_events_do_not_see_is_told_of_a_learners_kernel_alone():
    found = doubt(clocks(wall=0.5, outer=0.5), LEAST, {"yours"})
    assert list(found) == ["yours"]
    assert "the wall 0.5 ms" in found["yours"]
    with pytest.raises(Trouble, match=r"yours: events say 0\.3 ms, the wall 0\.5 ms"):
        doubt(clocks(wall=0.5, outer=0.5), LEAST, set())


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (clocks(device=0.5), "the events are not to be trusted"),
        (clocks(device=0.01, wall=0.01, outer=0.3), "its process says 0.01 ms, the judge's own clock 0.3 ms"),
        (clocks(outer=0.1), "its process says 0.3 ms, the judge's own clock 0.1 ms"),
        (clocks(*[0.03] * 3), "is less than the 0.03304 ms that this device needs at least"),
        (clocks(*[-1.0] * 3), "is less than the"),
        (clocks(*[float("nan")] * 3), "a clock gave no time"),
        (clocks(outer=float("nan")), "the judge's own clock nan ms"),
        (clocks(device=float("inf")), "a clock gave no time"),
        (clocks(other=0.02), f"{OVER}: 0.02 ms is less than"),
    ],
)
def test_times_that_cannot_be_leave_the_points_pending(found, words):
    with pytest.raises(Trouble, match=words):
        doubt(found, LEAST, {"yours"})


def test_messages_that_are_often_late_are_no_contradiction():
    found = clocks()
    found["yours"] = [[0.3, 0.3, 3.0 if i % 3 else 0.3] for i in range(15)]
    assert doubt(found, LEAST, {"yours"}) == {}


def test_a_time_that_cannot_be_is_undecided_where_it_is_measured(monkeypatch):
    times = Times()
    times.of[MINE] = (0.02,)
    with pretend_gpu(monkeypatch, times), Conductor("0") as conductor:
        found = conductor.measure(WANTED)
    assert (found.outcome, "than the" in found.words) == ("undecided", True)
