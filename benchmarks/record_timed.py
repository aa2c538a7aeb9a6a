"""Timed judging on a GPU: calibration, a class of three, every trick, and the same submissions twenty times.

Three steps: where there is no GPU make, grade and export a class; where the GPU is measure; and again where the
gradebook is import what the GPU measured, compare it with what `tilelab grade` gave there, and print a row for each
claim. All three must run the same code: the first names its commit and the digest of every file, the others refuse any
other. On the device this checkout is enough (no `pip install .`), with FOLDER beside it. No command below takes ten
minutes; one that is stopped is given again and goes on. Expected on an H200, in seconds::

    python benchmarks/record_timed.py class FOLDER                                                        # 60, no GPU
    python benchmarks/record_timed.py device FOLDER OUT --check                                           # 3
    python benchmarks/record_timed.py device FOLDER OUT --steps calibrate,class,pending,grade             # 260
    python benchmarks/record_timed.py device FOLDER OUT --steps repeat                                    # 260
    python benchmarks/record_timed.py device FOLDER OUT --steps tricks,tests                              # 150
    python benchmarks/record_timed.py conclude FOLDER OUT --record benchmarks/records/timed_h200.json     # 60, no GPU

`--check` says in one sentence what the steps need and the machine lacks, and no other run begins without it: every
step CuPy, numpy, click, rich, nvidia-ml-py and a compiler of CuPy's own (NVRTC); `pending` and `grade` a gradebook's
packages and g++; `tests` pytest besides. Without bubblewrap `grade` runs with --no-sandbox, and the record says so.
A step that fails is noted with the reason, the next one runs, and what it would have shown does not hold.

`device … --emulated --times 2` is a rehearsal without a GPU: a CPU stands in, no claim of times holds, and nothing is
recorded. It takes some minutes.
"""

import hashlib
import itertools
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [
    str(HERE),
    str(ROOT / "src"),
    *(str(ROOT / "autograder" / name) for name in ("demo", "tricks", "corpora")),
]
sys.path.insert(0, str(ROOT / "tools"))

from timed_on_device import (  # noqa: E402
    ASSIGNMENT,
    BESIDE,
    BUNDLE,
    RESULTS,
    TIMES,
    Device,
    keep,
    kept,
    lacking,
    state_of,
    tilelab,
)

from tilelab.grading.errors import GradingError  # noqa: E402
from tilelab.grading.timed.bundle import unverified  # noqa: E402
from tilelab.grading.timed.calibrate import spread  # noqa: E402
from tilelab.grading.timed.report import row_of  # noqa: E402
from tilelab.grading.timed.thresholds import FILE, Thresholds, read_thresholds  # noqa: E402
from tilelab.grading.timed.wanted import Measured, read_measured  # noqa: E402
from tilelab.grading.timing import by_gain  # noqa: E402
from tilelab.measure.records import commit, target  # noqa: E402
from tilelab.measure.records import conclude as print_and_record  # noqa: E402

#: What a record says something of: the files that were at work.
CODE = ("src", "autograder", "solutions", "tools", "benchmarks/record_timed.py", "benchmarks/timed_on_device.py")


@click.group()
def main() -> None:
    """Record timed judging."""


# ---- which code


def digests(names: list[str]) -> dict[str, str]:
    """Return the digest of each file of the repository; empty for one that is not there."""
    return {
        name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() if (ROOT / name).is_file() else ""
        for name in names
    }


def code_here() -> dict[str, Any]:
    """Return the commit, and the digest of every file of the code in it.

    Raises
    ------
    click.ClickException
        The files are not as they were committed.
    """
    git = ["git", "-C", str(ROOT)]
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    if changed:
        raise click.ClickException(f"commit first, so that the record can say which code ran:\n{changed}")
    listed = subprocess.run([*git, "ls-files", "-z", *CODE], capture_output=True, text=True, check=True).stdout
    return {"commit": commit(), "files": digests(sorted(filter(None, listed.split("\0"))))}


def require_same_code(folder: Path) -> str:
    """Return the commit that made the class in a folder, or raise `click.ClickException` where other code lies here."""
    made = json.loads((folder / "code.json").read_text())
    here = digests(list(made["files"]))
    if others := [name for name, digest in made["files"].items() if here[name] != digest]:
        raise click.ClickException(f"this is not the code of {made['commit']}, which made the class: {others[:9]}")
    return str(made["commit"])


# ---- where the gradebook is


