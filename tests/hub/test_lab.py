"""What JupyterLab's pages get: words, within the time, whatever a notebook does; chapters that come by themselves."""

import asyncio
import json
import re
from functools import partial
from pathlib import Path

import nbformat
import psutil
import pytest
from classroom import solved
from hubs import words_of
from patience import until
from traitlets.config import Config

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange import lab
from tilelab.grading.exchange.client import Client
from tilelab.grading.exchange.lab import Assignments, bring_chapters, validated
from tilelab.grading.exchange.validate import validate

pytestmark = pytest.mark.slow


@pytest.fixture
def short(tmp_path):
    """Return a folder whose notebooks may run two seconds a cell."""
    (tmp_path / "limits.toml").write_text("[every]\ncell_seconds = 2\nseconds = 20\nrestarts = 1\n")
    limits = str(tmp_path / "limits.toml")
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\nc.ContainedExecute.limits = {limits!r}\n")
    return tmp_path


def said_of(folder, changes, name="exercise_1", seconds=120.0):
    """Validate a solved notebook in which some answers are others."""
    file = folder / f"{name}.ipynb"
    nbformat.write(solved(name, changes), file)
    return asyncio.run(validated(file, seconds))


def errors(said):
    assert said["success"], said
    return "\n".join(cell["raw_error"] for cell in said["value"].get("failed", []))


def test_a_right_notebook_passes(tmp_path):
    assert said_of(tmp_path, {}) == {"success": True, "value": {}}


def test_a_loop_that_does_not_end_is_said_in_words(short):
    said = said_of(short, {"exercise_1_order_answer": "while True:\n    pass"})
    assert "ran longer than it may and was stopped" in errors(said)
    assert json.dumps(said)


def test_a_loop_that_cannot_be_interrupted_is_said_in_words(short):
    stubborn = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    pass"
    assert "could not be interrupted" in errors(said_of(short, {"exercise_1_order_answer": stubborn}))


def test_a_kernel_that_ends_is_said_in_words(short):
    said = errors(said_of(short, {"exercise_1_order_answer": "import os\nos._exit(1)"}))
    assert "the kernel ended in a cell" in said


def test_an_error_of_theirs_is_one_line(short):
    said = errors(said_of(short, {"exercise_1_order_answer": "order = missing_name"}))
    assert "NameError: name 'missing_name' is not defined" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"cells": 3, "nbformat": 4}', None])
def test_a_file_that_is_no_notebook_is_said_in_words(tmp_path, content):
    file = tmp_path / "a.ipynb"
    if content is not None:
        file.write_bytes(content)
    said = validate(file, Config())
    assert said["success"] is False
    assert said["value"].startswith("a.ipynb c")


def test_a_validation_that_takes_too_long_ends_with_all_it_started(tmp_path, monkeypatch):
    monkeypatch.setenv("TILELAB_TEST_RUN", str(tmp_path))

    def left():
        return [one for one in psutil.process_iter() if started_under(one, str(tmp_path))]

    said = said_of(tmp_path, {"exercise_1_order_answer": "import time\ntime.sleep(25)"}, seconds=6.0)
    assert said["success"] is False
    assert "did not end in 6 s" in said["value"]
    assert until(lambda: not left())


def started_under(process, mark):
    """Whether a process has what its starter's environment held."""
    try:
        return process.environ().get("TILELAB_TEST_RUN") == mark
    except psutil.Error:
        return False


def test_a_validation_whose_server_ends_ends_too(tmp_path, monkeypatch):
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nexec sleep 31536000\n")
    endless.chmod(0o755)
    monkeypatch.setattr(lab.sys, "executable", str(endless))

    def children():
        return [one for one in psutil.Process().children() if words_of(one)[:2] == ["sleep", "31536000"]]

    async def ended_in_the_middle():
        task = asyncio.create_task(validated(tmp_path / "a.ipynb"))
        while not children():  # or the time of this test is over
            await asyncio.sleep(0.05)
        (child,) = children()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return child

    assert not asyncio.run(ended_in_the_middle()).is_running()


