"""The broken and hostile submissions: every one comes out as designed, as this user and as an ordinary one."""

import os
import subprocess
from pathlib import Path

import pytest
from sandboxes import as_ordinary_user, python

pytestmark = pytest.mark.slow

RUN = Path(__file__).parents[2] / "autograder" / "hostile" / "run.py"


def assert_all_as_designed(done):
    last = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    right, _, total, *_ = last.split()
    assert right == total
    assert int(total) >= 48
    assert last.endswith("0 processes left behind")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_come_out_as_designed():
    assert_all_as_designed(subprocess.run(python(str(RUN)), capture_output=True, text=True, check=False))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.getuid() != 0, reason="the other test ran as an ordinary user already")
def test_all_come_out_as_designed_for_an_ordinary_user(open_folder):
    options = {"capture_output": True, "text": True, "check": False, "env": {"TMPDIR": str(open_folder)}}
    assert_all_as_designed(as_ordinary_user(python(str(RUN)), open_folder, **options))
