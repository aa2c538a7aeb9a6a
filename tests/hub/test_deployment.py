"""course.toml and the roster: what is meant is read, what cannot be meant is refused in words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hubs import ROOT, write_course

from tilelab.grading.errors import GradingError
from tilelab.grading.policy import FILE


@pytest.fixture(autouse=True)
def no_demo(monkeypatch):
    monkeypatch.delenv("TILELAB_ACCOUNTS", raising=False)


def read(folder, text):
    from deployment import read_deployment

    file = folder / FILE
    file.write_text(text)
    return read_deployment(file)


def test_the_repositorys_own_file_is_a_demo_on_loopback():
    from deployment import read_deployment

    of = read_deployment(ROOT / "autograder" / FILE)
    assert of.authenticator == "shared-password"
    assert of.at("proxy") == of.url == "http://127.0.0.1:8000"
    assert of.state == ROOT / "_build" / "hub"
    assert set(of.release) == {"exercises", "practice"}
    assert len(set(of.users)) == len(of.users) == 5


def test_a_file_with_nothing_in_it_is_a_course_without_people(tmp_path):
    of = read(tmp_path, "")
    assert (of.course, of.users, of.gpu.devices) == ("tilelab", (), ())
    assert of.authenticator == "pam"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[course]\nid = 'Tile Lab'\n", r"course\.id = 'Tile Lab'"),
        ("[course]\nname = 'x'\n", r"course\.name is not known; id, release, title are"),
        ("[course]\nrelease = 'exercises'\n", "a list of names"),
        ("course = 3\n", r"course = 3, but course is a table: write \[course\]"),
        ("[people]\nlearners = ['Ada']\n", "'Ada' is no user name"),
        ("[people]\nlearners = ['ada', 'ada']\n", "'ada' is there twice"),
        ("[people]\nlearners = ['ada']\ninstructors = ['ada']\n", "'ada' learns and teaches"),
        ("[people]\nlearners = ['grader-tilelab']\n", "is formgrader's account"),
        ("[people]\nlearners = ['exchange-tilelab']\n", "is the exchange's account"),
        ("[people]\ninstructors = ['iris', 'iris']\n", "names somebody twice"),
        ("[people]\nlearners = ['root; rm']\n", "is no user name"),
        ("[people]\nroster = 'nowhere.csv'\n", "cannot read the roster"),
        ("[authenticator]\nkind = 3\n", "a text is asked for"),
        ("[authenticator]\nuser_password = 'x'\n", r"authenticator\.user_password is not known"),
        ("[authenticator.GitHubOAuthenticator]\nclient_secret = 'x'\n", "is a secret: put it in"),
        ("[hub]\nurl = 'hub.example.org'\n", "write one such as https"),
        ("[hub]\nport = 80\n", "a whole number from 1024 on"),
        ("[hub]\nport = true\n", "a whole number"),
        ("[hub]\nmemory = 'much'\n", r"hub\.memory: size 'much'"),
        ("[hub]\naccounts = 'none'\n", "own or shared"),
        ("[gpu]\ndevices = [0, 0]\n", "a list such as"),
        ("[gpu]\ndevices = ['a']\n", "a whole number from 0 on"),
        ("[gpu]\nseats = 0\n", "a whole number from 1 on"),
        ("[kubernetes]\nhost = 3\n", "a text is asked for"),
        ("[course]\nid = 'exchange'\n", "a service of the hub"),
        ("[course]\nid = 'a-course-with-a-very-long-name'\n", "up to 23 small letters"),
        ("[course]\nrelease = ['exercises', 'exercises']\n", "names one twice"),
        ("[course]\nrelease = ['Week 1']\n", "no name of an assignment"),
        ("[people]\nlearners = ['root']\n", r"'root' is an account of this machine itself \(number 0\)"),
        ("[people]\ninstructors = ['daemon']\n", "account of this machine itself"),
        ("[people]\nlearners = ['nobody']\n", "account of this machine itself"),
        ("[authenticator.GitHubOAuthenticator]\nCLIENT_SECRET = 'x'\n", "is a secret: put it in"),
        ("[hub]\nport = 65535\n", "takes 5 from there on, up to 65535"),
        ("[hub]\nport = 70000\n", "takes 5 from there on"),
        ("[hub]\nurl = 'http://[::1'\n", "write one such as https"),
        ("[hub]\nurl = 'http://hub:bad'\n", "write one such as https"),
        ("[hub]\nstate = '/etc/passwd/state'\n", "'/etc/passwd' is a file, not a folder"),
        ("[hub]\nmemory = -1\n", r"hub\.memory = -1"),
        ("[hub]\nmemory = true\n", r"hub\.memory = True"),
        ("[nonsense]\n", r"\[nonsense\]"),
        ("[course\n", "cannot read"),
        ("a = " + "[" * 5000, "cannot read"),
        ("[hbu]\n", r"has \[hbu\]; .*Did you mean 'hub'\?"),
        ("[hub]\nstat = 'x'\n", r"hub\.stat is not known; .*Did you mean 'state'\?"),
        ("[course]\nrelaese = []\n", r"Did you mean 'release'\?"),
        ("[late]\nper_dya = 0.1\n", r"late\.per_dya is not known; .*Did you mean 'per_day'\?"),
        ("weights = 3\n", r"weights = 3, but weights is a table: write \[weights\]"),
        ("due = 2027-03-01\n", r"due is a table"),
        ("[[people]]\nlearners = []\n", r"people is a table: write \[people\]"),
        ("authenticator = 'pam'\n", r"authenticator = 'pam', but authenticator is a table"),
        ("[people]\nlearners = ['ädä']\n", "'ädä' is no user name"),
        ("[people]\nlearners = ['.ada']\n", "'.ada' is no user name"),
        ("[people]\nlearners = ['']\n", "'' is no user name"),
        ("[people]\nlearners = ['a\\u202eb']\n", "is no user name: up to 32 small letters"),
        (f"[people]\nlearners = ['{'a' * 33}']\n", "is no user name: up to 32 small letters"),
        ("[people]\ninstructors = ['grader-tilelab']\n", "'grader-tilelab' teaches and is formgrader's account"),
        ("[people]\ngraders = ['exchange-tilelab']\n", "'exchange-tilelab' teaches and is the exchange's account"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(tmp_path, text, words):
    with pytest.raises(GradingError, match=words):
        read(tmp_path, text)


def test_there_must_be_a_file(tmp_path):
    from deployment import read_deployment

    with pytest.raises(GradingError, match="there is no"):
        read_deployment(tmp_path / "course.toml")


def test_a_roster_is_read_with_names(tmp_path):
    (tmp_path / "roster.csv").write_text(
        '\ufeffid,last_name,first_name,email\nada,"Lovelace, Countess",Ada,ada@example.org\n\nben,Ng,Bén,\n',
        encoding="utf-8",
    )
    of = read(tmp_path, "[people]\nlearners = ['cleo']\nroster = 'roster.csv'\n")
    assert [learner.id for learner in of.learners] == ["cleo", "ada", "ben"]
    assert of.learners[1].last_name == "Lovelace, Countess"
    assert of.learners[2].first_name == "Bén"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "roster.csv is empty: its first line is id,first_name"),
        (b"name,email\n", "the column 'name' is not known"),
        (b"first_name\nAda\n", "id among them"),
        (b"id,id\nada,ben\n", "names each column once"),
        (b"id,email\nada\n", "line 2: 1 cells where the first line names 2"),
        (b"id\nada\nben\nada\n", "line 4: 'ada' is in line 2 already"),
        (b"id\nAda\n", "line 2: 'Ada' is no user name"),
        (b"id\n../ada\n", "is no user name"),
        (b'id,email\nada,"x\n', "roster.csv, line"),
        ("id,first_name\nada,Bén\n".encode("latin-1"), "is not UTF-8"),
        (b"\xd0\xcf\x11\xe0", "is not UTF-8"),
        (b"id\nada\n", "learner 'ada' is there twice"),
    ],
)
def test_a_malformed_roster_is_refused_by_its_line(tmp_path, content, words):
    (tmp_path / "roster.csv").write_bytes(content)
    with pytest.raises(GradingError, match=words):
        read(tmp_path, "[people]\nlearners = ['ada']\nroster = 'roster.csv'\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind = 'pamm'", r"kind = 'pamm' is not known\. Here dummy, null, pam, shared-password work.*mean 'pam'\?"),
        ("kind = 'gihub'", r"with oauthenticator installed .*github, .*do\. Did you mean 'github'\?"),
        ("kind = 'nowhere.Class'", r"'nowhere\.Class' cannot be loaded: No module named 'nowhere'"),
        ("kind = 'os.nothing'", "cannot be loaded: .*no attribute 'nothing'"),
        ("kind = '.x'", "cannot be loaded"),
        ("kind = 'os.path'", "is no class of JupyterHub's Authenticator"),
        ("[authenticator.PAMAuthenticatr]\nservice = 'x'", r"Did you mean 'PAMAuthenticator'\?"),
        ("[authenticator.PAMAuthenticator]\nservce = 'x'", r"PAMAuthenticator\.servce is not known.*mean 'service'\?"),
        ("[authenticator.JupyterHub]\nbind_url = 'http://0.0.0.0'", "JupyterHub is not known; Authenticator"),
    ],
)
def test_a_way_to_log_in_that_cannot_work_is_refused_in_words(tmp_path, text, words):
    from authenticators import check_authenticator

    with pytest.raises(GradingError, match=words):
        check_authenticator(read(tmp_path, f"[authenticator]\n{text}\n"))


def test_ways_to_log_in_that_work(tmp_path, monkeypatch):
    import authenticators

    for kind in ("pam", "PAM", "null", "jupyterhub.auth.NullAuthenticator"):
        found = authenticators.check_authenticator(read(tmp_path, f"[authenticator]\nkind = '{kind}'\n"))
        assert found.__name__.lower().removesuffix("authenticator") in kind.lower()
    kinds = authenticators._kinds()
    monkeypatch.setattr(authenticators, "_kinds", lambda: {"pam": kinds["pam"]})
    with pytest.raises(GradingError, match=r"'github' comes with oauthenticator, .*pip install oauthenticator"):
        authenticators.check_authenticator(read(tmp_path, "[authenticator]\nkind = 'github'\n"))


def test_settings_of_an_authenticator_reach_jupyterhub_and_secrets_do_not_stand_in_the_file(tmp_path):
    from hub_config import configure_hub
    from traitlets.config import Config

    of = read(
        tmp_path,
        "[authenticator]\nkind = 'github'\n[authenticator.GitHubOAuthenticator]\noauth_callback_url = 'https://x/y'\n"
        "[hub]\nurl = 'https://hub.example.org/course'\nstate = 'state'\n[people]\ninstructors = ['iris']\n",
    )
    c = Config()
    configure_hub(c, of)
    assert c.JupyterHub.authenticator_class == "github"
    assert c.GitHubOAuthenticator.oauth_callback_url == "https://x/y"
    assert c.Authenticator.allowed_users == {"iris"}
    assert c.Authenticator.allow_existing_users is False
    assert of.base_url == "/course/"
    assert c.JupyterHub.bind_url == "http://127.0.0.1:8000/course/"
    assert c.JupyterHub.upgrade_db is True, "or a newer JupyterHub asks for a command that no page names"


def test_everything_listens_on_loopback(tmp_path):
    from deployment import PORTS, read_deployment
    from hub_config import configure_hub
    from traitlets.config import Config

    of = read_deployment(write_course(tmp_path))
    c = Config()
    configure_hub(c, of)
    urls = [c.JupyterHub.bind_url, c.JupyterHub.hub_bind_url, c.ConfigurableHTTPProxy.api_url]
    urls += [service["url"] for service in c.JupyterHub.services if "url" in service]
    assert len(urls) == len(PORTS) == len({url.split(":")[2].split("/")[0] for url in urls})
    assert all(url.startswith("http://127.0.0.1:") for url in urls)
    assert c.Spawner.ip == "127.0.0.1"


def test_secrets_are_made_once_and_are_its_owners(tmp_path):
    from hub_config import token

    first = token(tmp_path / "a.token")
    assert len(first) == 64
    assert token(tmp_path / "a.token") == first
    assert Path(tmp_path / "a.token").stat().st_mode & 0o777 == 0o600


def test_no_role_sees_a_page_that_shows_nothing(tmp_path):
    import json

    from derived import write_derived

    of = read(tmp_path, "[hub]\nstate = 'state'\n")
    write_derived(of)
    for role in ("learner", "teacher", "grader"):
        said = json.loads((of.etc / role / "labconfig" / "page_config.json").read_text())
        assert said["disabledExtensions"]["@jupyter/nbgrader:formgrader"] is True
        assert str(of.etc / "limits.toml") in (of.etc / role / "nbgrader_config.py").read_text()
    assert (of.etc / "limits.toml").is_file()
    assert (of.etc / "learner").stat().st_mode & 0o777 == 0o755


def test_a_shared_account_may_bear_any_name(tmp_path):
    assert read(tmp_path, "[people]\nlearners = ['daemon']\n[hub]\naccounts = 'shared'\n").users == ("daemon",)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make accounts")
def test_accounts_keep_their_numbers_when_people_come_and_go(tmp_path):
    from private_machine import private_machine

    def numbers(*learners):
        of = read(tmp_path, f"[people]\nlearners = {list(learners)}\n[hub]\nstate = 'state'\n")
        private_machine(of)
        lines = (line.split(":") for line in (of.state / "passwd").read_text().splitlines())
        return {line[0]: int(line[2]) for line in lines if line[5].startswith(str(of.state))}

    first = numbers("ben", "cleo")
    more = numbers("ada", "ben", "cleo")
    assert {name: more[name] for name in first} == first
    fewer = numbers("cleo", "dora")
    assert fewer["dora"] not in more.values()
    assert numbers("ben", "cleo")["ben"] == first["ben"]
    (tmp_path / "state" / "account-numbers").unlink()  # as a state that an older version wrote
    assert numbers("abe", "ben", "cleo").items() >= first.items()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make accounts")
def test_two_hubs_on_a_machine_share_no_account(tmp_path):
    """A learner of one would read what the other's exchange keeps."""
    from private_machine import private_machine

    numbers = []
    for name in ("one", "two"):
        of = read(tmp_path, f"[people]\nlearners = ['ada', 'ben']\n[hub]\nstate = '{name}'\n")
        private_machine(of)
        numbers.append({line.rsplit(":")[1] for line in (of.state / "account-numbers").read_text().splitlines()})
        assert len(numbers[-1]) == 4
    assert not numbers[0] & numbers[1]


