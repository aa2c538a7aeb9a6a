"""What `record_timed.py` does on a machine with a GPU: each step writes what it has found as soon as it is there.

Started again with the same folder of results, a step goes on where it was stopped.
"""

import importlib
import importlib.util
import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import linear_regression, median
from typing import Any, ClassVar

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), *(str(ROOT / "autograder" / name) for name in ("tricks", "corpora"))]
os.environ["PYTHONPATH"] = str(ROOT / "src")  # commands that are started here run this code, installed or not

from tilelab.grading.cuda_answers import read_cuda  # noqa: E402
from tilelab.grading.errors import GradingError  # noqa: E402
from tilelab.grading.timed.bundle import Bundle, read_bundle  # noqa: E402
from tilelab.grading.timed.conductor import Conductor  # noqa: E402
from tilelab.grading.timed.enough import Effort  # noqa: E402
from tilelab.grading.timed.running import sandbox  # noqa: E402
from tilelab.grading.timed.thresholds import FILE, Thresholds, read_thresholds  # noqa: E402
from tilelab.grading.timed.wanted import Measured, Wanted  # noqa: E402
from tilelab.grading.timing import want  # noqa: E402
from tilelab.measure.records import versions, where_gpu  # noqa: E402

SHIPPED = ROOT / "autograder" / FILE
ASSIGNMENT = "practice"
BUNDLE, RESULTS = "class.jobs.json", "class.results.jsonl"
DISTRIBUTION = "uniform in [-1, 1), 24 bits, fresh for every call from secret seeds"
TIMES = 20
#: Characters of what a command says that are kept.
KEPT = 20_000
#: What every step needs, and what some need besides: programs, and modules with the package that brings each.
ON_A_GPU = {"nvidia-smi": "the driver's nvidia-smi", "cupy": "cupy-cuda13x", "pynvml": "nvidia-ml-py"}
EVERY_STEP = {"numpy": "numpy", "click": "click", "rich": "rich"}
GRADEBOOK = {"nbgrader": "nbgrader", "bleach": "bleach", "jupytext": "jupytext", "dask": "dask[distributed]"}
NEEDS: dict[str, dict[str, str]] = {
    "pending": GRADEBOOK,
    "grade": {**GRADEBOOK, "ipykernel": "ipykernel", "g++": "the system's g++"},
    "tests": {**GRADEBOOK, "pytest": "pytest<9.2", "pytest_timeout": "pytest-timeout"},
}
PROGRAMS = "nvidia-smi", "g++"


def lacking(steps: Iterable[str], emulated: bool = False) -> str:
    """Say in one sentence what steps need and this machine lacks, or ``""``."""
    needed = EVERY_STEP | ({"g++": NEEDS["grade"]["g++"]} if emulated else ON_A_GPU)
    by_name = {name: (what, "every step") for name, what in needed.items()}
    for step in steps:
        for name, what in NEEDS.get(step, {}).items():
            by_name.setdefault(name, (what, f"the step {step}"))
    lacks = [
        f"{what} ({who})"
        for name, (what, who) in by_name.items()
        if (shutil.which(name) if name in PROGRAMS else importlib.util.find_spec(name)) is None
    ]
    return f"this machine lacks {', '.join(lacks)}: install it, or leave those steps out" if lacks else ""


def keep(file: Path, content: object) -> None:
    """Write what there is so far, whole or not at all."""
    draft = file.with_name(f".{file.name}")
    draft.write_text(json.dumps(content, indent=1))
    draft.replace(file)


def kept(file: Path, otherwise: Any) -> Any:
    """Return what was written before."""
    return json.loads(file.read_text()) if file.is_file() else otherwise


def tilelab(*arguments: object, seconds: float = 300) -> dict[str, Any]:
    """Run a command as an instructor would, and return what came of it."""
    words = [str(argument) for argument in arguments]
    start = "from tilelab.cli.main import cli; cli(prog_name='tilelab')"
    began = time.monotonic()
    try:
        done = subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True, timeout=seconds)
        code, said, errors = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        code, said, errors = -1, _text(late.stdout), f"{_text(late.stderr)}\nstopped after {seconds:g} s"
    places = sorted({f"{Path(word).parent}/" for word in words if "/" in word}, key=len, reverse=True)

    def told(text: str) -> str:
        """A text without the folders that the files lay in: where that was says nothing."""
        for place in places:
            text = text.replace(place, "")
        return text

    names, said, errors = list(map(told, words)), told(said), told(errors)
    found = {
        "command": " ".join(["tilelab", *names]),
        "exit code": code,
        "seconds": round(time.monotonic() - began, 2),
        "said": said[-KEPT:],
        "errors": errors[-KEPT:],
    }
    print(f"$ {found['command']}\n{errors[-1500:]}exit code {code}, {found['seconds']} s", flush=True)
    return found


