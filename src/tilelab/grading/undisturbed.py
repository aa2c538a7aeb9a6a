"""Imported first by the process that workers are forked from: Ctrl-C is for the grader, which sends its workers home.

A terminal sends the interrupt to all of them at once. The grader starts the process with interrupts blocked, so that
none comes before this line; what it starts in turn, a learner's kernel above all, is to hear them again.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
