"""Renewing all records by one command: what can be seen of it without a GPU."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from patience import until

from tilelab.cudacpp.device import gpu_missing

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "record_on_gpu.py"


@pytest.fixture
def renew(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import record_on_gpu

    return record_on_gpu


def started(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_every_step_is_there_and_every_record_of_a_gpu_has_one(renew):
    assert [step.name for step in renew.STEPS][:4] == ["ladder", "timer", "correctness", "tests"]
    for step in renew.STEPS:
        paths = [word for word in step.command if word.startswith(str(ROOT))]
        assert paths
        assert all(Path(path).is_file() for path in paths)
        if step.record:
            assert "--record" in Path(step.command[0]).read_text()
    written = {step.record.format(chip="h200") for step in renew.STEPS if step.record}
    there = {file.name for file in (ROOT / "benchmarks" / "records").glob("*_h200.json")} | {"simulator_on_gpu.json"}
    assert there - written == {"timed_h200.json"}  # its class comes from another machine
    assert written <= there


def test_the_tests_of_a_gpu_are_all_named(renew):
    asked = {Path(path).name for path in renew.gpu_tests()}
    assert {"test_ladder.py", "test_problem_on_a_gpu.py", "test_timed_on_gpu.py"} <= asked


def test_the_list_shows_commands_that_work_from_the_repository():
    done = started("--list", "--only", "timer,ladder")
    assert done.stdout.splitlines() == [
        "ladder        1200 s  python benchmarks/record_ladder.py --record benchmarks/records/ladder_h200.json",
        "timer          300 s  python benchmarks/record_timer.py --record benchmarks/records/timer_h200.json",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "lader", "--logs", "x"], "'lader' is none of ladder, timer, correctness"),
        (["--only", ",", "--logs", "x"], "',' names no step; there are ladder"),
        ([], "--logs FOLDER says where"),
        (["--logs", "x", "--budget", "0"], "0"),
    ],
)
def test_what_no_run_can_start_with(arguments, said):
    done = started(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.skipif(gpu_missing() is None, reason="there is a GPU here")
def test_without_a_gpu_nothing_is_run(tmp_path):
    done = started("--logs", str(tmp_path / "logs"))
    assert done.returncode == 1
    assert "nothing was run" in done.stderr
    assert not (tmp_path / "logs").exists()


def step(renew, name, code, seconds=60.0, record=""):
    return renew.Step(name, ("-c", code, renew.RECORD), seconds, record)


def test_a_step_that_fails_stops_no_other(renew, tmp_path, capsys):
    write = "import sys; print('said'); open(sys.argv[1], 'w').write('{}')"
    steps = [
        step(renew, "bad", "raise SystemExit(3)"),
        step(renew, "longer name", write, record="one_{chip}.json"),
        step(renew, "forgets", "pass", record="two_{chip}.json"),
        step(renew, "good", "import tilelab; print(tilelab.__file__)"),
    ]
    assert not renew.run_all(steps, tmp_path, tmp_path, "b300", float("inf"))
    lines = capsys.readouterr().out.splitlines()
    assert [line[:11].strip() for line in lines] == ["bad", "longer name", "forgets", "good"]
    assert all(float(line[11:20]) >= 0 for line in lines)
    assert [line[22:] for line in lines] == [
        f"exit 3, see {tmp_path / 'bad.log'}",
        "exit 0",
        "exit 0; two_b300.json is as it was",
        "exit 0",
    ]
    assert (tmp_path / "longer name.log").read_text() == "said\n"
    assert (tmp_path / "one_b300.json").read_text() == "{}"
    assert str(ROOT / "src") in (tmp_path / "good.log").read_text()
    assert renew.run_all(steps[1:2], tmp_path, tmp_path, "b300", float("inf"))


def test_a_step_that_takes_too_long_is_killed_with_its_children(renew, tmp_path, capsys):
    child = "import subprocess, sys; print(subprocess.Popen(['sleep', '300']).pid, flush=True); "
    steps = [
        step(renew, "hangs", child + "__import__('time').sleep(300)", seconds=5.0),
        step(renew, "leaves", child),  # a child that is left behind holds the GPU too
        step(renew, "next", "pass"),
    ]
    assert not renew.run_all(steps, tmp_path, tmp_path, "h200", float("inf"))
    lines = capsys.readouterr().out.splitlines()
    assert "took too long: killed after the 5 s of this step" in lines[0]
    assert lines[1].endswith("exit 0")
    assert lines[2].endswith("exit 0")
    for name in ("hangs", "leaves"):
        child = int((tmp_path / f"{name}.log").read_text())
        assert until(lambda child=child: not running(child))


def running(pid):
    """Whether a process still does anything; what was killed and not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_is_beyond_the_budget_is_said_to_be_skipped(renew, tmp_path, capsys):
    steps = [step(renew, name, "import time; time.sleep(300)") for name in ("first", "second")]
    assert not renew.run_all(steps, tmp_path, tmp_path, "h200", 1.0)
    lines = capsys.readouterr().out.splitlines()
    assert "killed after the 1 s of --budget" in lines[0]
    assert lines[1] == "second        -  skipped: the 1 s of --budget are over"
    assert not (tmp_path / "second.log").exists()


def test_records_of_another_gpu_stay(renew, tmp_path, monkeypatch):
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\necho 'NVIDIA A100-SXM4-80GB'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("tilelab.cudacpp.device.gpu_missing", lambda: None)
    with pytest.raises(click.ClickException, match=r"the GPU is NVIDIA A100.*--chip is 'h200'.*such as --chip a100"):
        renew.require("h200")
    renew.require("a100")
