"""Imported first by the process that workers are forked from: Ctrl-C is for the grader, which sends its workers home.

A terminal sends the interrupt to all of them at once.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