def test_a_process_that_says_nothing_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(lab.sys, "executable", "/bin/false")
    said = asyncio.run(validated(tmp_path / "a.ipynb"))
    assert said == {"success": False, "value": "a.ipynb could not be validated (exit code 1): it said nothing"}


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Return a learner's folder on a server whose exchange is away."""
    text = "from tilelab.grading.exchange.plugins import configure\nc = get_config()\nconfigure(c)\n"
    text += 'c.CourseDirectory.course_id = "tiles"\nc.ServiceExchange.patience = 0.1\n'
    config = tmp_path / "etc"
    config.mkdir()
    (config / "nbgrader_config.py").write_text(text)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(config))
    monkeypatch.setenv("TILELAB_EXCHANGE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "0" * 32)
    home = tmp_path / "home"
    home.mkdir()
    return home


def test_an_exchange_that_is_away_is_said_in_words(nowhere):
    pages = Assignments(nowhere)
    for said in (pages.list(), pages.act("fetch", "exercises"), pages.act("fetch_feedback", "exercises")):
        assert said["success"] is False
        assert "the exchange cannot be reached" in said["value"]
        assert "Nothing of yours is lost" in said["value"]
    assert "fetch 'exercises' first" in pages.act("submit", "exercises")["value"]


@pytest.mark.parametrize("name", ["week 1", "Übung", "../x", "a/b", "a?b", "x" * 101, ".hidden", "", "exercises/.."])
def test_a_name_that_no_assignment_has_is_said_at_once(nowhere, name):
    """It cannot be asked for in an address, and is no reason to try again for a minute."""
    (nowhere / name).mkdir(parents=True, exist_ok=True)
    (nowhere / name / "a.ipynb").write_text("{}")
    client = Client("http://127.0.0.1:9", "0" * 32, patience=0.1)
    of_all = [] if name == "" else [client.submissions]  # where no name is one
    for ask in (client.handed_out, client.feedback, partial(client.submit, files={"a": b""}), *of_all):
        with pytest.raises(GradingError, match=r"assignment '.*' is not a name"):
            ask(name)
    for act in ("fetch", "submit", "fetch_feedback"):
        assert "is not a name" in Assignments(nowhere).act(act, name)["value"]


def test_a_disk_that_is_full_is_said_in_words(nowhere, monkeypatch):
    monkeypatch.setattr(Client, "handed_out", lambda client, name: {"a.ipynb": b"{}"})

    def full(path, content):
        raise OSError(122, "Disk quota exceeded", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    said = Assignments(nowhere).act("fetch", "exercises")
    assert said["success"] is False
    assert re.fullmatch(
        r"Disk quota exceeded \(.*a\.ipynb\)\. Nothing was lost: mend that and try again", said["value"]
    )
    assert not (nowhere / "exercises").exists()


def test_chapters_that_cannot_come_do_not_stop_a_server(nowhere, monkeypatch):
    monkeypatch.setattr(lab, "Client", partial(lab.Client, patience=0.1))
    assert "the chapters were not brought up to date: the exchange cannot be reached" in bring_chapters(nowhere)
    assert not (nowhere / "course").exists()


def test_chapters_come_and_come_again(tmp_path, monkeypatch):
    versions = {1: {"01.ipynb": b"one"}, 2: {"01.ipynb": b"two"}}

    class Newest:
        number = 1

        def materials(self, have):
            return self.number, {} if have == self.number else versions[self.number]

    newest = Newest()
    monkeypatch.setattr(lab, "Client", lambda: newest)
    assert (
        bring_chapters(tmp_path) == "the course is at version 1: 1 new, 0 replaced, 0 beside yours, which you changed"
    )
    assert bring_chapters(tmp_path) == "the course is at version 1"
    newest.number = 2
    assert "1 replaced" in bring_chapters(tmp_path)
    assert (tmp_path / "course" / "01.ipynb").read_bytes() == b"two"