def _text(said: str | bytes | None) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""


def state_of(root: Path) -> dict[str, Any]:
    """Return everything that the gradebook, the table and the feedback say of a class."""
    from tilelab.cli.grade import row_of
    from tilelab.grading.course import Course
    from tilelab.grading.export import FORMS, as_csv

    course = Course(root)
    results = course.results(ASSIGNMENT)
    with sqlite3.connect(root / "gradebook.db") as database:
        grades = database.execute(
            "select a.student_id, b.name, g.auto_score, g.manual_score, g.needs_manual_grade from grade g "
            "join base_cell b on b.id = g.cell_id join submitted_notebook n on n.id = g.notebook_id "
            "join submitted_assignment a on a.id = n.assignment_id order by 1, 2"
        ).fetchall()
    feedback = {
        str(file.relative_to(root / "feedback")): {
            "bytes": file.stat().st_size,
            "rooflines": file.read_text().count("tilelab-roofline"),
            "pending": "pending" in file.read_text(),
        }
        for file in sorted((root / "feedback").rglob("*.html"))
    }
    return {
        "gradebook": [list(row) for row in grades],
        "rows": [row_of(result) for result in results],
        "csv": as_csv(FORMS["csv"](ASSIGNMENT, results, course.people())),
        "feedback": feedback,
    }


