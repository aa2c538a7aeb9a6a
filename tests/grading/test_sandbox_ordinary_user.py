"""The sandbox for an ordinary user: the same attempts, limits and kernels, run again without root."""

import os
from pathlib import Path

import pytest
from sandboxes import as_ordinary_user, python

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.getuid() != 0, reason="these tests run as an ordinary user already")
@pytest.mark.parametrize("file", ["test_sandbox_escapes.py", "test_sandbox_limits.py", "test_sandbox_kernels.py"])
def test_the_sandbox_holds_for_an_ordinary_user(file, open_folder):
    options = ["-m", "pytest", str(HERE / file), "-q", "-p", "no:cacheprovider", f"--basetemp={open_folder}/t"]
    config = HERE.parents[1] / "pyproject.toml"
    command = python(*options, "-c", str(config), f"--rootdir={HERE.parents[1]}")
    done = as_ordinary_user(command, open_folder, 800)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
