"""The scripts that `make` asks about the machine: which Python to use, which packages to install."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def machine(tmp_path):
    """Return a function that runs a tool on a machine that has only the commands given to it."""

    def run(tool: str, *arguments: str, commands: dict[str, str]) -> subprocess.CompletedProcess:
        for name in ["id", "ls", "tr"]:
            (tmp_path / name).symlink_to(shutil.which(name))
        for name, script in commands.items():
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)
        return subprocess.run(
            ["/bin/sh", TOOLS / tool, *arguments],
            env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_supported_python_is_found(machine):
    done = machine("find-python.sh", commands={"python3.12": f'exec {sys.executable} "$@"'})
    assert done.returncode == 0
    assert done.stdout.strip().endswith("/python3.12")


@pytest.mark.parametrize("commands", [{}, {"python3": "exit 1"}], ids=["no python", "an old python"])
def test_without_one_the_command_that_installs_it_is_named(machine, commands):
    done = machine("find-python.sh", commands=commands)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "apt-get install -y python3.1" in done.stderr
    assert "-venv" in done.stderr


def test_a_python_without_venv_is_named_with_its_package(machine):
    # It answers the version question, and fails to import venv, as Debian's bare python3 does.
    script = f'case "$2" in *venv*) exit 1 ;; esac\nexec {sys.executable} "$@"'
    done = machine("find-python.sh", commands={"python3": script})
    assert done.returncode == 1
    version = f"python3.{sys.version_info.minor}"
    assert f"install -y {version} {version}-venv" in done.stderr


def test_an_ordinary_user_is_told_which_packages_to_install(machine):
    done = machine("system-packages.sh", "test", commands={"id": "echo 1000", "g++": "exit 0"})
    assert done.returncode == 1
    assert "bubblewrap" in done.stderr
    assert "apt-get install" in done.stderr
    assert " g++" not in done.stderr


def test_root_installs_what_is_missing(machine, tmp_path):
    commands = {
        "id": "echo 0",
        "g++": "exit 0",
        "chromium": "exit 0",
        "google-chrome": "exit 0",
        "sh": 'exec /bin/sh "$@"',
        "apt-get": f'echo "$@" >> {tmp_path}/log',
    }
    done = machine("system-packages.sh", "test", commands=commands)
    assert done.returncode == 0, done.stderr
    wanted = "install -y --no-install-recommends bubblewrap nodejs npm"
    assert (tmp_path / "log").read_text().splitlines() == ["update", wanted]


def test_nothing_is_done_where_nothing_is_missing(machine):
    there = ["g++", "bwrap", "chromium", "google-chrome", "node", "npm"]
    commands = dict.fromkeys(there, "exit 0") | {"apt-get": "exit 1"}
    done = machine("system-packages.sh", "test", commands=commands)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
