"""What the book shows as recorded belongs to the programs that it shows."""

import importlib.util
import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[2] / "book" / "recorded"


@pytest.fixture(scope="module")
def recorder():
    spec = importlib.util.spec_from_file_location("cute_on_the_host", RECORDED / "cute_on_the_host.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_record_is_of_the_programs_in_the_chapter(recorder):
    assert json.loads(recorder.RECORD.read_text())["programs"] == recorder.chapter_names()["PROGRAMS"]


@pytest.mark.slow
def test_cute_still_says_what_was_recorded(recorder):
    if not recorder.chapter_names()["header_folders"]():
        pytest.skip("needs the wheel nvidia-cutlass, CUDA's headers and g++")
    was = json.loads(recorder.RECORD.read_text())["outcomes"]
    now = recorder.record()["outcomes"]
    assert now["prints"] == was["prints"]
    assert now["refuses"]["errors"][0].partition("error:")[2] == was["refuses"]["errors"][0].partition("error:")[2]