class Device:
    """The steps on a machine with a GPU.

    Parameters
    ----------
    folder : path
        What the first step made: the class, graded and not, and the bundle.
    out : path
        Where results go.
    only : str
        Only tricks and submissions whose name has this in it.
    seconds : float
        After so long no further row is begun.
    times : int
        How often the same submissions are graded.
    emulated : bool
        A rehearsal: a CPU stands in for the GPU, and what is claimed of times does not hold.
    """

    def __init__(
        self,
        folder: Path,
        out: Path,
        only: str = "",
        seconds: float = 500.0,
        times: int = TIMES,
        emulated: bool = False,
    ) -> None:
        self._folder, self._out, self._only, self._times = folder, out, only, times
        self._emulated, self._which = emulated, "emulated" if emulated else "0"
        self._end = time.monotonic() + seconds
        out.mkdir(parents=True, exist_ok=True)
        made = json.loads((folder / "code.json").read_text())
        if kept(out / "code.json", made) != made:
            raise GradingError(f"{str(out)!r} holds what other code has measured: name another folder")
        keep(out / "code.json", made)
        if not (out / FILE).exists():
            shutil.copy(SHIPPED, out / FILE)
        where = where_cpu() if emulated else where_gpu(DISTRIBUTION)
        where["kernels are compiled in the sandbox"] = sandbox(needed=emulated) is not None
        keep(out / "where.json", [*kept(out / "where.json", []), where])  # each time it is started

    def run(self, step: str) -> bool:
        """Run a step unless it is too late; note how long it took, or why it failed. Tell whether it ended well."""
        if self._late():
            return False
        began, failed = time.monotonic(), kept(self._out / "failed.json", {})
        failed[step] = "it did not end"
        keep(self._out / "failed.json", failed)
        try:
            getattr(self, self.STEPS[step])()
            del failed[step]
        except Exception as error:  # the next step may do better, and what this one found is kept
            failed[step] = f"{type(error).__name__}: {error}"[:600]
        keep(self._out / "failed.json", failed)
        seconds = round(time.monotonic() - began, 1)
        took = kept(self._out / "seconds.json", {})
        keep(self._out / "seconds.json", {**took, step: [*took.get(step, []), seconds]})
        print(f"{step}: {seconds} s{': ' + failed[step] if step in failed else ''}", flush=True)
        return step not in failed

    @contextmanager
    def _conductor(self, effort: Effort | None) -> Iterator[Conductor]:
        from tilelab.cudacpp.processes import use_runner

        with ExitStack() as stack:
            if runner := sandbox(needed=self._emulated):
                stack.enter_context(use_runner(runner))
            effort = None if self._emulated else effort
            yield stack.enter_context(Conductor(self._which, effort, self._said.ceilings))

    def _left(self) -> float:
        """Seconds that a command may take."""
        return max(30.0, min(300.0, self._end + 60 - time.monotonic()))

    #: The steps, most important first, and the method of each.
    STEPS: ClassVar[dict[str, str]] = {
        "calibrate": "calibrate",
        "class": "jobs",
        "pending": "pending",
        "grade": "grade",
        "repeat": "repeat",
        "tricks": "tricks",
        "tests": "tests",
    }

    @property
    def _said(self) -> Thresholds:
        return read_thresholds(self._out / FILE)

    def _late(self) -> bool:
        late = time.monotonic() > self._end
        if late:
            print("no time for the rest", flush=True)
        return late

    # ---- the commands

    def calibrate(self) -> None:
        """Calibrate, into the thresholds file among the results."""
        asked = ("calibrate", "--file", self._out / FILE, "--json")
        keep(self._out / "calibrate.json", tilelab(*asked, seconds=self._left()))

    def jobs(self) -> None:
        """Run the class's bundle."""
        asked = ("jobs", "run", self._folder / BUNDLE, "--out", self._out / RESULTS, "--device", self._which, "--json")
        keep(self._out / "class.json", tilelab(*asked, seconds=self._left()))

    def pending(self) -> None:
        """Complete what waits in the gradebook that was made without a GPU, in one command; then once more."""
        self._graded("pending", "course", "--pending")

    def grade(self) -> None:
        """Grade the class anew where the GPU is: everything in one command; then once more."""
        wall = _why_no_sandbox()
        self._graded("grade", "fresh", *(["--no-sandbox"] if wall else []), sandbox=wall or "on")

    def _graded(self, name: str, made: str, *options: str, **more: str) -> None:
        with tempfile.TemporaryDirectory(prefix="tilelab-class-") as folder:
            course = Path(folder) / "course"
            shutil.copytree(self._folder / made, course)
            if (key := course / "jobs" / "key").exists():
                key.chmod(0o600)  # a journey may have opened it to others
            shutil.copy(self._out / FILE, course / FILE)
            found: dict[str, Any] = {"before": state_of(course), **more}
            for turn in ("once", "again"):
                asked = ("grade", ASSIGNMENT, "--course", course, *options, "--json")
                found[turn] = tilelab(*asked, seconds=self._left())
                found[f"after {turn}"] = state_of(course)
                keep(self._out / f"{name}.json", found)

    def tests(self) -> None:
        """Run the judge's tests that need a GPU."""
        asked = ["-m", "pytest", "tests/grading/test_timed_on_gpu.py", "-q", "--no-header", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [sys.executable, *asked], cwd=ROOT, capture_output=True, text=True, check=False, timeout=self._left()
        )
        print(done.stdout[-3000:], done.stderr[-1000:], flush=True)
        last = done.stdout.strip().rpartition("\n")[2]
        counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error|skipped)", last)}
        keep(self._out / "tests.json", {"exit code": done.returncode, **counts, "said": done.stdout[-KEPT:]})

    # ---- the tricks

    def tricks(self) -> None:
        """Try the tricks."""
        from try_all import timed_tricks

        file = self._out / "tricks.json"
        rows: list[dict[str, Any]] = kept(file, [])
        done = {row["trick"] for row in rows}
        with self._conductor(Effort(launch=3.0)) as conductor:
            for row in timed_tricks(conductor, lambda trick: self._only in trick.name and trick.name not in done):
                rows = [*(one for one in rows if one["trick"] != row["trick"]), row]
                keep(file, rows)
                print(row["ok"], row["seconds"], row["trick"], "->", row["came out"][:150], flush=True)
                if self._late():
                    break

    # ---- the same submissions again and again

    def repeat(self) -> None:
        """Grade the same submissions again and again."""
        said, file = self._said, self._out / "repeat.json"
        taken: dict[str, list[dict[str, Any]]] = kept(file, {})
        pads = kept(self._out / "pads.json", None)
        if pads is None:
            with self._conductor(LONG) as conductor:
                keep(self._out / "pads.json", pads := beside_the_mark(said, conductor))
        with self._conductor(None) as conductor:
            wanted = submissions(said, right_ones(self._folder), pads)
            for turn in range(self._times):
                for name, (cell, one) in wanted.items():
                    if self._only not in name or len(taken.get(name, [])) > turn:
                        continue
                    if self._late():
                        return
                    measured = conductor.measure(one, said.marks(cell, conductor.device["name"]))
                    taken.setdefault(name, []).append({"cell": cell, **measured.as_dict()})
                    if not turn:
                        print(name, measured.outcome, measured.words, measured.about["seconds"], flush=True)
                    keep(file, taken)