def test_what_is_said_about_passwords_is_true(tmp_path):
    from demo import welcome

    assert "password for everybody: p" in welcome(read(tmp_path, "[authenticator]\nkind = 'shared-password'\n"), "p")
    said = welcome(read(tmp_path, "[authenticator]\nkind = 'pam'\n"), "p")
    assert "people log in by pam" in said
    assert "everybody: p" not in said


def test_nothing_is_left_of_a_hub_that_was_stopped_while_it_started(tmp_path, monkeypatch):
    import psutil
    from running import RunningHub

    of = read(tmp_path, "[hub]\nstate = 'state'\nport = 20710\n")
    of.state.mkdir()
    started = []

    def interrupted(hub):
        hub._process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        started.append(hub.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunningHub, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), RunningHub(of):
        pass
    assert not psutil.pid_exists(started[0])


SIGNALS = """
import os, pty, signal, demo
child = os.fork()
if not child:  # as in a terminal that was closed: whoever writes to it fails
    ours, theirs = pty.openpty()
    os.dup2(theirs, 1)
    os.close(ours)
    signal.signal(signal.SIGHUP, demo.end)
    try:
        os.kill(os.getpid(), signal.SIGHUP)
    except KeyboardInterrupt:
        print("the hub has ended", flush=True)
        os._exit(3)
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.signal(signal.SIGINT, demo.end)
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("ended")
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    os.kill(os.getpid(), number)
print("all of it")
"""


