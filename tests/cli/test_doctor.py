"""tilelab doctor: true findings, a remedy for each one that is missing, and JSON."""

import json

import pytest
from click.testing import CliRunner

from tilelab.cli import doctor
from tilelab.cli.main import COMMANDS, cli


@pytest.fixture
def invoke():
    return lambda *arguments: CliRunner().invoke(cli, arguments, catch_exceptions=False)


def test_json_names_what_is_here(invoke):
    import numpy

    report = json.loads(invoke("doctor", "--json").stdout)
    packages = {row["name"]: row for row in report["Packages"]}
    assert packages["numpy"]["seen"] == numpy.__version__
    assert {row["name"] for row in report["What kernels can run on"]} >= {"NVIDIA GPU", "host C++ compiler"}


def test_what_is_missing_is_said_with_its_remedy(invoke, monkeypatch):
    monkeypatch.setitem(doctor.PACKAGES, "surely-not-a-package", ("gpu", "a test"))
    monkeypatch.setenv("PATH", "")
    out = invoke("doctor").stdout
    assert ".venv/bin/pip install -c constraints.txt -e '.[gpu]'" in out
    assert "apt-get install -y bubblewrap" in out
    assert "apt-get install -y g++" in out


def test_a_compiler_that_fails_is_not_called_working(tmp_path, monkeypatch):
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho 'fatal error: tuple: No such file' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = doctor.compiler()
    assert not finding.ok
    assert "fatal error" in finding.seen


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page(invoke, name):
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_an_unknown_command_is_named(invoke):
    result = invoke("gradee")
    assert result.exit_code == 2
    assert "gradee" in result.output
