"""A stopped proxy, a hub that restarts in mid-submission, a full disk: clear words, nothing lost, nothing twice."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hubs import ROOT, words_of, write_course

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.client import Client, UnreachableError

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hub"), pytest.mark.timeout(900)]
#: Seconds for what takes two or three on a machine that does nothing else.
PATIENCE = 240
LARGE = {"exercise_1.ipynb": b"x" * 8_000_000}


class InTheBackground(threading.Thread):
    """Work in a thread, whose outcome is kept."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self._work, self._result, self._error = work, None, None
        self.start()

    def run(self):
        try:
            self._result = self._work()
        except GradingError as error:
            self._error = error

    def result(self):
        """Wait until the work is done and return what came of it."""
        self.join(PATIENCE)
        assert not self.is_alive(), "it took too long"
        if self._error is not None:
            raise self._error
        return self._result


def running(hub, word):
    return next(one for one in hub.running.processes if word in " ".join(words_of(one)))


@pytest.fixture
def patient(exchanges, monkeypatch):
    """Return ada's view of the exchange, with patience for a machine that does much else."""
    monkeypatch.setattr(exchanges["ada"], "_patience", float(PATIENCE))
    return exchanges["ada"]


def test_a_proxy_that_is_ended_comes_back_and_the_submission_arrives_once(hub, patient):
    before = len(patient.submissions())
    proxy = running(hub, "configurable-http-proxy")
    proxy.kill()
    proxy.wait(PATIENCE)
    receipt = InTheBackground(lambda: patient.submit("exercises", LARGE)).result()
    assert [one.key for one in patient.submissions()].count(receipt.key) == 1
    assert len(patient.submissions()) == before + 1
    hub.running.wait()


def test_without_a_proxy_and_without_patience_the_words_say_what_to_do(hub, exchanges):
    impatient = Client(exchanges["ada"].url, exchanges["ada"]._token, patience=0.1)
    proxy, own = running(hub, "configurable-http-proxy"), running(hub, "jupyterhub_config.py")
    own.suspend()  # or it might have started another proxy by then
    try:
        proxy.kill()
        with pytest.raises(UnreachableError, match=r"cannot be reached.*Nothing of yours is lost"):
            impatient.submit("exercises", {"a.ipynb": b"{}"})
    finally:
        own.resume()
    hub.running.wait()


def test_a_hub_that_restarts_in_mid_submission_loses_nothing(hub, patient):
    before = patient.submissions("exercises")
    uploads = [InTheBackground(lambda: patient.submit("exercises", LARGE)) for _ in range(3)]
    time.sleep(0.05)
    hub.running.stop()
    hub.running.start()
    receipts = [upload.result() for upload in uploads]
    after = patient.submissions("exercises")
    assert after[: len(before)] == before, "what was there is there"
    assert len(after) == len(before) + 3, "each upload was kept once"
    assert {one.time for one in receipts} == {one.time for one in after[len(before) :]}
    assert patient.submitted(after[-1]) == LARGE
    assert not list(hub.of.exchange.rglob(".*"))


def test_an_answer_that_is_lost_does_not_hand_in_twice(exchanges, monkeypatch):
    client = exchanges["ben"]
    before = len(client.submissions())
    once, lost = client._once, []

    def lose_the_first(request):
        answer = once(request)
        if not lost:
            lost.append(answer)
            raise UnreachableError("the answer was lost")
        return answer

    monkeypatch.setattr(client, "_once", lose_the_first)
    receipt = client.submit("exercises", {"a.ipynb": b"{}"})
    assert receipt.key == lost[0]["receipt"]["key"]
    assert len(client.submissions()) == before + 1


def test_something_else_at_the_address_is_no_answer(hub, exchanges):
    client = Client(f"{hub.base}hub/login", exchanges["ada"]._token, patience=0.1)
    with pytest.raises(UnreachableError, match="cannot be reached"):
        client.released()


