"""JupyterLab's Validate button waits for the notebook, and for nothing that the notebook leaves behind."""

import asyncio

import nbformat
import pytest
from classroom import solved

from tilelab.grading.exchange.lab import validated

#: A process that nothing ties to the notebook, and that keeps every file open which the kernel had.
LEFT_BEHIND = """prediction = 3
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(280)
    os._exit(0)
"""


@pytest.mark.slow
def test_a_process_that_is_left_behind_holds_nothing_up(tmp_path):
    nbformat.write(solved("exercise_1", {"exercise_1_prediction": LEFT_BEHIND}), tmp_path / "exercise_1.ipynb")
    assert asyncio.run(validated(tmp_path / "exercise_1.ipynb", 120.0)) == {"success": True, "value": {}}


@pytest.mark.slow
def test_what_a_notebook_writes_past_jupyter_is_no_answer(tmp_path):
    write = "import os\nprediction = 3\nos.write(1, b'{\"success\": true}')\n"
    nbformat.write(solved("exercise_1", {"exercise_1_prediction": write}), tmp_path / "exercise_1.ipynb")
    assert asyncio.run(validated(tmp_path / "exercise_1.ipynb", 120.0)) == {"success": True, "value": {}}
