"""Timed judging on a GPU: calibration, a class of three, every trick, and the same submissions twenty times.

    python benchmarks/record_timed.py class FOLDER                       where there is no GPU: make, grade, export
    python benchmarks/record_timed.py device FOLDER/class.jobs.json OUT  where the GPU is: needs the package alone
    python benchmarks/record_timed.py conclude FOLDER OUT [--json] [--record benchmarks/records/timed_h200.json]

The last step imports what the GPU measured, grades it, and prints a row for each claim.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "autograder" / name) for name in ("demo", "tricks", "corpora")] + [str(ROOT / "tools")]

from tilelab.grading.cuda_answers import read_cuda  # noqa: E402
from tilelab.grading.timed.bundle import Bundle, read_bundle  # noqa: E402
from tilelab.grading.timed.calibrate import calibrate, entry_of, spread  # noqa: E402
from tilelab.grading.timed.conductor import Conductor  # noqa: E402
from tilelab.grading.timed.enough import Effort  # noqa: E402
from tilelab.grading.timed.running import run_bundle  # noqa: E402
from tilelab.grading.timed.thresholds import FILE, Thresholds, read_thresholds, with_device  # noqa: E402
from tilelab.grading.timed.wanted import Measured, Wanted, read_measured  # noqa: E402
from tilelab.grading.timing import by_gain, want  # noqa: E402
from tilelab.measure.records import conclude as print_and_record  # noqa: E402
from tilelab.measure.records import target, where_gpu  # noqa: E402

THRESHOLDS = ROOT / "autograder" / FILE
TIMES = 20
CELLS = ("practice_1_timed", "practice_7_timed")
DISTRIBUTION = "uniform in [-1, 1), 24 bits, fresh for every call from secret seeds"


@click.group()
def main() -> None:
    """Record timed judging."""


# ---- where the gradebook is


@main.command("class")
@click.argument("folder", type=click.Path(path_type=Path))
def make_class(folder: Path) -> None:
    """Make a class of three in FOLDER, grade it without a GPU, and export what waits."""
    from timed import make

    from tilelab.grading.timed.bundle import write_bundle
    from tilelab.grading.timed.pending import Pending

    folder.mkdir(parents=True)
    course = make(folder / "course")
    for result in course.grade_all("practice", course.students("practice"), workers=2):
        print(result.student, result.status, result.score, "of", result.points, "and pending", result.pending)
    write_bundle(Pending(course).export("practice"), folder / "class.jobs.json")
    (folder / "before.json").write_text(json.dumps(state_of(course), indent=1))


def state_of(course: Any) -> dict[str, Any]:
    """Return everything that the gradebook, the table and the feedback say of the class."""
    from tilelab.cli.grade import row_of
    from tilelab.grading.export import FORMS, as_csv

    results = course.results("practice")
    with sqlite3.connect(course.root / "gradebook.db") as database:
        grades = database.execute(
            "select a.student_id, b.name, g.auto_score, g.manual_score, g.needs_manual_grade from grade g "
            "join base_cell b on b.id = g.cell_id join submitted_notebook n on n.id = g.notebook_id "
            "join submitted_assignment a on a.id = n.assignment_id order by 1, 2"
        ).fetchall()
    feedback = {
        str(file.relative_to(course.root / "feedback")): {
            "bytes": file.stat().st_size,
            "rooflines": file.read_text().count("tilelab-roofline"),
            "pending": "pending" in file.read_text(),
        }
        for file in sorted((course.root / "feedback").rglob("*.html"))
    }
    return {
        "gradebook": [list(row) for row in grades],
        "rows": [row_of(result) for result in results],
        "csv": as_csv(FORMS["csv"]("practice", results, course.people())),
        "feedback": feedback,
    }


# ---- where the GPU is


@main.command()
@click.argument("bundle", type=click.Path(path_type=Path, exists=True))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--phases", default="calibrate,class,tricks,repeat", show_default=True)
@click.option("--times", default=TIMES, show_default=True)
@click.option("--only", default="", help="Only tricks and submissions whose name has this in it.")
@click.option("--seconds", default=500.0, show_default=True, help="After so long no further row is begun.")
def device(bundle: Path, out: Path, phases: str, times: int, only: str, seconds: float) -> None:
    """Measure on GPU 0 what BUNDLE wants, and all the rest; write into OUT after every row."""
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    steps: dict[str, Callable[[], None]] = {
        "calibrate": lambda: phase_calibrate(out),
        "class": lambda: phase_class(bundle, out),
        "tricks": lambda: phase_tricks(out, only, end),
        "repeat": lambda: phase_repeat(bundle, out, times, only, end),
    }
    keep(out / "where.json", where_gpu(DISTRIBUTION))
    for phase in phases.split(","):
        began = time.monotonic()
        steps[phase]()
        print(f"{phase}: {time.monotonic() - began:.1f} s", flush=True)


def keep(file: Path, content: object) -> None:
    """Write what there is so far."""
    file.write_text(json.dumps(content, indent=1))


def phase_calibrate(out: Path) -> None:
    """Calibrate, and write the thresholds file into the results."""
    said = read_thresholds(THRESHOLDS)
    with Conductor("0") as conductor:
        found = dict(calibrate(said, conductor))
        entry = entry_of(conductor, found)
    file = out / FILE
    file.write_text(THRESHOLDS.read_text())
    with_device(file, entry)
    THRESHOLDS.write_text(file.read_text())
    keep(out / "calibration.json", {"device": entry, "parts": found})
    print(json.dumps(found), flush=True)


def phase_class(bundle: Path, out: Path) -> None:
    """Run the class's bundle."""
    began = time.monotonic()
    for ran in run_bundle(read_bundle(bundle), out / "class.results.jsonl"):
        about = ran.measured.about
        print(ran.wanted[:8], ran.measured.outcome, ran.measured.words, about["seconds"], flush=True)
    keep(out / "class_seconds.json", {"seconds": time.monotonic() - began})