def test_a_server_without_the_hubs_variables_says_so(monkeypatch):
    monkeypatch.delenv("TILELAB_EXCHANGE_URL", raising=False)
    with pytest.raises(GradingError, match=r"\$TILELAB_EXCHANGE_URL is not set"):
        Client()


FILL = """
import sys
from tilelab.grading.exchange.store import NoSpaceError, Store
kept = Store("/mnt/exchange", reserve=0)
kept.release("exercises", {"a.ipynb": b"{}"})
first = kept.submit("ada", "exercises", {"a.ipynb": b"mine"}, "0" * 32)
full = 0
for number in range(1, 40):
    try:
        kept.submit("ben", "exercises", {f"{n}.bin": b"x" * 9000 for n in range(8)}, f"{number:032x}")
    except NoSpaceError as error:
        full += 1
        said = str(error)
assert full, "the disk did not fill up"
assert "nothing was lost" in said, said
assert len(kept.submissions("ben")) == 39 - full
assert all(len(kept.submitted("ben", "exercises", one.time)) == 8 for one in kept.submissions("ben"))
assert kept.submitted("ada", "exercises", first.time) == {"a.ipynb": b"mine"}
import pathlib
assert not list(pathlib.Path("/mnt").rglob(".*")), "half a submission is left"
print("full", full)
"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="tools/system-packages.sh grade: bubblewrap")
def test_a_disk_that_is_really_full_keeps_what_there_was(tmp_path):
    walls = ["bwrap", "--dev-bind", "/", "/", "--size", "1000000", "--tmpfs", "/mnt"]
    done = subprocess.run([*walls, sys.executable, "-c", FILL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "full" in done.stdout


def test_a_port_that_is_taken_is_named_with_who_has_it(hub):
    from checks import check_ports

    with pytest.raises(GradingError, match=rf"port {hub.of.port} is taken by process \d+ \(.*configurable-http-proxy"):
        check_ports(hub.of)


def test_a_second_hub_in_the_same_folder_is_refused_and_the_first_goes_on(hub, exchanges):
    """By its own lock, whoever starts it and on whichever ports: the first one's processes are not touched."""
    from running import RunningHub, free_port

    ours = ("configurable-http-proxy", "jupyterhub_config.py", "exchange")
    before = [running(hub, word) for word in ours]
    other = hub.of.file.with_name("other-ports.toml")
    other.write_text(hub.of.file.read_text().replace(str(hub.of.port), str(free_port())))
    words = rf"a hub runs in '{hub.of.state}' already \(process \d+, at {hub.of.url}, since"
    with pytest.raises(GradingError, match=words), RunningHub(replace(hub.of, file=other)):
        pass
    config = ROOT / "autograder" / "hub" / "jupyterhub_config.py"
    command = [*hub.before, sys.executable, "-m", "jupyterhub", "-f", str(config)]
    variables = os.environ | {"TILELAB_COURSE": str(other)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode != 0
    assert re.search(words, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert all(one.is_running() for one in before)
    assert exchanges["ada"].released()


def test_a_hub_that_cannot_start_says_why(state_folder, monkeypatch):
    import running as module
    from deployment import read_deployment

    folder = state_folder / "broken"
    folder.mkdir()
    of = read_deployment(write_course(folder))
    of.state.mkdir()
    monkeypatch.setattr(module, "HERE", folder)  # where there is no configuration for it
    with pytest.raises(GradingError, match=r"the hub ended; its last words:\n.*jupyterhub_config\.py"):
        module.RunningHub(of).start()


def test_a_proxy_that_is_not_installed_is_named(monkeypatch):
    import checks as module

    monkeypatch.setattr(module, "proxy_program", lambda: Path("no-such-proxy"))
    with pytest.raises(GradingError, match="make hub-packages"):
        module.check_proxy()


def test_the_account_of_a_real_server_is_named_where_it_is_missing():
    from release_course import account_of

    with pytest.raises(GradingError, match="useradd --system --user-group grader-nowhere"):
        account_of("grader-nowhere")
    assert account_of("root").pw_uid == 0 == os.stat("/").st_uid