def _why_no_sandbox() -> str:
    """Say why the sandbox cannot be had on this machine, or ``""``."""
    try:
        from tilelab.grading.sandbox.preflight import require

        require()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:600]
    return ""


PAD = """
    float padding = 0.0f;
    #pragma unroll 1
    for (int i = 0; i < %d; ++i) padding += shA[ti][(i + tj) & 15];
    if (padding == 1e30f) acc = padding;
"""


def padded(work: int) -> str:
    """Return the honest tiled kernel with more work at its end."""
    tricks = importlib.import_module("tricks")
    honest: str = tricks.kernel()
    return honest.replace("    if (row < M && col < N) C[", PAD % work + "    if (row < M && col < N) C[")


def against_naive(said: Thresholds, source: str) -> Wanted:
    """Return the measurement of practice 1 for a kernel."""
    return want(said.part("practice_1_timed"), read_cuda(source, importlib.import_module("kernels").TILES))


#: How far beside the mark for all points the two submissions are to lie.
BESIDE = {"5 % above the mark": 1.05, "5 % below the mark": 0.95}
#: Rounds to find out how much work that takes; its gain is known to about a tenth of a percent then.
LONG = Effort(least=100, most=100, most_near=100)


def beside_the_mark(said: Thresholds, conductor: Conductor, steps: int = 3) -> dict[str, int]:
    """Find how much more work puts a kernel 5 % above the mark for all points, and 5 % below it, on this device.

    A kernel's time grows by the same for each step of work, and the naive one's, of which all that was measured here
    speaks, does not change. The slope is that of all measurements: two that lie side by side would tell of noise.

    Raises
    ------
    GradingError
        Nothing can be timed.
    """
    naive: list[float] = []
    times: dict[int, float] = {}
    mark = said.mark("practice_1_timed", conductor.device["name"], accept_shipped=True)
    assert mark is not None

    def learn(work: int) -> None:
        measured: Measured = conductor.measure(against_naive(said, padded(work)))
        if measured.outcome != "timed":
            raise GradingError(f"no kernel can be put beside the mark: {measured.outcome}: {measured.words}")
        first, other = measured.samples
        naive.extend(measured.times(other))
        times[work] = median(measured.times(first))

    for work in (100, 400):
        learn(work)
    found = dict.fromkeys(BESIDE, 0)
    for step in range(1 if conductor.device["emulated"] else steps):
        for name, beside in BESIDE.items():
            due = median(naive) / (beside * mark.full)
            slope = linear_regression(list(times), list(times.values())).slope or 1.0
            nearest = min(times, key=lambda work: abs(times[work] - due))
            found[name] = min(10_000, max(0, round(nearest + (due - times[nearest]) / slope)))
            if step < steps - 1 and found[name] not in times:
                learn(found[name])
            print(f"{name}: {due:.5g} ms are due, {found[name]} steps of work; measured {times}", flush=True)
    return found


def right_ones(folder: Path) -> dict[str, Wanted]:
    """Return what the bundle wants of the learner whose kernels are all right, by part."""
    bundle: Bundle = read_bundle(folder / BUNDLE)
    right: dict[str, str] = json.loads((folder / "right.json").read_text())
    return {part: bundle.wanted[wanted] for part, wanted in right.items()}


def submissions(said: Thresholds, right: dict[str, Wanted], pads: dict[str, int]) -> dict[str, tuple[str, Wanted]]:
    """Return what is graded again and again: two right ones, and two that sit 5 % beside the mark for all points."""
    near = {name: ("practice_1_timed", against_naive(said, padded(work))) for name, work in pads.items()}
    return {
        "practice 1, right": ("practice_1_timed", right["practice_1_timed"]),
        "practice 7, right": ("practice_7_timed", right["practice_7_timed"]),
        **near,
    }


def where_cpu() -> dict[str, Any]:
    """Where a rehearsal runs."""
    return {
        "device": "emulation on a CPU",
        "driver": "",
        "toolkit": "",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "distribution": DISTRIBUTION,
        "versions": versions("numpy", "nbgrader"),
        "python": platform.python_version(),
    }
