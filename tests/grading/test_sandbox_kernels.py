"""Kernels inside: they start, answer, are interrupted, and end with everything they started."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory
from jupyter_core.utils import ensure_event_loop
from patience import PATIENCE, until
from sandboxes import command_lines, own_place

from tilelab.grading.sandbox import cgroups, folders, jail, preflight, view
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.limits import MIB
from tilelab.grading.sandbox.provisioner import NAME, SandboxProvisioner, choose
from tilelab.grading.sandbox.runner import run
from tilelab.grading.sandbox.view import LEFT_OUT, folders_of, visible_paths

pytestmark = pytest.mark.slow

ARGUMENTS = ["--IPKernelApp.log_level=ERROR", "--HistoryManager.hist_file=:memory:"]


@pytest.fixture(autouse=True)
def _closed_event_loop():
    yield
    ensure_event_loop().close()


@contextmanager
def kernel(folder, **config):
    manager = KernelManager(kernel_name="python3")
    choose(manager, **config)
    manager.start_kernel(cwd=str(folder), extra_arguments=ARGUMENTS)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.context.destroy()


def said(client, code, timeout=PATIENCE):
    """Run a cell and return what it printed, or the name of its error."""
    parts = []

    def listen(message):
        content = message["content"]
        parts.append(content.get("text") or content.get("ename") or "")

    client.execute_interactive(code, timeout=timeout, output_hook=listen)
    return "".join(parts)


def test_a_kernel_runs_inside_with_the_files_beside_its_notebook(tmp_path):
    (tmp_path / "numbers.csv").write_text("1,2")
    (tmp_path / "exercise_1.ipynb").write_text("{}")
    with kernel(tmp_path) as (manager, client):
        assert isinstance(manager.provisioner, SandboxProvisioner)
        assert said(client, "import os; print(os.getcwd(), os.listdir())") == "/home/student ['numbers.csv']\n"
        assert said(client, "open('made', 'w').close(); print(open('numbers.csv').read())") == "1,2\n"
        assert said(client, "import tilelab, numpy; print(tilelab.__name__)") == "tilelab\n"
        folder = Path(manager.connection_file).parents[1]
        assert folder.is_dir()
    assert not folder.exists()
    assert not (tmp_path / "made").exists()


def test_a_kernel_starts_without_its_debugger_and_nothing_can_be_put_there(tmp_path):
    here = folders_of(LEFT_OUT)
    if not here:
        pytest.skip("ipykernel was installed without debugpy")
    with kernel(tmp_path) as (_, client):
        assert said(client, "from debugpy.server import api") == "ModuleNotFoundError"
        assert said(client, f"import os; print(os.listdir({str(here[0])!r}))") == "[]\n"
        assert said(client, f"open({str(here[0] / 'server.py')!r}, 'w')") in {"OSError", "PermissionError"}
        assert said(client, "import sys; print([name for name in sys.modules if 'pydevd' in name])") == "[]\n"


@pytest.mark.parametrize("link", ["", "absolute", "relative", "above"])
def test_the_debugger_is_left_out_wherever_it_is_installed(tmp_path, monkeypatch, link):
    store = tmp_path / "store" / "debugpy"
    store.mkdir(parents=True)
    (store / "__init__.py").write_text("found = True\n")
    shown = tmp_path / "my-packages"
    if link == "above":
        shown.symlink_to(store.parent)
    else:
        shown.mkdir()
        made = shown / "debugpy"
        made.symlink_to(store if link == "absolute" else "../store/debugpy") if link else store.rename(made)
    monkeypatch.setattr(sys, "path", [*sys.path, str(shown)])
    for found in (folders_of, visible_paths):  # they ask once
        monkeypatch.setattr(view, found.__name__, found.__wrapped__)
    assert (shown / "debugpy").resolve() in view.folders_of(LEFT_OUT)
    looks = f"import sys; sys.path[:0] = [{str(shown)!r}]; import debugpy; print(hasattr(debugpy, 'found'))"
    done = run([sys.executable, "-c", looks], show=[str(store.parent)])
    assert (done.stdout, done.stderr) == (b"False\n", b"")


def test_a_kernel_of_another_python_is_named(tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = ["/usr/bin/false", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"does not answer.*that of /usr/bin/false.*take that kernel away"):
        preflight.in_a_kernel([])


def test_a_process_whose_name_is_no_text_is_watched_too(tmp_path):
    named = "import ctypes; ctypes.CDLL(None).prctl(15, b'\\xff\\xfe'); print('named')"
    with kernel(tmp_path) as (manager, client):
        assert said(client, named) == "named\n"
        assert jail.number_one(manager.provisioner.process.pid) is not None


def test_an_interrupt_reaches_the_cell_and_what_it_waits_for(tmp_path):
    endless = "print('begun', flush=True)\nwhile True: pass"
    waits = "import subprocess; subprocess.run(['sh', '-c', 'echo begun; exec sleep 600'])"
    with kernel(tmp_path) as (manager, client):
        for code in (endless, waits):
            request = client.execute(code, stop_on_error=False)  # else what follows an error is aborted
            until(lambda: client.get_iopub_msg(timeout=PATIENCE)["content"].get("text") == "begun\n")
            manager.interrupt_kernel()
            reply = client.get_shell_msg(timeout=PATIENCE)
            while reply["parent_header"].get("msg_id") != request:
                reply = client.get_shell_msg(timeout=PATIENCE)
            assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert said(client, "print(1)").endswith("1\n")


@pytest.mark.parametrize("holder", ["control group", "watch"])
def test_memory_used_up_ends_the_kernel_and_is_named(tmp_path, holder, monkeypatch):
    if holder == "watch":
        monkeypatch.setattr(cgroups, "make", lambda limits: None)
    elif not cgroups.parents():
        pytest.skip("this user may not make control groups here")
    code = "import os, time\nfor _ in range(3): os.fork()\nx = b'x' * (150 << 20); time.sleep(600)"
    with kernel(tmp_path, memory=300 * MIB) as (manager, client):
        client.execute(code)
        assert until(manager.provisioner.why_it_ended) == "it used more than the 300 MiB of memory that are allowed"


def test_a_kernel_is_not_restarted_in_what_it_left(tmp_path):
    with kernel(tmp_path) as (manager, _), pytest.raises(SandboxError, match="start another"):
        manager.restart_kernel(now=True)


def test_the_entry_point_is_the_provisioner():
    entry = KernelProvisionerFactory.instance().provisioners.get(NAME)
    assert entry is None or entry.load() is SandboxProvisioner


SCRIPT = """
import sys, time
from pathlib import Path
sys.path[:0] = {tests!r}
from test_sandbox_kernels import folders, kernel
folders.place_for_folders = lambda: Path({place!r})
with kernel({folder!r}) as (manager, client):
    client.execute("import subprocess; subprocess.run(['sleep', '{number}'])")
    print(manager.connection_file, flush=True)
    time.sleep(600)
