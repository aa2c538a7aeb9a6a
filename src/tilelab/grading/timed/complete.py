"""Export, run and import on one machine, where there is a GPU. What is measured is kept in the course's ``jobs/``."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from tilelab.grading.course import Course
from tilelab.grading.errors import GradingError
from tilelab.grading.locks import alone_in
from tilelab.grading.timed.bundle import bundle_key, kept_key_of, key_of, private, read_results, result_line
from tilelab.grading.timed.pending import Pending, Settled, read_kept
from tilelab.grading.timed.running import Ran, run_bundle
from tilelab.grading.timed.wanted import Measured

SUFFIX = ".results.jsonl"


class Completion:
    """Measures and decides the points that wait. Use it in a ``with`` statement; two of one course take turns.

    A run that was stopped, however it ended, is gone on with by the next: what it had measured is not measured again.

    Parameters
    ----------
    course : Course
        The course.
    assignment : str
        What was handed in.
    students : sequence of str
        By whom.
    which : str
        A GPU's number, or ``emulated``.
    accept_shipped : bool
        Whether the thresholds hold as shipped on a device that is not calibrated.
    waiting : callable
        Called if another run holds the device or completes this course.

    Attributes
    ----------
    parts, total : int
        Grade cells that wait, and measurements that they need.
    results : path
        Where what is measured stands, signed, and stays. `Pending.settle` decides by it again.
    """

    def __init__(
        self,
        course: Course,
        assignment: str,
        students: Sequence[str],
        which: str = "0",
        accept_shipped: bool = False,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self.pending = Pending(course, accept_shipped)
        self._assignment, self._students = assignment, students
        self._which, self._waiting = which, waiting
        self._open = ExitStack()
        self.parts = self.total = 0
        self.results = self.pending.folder / SUFFIX  # none, so far

    def __enter__(self) -> "Completion":
        """Find what waits, and what of it was measured already by a run that was stopped."""
        pending = self.pending
        key_of(pending.folder)
        self._open.enter_context(alone_in(pending.folder, self._waiting))
        try:
            found = pending.waiting(self._assignment, self._students)
            self._bundle = pending.bundle_of(found)
            self.parts, self.total = len(found), len(self._bundle.wanted)
            self.results = pending.folder / f"{self._bundle.number}{SUFFIX}"
            if found:
                over = self._take_over()
                pending.remember(self._bundle, self._assignment, found)
                for file in over:
                    self._remove(file)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Let the next one in. Where nothing was measured nothing is left."""
        if not self.measured:
            self._remove(self.results)
        self._open.close()

    @property
    def measured(self) -> int:
        """How many of the measurements are there."""
        return len(self._measured_in(self.results))

    def measure(self) -> Generator[Ran, None, None]:
        """Measure, and yield each as it is done; see `run_bundle`."""
        return run_bundle(self._bundle, self.results, self._which, waiting=self._waiting)

    def settle(self) -> Iterator[Settled]:
        """Decide what has been measured, and yield each part's outcome."""
        if self.measured:
            yield from self.pending.settle(self.results)
            if self.measured == self.total:
                self.pending.end(self._bundle.number)

    def _take_over(self) -> list[Path]:
        """Begin the results with what runs measured that were stopped; return those all whose rest this one does."""
        lines, over = dict[str, str](), list[Path]()
        for file in sorted(self.pending.folder.glob(f"*{SUFFIX}")):
            try:
                kept, measured = self._kept(file), self._measured_in(file)
            except GradingError:
                continue  # damaged, or signed with a key that is gone: nothing can be taken from it, or lost with it
            jobs = kept.get("jobs", {}).values()
            if kept.get("ended"):
                continue
            for wanted in self._bundle.wanted.keys() & measured.keys():
                lines[wanted] = result_line(self._bundle, wanted, measured[wanted])
            if not kept or (
                kept["assignment"] == self._assignment and {job["student"] for job in jobs} <= set(self._students)
            ):
                over.append(file)
        private(self.results, "".join(lines.values()).encode())
        return over

    def _kept(self, results: Path) -> dict[str, Any]:
        """Return what is remembered of a run; nothing where it was killed before."""
        file = self.pending.kept(results.name.removesuffix(SUFFIX))
        return dict(read_kept(file)) if file.exists() else {}

    def _measured_in(self, results: Path) -> dict[str, Measured]:
        """Return what a run has measured."""
        if not results.is_file():
            return {}
        number, key = results.name.removesuffix(SUFFIX), kept_key_of(self.pending.folder)
        return read_results(results, bundle_key(key, number), number)

    def _remove(self, results: Path) -> None:
        results.unlink(missing_ok=True)
        self.pending.forget(results.name.removesuffix(SUFFIX))