@main.command("class")
@click.argument("folder", type=click.Path(path_type=Path))
def make_class(folder: Path) -> None:
    """Make a class of three in FOLDER, grade it without a GPU, and export what waits."""
    from timed import make

    code = code_here()
    folder.mkdir(parents=True)
    keep(folder / "code.json", code)
    make(folder / "fresh")
    shutil.copytree(folder / "fresh", folder / "course")
    graded = tilelab("grade", ASSIGNMENT, "--course", folder / "course", "--json")
    exported = tilelab("jobs", "export", ASSIGNMENT, "--course", folder / "course", "--out", folder / BUNDLE)
    (kept_jobs,) = (folder / "course" / "jobs").glob("*.json")
    whose = json.loads(kept_jobs.read_text())["jobs"].values()
    keep(folder / "right.json", {job["cell"]: job["wanted"] for job in whose if job["student"] == "ada"})
    keep(folder / "before.json", {"grade": graded, "export": exported, "state": state_of(folder / "course")})
    print(exported["said"])
    sys.exit(graded["exit code"] or exported["exit code"])


# ---- where the GPU is


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--steps", default="calibrate,class,pending,grade,repeat,tricks,tests", show_default=True)
@click.option("--times", default=TIMES, show_default=True, help="How often the same submissions are graded.")
@click.option("--only", default="", help="Only tricks and submissions whose name has this in it.")
@click.option("--seconds", default=500.0, show_default=True, help="After so long no further row is begun.")
@click.option("--check", is_flag=True, help="Only say what the steps need and this machine lacks.")
@click.option("--emulated", is_flag=True, help="A rehearsal: a CPU stands in for the GPU.")
def device(
    folder: Path, out: Path, steps: str, times: int, only: str, seconds: float, check: bool, emulated: bool
) -> None:
    """Measure on GPU 0 what FOLDER's class wants, and all the rest; write into OUT after every row."""
    named = steps.split(",")
    if unknown := set(named) - set(Device.STEPS):
        raise click.ClickException(f"the steps are {', '.join(Device.STEPS)}, not {', '.join(sorted(unknown))}")
    code = require_same_code(folder)
    if lacks := lacking(named, emulated):
        raise click.ClickException(lacks)
    if check:
        click.echo(f"this is the code of {code}, and nothing is lacking for {steps}")
        return
    try:
        here = Device(folder, out, only, seconds, times, emulated)
    except GradingError as error:
        raise click.ClickException(str(error)) from None
    ended = [here.run(step) for step in named]
    sys.exit(0 if all(ended) else 1)


# ---- where the gradebook is, again


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.argument("out", type=click.Path(path_type=Path, exists=True))
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path), help="also write a recorded run there")
def conclude(folder: Path, out: Path, as_json: bool, record: Path | None) -> None:
    """Import into a copy of FOLDER's gradebook what the GPU measured into OUT, and say what holds.

    What a step that is missing would have shown does not hold.
    """
    from try_all import no_source, python_tricks

    named = require_same_code(folder)
    if kept(out / "code.json", None) != json.loads((folder / "code.json").read_text()):
        raise click.ClickException(f"{str(out)!r} does not hold what a device measured for {str(folder)!r}")
    said = read_thresholds(out / FILE)
    found = {name: kept(out / f"{name}.json", {}) for name in ("calibrate", "class", "pending", "grade", "tests")}
    course = folder / "imported"
    shutil.rmtree(course, ignore_errors=True)
    shutil.copytree(folder / "course", course)
    shutil.copy(out / FILE, course / FILE)
    results = out / RESULTS
    imports = [tilelab("jobs", "import", results, "--course", course, "--json") for _ in range(2)]
    before, after = json.loads((folder / "before.json").read_text()), state_of(course)
    tricks = [*kept(out / "tricks.json", []), *python_tricks()]
    taken = kept(out / "repeat.json", {})
    repeats = repeat_rows(taken, said)
    machines = json.loads((out / "where.json").read_text())
    measured = [*measured_in(results), *map(measured_of, itertools.chain(*taken.values()))]
    if record and any("emulation" in machine["device"] for machine in machines):
        raise click.ClickException("this was a rehearsal: nothing is recorded")
    targets = [
        *of_the_class(before["state"], after, *(rows_of(one) for one in imports)),
        *of_grading_there(after, found["pending"], found["grade"]),
        *of_tricks(tricks),
        *of_repeats(repeats),
        *of_calibration(found["calibrate"]),
        *of_tests(found["tests"]),
        *of_the_run(machines, kept(out / "failed.json", {}), kept(out / "seconds.json", {}), measured),
    ]
    where = machines[0] | {
        "commit": named,
        "machines": machines,
        "sandbox on the GPU's machine": found["grade"].get("sandbox", "not tried"),
        "evidence": {
            **found,
            "tricks": [*tricks, *no_source()],
            "failed": kept(out / "failed.json", {}),
            "seconds of each step": kept(out / "seconds.json", {}),
            "class before": before,
            "imports": imports,
            "class after": after,
            "each run": {name: [of_run(run) for run in runs] for name, runs in taken.items()},
            "steps of work": kept(out / "pads.json", {}),
            "seconds of each job": [
                {"outcome": one.outcome, "seconds": one.about["seconds"]} for one in measured_in(results)
            ],
        },
    }
    print_and_record(repeats, targets, where, as_json, record)


