"""What a learner's own Unix account can do to a class: nothing. Real accounts, in a private namespace."""

import os
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hubs import words_of

from tilelab.grading.exchange.plugins import STAMP

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("hub"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make a private namespace with accounts of its own"),
]
NOTEBOOK = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
LOOK = """
import json, os, sys
said = {}
for path in sys.argv[1:]:
    found = said[path] = []
    for what, do in {
        "list": lambda: os.listdir(path),
        "read": lambda: open(path).read(),
        "write": lambda: open(path, "a"),
        "make": lambda: os.mkdir(path + "/made"),
        "remove": lambda: os.rename(path, path + ".gone"),
        "mode": lambda: os.chmod(path, 0o777),
    }.items():
        try:
            do()
        except OSError:
            continue
        found.append(what)
print(json.dumps(said))
"""


def what_can_be_done(hub, name, *paths):
    """Return what an account can do to paths."""
    import json

    done = hub.run_as(name, sys.executable, "-c", LOOK, *map(str, paths))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def adas(exchanges):
    """Return the receipt of a submission of ada's, whose walls are tried."""
    return exchanges["ada"].submit("exercises", {"exercise_1.ipynb": NOTEBOOK, "secret.txt": b"adas own"})


@pytest.mark.parametrize("name", ["ada", "ben"])
def test_a_learner_can_do_nothing_to_what_is_kept(hub, adas, name):
    kept = hub.of.exchange / "submissions" / "ada" / "exercises" / adas.time
    assert (kept / "files" / "secret.txt").read_bytes() == b"adas own", "root sees it, so the path is right"
    paths = [
        hub.of.exchange,
        hub.of.exchange / "submissions",
        kept,
        kept / "files" / "secret.txt",
        hub.of.exchange / "released" / "exercises" / "0001" / "exercise_1.ipynb",
        hub.of.course_folder,
        hub.of.course_folder / "gradebook.db",
        hub.of.course_folder / "checks",
        hub.of.state / "hub.log",
        hub.of.state / "hub",
        hub.of.state / "hub" / "formgrader.token",
        hub.of.state / "hub" / "jupyterhub.sqlite",
    ]
    assert what_can_be_done(hub, name, *paths) == {str(path): [] for path in paths}


def test_a_learner_can_do_nothing_to_another_learners_home(hub):
    home = hub.of.state / "home"
    assert what_can_be_done(hub, "ben", home / "ada") == {str(home / "ada"): []}
    assert what_can_be_done(hub, "ada", home / "ada")[str(home / "ada")] == ["list", "make", "mode"]


def test_what_servers_read_cannot_be_altered(hub):
    etc = hub.of.etc / "learner" / "nbgrader_config.py"
    assert what_can_be_done(hub, "ada", hub.of.etc, etc) == {str(hub.of.etc): ["list"], str(etc): ["read"]}


def test_formgraders_account_cannot_reach_the_exchange_but_by_its_service(hub, adas):
    kept = hub.of.exchange / "submissions"
    assert what_can_be_done(hub, hub.of.grader_account, kept) == {str(kept): []}


def test_tokens_of_others_are_in_no_command_line_and_no_readable_environment(hub):
    look = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ"
    done = hub.run_as("ada", "sh", "-c", look)
    assert "tilelab.grading.exchange.service" in done.stdout, "it does see what runs"
    for file in (hub.of.state / "hub").glob("*.token"):
        assert file.read_text() not in done.stdout


def test_a_learner_cannot_end_the_exchange(hub):
    (pid,) = [one.pid for one in hub.running.processes if "tilelab.grading.exchange.service" in words_of(one)]
    done = hub.run_as("ada", "kill", "-0", str(pid))
    assert done.returncode != 0
    assert "not permitted" in done.stderr


STEPS = """
import os, sys
from pathlib import Path
from nbgrader.apps import NbGraderApp

def nbgrader(*words):
    app = NbGraderApp.instance()
    try:
        app.launch_instance(list(words))
    except SystemExit as ended:
        return ended.code
    finally:
        app.subapp.clear_instance()
        app.clear_instance()
    return 0

assert nbgrader("fetch_assignment", "exercises") == 0
Path("exercises/timestamp.txt").write_text("2020-01-01 00:00:00.000000 UTC")
Path("exercises/passwd").symlink_to("/etc/passwd")
assert nbgrader("submit", "exercises") == 0
assert nbgrader("fetch_assignment", "exercises") == 1
"""


def test_nbgrader_in_a_terminal_and_a_forged_time(hub, people, exchanges, tmp_path):
    """What a learner types in a terminal of their server, in one process: nbgrader takes seconds to start."""
    from hub_config import environment

    home = hub.of.state / "home" / "ben"
    variables = environment(hub.of) | {
        "HOME": str(home),
        "JUPYTERHUB_API_TOKEN": people["ben"].token("access:services!service=exchange"),
        "JUPYTER_CONFIG_PATH": str(hub.of.etc / "learner"),
    }
    before = len(exchanges["ben"].submissions())
    done = hub.run_as("ben", sys.executable, "-c", STEPS, env=variables, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "you have exercises already" in done.stderr
    assert (home / "exercises" / "exercise_1.ipynb").stat().st_uid == home.stat().st_uid
    *_, receipt = exchanges["ben"].submissions()
    assert len(exchanges["ben"].submissions()) == before + 1
    assert abs(datetime.now(UTC) - receipt.moment) < timedelta(minutes=10)
    assert set(receipt.digests) & {"timestamp.txt", "passwd"} == set()
    # One who knows the protocol sends a time along, as a file. What is collected says the service's.
    exchanges["ben"].submit("exercises", {"exercise_1.ipynb": NOTEBOOK, "timestamp.txt": b"2020-01-01 00:00:00.0 UTC"})
    collected = collect(hub)
    folder = hub.of.course_folder / "submitted" / "ben" / "exercises"
    assert collected.returncode == 0, collected.stderr
    *_, last = exchanges["ben"].submissions()
    assert (folder / "timestamp.txt").read_text() == last.moment.strftime(STAMP)


def collect(hub):
    """Collect as formgrader does: as the course's account, with the course's token."""
    from hub_config import environment

    variables = environment(hub.of) | {
        "HOME": str(hub.of.grader_home),
        "JUPYTERHUB_API_TOKEN": (hub.of.state / "hub" / "formgrader.token").read_text(),
        "JUPYTER_CONFIG_PATH": str(hub.of.etc / "grader"),
    }
    command = [sys.executable, "-m", "nbgrader", "collect", "exercises"]
    return hub.run_as(hub.of.grader_account, *command, env=variables, cwd=hub.of.grader_home)
