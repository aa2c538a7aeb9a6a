"""Grading in the sandbox with two workers, beside plain serial ``nbgrader autograde`` on the same submissions.

Both run as commands, start included, one after the other in one run; neither writes feedback. The cost of a submission
is taken within a run, from the first result on, so that the start does not hide in it. A kernel's start is measured
twelve times in the sandbox and as nbgrader starts it, in turns.

    python benchmarks/grading.py [--json] [--sizes 24 200] [--workers 2]
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "autograder" / "demo")]

GRADE = "import sys; from tilelab.cli.main import cli; cli(sys.argv[1:])"
#: Grades like the command, and says when each result came, in seconds from the start.
TIMED = """
import json, sys, time
from tilelab.grading.lean import course as grading
course = grading.Course(sys.argv[1])
start, came = time.monotonic(), []
for result in course.grade_all("exercises", course.students("exercises"), workers=int(sys.argv[2]), feedback=False):
    assert (result.status, result.score) == ("graded", 4.0), result
    came.append(time.monotonic() - start)
print(json.dumps(came))
"""
PLAIN = 'c = get_config()\nc.CourseDirectory.course_id = "plain"\n'


def make_courses(folder, size):
    """Make the course and a plain nbgrader course with the same submissions; return their folders."""
    from classroom import hand_in, make_course, solved

    ours = make_course(folder / "ours", "exercises", problems=["exercise_1"])
    for number in range(size):
        notebook = solved("exercise_1", {"exercise_1_prediction": f"prediction = {number}"})
        hand_in(ours, f"student-{number:03}", "exercises", ("exercise_1.ipynb", notebook))
    plain = folder / "plain"
    plain.mkdir()
    (plain / "nbgrader_config.py").write_text(PLAIN)
    shutil.copytree(ours.root / "source", plain / "source")
    shutil.copytree(ours.root / "submitted", plain / "submitted")
    command([sys.executable, "-m", "nbgrader", "generate_assignment", "exercises"], plain)
    return ours.root, plain


def command(argv, folder):
    """Run a command to its end and return its seconds and its peak memory in bytes, its workers' included."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    start, peak = time.monotonic(), 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT)
        while process.poll() is None:
            peak = max(peak, held(process.pid))
            time.sleep(1)  # reading it oftener would take a share of the processors that is seen
        seconds = time.monotonic() - start
        said.seek(0)
        text = said.read().decode(errors="replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(argv[:4])}: {text[-3000:]}")
    return seconds, peak, text


def held(root):
    """Return the memory of a grader and its workers: the proportional share of every process outside sandboxes."""
    from tilelab.grading.sandbox.processes import descendants, status

    total = 0
    inside = set()
    for pid in [root, *descendants(root)]:
        about = status(pid)
        if (
            about.get("Name") == "bwrap"
            or int(about.get("PPid", 0)) in inside
            or len(about.get("NSpid", "").split()) > 1
        ):
            inside.add(pid)
            continue
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
    return total


def kernel_starts(times=12):
    """Return the medians of a kernel's start until it answers, plain and in the sandbox, in seconds."""
    from jupyter_client.manager import KernelManager

    from tilelab.grading.kernels import ARGUMENTS
    from tilelab.grading.sandbox.provisioner import choose

    found = {"plain": [], "sandbox": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            for kind, seconds in found.items():
                manager = KernelManager(kernel_name="python3")
                if kind == "sandbox":
                    choose(manager)
                start = time.perf_counter()
                manager.start_kernel(cwd=folder, extra_arguments=list(ARGUMENTS))
                client = manager.client()
                client.start_channels()
                client.wait_for_ready(timeout=60)
                seconds.append(time.perf_counter() - start)
                client.stop_channels()
                manager.shutdown_kernel(now=True)
    return {kind: statistics.median(seconds) for kind, seconds in found.items()}


def measure(sizes, workers):
    """Return the rows of the table and the peak memory."""
    rows, peak = [], 0
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="tilelab-benchmark-") as folder:
            ours, plain = make_courses(Path(folder), size)
            timed = [sys.executable, "-c", TIMED, str(ours), str(workers)]
            seconds, memory, text = command(timed, folder)
            came = json.loads(text.strip().splitlines()[-1])
            plainly, _, _ = command([sys.executable, "-m", "nbgrader", "autograde", "exercises"], plain)
        peak = max(peak, memory)
        rows.append(
            {
                "submissions": size,
                "sandbox, workers: s": round(seconds, 1),
                "nbgrader autograde: s": round(plainly, 1),
                "times the throughput": round(plainly / seconds, 2),
                "s a submission": round((came[-1] - came[0]) / (size - 1), 3),
                "peak memory: MB": round(memory / 1e6),
            }
        )
    return rows, peak


def target(name, value, bound, sense):
    """Return a target and whether it is met."""
    met = value >= bound if sense == ">=" else value <= bound
    return {"name": name, "value": value, "bound": bound, "sense": sense, "ok": met}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[24, 200])
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    rows, peak = measure(asked.sizes, asked.workers)
    starts = kernel_starts()
    bounds = {24: 2.0, 200: 3.0}
    targets = [
        (f"throughput over nbgrader autograde at {row['submissions']}", row["times the throughput"], bounds[size], ">=")
        for row in rows
        if (size := row["submissions"]) in bounds
    ]
    costs = [row["s a submission"] for row in rows]
    if len(costs) > 1:
        targets.append(
            ("cost of a submission, largest class over smallest", round(costs[-1] / costs[0], 3), 1.15, "<=")
        )
    targets.append(("peak memory of the grader, GB", round(peak / 1e9, 3), 1.5, "<="))
    targets.append(("kernel start, sandbox over plain", round(starts["sandbox"] / starts["plain"], 3), 1.1, "<="))
    result = {
        "rows": rows,
        "targets": [target(*one) for one in targets],
        "where": {
            "cores": len(os.sched_getaffinity(0)),
            "workers": asked.workers,
            "load": [round(load, 1) for load in os.getloadavg()],
            "python": platform.python_version(),
            **{name: version(name) for name in ("nbgrader", "jupyter_client", "ipykernel", "distributed")},
        },
    }
    if asked.json:
        print(json.dumps(result))
        return
    names = list(rows[0])
    print("  ".join(f"{name:>22}" for name in names))
    for row in rows:
        print("  ".join(f"{row[name]:>22}" for name in names))
    print(f"\nkernel start: {starts['plain']:.3f} s plain, {starts['sandbox']:.3f} s in the sandbox (medians of 12)")
    for one in result["targets"]:
        print(f"{'ok ' if one['ok'] else 'NOT'} {one['name']}: {one['value']} ({one['sense']} {one['bound']})")
    print(result["where"])


if __name__ == "__main__":
    main()
