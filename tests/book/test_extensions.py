"""The book's own Sphinx extensions."""

import importlib.util
from pathlib import Path

import pytest
from nbformat.v4 import new_output

EXTENSIONS = Path(__file__).parents[2] / "book" / "_ext"


@pytest.fixture
def whole_streams():
    spec = importlib.util.spec_from_file_location("whole_streams", EXTENSIONS / "whole_streams.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.whole_streams


def printed(*pieces):
    return [new_output("stream", name="stdout", text=piece) for piece in pieces]


def test_a_line_flushed_half_way_stays_one_line(whole_streams):
    [output] = whole_streams(printed("by tuple: ", " (4,8)\n", "  next", "\n"))
    assert output["text"] == "by tuple:  (4,8)\n  next\n"


def test_streams_and_pictures_keep_their_order(whole_streams):
    picture = new_output("display_data", data={"image/svg+xml": "<svg/>"})
    error = new_output("stream", name="stderr", text="oh\n")
    kinds = [output["output_type"] for output in whole_streams([*printed("a"), picture, error, *printed("b\n")])]
    assert kinds == ["stream", "display_data", "stream"]


def test_a_run_in_steps_shows_the_steps_that_its_script_names(monkeypatch):
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    from numbers_in_prose import commands_of, records_folder

    steps = commands_of(records_folder() / "timed_h200.json")
    assert [step.split()[2] for step in steps] == ["class", *["device"] * 4, "conclude"]
    assert commands_of(records_folder() / "timer_h200.json") == [
        "python benchmarks/record_timer.py --record benchmarks/records/timer_h200.json"
    ]