def test_ctrl_c_and_a_closed_terminal_are_heard_once_and_in_the_background_too():
    variables = os.environ | {"PYTHONPATH": f"{ROOT / 'autograder' / 'hub'}:{os.environ['PYTHONPATH']}"}
    done = subprocess.run([sys.executable, "-c", SIGNALS], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["3", "", "ending the hub; this takes some seconds …", "ended", "all of it", ""]


def test_an_assignment_without_sources_is_refused_in_words(tmp_path, monkeypatch):
    import make_views
    from release_course import fill_course_folder

    def write_source(folder):
        (folder / "exercises").mkdir(parents=True, exist_ok=True)
        (folder / "exercises" / "exercise_1.ipynb").write_text("{}")

    monkeypatch.setattr(make_views, "write_source", write_source)
    of = read(tmp_path, "[course]\nrelease = ['nope']\n")
    (tmp_path / "course").mkdir()
    with pytest.raises(GradingError, match=r"course\.release names 'nope', which has no sources; exercises have"):
        list(fill_course_folder(of, tmp_path / "course", ROOT))
    text = "[weights]\nexercises = 1.0\n[due]\nexercise = 2027-03-01T00:00:00Z\n[course]\nrelease = ['nope']\n"
    said = fill_course_folder(read(tmp_path, text), tmp_path / "course", ROOT)
    assert next(said) == (
        "note: course.toml has due.exercise, and no assignment is called so yet. Did you mean 'exercises'?"
    )


def test_a_roster_survives_the_way_to_the_graders_account(tmp_path):
    from deployment import read_deployment
    from roster import Learner, read_roster, write_roster

    people = (Learner("ada", "Ada", "Lovelace, Countess", "ada@example.org"), Learner("ben", "Bén"))
    assert read_roster(write_roster(people)) == people
    assert read_roster(write_roster(())) == ()
    file = tmp_path / FILE
    file.write_text("[people]\nroster = 'closed.csv'\n")  # which this account cannot read
    assert read_deployment(file, people).learners == people


def test_the_reason_why_a_hub_ended_is_said_though_others_talk_after_it(tmp_path):
    from running import RunningHub

    of = read(tmp_path, "[hub]\nstate = 'state'\n")
    of.state.mkdir()
    running = RunningHub(of)
    noise = "[I JupyterHub] nothing\n" * 1000
    running.log.write_text(f"[C JupyterHub] long ago\n{noise}")
    running._log_from = running.log.stat().st_size
    with running.log.open("a") as log:
        log.write(f"[C JupyterHub] Cannot connect to tiles service managed\n{noise}")
    assert running.last_words().startswith("[C JupyterHub] Cannot connect to tiles service managed\n")
    assert "long ago" not in running.last_words()
