"""Waiting in tests: for what is to come, and long enough for a machine that is slow and does much else."""

import time

#: Seconds for what takes one or two on a machine that does nothing else. Where all is well, nobody waits so long.
PATIENCE = 120


def until(condition, seconds=PATIENCE):
    """Wait until a condition holds; return what it gave last, which is nothing true where it came to nothing."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found
