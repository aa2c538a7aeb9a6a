"""What tests of the hub share: a course.toml with free ports, and a hub that runs with it."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

import tilelab

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "autograder" / folder) for folder in ("hub", "demo")] + [str(ROOT / "tools")]
os.environ["PYTHONPATH"] = str(Path(tilelab.__file__).parents[1])

COURSE = """
[course]
id = "tiles"
release = {release}

[people]
instructors = ["iris"]
graders = ["gus"]
learners = ["ada", "ben"]

[authenticator]
kind = "shared-password"

[hub]
url = "http://127.0.0.1:{port}"
port = {port}
state = "state"
idle_minutes = 60

[weights]
exercises = 1.0
"""
PASSWORD = "for-loopback-alone"


def write_course(folder, release="[]", **changes):
    """Write a course.toml with free ports and return it."""
    from running import free_port

    file = folder / "course.toml"
    text = COURSE.format(port=free_port(), release=release)
    for before, after in changes.items():
        text = text.replace(before, after)
    file.write_text(text)
    return file


def words_of(process):
    """Return a process's command line; nothing where it has ended by now."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class Hub:
    """What tests do with a running hub."""

    def __init__(self, running, before):
        self.running, self.before, self.of = running, before, running.of
        self.base = f"{self.of.at('proxy')}{self.of.base_url}"

    def run_as(self, name, *command, **options):
        """Run a command as an account of the course, where it has accounts, and return how it ended."""
        options = {"capture_output": True, "text": True, "check": False, "cwd": "/", "timeout": 240} | options
        if not self.before:
            return subprocess.run(command, **options)
        lines = (self.of.state / "passwd").read_text().splitlines()
        number = next(line.split(":")[2] for line in lines if line.startswith(f"{name}:"))
        drop = ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--inh-caps=-all", "--no-new-privs"]
        return subprocess.run([*self.before, *drop, *command], **options)
