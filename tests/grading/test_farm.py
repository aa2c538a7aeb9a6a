"""Workers: Ctrl-C while they start, which a terminal sends to everything at once, makes no noise and leaves nothing."""

import sys

import pytest
from patience import PATIENCE, until
from sandboxes import to_its_end

from tilelab.grading.sandbox.processes import texts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SETUP = """
import multiprocessing.forkserver, os, signal
from tilelab.grading import farm
print(os.getpgrp(), flush=True)
def interrupt(): os.killpg(0, signal.SIGINT)
"""
AS_THEIR_SOURCE_STARTS = """
try:
    farm.get_ready()
    interrupt()
    signal.pause()
except KeyboardInterrupt: print("interrupted")
with farm.Farm(2) as made:
    made.start(eval, "open('/proc/self/status').read()")
    status = next(made.done())[2]
print(*[line for line in status.splitlines() if line.startswith("SigBlk")])
"""
AS_THEY_START = """
start = multiprocessing.forkserver.connect_to_new_process
def started(fds):
    multiprocessing.forkserver.connect_to_new_process = start  # once: a second interrupt would not wait
    made = start(fds)
    interrupt()
    return made
multiprocessing.forkserver.connect_to_new_process = started
try: farm.Farm(2)
except KeyboardInterrupt: print("interrupted")
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [(AS_THEIR_SOURCE_STARTS, ["interrupted", f"SigBlk:\t{0:016x}"]), (AS_THEY_START, ["interrupted"])],
    ids=["as their source starts", "as they start"],
)
def test_an_interrupt_while_workers_start_is_theirs_who_started_them(program, said):
    done = to_its_end([sys.executable, "-c", SETUP + program], PATIENCE)
    group, *came = done.stdout.splitlines()
    assert (came, done.stderr) == (said, "")
    assert until(lambda: not members(int(group)))


def members(group):
    """Return the processes of a group."""
    fields = ((pid, text.rpartition(")")[2].split()) for pid, text in texts("stat"))
    return [pid for pid, (state, _, its, *_) in fields if int(its) == group and state != "Z"]
