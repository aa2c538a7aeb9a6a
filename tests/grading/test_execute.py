"""Containment: what a cell does to its kernel costs that cell."""

import gc

import pytest
from nbformat import v4

from tilelab.grading.budgets import Budget
from tilelab.grading.execute import ContainedExecute
from tilelab.grading.sandbox.limits import Limits

pytestmark = pytest.mark.slow


def execute(*sources, **settings):
    """Execute cells; return what each printed or the name of its error, and the errors' words."""
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = v4.new_notebook(
        cells=[v4.new_code_cell(source) for source in sources], metadata={"kernelspec": kernelspec}
    )
    seconds = settings.pop("seconds", 300)
    allowed = Budget(limits=Limits(seconds=seconds), **settings)
    ContainedExecute(allowed=allowed).preprocess(notebook, {})
    return [_last(cell) for cell in notebook.cells]


def _last(cell):
    if not cell.outputs:
        return ""
    output = cell.outputs[-1]
    return f"{output.ename}: {output.evalue}" if output.output_type == "error" else output.get("text", "").strip()


EXIT = "import os; os._exit(1)"


@pytest.mark.slow
def test_a_kernel_that_exits_costs_its_cell_and_what_ran_before_is_not_shown_twice():
    shown = execute("x = 1; print('once')", EXIT, "print(x + 1)", "print(x + 2)")
    assert shown == ["once", "KernelLost: the kernel ended in a cell", "2", "3"]


@pytest.mark.slow
def test_after_too_many_lost_kernels_the_rest_is_not_reached():
    shown = execute("print('once')", EXIT, EXIT, "print('not reached')", restarts=1)
    assert shown[3] == "NotReached: the kernel was lost 2 times before this cell"
    assert shown[0] == "once"


@pytest.mark.slow
def test_an_endless_loop_is_interrupted_and_one_that_ignores_that_is_ended():
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    shown = execute("while True: pass", ignore, "print('goes on')", cell_seconds=1)
    assert shown[0].startswith("CellTimeoutError")
    assert shown[1] == "KernelLost: a cell ran past its time and could not be interrupted"
    assert shown[2] == "goes on"


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["session.key = b'own'", "session.pack = lambda _: b'{'"])
def test_a_kernel_that_answers_what_cannot_be_read_is_lost_without_a_word_in_the_terminal(broken, caplog):
    shown = execute(f"get_ipython().kernel.{broken}", "import time; time.sleep(1.5)", "print('goes on')")
    assert shown[0].startswith("KernelLost: the kernel was lost in a cell")
    assert shown[1:] == ["", "goes on"]
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.slow
def test_the_time_of_a_notebook_is_bounded():
    shown = execute("import time; time.sleep(9)", "print('not reached')", seconds=0.5)
    assert shown[1] == "NotReached: the 0.5 s for this notebook were used up"


@pytest.mark.slow
def test_output_is_limited_as_it_arrives_and_messages_cannot_reach_back():
    flood = "from IPython.display import display\nfor _ in range(50): print('x' * 100_000)"
    reach = "h = display('first', display_id=True)"
    shown = execute(flood, reach, "h.update('changed')", "print('goes on')", cell_output=1_000_000)
    assert shown[0] == "OutputLimit: output over 1,000,000 bytes was dropped"
    assert shown[3] == "goes on"


QUESTIONS = ("one", "two", "three")
#: Says that a cell waits long enough for what an earlier one left behind.
WAITS = "import time; time.sleep(0.4)"


def execute_questions(*sources):
    """Execute a cell and a grade cell for each question; return what each grade cell printed, or its error."""
    cells = []
    for question, source in zip(QUESTIONS, sources, strict=True):
        grade = {"grade_id": f"exercise_1_{question}", "grade": True, "solution": False}
        cells += [v4.new_code_cell(source), v4.new_code_cell(f"print({question})", metadata={"nbgrader": grade})]
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})
    ContainedExecute(allowed=Budget(limits=Limits())).preprocess(notebook, {})
    return [_last(cell) for cell in notebook.cells[1::2]]


@pytest.mark.parametrize("ends_later", ["quit()", "import os, threading; threading.Timer(0.3, os._exit, (1,)).start()"])
def test_a_kernel_that_is_ended_later_costs_no_other_question(ends_later):
    shown = execute_questions("one = 1", f"{ends_later}\ntwo = 2", f"{WAITS}\nthree = 3")
    assert (shown[0], shown[2]) == ("1", "3")
