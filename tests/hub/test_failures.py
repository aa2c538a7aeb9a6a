"""A stopped proxy, a hub that restarts in mid-submission, a full disk: clear words, nothing lost, nothing twice."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.client import Client, UnreachableError

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hub")]
LARGE = {"exercise_1.ipynb": b"x" * 8_000_000}


class InTheBackground(threading.Thread):
    """Work in a thread, whose outcome is kept."""

    def __init__(self, work):
        super().__init__()
        self.work, self.result, self.error = work, None, None
        self.start()

    def run(self):
        try:
            self.result = self.work()
        except GradingError as error:
            self.error = error


def running(hub, word):
    return next(one for one in hub.running.processes if word in " ".join(one.cmdline()))


def test_a_proxy_that_is_ended_comes_back_and_the_submission_arrives_once(hub, exchanges):
    before = len(exchanges["ada"].submissions())
    proxy = running(hub, "configurable-http-proxy")
    proxy.kill()
    proxy.wait(10)
    done = InTheBackground(lambda: exchanges["ada"].submit("exercises", LARGE))
    done.join(60)
    assert done.error is None
    assert [one.key for one in exchanges["ada"].submissions()].count(done.result.key) == 1
    assert len(exchanges["ada"].submissions()) == before + 1
    hub.running.wait()


def test_without_a_proxy_and_without_patience_the_words_say_what_to_do(hub, exchanges):
    impatient = Client(exchanges["ada"].url, exchanges["ada"]._token, patience=0.1)
    proxy = running(hub, "configurable-http-proxy")
    proxy.suspend()
    proxy.kill()
    with pytest.raises(UnreachableError, match=r"cannot be reached.*Nothing of yours is lost"):
        impatient.submit("exercises", {"a.ipynb": b"{}"})
    hub.running.wait()


def test_a_hub_that_restarts_in_mid_submission_loses_nothing(hub, exchanges, monkeypatch):
    client = exchanges["ada"]
    before = client.submissions("exercises")
    monkeypatch.setattr(client, "_patience", 120.0)
    uploads = [InTheBackground(lambda: client.submit("exercises", LARGE)) for _ in range(3)]
    time.sleep(0.05)
    hub.running.stop()
    hub.running.start()
    for upload in uploads:
        upload.join(120)
        assert upload.error is None
    after = client.submissions("exercises")
    assert after[: len(before)] == before, "what was there is there"
    assert len(after) == len(before) + 3, "each upload was kept once"
    assert {upload.result for upload in uploads if upload.result not in after} == set()
    assert client.submitted(after[-1]) == LARGE
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


def test_a_port_that_is_taken_is_named(hub):
    from running import check_ports

    with pytest.raises(GradingError, match=rf"port {hub.of.port} is taken"):
        check_ports(hub.of)


def test_a_hub_that_cannot_start_says_why(state_folder, monkeypatch):
    from deployment import read_deployment
    from hubs import write_course
    from running import RunningHub

    folder = state_folder / "broken"
    folder.mkdir()
    of = read_deployment(write_course(folder, **{'kind = "shared-password"': 'kind = "no-such-kind"'}))
    of.state.mkdir()
    with pytest.raises(GradingError, match="no-such-kind"), RunningHub(of):
        pass


def test_a_proxy_that_is_not_installed_is_named(monkeypatch):
    import running as module

    monkeypatch.setattr(module, "proxy_program", lambda: Path("no-such-proxy"))
    with pytest.raises(GradingError, match="make hub-packages"):
        module.check_proxy()


def test_the_account_of_a_real_server_is_named_where_it_is_missing():
    from release_course import account_of

    with pytest.raises(GradingError, match="useradd --system --user-group grader-nowhere"):
        account_of("grader-nowhere")
    assert account_of("root").pw_uid == 0 == os.stat("/").st_uid
