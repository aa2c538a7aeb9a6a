"""Control groups: where they are made and what is written there, on trees of both versions, and on this machine's own.

The trees are folders: they show what would be asked of the kernel. That the kernel does it, the tests of the sandbox
show on a machine that lets them, for the version it has.
"""

import os

import pytest

from tilelab.grading.sandbox import cgroups
from tilelab.grading.sandbox.limits import MIB, Limits

LIMITS = Limits(memory=256 * MIB, processes=40)
FILES = ("cgroup.procs", "memory.max", "memory.swap.max", "pids.max", "memory.events", "memory.oom.group")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return a function that lays out a tree of version 2 in which this process is in a group."""

    def lay_out(own, **handed_on):
        monkeypatch.setattr(cgroups, "_mounted", lambda kind, controller="": tmp_path if kind == "cgroup2" else None)
        monkeypatch.setattr(cgroups, "_memberships", lambda: [([], own), (["name=systemd"], "/")])
        (tmp_path / own.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for group, controllers in handed_on.items():
            folder = tmp_path if group == "top" else tmp_path / group.replace("__", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.subtree_control").write_text(controllers)
        return tmp_path

    return lay_out


@pytest.mark.parametrize(
    ("own", "handed_on", "place"),
    [
        ("/user/app/grader.scope", {"user__app": "cpu memory pids", "user": "memory pids"}, "user/app"),
        ("/user/app/grader.scope", {"user__app": "cpu", "user": "memory pids"}, "user"),
        ("/grader", {"grader": "memory pids", "top": ""}, "grader"),
        ("/grader", {"grader": "", "top": "memory pids"}, "."),
        ("/grader", {"grader": "memory", "top": "pids"}, None),
        ("/", {"top": ""}, None),
    ],
)
def test_version_2_looks_for_the_nearest_group_that_hands_both_controllers_on(tree, own, handed_on, place):
    top = tree(own, **handed_on)
    assert list(cgroups._version_2()) == ([] if place is None else [top / place])


@pytest.mark.parametrize(
    ("mounts", "places"),
    [
        ({"memory": "m", "pids": "p"}, ["m", "p/own"]),
        ({"memory": "both", "pids": "both"}, ["both", "both/own"]),
        ({"memory": "m"}, []),
        ({}, []),
    ],
)
def test_version_1_needs_all_controllers_that_are_wanted(tmp_path, monkeypatch, mounts, places):
    for mount in mounts.values():
        (tmp_path / mount / "own").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(cgroups, "_memberships", lambda: [(["memory"], "/not/here"), (["cpu", "pids"], "/own")])
    found = {name: tmp_path / mount for name, mount in mounts.items()}
    monkeypatch.setattr(cgroups, "_mounted", lambda kind, controller="": found.get(controller))
    assert cgroups._version_1("memory", "pids") == [tmp_path / place for place in places]


def test_a_group_has_its_limits_before_anything_joins(tmp_path):
    group = tmp_path / "tilelab-1-0"
    group.mkdir()
    for name in FILES:
        (group / name).write_text("")
    group.rename(tmp_path / "made")

    class Prepared(type(tmp_path)):
        """A folder that has a kernel's files as soon as it is made."""

        def mkdir(self, *arguments, **options):
            (tmp_path / "made").rename(self)

    made = cgroups.Group([Prepared(group)], LIMITS)
    written = {name: (group / name).read_text() for name in FILES}
    assert written["memory.max"] == str(256 * MIB)
    assert written["memory.swap.max"] == written["memory.oom.group"] == "0"
    assert written["pids.max"] == "40"
    assert made.entrances == [str(group / "cgroup.procs")]
    for events, killed in [("oom 1\noom_kill 0\n", False), ("low 0\noom 1\noom_kill 2\n", True)]:
        (group / "memory.events").write_text(events)
        assert made.killed_for_memory() is killed


def test_what_holds_the_limits_is_said(monkeypatch, tmp_path):
    second, first = tmp_path / "2", tmp_path / "1"
    for folder in (second, first):
        folder.mkdir()
    (second / "cgroup.controllers").touch()
    for places, words in [
        ([], "this user may not make control groups"),
        ([second], "version 2"),
        ([first], "version 1"),
    ]:
        monkeypatch.setattr(cgroups, "parents", lambda places=places: places)
        assert words in cgroups.held_by()


def test_a_group_that_cannot_be_made_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroups, "parents", lambda: [tmp_path / "not-there"])
    assert cgroups.make(LIMITS) is None


def test_groups_of_killed_graders_are_swept_and_others_stay(tmp_path):
    gone = 2**22 + 1  # above any process number
    for name in (f"tilelab-{gone}-0", f"tilelab-{os.getpid()}-0", "tilelab-x", "other"):
        (tmp_path / name).mkdir()
    cgroups._sweep([tmp_path])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", f"tilelab-{os.getpid()}-0", "tilelab-x"]
