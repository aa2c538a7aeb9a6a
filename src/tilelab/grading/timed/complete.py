"""Export, run and import on one machine, where there is a GPU."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tilelab.grading.course import Course
from tilelab.grading.timed.pending import Pending, Settled
from tilelab.grading.timed.running import Ran, run_bundle


def complete(
    course: Course, assignment: str, students: Sequence[str], which: str = "0", accept_shipped: bool = False
) -> Iterator[Ran | Settled]:
    """Measure and decide the points that wait; yield each measurement, then each decision. Nothing where none wait."""
    pending = Pending(course, accept_shipped)
    if not pending.waiting(assignment, students):
        return
    with tempfile.TemporaryDirectory(prefix="tilelab-jobs-") as folder:
        results = Path(folder) / "results.jsonl"
        yield from run_bundle(pending.export(assignment, students), results, which)
        yield from pending.settle(results)
