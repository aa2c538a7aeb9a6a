"""Whose failure it is when a timed kernel fails: the learner's, another of the learner's kernels', or the device's."""

import os
import signal
import sys

import pytest
from pretend_gpu import H200, TILED, Times, pretend_gpu

from tilelab.grading.cuda_answers import CudaAnswer
from tilelab.grading.errors import GradingError
from tilelab.grading.timed import calls, faults, watch
from tilelab.grading.timed.channel import Companion, Lost
from tilelab.grading.timed.conductor import Conductor
from tilelab.grading.timed.enough import Effort
from tilelab.grading.timed.thresholds import Mark
from tilelab.grading.timed.wanted import Candidate, Wanted, handed_in, read_measured
from tilelab.grading.timing import by_gain

MINE, BASE = (
    "__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) { /* mine */ }",
    "__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) { /* my tiled */ }",
)
YOUR_TILED, OVER = "your tiled kernel", "the course's tiled kernel"
SHAPE, LAUNCH = (1024, 1024, 1024), {"grid": 1, "block": 1}
MARK = Mark(1.3, 1.1, 0.0, "calibrated on NVIDIA H200")
ILLEGAL = "CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access was encountered"
UNKNOWN = "CUDADriverError: CUDA_ERROR_UNKNOWN: unknown error"
NO_ROOM = "OutOfMemoryError: Out of memory allocating 12,582,912 bytes"


def wanted(launch=LAUNCH, two=True):
    mine = handed_in("yours", CudaAnswer(MINE, LAUNCH, 16))
    base = [handed_in(YOUR_TILED, CudaAnswer(BASE, launch, 16))] * two
    return Wanted(SHAPE, (mine, *base, Candidate(OVER, "tiled_16")))