"""


def test_a_killed_grader_leaves_no_kernel_and_its_folder_is_swept(tmp_path, monkeypatch):
    """In a place of its own: to take every folder for an old one would sweep those of others away as they are made."""
    here, number = Path(__file__).parent, f"123456{os.getpid()}"
    with own_place(monkeypatch) as place:
        words = {"tests": [str(here), str(here.parent)], "place": str(place), "folder": str(tmp_path), "number": number}
        grader = subprocess.Popen([sys.executable, "-c", SCRIPT.format(**words)], stdout=subprocess.PIPE, text=True)
        with grader:
            file = Path(grader.stdout.readline().strip())
            assert file.is_relative_to(place)

            def left():
                return [line for line in command_lines() if str(file) in line or f"sleep {number}" in line]

            try:
                assert until(lambda: any(number in line for line in left()))
                assert any(str(file) in line for line in left())
            finally:
                grader.send_signal(signal.SIGKILL)
        assert until(lambda: not left())
        monkeypatch.setattr(folders, "YOUNG_SECONDS", -1)
        jail.Jail().close()
        assert not file.parents[1].exists()


def test_the_preflight_passes_and_hidden_things_are_hidden(tmp_path):
    (tmp_path / "gradebook.db").touch()
    preflight.require([tmp_path, tmp_path / "gradebook.db"])


def test_the_preflight_names_what_can_be_seen(tmp_path):
    shown = tmp_path / "course"
    shown.mkdir()
    with pytest.raises(SandboxError, match=f"for kernels: {shown} can be seen"):
        preflight.require([shown], show=[str(shown)])


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (["--unshare-net"], "packets can leave by the network|network interfaces"),
        (["--seccomp", "9"], "system calls are not filtered"),
        (["--unshare-pid"], "processes can be seen|not answer|as-pid-1"),
    ],
)
def test_the_preflight_notices_a_wall_that_is_missing(missing, words, monkeypatch):
    whole = jail.Jail.command

    def with_a_gap(self, *arguments):
        command = whole(self, *arguments)
        for place in range(len(command)):
            if command[place : place + len(missing)] == missing:
                return command[:place] + command[place + len(missing) :]
        return command

    monkeypatch.setattr(jail.Jail, "command", with_a_gap)
    with pytest.raises(SandboxError, match=words):
        preflight.require()


def test_out_here_the_probe_finds_holes(tmp_path):
    """The findings of a process that is in no sandbox: the preflight would refuse them for many reasons."""
    probe = subprocess.run([sys.executable, preflight.probe.__file__, str(tmp_path)], capture_output=True, check=True)
    found = " ".join(preflight.holes(json.loads(probe.stdout), ["PATH"]))
    for words in ("system calls are not filtered", f"{tmp_path} can be seen", "variables PATH"):
        assert words in found


def test_without_bubblewrap_there_is_no_grading_and_the_package_is_named(monkeypatch):
    jail.bubblewrap.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    try:
        with pytest.raises(SandboxError, match="'bubblewrap'"):
            preflight.require()
    finally:
        jail.bubblewrap.cache_clear()
