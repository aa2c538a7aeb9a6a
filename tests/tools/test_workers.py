"""The runner keeps its word about groups: versions of pytest and xdist that do not fit drop them in silence."""

import os
import subprocess
import sys

MODULE = """
import os
import pytest

@pytest.mark.xdist_group("one hub")
@pytest.mark.parametrize("number", range(12))
def test_needs_what_the_others_of_its_group_need(number):
    with open("workers", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_tests_of_a_group_run_on_one_worker(tmp_path):
    (tmp_path / "test_group.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) == 12
    assert len(set(workers)) == 1, f"a group was spread over {sorted(set(workers))}"