@pytest.fixture(autouse=True)
def own_lock(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(watch.Watch.others, "__defaults__", (0.0,))


def measured(monkeypatch, one, marks=(), **said):
    with pretend_gpu(monkeypatch, **said), Conductor("0", ceilings=lambda name: H200) as conductor:
        return conductor.measure(one, marks)


class After:
    """Says a fault from the so many-th launch of a shape on, ``times`` times."""

    def __init__(self, fault, number=1, shape=SHAPE, times=10**9, step="go"):
        self.fault, self.left, self.shape, self.times, self.step = fault, number, shape, times, step

    def __call__(self, step, shape):
        if step != self.step or shape != self.shape:
            return ""
        self.left -= 1
        if self.left > 0 or self.times <= 0:
            return ""
        self.times -= 1
        return self.fault


# ---- a learner's further kernel


@pytest.mark.parametrize(
    ("said", "launch", "words"),
    [
        ({"faults": {BASE: ILLEGAL}}, LAUNCH, "for 1×1×1: the kernel reads or writes where there is no memory"),
        ({"faults": {BASE: After(ILLEGAL)}}, LAUNCH, "for 1024×1024×1024: the kernel reads or writes where"),
        ({"faults": {BASE: After(ILLEGAL, 12)}}, LAUNCH, "for 1024×1024×1024: the kernel reads or writes where"),
        ({"faults": {BASE: After(Lost("it did not end within 10 s", late=True))}}, LAUNCH, "the kernel does not end"),
        ({"faults": {BASE: After(Lost("SIGSEGV", signal=signal.SIGSEGV))}}, LAUNCH, "SIGSEGV"),
        ({"wrong": {BASE: lambda shape: "C[0,0] is nan"}}, LAUNCH, "for 1×1×1: C[0,0] is nan"),
        ({"wrong": {BASE: lambda shape: "C[0,0] is nan" * (shape == SHAPE)}}, LAUNCH, "for 1024×1024×1024: C[0,0]"),
        ({}, {**LAUNCH, "block": "max(K, 1024) - 1023 + K // 1024 * 9999"}, "for 1024×1024×1024: block extent"),
        ({}, {**LAUNCH, "shared": 10**6}, "for 1×1×1: 1000000 bytes of shared memory"),
    ],
    ids=["trials", "timed shape", "rounds", "hangs", "crash", "wrong", "wrong at the end", "launch", "launch at once"],
)
def test_a_further_kernel_that_fails_at_any_point_is_left_out_and_the_measurement_goes_on(
    monkeypatch, said, launch, words
):
    found = measured(monkeypatch, wanted(launch), (1.1, 1.3), **said)
    assert found.outcome == "timed", found.words
    assert list(found.samples) == ["yours", OVER]
    assert words in found.about["dropped"][YOUR_TILED]
    assert min(map(len, found.samples.values())) >= Effort().least
    said = by_gain(found, MARK, "", "").lines
    assert f"{YOUR_TILED}: not compared with: {found.about['dropped'][YOUR_TILED]}" in said


def test_a_further_kernel_that_fails_leaves_no_process_behind(monkeypatch):
    with pretend_gpu(monkeypatch, faults={BASE: ILLEGAL}) as nvml, Conductor("0") as conductor:
        before = nvml.processes()
        assert [conductor.measure(wanted()).outcome for _ in range(2)] == ["timed"] * 2
        assert nvml.processes() == before


def test_a_refusal_says_which_kernel_where_there_are_several(monkeypatch):
    said = {"faults": {MINE: ILLEGAL}}
    alone, beside = (measured(monkeypatch, wanted(two=two), **said) for two in (False, True))
    assert (alone.outcome, beside.outcome) == ("refused", "refused")
    assert beside.words == f"yours: {alone.words}"


# ---- a device that fails


@pytest.mark.parametrize("said", [UNKNOWN, ILLEGAL, "CUDADriverError: CUDA_ERROR_LAUNCH_FAILED: unspecified failure"])
@pytest.mark.parametrize("launch", [1, 20])
def test_a_device_that_dies_settles_nothing(monkeypatch, said, launch):
    """In the trials or in the rounds, whatever it says."""
    dead = []

    def dies(step, shape):
        if step == "go" and len(dead) < launch:
            dead.append(0)
        return said if len(dead) >= launch else ""

    def after(step, shape):
        return UNKNOWN if len(dead) >= launch else ""

    with (
        pretend_gpu(monkeypatch, faults={MINE: dies, TILED: after, "": after}),
        Conductor("0") as conductor,
        pytest.raises(GradingError, match=r"the device does not answer any more: .*CUDA_ERROR_UNKNOWN"),
    ):
        conductor.measure(wanted())


def test_a_kernel_that_faults_when_the_device_does_is_not_to_blame(monkeypatch):
    """As when an error of the device's memory ends all that is on it: a new process finds it whole."""
    idle = After(UNKNOWN, 1, (), times=1)
    with pretend_gpu(monkeypatch, faults={MINE: ILLEGAL, "": lambda *given: idle(*given) if idle.on else ""}):
        idle.on = False
        with Conductor("0") as conductor:
            idle.on = True
            idle.left = 19  # the zeros of the learner's own process come before
            found = conductor.measure(wanted())
            assert (found.outcome, "the device failed too" in found.words) == ("undecided", True), found.words
            assert conductor.measure(wanted()).outcome == "refused"


def test_a_fault_while_somebody_else_is_on_the_device_waits(monkeypatch):
    """Who takes the memory or the time that a kernel would have needed?"""
    with pretend_gpu(monkeypatch, faults={MINE: After(Lost("late", late=True))}) as nvml, Conductor("0") as conductor:
        ours = nvml.processes
        nvml.processes = lambda: [*ours(), 1]
        found = conductor.measure(wanted(two=False))
    assert (found.outcome, found.words) == ("undecided", "the device is shared: 1 other process is on it")


@pytest.mark.parametrize("name", ["UNKNOWN", "EXTERNAL_DEVICE", "CONTAINED", "DEVICE_UNAVAILABLE", "ECC_UNCORRECTABLE",
                                  "NVLINK_UNCORRECTABLE", "SYSTEM_NOT_READY", "NO_DEVICE", "OPERATING_SYSTEM",
                                  "MPS_CLIENT_TERMINATED", "NO_BINARY_FOR_GPU", "NEVER_HEARD_OF"])  # fmt: skip
def test_whatever_no_kernel_can_bring_about_is_the_devices(monkeypatch, name):
    runtime = "cudaError" + name.title().replace("_", "")
    for said in (f"CUDADriverError: CUDA_ERROR_{name}: x", f"CUDARuntimeError: {runtime}: x", f"RuntimeError: {name}"):
        found = measured(monkeypatch, wanted(), faults={MINE: said})
        assert (found.outcome, found.words) == ("undecided", f"the device: RuntimeError: {said}")


@pytest.mark.parametrize("name", [name for names in faults.KERNELS for name in names])
def test_whatever_a_kernel_can_bring_about_is_said_in_words(monkeypatch, name):
    for step in ("load", "go"):
        said = After(f"CUDADriverError: {name}: x", shape=() if step == "load" else (1, 1, 1), step=step)
        found = measured(monkeypatch, wanted(two=False), faults={MINE: said})
        assert found.outcome == "refused"
        assert "CUDA" not in found.words.upper()


# ---- steps of ours


@pytest.mark.parametrize("number", [1, 12])
def test_no_room_for_our_own_arrays_is_no_fault_of_a_kernels(monkeypatch, number):
    said = After("CUDARuntimeError: cudaErrorMemoryAllocation: out of memory", number, step="prepare")
    found = measured(monkeypatch, wanted(two=False), faults={MINE: said})
    assert (found.outcome, "the device: " in found.words) == ("undecided", True), found.words
    assert measured(monkeypatch, wanted(two=False), faults={MINE: NO_ROOM}).outcome == "undecided"  # CuPy's own words


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, 0])
@pytest.mark.parametrize("step", ["prepare", "go"])
def test_a_process_that_is_ended_from_outside_costs_nothing(monkeypatch, how, step):
    said = After(Lost(f"its process ended ({how!r})", signal=how), step=step)
    found = measured(monkeypatch, wanted(), faults={MINE: said})
    assert (found.outcome, "by no kernel's doing" in found.words) == ("undecided", True), found.words


