"""The broken and hostile submissions come out as designed: a third of them as this user, a third as an ordinary one.

``make hostile`` grades all of them as both, and tries every escape (the tests of the sandbox try those one by one).
"""

from pathlib import Path

import pytest
from sandboxes import as_ordinary_user, python, to_its_end

RUN = Path(__file__).parents[2] / "autograder" / "hostile" / "run.py"
#: One after the other: each looks at its end for what is left of such submissions, and would find the other's at work.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.xdist_group("hostile")]


def assert_all_as_designed(done):
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    right, _, total, *_ = done.stdout.strip().splitlines()[-1].split()
    assert right == total
    assert int(total) >= 44
    assert done.stdout.strip().endswith("0 processes left behind")


def test_one_third_comes_out_as_designed():
    command = python(str(RUN), "--third", "0", "--once")
    assert_all_as_designed(to_its_end(command, 1400))


def test_another_third_comes_out_as_designed_for_an_ordinary_user(open_folder):
    command = python(str(RUN), "--third", "1", "--once")
    assert_all_as_designed(as_ordinary_user(command, open_folder, 1400, env={"TMPDIR": str(open_folder)}))
