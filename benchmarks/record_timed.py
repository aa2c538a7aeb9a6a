"""Timed judging on a GPU: calibration, a class of three, every trick, and the same submissions twenty times.

    python benchmarks/record_timed.py class FOLDER       where there is no GPU: make, grade and export a class
    python benchmarks/record_timed.py device FOLDER OUT  where the GPU is; its steps can be named one by one
    python benchmarks/record_timed.py conclude FOLDER OUT [--json] [--record benchmarks/records/timed_h200.json]

The last step imports what the GPU measured, compares it with what `tilelab grade` gave there, and prints a row for
each claim. All three must run the same code: the first names its commit and the digest of every file, the others
refuse any other. On the device `pending` and `grade` need what a gradebook needs; the other steps the package alone.
"""

import hashlib
import json
import math
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), *(str(ROOT / "autograder" / name) for name in ("demo", "tricks", "corpora"))]
sys.path.insert(0, str(ROOT / "tools"))

from timed_on_device import ASSIGNMENT, BESIDE, BUNDLE, RESULTS, TIMES, Device, keep, kept, state_of, tilelab  # noqa: E402

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
def device(folder: Path, out: Path, steps: str, times: int, only: str, seconds: float) -> None:
    """Measure on GPU 0 what FOLDER's class wants, and all the rest; write into OUT after every row."""
    require_same_code(folder)
    here = Device(folder, out, only, seconds, times)
    for step in steps.split(","):
        began = time.monotonic()
        here.steps[step]()
        print(f"{step}: {time.monotonic() - began:.1f} s", flush=True)


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
    said = read_thresholds(out / FILE)
    found = {name: kept(out / f"{name}.json", {}) for name in ("calibrate", "class", "pending", "grade", "tests")}
    course = folder / "imported"
    shutil.rmtree(course, ignore_errors=True)
    shutil.copytree(folder / "course", course)
    shutil.copy(out / FILE, course / FILE)
    results = out / RESULTS
    imports = [tilelab("jobs", "import", results, "--course", course, "--json") for _ in range(2)]
    before, after = json.loads((folder / "before.json").read_text()), state_of(course)
    tricks = [*kept(out / "tricks.json", []), *python_tricks(), *no_source()]
    taken = kept(out / "repeat.json", {})
    repeats = repeat_rows(taken, said)
    targets = [
        *of_the_class(before["state"], after, *(rows_of(one) for one in imports)),
        *of_grading_there(after, found["pending"], found["grade"]),
        target("tricks not as designed", sum(not row["ok"] for row in tricks), 0, "<="),
        target("tricks that were tried, with those that are no source", len(tricks), every_trick(), ">="),
        *of_repeats(repeats),
        *of_calibration(found["calibrate"]),
        target("tests on the GPU that passed", found["tests"].get("passed", math.nan), 7, ">="),
        target("tests on the GPU that did not", found["tests"].get("exit code", math.nan), 0, "<="),
    ]
    machines = json.loads((out / "where.json").read_text())
    where = machines[0] | {
        "commit": named,
        "machines": machines,
        "sandbox on the GPU's machine": found["grade"].get("sandbox", "not tried"),
        "evidence": {
            **found,
            "tricks": tricks,
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
    """Return what a results file holds."""
    lines = results.read_text().splitlines() if results.is_file() else []
    return [read_measured(json.loads(line)["measured"]) for line in lines]


def rows_of(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that a command gave as JSON; none where it failed."""
    try:
        return list(json.loads(done["said"].splitlines()[-1])["rows"])
    except (KeyError, ValueError, IndexError):
        return []


def every_trick() -> int:
    """Return how many tricks there are, with the two honest kernels that they are compared with."""
    from tricks import CUDA_TRICKS, NO_SOURCE, PYTHON_TRICKS

    return len(CUDA_TRICKS) + len(PYTHON_TRICKS) + len(NO_SOURCE) + 2


def of_the_class(
    before: dict[str, Any], after: dict[str, Any], first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return what the class is to show that was exported, measured and imported."""
    decided = [row for row in before["gradebook"] if not row[4]]
    changed = sum(row not in after["gradebook"] for row in decided)
    ada = sum(row[2] for row in after["gradebook"] if row[0] == "ada")
    return [
        target("points of the class that the import decides", sum(row["decided"] for row in first), 9, ">="),
        target("points that a second import changes", sum(row["decided"] for row in second), 0, "<="),
        target("jobs that the second import answers for", len(second), 9, ">="),
        target("grades that were decided before and changed", changed, 0, "<="),
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
        return float(of(row[what] for row in wanted)) if wanted else math.nan

    right = [row for row in rows if "right" in row["submission"]]
    first = [row for row in right if row["part"] == "practice_1_timed"]
    due = {name: 100 * (beside - 1) for name, beside in BESIDE.items()}
    off = [abs(row["beside the mark, %"] - due[row["submission"]]) for row in rows if row not in right]
    hundred = sum(row["seconds a job"] for row in right) * 100 / 60 if right else math.nan
    return [
        target("submissions that were graded again and again", len(rows), 4, ">="),
        target("different marks for the same submission, at most", over("different marks", rows), 1, "<="),
        target("runs of each submission, at least", over("runs", rows, min), TIMES, ">="),
        target("spread of the gain, p95 − p5 over the median", over("spread", rows), 0.02, "<="),
        target("distance from ±5 % of those beside the mark, %", max(off, default=math.nan), 0.3, "<="),
        target("seconds of the device for a job of practice 1", over("seconds a job", first), 5.0, "<="),
        target("minutes for a class of 100 on practice 1 and 7", hundred, 20.0, "<="),
    ]


def of_calibration(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the calibration is to show."""
    rows = rows_of(done)
    return [
        target("parts that were calibrated", sum("full" in row for row in rows), 2, ">="),
        target("spread of a calibration", max((row["spread"] for row in rows), default=math.nan), 0.02, "<="),
    ]


def of_run(run: dict[str, Any]) -> dict[str, Any]:
    """Return what one run of a submission gave: its gain with the interval, rounds, seconds, and the clocks."""
    row = row_of("", read_measured({name: value for name, value in run.items() if name != "cell"}))
    return {name: row.get(name) for name in ("outcome", "gain", "interval", "samples", "seconds", "SM MHz", "words")}


def repeat_rows(taken: dict[str, list[dict[str, Any]]], said: Thresholds) -> list[dict[str, Any]]:
    """Return a row for each submission that was graded again and again."""
    rows = []
    for name, runs in taken.items():
        measured = [read_measured({k: v for k, v in run.items() if k != "cell"}) for run in runs]
        cell = runs[0]["cell"]
        mark = said.mark(cell, str(measured[0].device["name"]))
        assert mark is not None
        verdicts = [by_gain(one, mark, "", "") for one in measured]
        marks: list[float | str] = sorted({one.share for one in verdicts if not one.pending})
        marks += ["pending"] * any(one.pending for one in verdicts)
        timed = [one for one in measured if one.outcome == "timed"]
        gains = [one.gain(one.fastest([key for key in one.samples if key != "yours"])).value for one in timed]
        middle = sorted(gains)[len(gains) // 2]
        rows.append(
            {
                "submission": name,
                "part": cell,
                "runs": len(runs),
                "marks": marks,
                "different marks": len(marks),
                "gain": middle,
                "least": min(gains),
                "most": max(gains),
                "spread": spread(gains),
                "beside the mark, %": 100 * (middle / mark.full - 1),
                "ms": sorted(one.time("yours").value for one in timed)[len(timed) // 2],
                "rounds": max(len(one.samples["yours"]) for one in timed),
                "seconds a job": sum(one.about["seconds"] for one in measured) / len(measured),
                "seconds measuring": sum(one.about["seconds_on_device"] for one in timed) / len(timed),
            }
        )
    return rows


if __name__ == "__main__":
    main()