@pytest.mark.parametrize("how", sorted(faults.CRASHES))
def test_a_process_that_a_kernel_crashes_is_the_kernels(monkeypatch, how):
    said = After(Lost(f"its process ended ({how!r})", signal=how))
    found = measured(monkeypatch, wanted(two=False), faults={MINE: said})
    assert (found.outcome, "the kernel is lost" in found.words) == ("refused", True), found.words


def test_our_own_step_that_takes_too_long_is_not_a_kernel_that_does_not_end(monkeypatch):
    said = After(Lost("it did not end within 60 s", late=True), step="prepare")
    assert measured(monkeypatch, wanted(), faults={MINE: said}).outcome == "undecided"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_what_ended_a_process_is_known(how):
    process = Companion("tilelab.grading.timed.worker", ["emulated"])
    os.kill(process.pid, how)
    with pytest.raises(Lost, match=how.name) as lost:
        process.ask({"do": "describe"}, 20)
    assert (lost.value.signal, lost.value.late) == (how, False)


# ---- a device that nothing watches


def test_without_its_library_nothing_is_timed_and_what_to_install_is_said(monkeypatch):
    with pretend_gpu(monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        with pytest.raises(GradingError, match=r"who else is on the GPU.* -m pip install nvidia-ml-py"), Conductor("0"):
            pass


# ---- a measurement that takes long


def slow(base, mine=0.2):
    times = Times()
    times.of |= {BASE: (base,), MINE: (mine,)}
    return times


@pytest.mark.parametrize("mine", [0.2, 0.2945 / 1.3], ids=["fast", "near a mark"])
def test_a_further_kernel_that_is_slow_leaves_the_rounds_with_its_time(monkeypatch, mine):
    found = measured(monkeypatch, wanted(), (1.1, 1.3), times=slow(9000.0, mine))
    assert found.outcome == "timed", found.words
    assert list(found.samples) == ["yours", OVER]
    assert "in 3 rounds, the course's tiled kernel 0.29" in found.about["dropped"][YOUR_TILED]
    assert len({len(taken) for taken in found.samples.values()}) == 1
    assert read_measured(found.as_dict()) == found


def dawdles(step, shape):
    """Take nine seconds for every shape."""
    calls._now.now += 9 * (step == "go")
    return ""


def test_a_slow_kernel_holds_the_device_no_longer_than_is_allowed(monkeypatch):
    found = measured(monkeypatch, wanted(), faults={BASE: dawdles})
    assert found.outcome == "timed", found.words
    assert "its trials on 8 small shapes take over 60 s" in found.about["dropped"][YOUR_TILED]
    assert found.about["seconds"] < 80
    found = measured(monkeypatch, wanted(), faults={MINE: dawdles})
    assert (found.outcome, "yours: its trials on 8 small shapes take" in found.words) == ("refused", True), found.words


@pytest.mark.parametrize("base", [0.4, 0.55, 0.28])
def test_a_further_kernel_that_is_hardly_slower_stays_in_the_rounds(monkeypatch, base):
    found = measured(monkeypatch, wanted(), (1.1, 1.3), times=slow(base))
    assert list(found.samples) == ["yours", YOUR_TILED, OVER]
    assert len({len(taken) for taken in found.samples.values()}) == 1


def test_a_measurement_that_takes_too_long_says_so(monkeypatch):
    times = Times()
    times.of |= {MINE: (2500.0,), TILED: (2900.0,)}
    found = measured(monkeypatch, wanted(two=False), times=times)
    assert (found.outcome, "not done within 240 s, after" in found.words) == ("undecided", True), found.words
    assert "of at least 25 rounds" in found.words
    times.of |= {MINE: (800.0,), TILED: (900.0,)}
    found = measured(monkeypatch, wanted(two=False), (1.125,), times=times)
    assert (found.outcome, found.about["seconds"] < 250) == ("timed", True), found.words
    assert Effort().least < len(found.samples["yours"]) < Effort().most_near
    said = by_gain(found, Mark(1.125, 1.1, 0.0, "here"), "", "").lines
    assert "the measurement is not done within 240 s: no more rounds were begun" in said
