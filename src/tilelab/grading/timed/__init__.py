"""Timed judging: a submitted kernel is a source, and every program that touches its time is ours.

A *wanted* measurement (`wanted`) is plain data: kernels as sources with launch rules, and a shape. A *bundle*
(`bundle`) carries many of them to a machine with a GPU and carries signed results back. There a *conductor*
(`conductor`) makes processes for each measurement: *workers* (`worker`) that hold one kernel each and a *comparer*
(`comparer`) that alone knows the right results. The conductor itself holds no GPU, draws the seeds and reads its own
clock.
"""
