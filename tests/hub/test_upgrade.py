"""An upgrade in mid-term: the systemd units' own commands; the hub restarts and nobody's work ends."""

import os
import secrets
import shutil
import signal
import subprocess

import psutil
import pytest
from hub_config import MARK
from hubs import PASSWORD, words_of, write_course
from patience import PATIENCE, until
from running import end_all, marked

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("hub"),
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("node") is None, reason="the proxy needs node: make hub-packages"),
]


class Machine:
    """Stands in for systemd: runs units by their command and environment, and ends only the process it started."""

    def __init__(self, units, before, log):
        self.units = {unit.name: unit for unit in units}
        self.before, self.log, self.processes = before, log, {}
        self.mark = secrets.token_hex(8)  # by which all is found that they started

    def start(self, name):
        unit = self.units[name]
        tokens = dict(line.split("=", 1) for line in unit.secrets.read_text().split())
        variables = {"PYTHONPATH": os.environ["PYTHONPATH"], "TILELAB_ACCOUNTS": os.environ["TILELAB_ACCOUNTS"]}
        variables |= dict(unit.variables) | tokens | {"TILELAB_DEMO_PASSWORD": PASSWORD, MARK: self.mark}
        self.processes[name] = subprocess.Popen(
            [*self.before, *unit.command],
            env=variables,
            cwd=unit.settings.get("WorkingDirectory", "/"),
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def stop(self, name):
        """End a unit's process as ``KillMode=process`` does: its children are left alone."""
        process = self.processes.pop(name)
        children = psutil.Process(process.pid).children(recursive=True) if self.before else []
        inner = next((one for one in children if self.units[name].command[-1] in words_of(one)), None)
        os.kill(inner.pid if inner else process.pid, signal.SIGTERM)
        process.wait(PATIENCE)

    def end(self):
        """End everything, whatever a test left in the middle."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        end_all(marked(self.mark))


@pytest.fixture
def machine(state_folder, monkeypatch):
    from demo import walls
    from deployment import read_deployment
    from derived import write_derived
    from production import units, write_server

    folder = state_folder / "server"
    folder.mkdir()
    file = write_course(folder, **{"[weights]": "[gpu]\ndevices = [1]\nseats = 1\n[weights]"})
    of = read_deployment(file)
    of.state.mkdir()
    accounts, before = walls(of)
    monkeypatch.setenv("TILELAB_ACCOUNTS", accounts)
    of = read_deployment(file)
    write_derived(of)
    Store(of.exchange).release("exercises", {"exercise_1.ipynb": b"{}"})  # a whole release is another test's
    if before:
        number = (of.state / "home" / of.exchange_account).stat().st_uid
        for path in (of.exchange, *of.exchange.rglob("*")):
            os.chown(path, number, number)
    write_server(of, folder / "units")
    with (folder / "log").open("wb") as log:
        made = Machine(units(of, folder / "units"), before, log)
        made.of = of
        try:
            yield made
        finally:
            made.end()


def test_a_hub_restarts_and_nobodys_work_ends(machine):
    from running import answers
    from visitor import Visitor

    base = f"{machine.of.at('proxy')}/"
    for name in ("tiles-proxy", "tiles-exchange", "tiles-hub"):
        machine.start(name)
    assert until(lambda: answers(f"{base}hub/health") and answers(f"{base}services/exchange/health"))
    ada = Visitor(base, "ada", PASSWORD)
    asked = {"profile": "gpu", "device": 7}  # a device is not theirs to choose
    assert ada.ask("POST", "users/ada/server", json=asked).status_code in (201, 202)
    assert until(lambda: ada.ask("GET", "users/ada").json()["servers"].get("", {}).get("ready"))
    exchange = ada.exchange()
    gus, ben = Visitor(base, "gus", PASSWORD).exchange(), Visitor(base, "ben", PASSWORD).exchange()
    first = exchange.submit("exercises", {"exercise_1.ipynb": b"{}"})
    assert gus.submissions(everybody=True) == [first], "he teaches"
    server = f"{base}user/ada/api"
    assert answers(server)
    pid = servers(machine)
    (one,) = map(psutil.Process, pid)
    assert one.environ()["CUDA_VISIBLE_DEVICES"] == "1"
    assert "--MappingKernelManager.cull_idle_timeout=600" in one.cmdline(), "an idle kernel gives its memory back"
    assert "--ServerApp.shutdown_no_activity_timeout=1200" in one.cmdline()
    machine.stop("tiles-hub")
    assert not answers(f"{base}hub/health")
    assert answers(server), "the proxy still leads to ada's server"
    assert answers(f"{base}services/exchange/health"), "and to the exchange"
    change(machine.of.file, {'graders = ["gus"]': "", '["ada", "ben"]': '["ada", "gus"]'})
    machine.start("tiles-hub")
    assert until(lambda: answers(f"{base}hub/health"))
    assert servers(machine) == pid, "it is the same server"
    assert until(lambda: ada.ask("GET", "users/ada").json()["servers"].get("", {}).get("ready"))
    assert exchange.submissions() == [first], "her token still counts"
    learning = Visitor(base, "gus", PASSWORD)
    refused = learning.ask("POST", "users/gus/server", json={"profile": "gpu"})
    assert "Every seat at a GPU is taken" in refused.text, "the new hub knows who has a seat"
    machine.stop("tiles-exchange")
    machine.start("tiles-exchange")
    assert exchange.submit("exercises", {"exercise_1.ipynb": b"{}"}).learner == "ada"
    assert len(exchange.submissions()) == 2
    with pytest.raises(GradingError, match="gus does not teach tiles"):
        gus.submissions(everybody=True)
    with pytest.raises(GradingError, match="this token may not use the exchange"):
        ben.released()
    with pytest.raises(GradingError, match="may not log in"):
        Visitor(base, "ben", PASSWORD)
    assert ada.ask("DELETE", "users/ada/server").status_code in (202, 204)
    assert until(lambda: not servers(machine))


def change(file, changes):
    """Write other words into a file, each of which must be there once."""
    text = file.read_text()
    for before, after in changes.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    file.write_text(text)


def servers(machine):
    """Return the processes of learners' servers of this course."""
    home = str(machine.of.state / "home")
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if "jupyterhub.singleuser" in words and process.cwd().startswith(home):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
