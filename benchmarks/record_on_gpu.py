"""Renew every record that needs a GPU, and run the tests that do, by one command.

    python benchmarks/record_on_gpu.py --logs FOLDER [--only ladder,timer] [--budget SECONDS] [--list]

Each step runs in a process of its own with a time limit of its own; what it prints goes to a file in the folder of
logs. A step that fails, or takes too long, stops no other. All need the package, CuPy, PyTorch and click; a step that
lacks something more fails, and its log says what. The class of ``record_timed.py`` is not among the steps: it needs a
gradebook, and goes between two machines.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: In place of the file that a step writes.
RECORD = "RECORD"


@dataclass(frozen=True)
class Step:
    """One command: its arguments behind ``python``, the seconds it may take, and the record it writes, if any."""

    name: str
    command: tuple[str, ...]
    seconds: float
    record: str = ""


def script(name: str, file: str, seconds: float, record: str) -> Step:
    """Return the step of one script of this folder."""
    return Step(name, (str(HERE / file), "--record", RECORD), seconds, record)


def gpu_tests() -> list[str]:
    """Every test file with a test that needs a GPU: the others may need packages that are not there."""
    return [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if "pytest.mark.gpu" in path.read_text()]


#: Without the project's own options, which ask for plugins.
PYTEST = ("-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", "-ra", "--durations=10", "-m", "gpu")
#: First those whose records are oldest beside the code that they measure.
STEPS = (
    script("ladder", "record_ladder.py", 1200, "ladder_{chip}.json"),
    script("timer", "record_timer.py", 300, "timer_{chip}.json"),
    script("correctness", "record_correctness.py", 900, "correctness_{chip}.json"),
    Step("tests", (*PYTEST, f"--rootdir={ROOT}", *gpu_tests()), 900),
    script("builds", "record_builds.py", 600, "builds_{chip}.json"),
    script("sanitizer", "record_sanitizer.py", 900, "sanitizer_{chip}.json"),
    script("cute", "record_cute.py", 300, "cute_{chip}.json"),
    script("simulator", "simulator_on_gpu.py", 900, "simulator_on_gpu.json"),
    script("book", "record_book.py", 900, "book_{chip}.json"),
)


def run(step: Step, log: Path, record: Path | None, seconds: float) -> int | None:
    """Run a step, with all it prints in a file.

    Returns
    -------
    int or None
        Its exit code; ``None`` where it took too long, and was killed with every process of its group.
    """
    command = [str(record) if word == RECORD else word for word in step.command]
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run_all(steps: Sequence[Step], logs: Path, records: Path, chip: str, budget: float) -> bool:
    """Run steps one after another and print a line each; whether all of them went well.

    Parameters
    ----------
    steps
        What to run.
    logs, records
        Folders of what the steps print, and of what they record.
    chip
        The GPU's name in the records' names.
    budget
        Seconds for all of them together.
    """
    width = max(len(step.name) for step in steps)
    begin, well = time.monotonic(), True
    for step in steps:
        start = time.monotonic()
        left = budget - (start - begin)
        if left <= 0:
            print(f"{step.name:{width}}  {'-':>7}  skipped: the {budget:g} s of --budget are over", flush=True)
            well = False
            continue
        log = logs / f"{step.name}.log"
        record = records / step.record.format(chip=chip) if step.record else None
        before = record.stat().st_mtime_ns if record and record.exists() else 0
        code = run(step, log, record, min(step.seconds, left))
        taken = time.monotonic() - start
        if code is None:
            why = "--budget" if left < step.seconds else "this step"
            outcome = f"took too long: killed after the {min(step.seconds, left):.4g} s of {why}, see {log}"
        else:
            outcome = f"exit {code}" + (f", see {log}" if code else "")
        if record and (record.stat().st_mtime_ns if record.exists() else 0) == before:
            outcome += f"; {record.name} is as it was"
            code = code or 1
        well &= code == 0
        print(f"{step.name:{width}}  {taken:7.1f}  {outcome}", flush=True)
    return well


def chosen(only: str | None) -> tuple[Step, ...]:
    """Return the steps of a list of names, in the order of :data:`STEPS`.

    Raises
    ------
    click.BadParameter
        A name is none of theirs.
    """
    if only is None:
        return STEPS
    names = [name.strip() for name in only.split(",") if name.strip()]
    known = [step.name for step in STEPS]
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint="--only")
    if not names:
        raise click.BadParameter(f"{only!r} names no step; there are {', '.join(known)}", param_hint="--only")
    return tuple(step for step in STEPS if step.name in names)


def require(chip: str) -> None:
    """Raise unless steps would run here, and on the GPU that the records name."""
    sys.path.insert(0, str(ROOT / "src"))
    from tilelab.cudacpp.device import gpu_missing

    missing = gpu_missing()
    if missing:
        raise click.ClickException(f"{missing}: nothing was run")
    if shutil.which("nvidia-smi") is None:
        return
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    name = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip().split("\n")[0]
    if chip.lower() not in name.lower():
        raise click.ClickException(
            f"the GPU is {name or 'of no known name'}, and --chip is {chip!r}, which is part of the records' names: "
            "give this GPU's own, such as --chip a100, so that the records of another stay what they are"
        )


@click.command(help=__doc__.split("\n")[0])
@click.option("--logs", type=click.Path(path_type=Path, file_okay=False), help="Folder of what the steps print.")
@click.option("--only", help="These steps alone, such as ladder,timer.")
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), help="Seconds for all steps together.")
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    default=HERE / "records",
    help="Folder that the records are written to, benchmarks/records if none is given.",
)
@click.option("--chip", default="h200", show_default=True, help="The GPU's name in the names of records.")
@click.option("--list", "as_list", is_flag=True, help="Print the steps, and run none.")
def main(logs: Path | None, only: str | None, budget: float | None, records: Path, chip: str, as_list: bool) -> None:
    """Run the steps."""
    steps = chosen(only)
    if as_list:
        for step in steps:
            words = " ".join(step.command).replace(str(ROOT) + os.sep, "")
            words = words.replace(RECORD, f"benchmarks/records/{step.record.format(chip=chip)}")
            print(f"{step.name:{max(len(one.name) for one in STEPS)}}  {step.seconds:5g} s  python {words}")
        return
    if logs is None:
        raise click.UsageError("--logs FOLDER says where to put what the steps print")
    require(chip)
    for folder in (logs, records):
        folder.mkdir(parents=True, exist_ok=True)
    sys.exit(0 if run_all(steps, logs.resolve(), records.resolve(), chip, budget or float("inf")) else 1)


if __name__ == "__main__":
    main()