def phase_tricks(out: Path, only: str, end: float) -> None:
    """Try the tricks."""
    from try_all import timed_tricks

    rows: list[dict[str, Any]] = []
    with Conductor("0", Effort(launch=3.0), read_thresholds(THRESHOLDS).ceilings) as conductor:
        for row in timed_tricks(conductor, only):
            rows.append(row)
            keep(out / "tricks.json", rows)
            print(row["ok"], row["seconds"], row["trick"], "->", row["came out"][:150], flush=True)
            if time.monotonic() > end:
                print("no time for the rest", flush=True)
                break


PAD = """
    float padding = 0.0f;
    for (int i = 0; i < %d; ++i) padding += shA[ti][(i + tj) & 15];
    if (padding == 1e30f) acc = padding;
"""


def padded(work: int) -> str:
    """Return the honest tiled kernel with more work at its end."""
    from tricks import kernel

    return kernel().replace("    if (row < M && col < N) C[", PAD % work + "    if (row < M && col < N) C[")


def submissions(conductor: Conductor, said: Thresholds, bundle: Bundle) -> dict[str, tuple[str, Wanted]]:
    """Return what is graded again and again.

    Two right ones, the first in the bundle, and two that sit 5 % beside the mark for all points.
    """
    from kernels import TILES

    p1 = said.part("practice_1_timed")
    right = {job.cell: bundle.wanted[job.wanted] for job in reversed(bundle.jobs)}

    def against_naive(source: str) -> Wanted:
        return want(p1, read_cuda(source, TILES))

    def gain(work: int) -> float:
        measured = conductor.measure(against_naive(padded(work)))
        first, *others = measured.samples
        return measured.gain(others[0], first).value

    mark = said.mark("practice_1_timed", conductor.device["name"], accept_shipped=True)
    assert mark is not None
    near = {}
    for name, wish in (("5 % above the mark", 1.05 * mark.full), ("5 % below the mark", 0.95 * mark.full)):
        # The time grows by nearly the same for each step of work, so 1/gain does.
        (low, at_low), (high, at_high) = ((work, gain(work)) for work in (450, 850))
        for _ in range(3):
            work = round(low + (high - low) * (1 / wish - 1 / at_low) / (1 / at_high - 1 / at_low))
            (low, at_low), (high, at_high) = (high, at_high), (work, gain(work))
            if abs(at_high / wish - 1) < 0.005 or low == high:
                break
        near[name] = ("practice_1_timed", against_naive(padded(high)))
        print(name, "wants", wish, "has", at_high, "with", high, "steps", flush=True)
    return {
        "practice 1, right": ("practice_1_timed", right["practice_1_timed"]),
        "practice 7, right": ("practice_7_timed", right["practice_7_timed"]),
        **near,
    }


def phase_repeat(bundle: Path, out: Path, times: int, only: str, end: float) -> None:
    """Grade the same submissions again and again."""
    said = read_thresholds(THRESHOLDS)
    taken: dict[str, list[dict[str, Any]]] = {}
    with Conductor("0", None, said.ceilings) as conductor:
        wanted = {name: one for name, one in submissions(conductor, said, read_bundle(bundle)).items() if only in name}
        for turn in range(times):
            for name, (cell, one) in wanted.items():
                if time.monotonic() > end:
                    print("no time for the rest", flush=True)
                    return
                measured = conductor.measure(one, said.marks(cell, conductor.device["name"]))
                taken.setdefault(name, []).append({"cell": cell, **measured.as_dict()})
                if not turn:
                    print(name, measured.outcome, measured.words, measured.about["seconds"], flush=True)
            keep(out / "repeat.json", taken)


