"""One hub at a time for one folder; a hub that was killed is in nobody's way."""

import os
import secrets
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest
from hubs import ROOT, write_course
from patience import PATIENCE

from tilelab.grading.errors import GradingError

#: Of this run alone: by its mark everything on a machine is found that a hub started, and is ended.
MARK = secrets.token_hex(8)
HOLD = f"""
import sys, time
from pathlib import Path
from deployment import read_deployment
from only_one import hold
hold(read_deployment(Path(sys.argv[1])), "{MARK}")
print("held", flush=True)
time.sleep(300)
"""


@pytest.fixture
def of(tmp_path):
    """Return a course that nobody has started."""
    from deployment import read_deployment

    return read_deployment(write_course(tmp_path))


@contextmanager
def holder(of):
    """Have a process hold the lock of a course's folder, as its hub does."""
    variables = os.environ | {"PYTHONPATH": f"{ROOT / 'autograder' / 'hub'}:{os.environ['PYTHONPATH']}"}
    command = [sys.executable, "-c", HOLD, str(of.file)]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_hub_is_refused_with_the_name_of_the_first(of):
    from only_one import check_alone

    check_alone(of)
    with holder(of) as first:
        words = rf"a hub runs in '.*state' already \(process {first.pid}, at {of.url}, since 2.*\)\. End that one first"
        with pytest.raises(GradingError, match=words):
            check_alone(of)
        (of.state / "hub" / "running.json").write_text("{")
        with pytest.raises(GradingError, match=r"already \(it just started\)"):
            check_alone(of)
    check_alone(of)  # a lock does not outlive who held it, however they ended


def test_what_a_killed_hub_left_behind_is_ended_before_the_next_one_starts(of, monkeypatch):
    import running

    monkeypatch.setattr(running, "check_proxy", lambda: None)
    with holder(of) as first:
        pass
    assert not psutil.pid_exists(first.pid)
    left, foreign = (
        subprocess.Popen(["sleep", "300"], env={"PATH": os.environ["PATH"], "TILELAB_HUB": mark})
        for mark in (MARK, f"not {MARK}")
    )
    try:
        running.make_ready(of)
        left.wait(PATIENCE)  # which fails where it still runs
        assert foreign.poll() is None
    finally:
        for process in (left, foreign):
            process.kill()
            process.wait()


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_started(of, monkeypatch):
    import checks
    import release_course

    def readonly(**named):
        raise OSError(30, os.strerror(30))

    checks.check_state(of)
    monkeypatch.setattr(checks.tempfile, "TemporaryFile", readonly)
    words = r"keeps everything in '.*state', which cannot be written \(Read-only file system\): .* \[hub\] state"
    with pytest.raises(GradingError, match=words):
        release_course.release_course(of)
    assert list(of.state.iterdir()) == []


def test_a_folder_that_is_a_file_is_said(of):
    from checks import check_state

    of.state.write_text("")
    with pytest.raises(GradingError, match=r"cannot be written \(File exists\)"):
        check_state(of)