def measured_in(results: Path) -> list[Measured]:
    """Return what a results file holds; its signatures are the import's to check."""
    return list(unverified(results).values()) if results.is_file() else []


def measured_of(run: dict[str, Any]) -> Measured:
    """Return what one run of a submission measured."""
    return read_measured({name: value for name, value in run.items() if name != "cell"})


def rows_of(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that a command gave as JSON; none where it failed."""
    try:
        return list(json.loads(done["said"].splitlines()[-1])["rows"])
    except (KeyError, ValueError, IndexError):
        return []


def every_trick() -> int:
    """Return how many tricks there are to try, with the two honest kernels that they are compared with."""
    from tricks import CUDA_TRICKS, PYTHON_TRICKS

    return len({trick.name for trick in (*CUDA_TRICKS, *PYTHON_TRICKS)}) + 2


def of_the_class(
    before: dict[str, Any], after: dict[str, Any], first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return what the class is to show that was exported, measured and imported."""
    decided = [row for row in before["gradebook"] if not row[4]]
    changed = lambda row: row not in after["gradebook"]  # noqa: E731
    ada = sum(row[2] or 0.0 for row in after["gradebook"] if row[0] == "ada")
    return [
        target("grades that were decided before the import", len(decided), 1, ">="),
        target("points of the class that the import decides", sum(row["decided"] for row in first), 9, ">="),
        target("points that a second import changes", none_of(second, lambda row: row["decided"]), 0, "<="),
        target("jobs that the second import answers for", len(second), 9, ">="),
        target("grades that were decided before and changed", none_of(decided, changed), 0, "<="),
        target("right kernels' points of 24", ada, 24.0, ">="),
    ]


def of_grading_there(after: dict[str, Any], pending: dict[str, Any], grade: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the same class is to show that was graded where the GPU is."""
    targets = []
    for name, found in (("grade --pending", pending), ("grade", grade)):
        there = found.get("after once", {}).get("gradebook")
        again = found.get("after again", {}).get("gradebook")
        differ = math.nan if not there else sum(row not in after["gradebook"] for row in there)
        waits = math.nan if not there else sum(row[4] for row in there)
        changed = math.nan if not again else sum(row not in there for row in again)
        code = found.get("once", {}).get("exit code", math.nan)
        targets += [
            target(f"exit code of {name} on the GPU", code, 0, "<="),
            target(f"grades that {name} there gives otherwise than the import", differ, 0, "<="),
            target(f"parts that wait after {name} there", waits, 0, "<="),
            target(f"grades that a second {name} changes", changed, 0, "<="),
        ]
    return targets


def of_repeats(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the submissions are to show that were graded again and again."""

    def over(what: str, wanted: list[dict[str, Any]], of: Any = max) -> float:
        values = [float(row[what]) for row in wanted] or [math.nan]
        return math.nan if any(map(math.isnan, values)) else float(of(values))

    right = [row for row in rows if "right" in row["submission"]]
    first = [row for row in right if row["part"] == "practice_1_timed"]
    beside = [
        {"off": abs(row["beside the mark, %"] - 100 * (BESIDE[row["submission"]] - 1))}
        for row in rows
        if row["submission"] in BESIDE
    ]
    off = over("off", beside) if len(beside) == len(BESIDE) else math.nan
    both = {row["part"] for row in right} == {"practice_1_timed", "practice_7_timed"}
    hundred = over("seconds a job", right, sum) * 100 / 60 if both else math.nan
    return [
        target("submissions that were graded again and again", len(rows), 4, ">="),
        target("different marks for the same submission, at most", over("different marks", rows), 1, "<="),
        target("runs of a submission that got no mark, at most", over("without a mark", rows), 0, "<="),
        target("runs of each submission, at least", over("runs", rows, min), TIMES, ">="),
        target("spread of the gain, p95 − p5 over the median", over("spread", rows), 0.02, "<="),
        target("distance from ±5 % of those beside the mark, %", off, 0.3, "<="),
        target("seconds of the device for a job of practice 1", over("seconds a job", first), 5.0, "<="),
        target("minutes for a class of 100 on practice 1 and 7", hundred, 20.0, "<="),
    ]


def of_tricks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the tricks that were tried are to show."""
    return [
        target("tricks not as designed", none_of(rows, lambda row: not row["ok"]), 0, "<="),
        target("tricks that were tried", len({row["trick"] for row in rows}), every_trick(), ">="),
    ]


def of_tests(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the tests on the GPU are to show."""
    return [
        target("tests on the GPU that passed", done.get("passed", math.nan), 7, ">="),
        target("exit code of the tests on the GPU", done.get("exit code", math.nan), 0, "<="),
    ]


def of_the_run(
    machines: list[dict[str, Any]], failed: dict[str, str], took: dict[str, Any], measured: list[Measured]
) -> list[dict[str, Any]]:
    """Return what holds of the run itself."""
    devices = {(machine["device"], machine["driver"]) for machine in machines}
    return [
        target("steps that ended well", len(took.keys() - failed.keys()), len(Device.STEPS), ">="),
        target("kinds of device, with their drivers, that measured", len(devices) or math.nan, 1, "<="),
        target("measurements that a CPU stood in for", none_of(measured, lambda one: one.emulated), 0, "<="),
    ]


def none_of(rows: Sequence[Any], asked: Callable[[Any], bool]) -> float:
    """Return how many rows are as asked; not a number where there are no rows to ask it of."""
    return sum(map(asked, rows)) if rows else math.nan


def of_calibration(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the calibration is to show."""
    rows = rows_of(done)
    return [
        target("parts that were calibrated", sum("full" in row for row in rows), 2, ">="),
        target("spread of a calibration", max((row["spread"] for row in rows), default=math.nan), 0.02, "<="),
    ]


def of_run(run: dict[str, Any]) -> dict[str, Any]:
    """Return what one run of a submission gave: its gain with the interval, rounds, seconds, and the clocks."""
    row = row_of("", measured_of(run))
    return {name: row.get(name) for name in ("outcome", "gain", "interval", "samples", "seconds", "SM MHz", "words")}


def repeat_rows(taken: dict[str, list[dict[str, Any]]], said: Thresholds) -> list[dict[str, Any]]:
    """Return a row for each submission that was graded again and again."""
    rows = []
    for name, runs in taken.items():
        measured, cell = [measured_of(run) for run in runs], runs[0]["cell"]
        mark = said.mark(cell, str(measured[0].device["name"]))
        verdicts = [by_gain(one, mark, "", "") for one in measured]
        marks: list[float | str] = sorted({one.share for one in verdicts if not one.pending})
        marks += ["pending"] * any(one.pending for one in verdicts)
        timed = [one for one in measured if one.outcome == "timed"]
        gains = [one.gain(one.fastest([key for key in one.samples if key != "yours"])).value for one in timed]
        middle = sorted(gains)[len(gains) // 2] if gains else math.nan
        rows.append(
            {
                "submission": name,
                "part": cell,
                "runs": len(runs),
                "marks": marks,
                "different marks": len(marks),
                "without a mark": sum(one.pending > 0 for one in verdicts),
                "gain": middle,
                "least": min(gains, default=math.nan),
                "most": max(gains, default=math.nan),
                "spread": spread(gains) if gains else math.nan,
                "beside the mark, %": 100 * (middle / mark.full - 1) if mark else math.nan,
                "ms": sorted(one.time("yours").value for one in timed)[len(timed) // 2] if timed else math.nan,
                "rounds": max((len(one.samples["yours"]) for one in timed), default=0),
                "seconds a job": fmean(one.about["seconds"] for one in measured),
                "seconds measuring": fmean(one.about["seconds_on_device"] for one in timed) if timed else math.nan,
            }
        )
    return rows


if __name__ == "__main__":
    try:
        main()
    except GradingError as error:
        sys.exit(f"Error: {error}")
