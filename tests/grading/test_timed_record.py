"""The claims of the timed record: none holds without data, and steps that fail are noted, not hidden."""

import json
import math
import random
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import record_timed as record
import timed_on_device as on_device

from tilelab.grading.errors import GradingError
from tilelab.grading.timed.thresholds import read_thresholds
from tilelab.grading.timed.wanted import Measured

NOTHING = {"gradebook": []}


def test_no_claim_holds_of_a_run_that_did_not_take_place():
    claims = [
        *record.of_the_class(NOTHING, NOTHING, [], []),
        *record.of_grading_there(NOTHING, {}, {}),
        *record.of_tricks([]),
        *record.of_repeats([]),
        *record.of_calibration({}),
        *record.of_tests({}),
        *record.of_the_run([], {}, {}, []),
    ]
    assert len(claims) > 20
    assert [claim["name"] for claim in claims if claim["ok"]] == []


def row(name, part, **more):
    given = {
        "different marks": 1,
        "without a mark": 0,
        "runs": 20,
        "spread": 0.01,
        "beside the mark, %": 5.0,
        "seconds a job": 2.0,
    }
    return {"submission": name, "part": part, **given, **more}


def repeats(**more):
    return [
        row("practice 1, right", "practice_1_timed"),
        row("practice 7, right", "practice_7_timed"),
        row("5 % below the mark", "practice_1_timed", **{"beside the mark, %": -5.0}),
        row("5 % above the mark", "practice_1_timed", **more),
    ]


@pytest.mark.parametrize(
    ("more", "fails"),
    [
        ({}, 0),
        ({"spread": math.nan}, 1),
        ({"spread": 0.03}, 1),
        ({"beside the mark, %": 4.0}, 1),
        ({"different marks": 2}, 1),
        ({"without a mark": 20}, 1),
        ({"runs": 19}, 1),
    ],
)
def test_one_submission_that_is_not_as_claimed_is_enough(more, fails):
    assert sum(not claim["ok"] for claim in record.of_repeats(repeats(**more))) == fails


def test_a_class_of_a_hundred_is_claimed_of_both_problems_together():
    minutes = [claim for claim in record.of_repeats(repeats()[:1]) if "class of 100" in claim["name"]]
    assert [claim["ok"] for claim in minutes] == [False]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The steps on a machine that has a GPU, as far as they ask."""
    monkeypatch.setattr(on_device, "where_gpu", lambda distribution: {"device": "a GPU", "driver": "1"})
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "code.json").write_text(json.dumps({"commit": "abc", "files": {}}))
    return lambda **more: on_device.Device(tmp_path / "class", tmp_path / "out", **more)


def test_a_step_that_fails_is_noted_until_it_ends_well(here, tmp_path, monkeypatch):
    def broken(device):
        raise GradingError("the GPU fell off the bus")

    monkeypatch.setattr(on_device.Device, "tests", broken)
    assert not here().run("tests")
    noted = json.loads((tmp_path / "out" / "failed.json").read_text())
    assert noted == {"tests": "GradingError: the GPU fell off the bus"}
    monkeypatch.setattr(on_device.Device, "tests", lambda device: None)
    assert here().run("tests")
    assert json.loads((tmp_path / "out" / "failed.json").read_text()) == {}
    assert len(json.loads((tmp_path / "out" / "seconds.json").read_text())["tests"]) == 2


def test_when_it_is_late_no_step_is_begun(here, tmp_path):
    assert not here(seconds=-1.0).run("tests")
    assert not (tmp_path / "out" / "tests.json").exists()


def test_what_other_code_has_measured_is_not_gone_on_with(here, tmp_path):
    here()
    (tmp_path / "class" / "code.json").write_text(json.dumps({"commit": "abd", "files": {}}))
    with pytest.raises(GradingError, match="holds what other code has measured"):
        here()


def test_what_a_machine_lacks_is_said_in_one_sentence(monkeypatch):
    monkeypatch.setattr(on_device.importlib.util, "find_spec", lambda name: None if name == "cupy" else name)
    monkeypatch.setattr(on_device.shutil, "which", lambda name: None)
    said = on_device.lacking(["calibrate", "grade"])
    assert said == (
        "this machine lacks the driver's nvidia-smi (every step), cupy-cuda13x (every step), the system's g++ (the "
        "step grade): install it, or leave those steps out"
    )
    assert on_device.lacking(["tests"], emulated=True).startswith("this machine lacks the system's g++ (every step)")


def test_a_device_without_a_mark_gives_a_row_that_claims_nothing():
    run = {"cell": "practice_1_timed", "outcome": "undecided", "words": "", "device": {"name": "a toaster"}}
    run |= {"shape": [1, 1, 1], "samples": [], "about": {"seconds": 1.0}}
    said = read_thresholds(on_device.SHIPPED)
    (found,) = record.repeat_rows({"practice 1, right": [run] * 20}, said)
    assert found["marks"] == ["pending"]
    assert math.isnan(found["gain"])
    assert sum(not claim["ok"] for claim in record.of_repeats([found])) >= 4


class Noisy:
    """A device on which a kernel takes as long as the honest one does on an H200, give or take a two-thousandth."""

    device = {"name": "NVIDIA H200", "emulated": False}  # noqa: RUF012

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def right(self, work):
        return 0.2785 + 1.9e-4 * work - 1.2e-8 * (work - 100) * (400 - work)  # nearly a line, as measured

    def measure(self, wanted):
        work = int(re.search(r"i < (\d+); \+\+i\) padding", wanted.candidates[0].source).group(1))
        time = self.right(work) * self.chance.uniform(0.9995, 1.0005)
        samples = {"mine": [(time,) * 3] * 9, "reference": [(0.4334 * self.chance.uniform(0.9995, 1.0005),) * 3] * 9}
        return Measured("timed", "", self.device, (1024, 1024, 1024), samples)


@pytest.mark.parametrize("seed", range(50))
def test_what_lies_beside_the_mark_is_found_though_times_are_noisy(seed):
    said, device = read_thresholds(on_device.SHIPPED), Noisy(seed)
    mark = said.mark("practice_1_timed", device.device["name"], accept_shipped=True).full
    for name, work in on_device.beside_the_mark(said, device).items():
        gain = 0.4334 / device.right(work)
        assert gain / mark == pytest.approx(on_device.BESIDE[name], rel=0.003)  # what the record asks for