# ---- where the gradebook is, again


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.argument("out", type=click.Path(path_type=Path, exists=True))
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path), help="also write a recorded run there")
def conclude(folder: Path, out: Path, as_json: bool, record: Path | None) -> None:
    """Import into FOLDER's gradebook what the GPU measured into OUT, and say what holds."""
    from try_all import no_source, python_tricks

    from tilelab.grading.course import Course
    from tilelab.grading.timed.pending import Pending

    said = read_thresholds(out / FILE)
    course = Course(folder / "course")
    (course.root / FILE).write_text((out / FILE).read_text())
    before = json.loads((folder / "before.json").read_text())
    settled = list(Pending(course).settle(out / "class.results.jsonl"))
    again = list(Pending(course).settle(out / "class.results.jsonl"))
    after = state_of(course)
    (folder / "after.json").write_text(json.dumps(after, indent=1))
    untouched = [row for row in before["gradebook"] if not row[4]]
    tricks = [*json.loads((out / "tricks.json").read_text()), *python_tricks(), *no_source()]
    repeats = repeat_rows(json.loads((out / "repeat.json").read_text()), said)
    seconds = [
        read_measured(json.loads(line)["measured"]).about["seconds"]
        for line in (out / "class.results.jsonl").read_text().splitlines()
    ]
    ada = {row[1]: row[2] for row in after["gradebook"] if row[0] == "ada"}
    right = [row for row in repeats if "right" in row["submission"]]
    beside = [row for row in repeats if "mark" in row["submission"]]
    job = max(row["seconds a job"] for row in right if row["part"] == "practice_1_timed")
    hundred = 100 * sum(row["seconds a job"] for row in right) / 60
    targets = [
        target("points of the class that the import decides", sum(one.decided for one in settled), len(settled), ">="),
        target("points that a second import changes", sum(one.decided for one in again), 0, "<="),
        target(
            "grades that were decided before and changed", sum(r not in after["gradebook"] for r in untouched), 0, "<="
        ),
        target("right kernels' points of 24", sum(ada.values()), 24.0, ">="),
        target("tricks not as designed", sum(not row["ok"] for row in tricks), 0, "<="),
        target("different marks for the same submission, at most", max(len(row["marks"]) for row in repeats), 1, "<="),
        target("runs of each submission, at least", min(row["runs"] for row in repeats), TIMES, ">="),
        target("spread of the gain, p95 − p5 over the median", max(row["spread"] for row in repeats), 0.02, "<="),
        target(
            "distance to the mark of those beside it, %", max(abs(r["beside the mark, %"]) for r in beside), 6.0, "<="
        ),
        target("seconds of the device for a job of practice 1", job, 5.0, "<="),
        target("minutes for a class of 100 on practice 1 and 7", hundred, 20.0, "<="),
    ]
    where = json.loads((out / "where.json").read_text()) | {
        "calibration": json.loads((out / "calibration.json").read_text()),
        "evidence": {
            "tricks": tricks,
            "class": {"before": before, "after": after, "seconds of each job": seconds},
            "settled": [vars(one) for one in settled],
            "second import": [one.words for one in again],
        },
    }
    print_and_record(repeats, targets, where, as_json, record)


def repeat_rows(taken: dict[str, list[dict[str, Any]]], said: Thresholds) -> list[dict[str, Any]]:
    """Return a row for each submission that was graded again and again."""
    rows = []
    for name, runs in taken.items():
        measured: list[Measured] = [read_measured({k: v for k, v in run.items() if k != "cell"}) for run in runs]
        cell = runs[0]["cell"]
        mark = said.mark(cell, str(measured[0].device["name"]))
        assert mark is not None
        marks = sorted({by_gain(one, mark, "", "").share for one in measured})
        gains = [one.gain(one.fastest([key for key in one.samples if key != "yours"])).value for one in measured]
        middle = sorted(gains)[len(gains) // 2]
        rows.append(
            {
                "submission": name,
                "part": cell,
                "runs": len(runs),
                "marks": marks,
                "gain": middle,
                "least": min(gains),
                "most": max(gains),
                "spread": spread(gains),
                "beside the mark, %": 100 * (middle / mark.full - 1),
                "ms": sorted(one.time("yours").value for one in measured)[len(measured) // 2],
                "rounds": max(len(one.samples["yours"]) for one in measured),
                "seconds a job": sum(one.about["seconds"] for one in measured) / len(measured),
                "seconds measuring": sum(one.about["seconds_on_device"] for one in measured) / len(measured),
            }
        )
    return rows


if __name__ == "__main__":
    main()
