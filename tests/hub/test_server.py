"""One server: the units, the site and the backups that course.toml gives, run as far as this machine can."""

import os
import re
import shlex
import shutil
import sqlite3
import ssl
import stat
import subprocess
import sys
import time
import urllib.request
from contextlib import closing

import pytest
from hubs import ROOT, write_course

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.store import Store

NOTEBOOK = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.fixture(autouse=True)
def no_demo(monkeypatch):
    """Leave out what a hub that other tests run says about accounts."""
    monkeypatch.delenv("TILELAB_ACCOUNTS", raising=False)


@pytest.fixture
def of(tmp_path):
    """Return a course that nobody has started."""
    from deployment import read_deployment

    return read_deployment(write_course(tmp_path, release='["exercises"]'))


def test_the_units_are_what_systemd_takes(of, tmp_path):
    from production import write_server

    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    files = write_server(of, tmp_path / "server")
    wanted = [str(file) for file in files if file.suffix in (".service", ".timer")]
    assert len(wanted) == 5
    done = subprocess.run(["systemd-analyze", "verify", *wanted], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "tiles-" in line]
    assert said == [], done.stderr
    assert done.returncode == 0, done.stderr


def test_secrets_are_their_owners_and_stay_when_it_is_run_again(of, tmp_path):
    from production import write_server

    folder = tmp_path / "server"
    write_server(of, folder)
    before = {name: (folder / name).read_text() for name in ("proxy.env", "exchange.env")}
    write_server(of, folder)
    for name, text in before.items():
        assert (folder / name).read_text() == text
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
        (secret,) = re.findall(r"=([0-9a-f]{64})$", text.strip())
        assert not any(secret in file.read_text() for file in folder.iterdir() if file.suffix != ".env")


def test_the_accounts_that_are_made_are_those_that_are_asked_for(of):
    from private_machine import accounts
    from production import make_accounts

    script = make_accounts(of)
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    for name in accounts(of):
        assert re.search(rf"useradd .*\b{re.escape(name)}$", script, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.xdist_group("hub")
def test_tls_in_front_of_the_hub(hub, tmp_path):
    """Run nginx with the site that is written, and reach the hub and the exchange through it."""
    from production import site
    from running import free_port

    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is not installed")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    first = free_port()
    https, http = f"127.0.0.1:{first}", f"127.0.0.1:{first + 1}"
    whole = (
        f"daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {tmp_path}/a; proxy_temp_path {tmp_path}/b;\n"
        f"fastcgi_temp_path {tmp_path}/c; uwsgi_temp_path {tmp_path}/d; scgi_temp_path {tmp_path}/e;\n"
        f"{site(hub.of, str(certificate), str(key), https, http)} }}\n"
    )
    config = tmp_path / "nginx.conf"
    config.write_text(whole)
    checked = subprocess.run([nginx, "-t", "-c", str(config)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "warn" not in checked.stderr
    process = subprocess.Popen([nginx, "-c", str(config)])
    try:
        trusted = ssl.create_default_context(cafile=str(certificate))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
        )
        for path, words in (("hub/login", "Sign in"), ("services/exchange/health", "true")):
            for _ in range(300):
                try:
                    answer = opener.open(f"https://{https}/{path}", timeout=30)
                    break
                except OSError:
                    time.sleep(0.1)
            assert words in answer.read().decode()
            assert "max-age" in answer.headers["Strict-Transport-Security"]
    finally:
        process.terminate()
        process.wait()


def kept(of):
    """Return a hub's folder with a submission and a gradebook in it."""
    store = Store(of.exchange)
    store.release("exercises", {"exercise_1.ipynb": NOTEBOOK})
    store.submit("ada", "exercises", {"exercise_1.ipynb": b"mine"}, "0" * 32)
    of.course_folder.mkdir(parents=True)
    with closing(sqlite3.connect(of.course_folder / "gradebook.db")) as book:
        book.execute("create table grade (student text, score real)")
        book.execute("insert into grade values ('ada', 4.5)")
        book.commit()
    return store


def test_a_snapshot_brings_everything_back(of, tmp_path):
    from backup import restore, save

    store = kept(of)
    snapshot = save(of.state, tmp_path / "backups")
    before = store.submissions()
    shutil.rmtree(of.state)
    restore(snapshot, of.state)
    again = Store(of.exchange)
    assert again.submissions() == before
    assert again.submitted("ada", "exercises", before[0].time) == {"exercise_1.ipynb": b"mine"}
    assert again.handed_out("exercises") == {"exercise_1.ipynb": NOTEBOOK}
    assert again.submit("ben", "exercises", {"a.ipynb": b"{}"}, "1" * 32).learner == "ben", "and it goes on"
    with closing(sqlite3.connect(of.course_folder / "gradebook.db")) as book:
        assert book.execute("select * from grade").fetchall() == [("ada", 4.5)]


def test_a_snapshot_holds_what_is_committed_and_nothing_half_written(of, tmp_path):
    from backup import save

    kept(of)
    (of.exchange / "submissions" / "ada" / f".{'a' * 32}").mkdir()
    with closing(sqlite3.connect(of.course_folder / "gradebook.db")) as book:
        book.execute("insert into grade values ('ben', 1.0)")  # formgrader is in the middle of something
        snapshot = save(of.state, tmp_path / "backups")
        book.rollback()
    copy = snapshot / (of.course_folder / "gradebook.db").relative_to(of.state)
    with closing(sqlite3.connect(copy)) as book:
        assert book.execute("select * from grade").fetchall() == [("ada", 4.5)]
    assert not list(snapshot.rglob(".*"))


def test_a_second_snapshot_takes_little_place_and_old_ones_go(of, tmp_path, monkeypatch):
    import backup

    kept(of)
    moments = iter(["2027-03-01T03-15-00", "2027-03-02T03-15-00", "2027-03-03T03-15-00"])
    monkeypatch.setattr(backup, "NAME", "%%Y")
    made = []
    for moment in moments:
        monkeypatch.setattr(backup, "NAME", moment)
        made.append(backup.save(of.state, tmp_path / "backups", keep=2))
    assert [path.name for path in backup.snapshots(tmp_path / "backups")] == [path.name for path in made[1:]]
    file = next(made[1].rglob("receipt.json"))
    assert file.stat().st_ino == (made[2] / file.relative_to(made[1])).stat().st_ino


def test_a_broken_gradebook_is_no_snapshot_and_the_earlier_one_stays(of, tmp_path):
    from backup import save, snapshots

    kept(of)
    save(of.state, tmp_path / "backups")
    (of.course_folder / "gradebook.db").write_bytes(b"not a database, but long enough to be opened as one" * 100)
    with pytest.raises(GradingError, match="no snapshot was made, and the earlier ones are untouched"):
        save(of.state, tmp_path / "backups")
    assert len(snapshots(tmp_path / "backups")) == 1
    assert not list((tmp_path / "backups").glob(".*"))


def test_what_learners_hand_in_is_kept_whatever_its_name_and_stops_no_snapshot(of, tmp_path):
    from backup import restore, save

    store = kept(of)
    files = {"train.log": b"a", "data.db": b"no database", "x.sqlite": b"", "runtime/a-wal": b"b", f".{'a' * 32}": b"c"}
    receipt = store.submit("ben", "exercises", files, "1" * 32)
    collected = of.course_folder / "submitted" / "ben" / "exercises" / "train.log"
    collected.parent.mkdir(parents=True)
    collected.write_text("a")
    (of.course_folder / "gradebook.db-journal").write_text("of a write that is going on")
    snapshot = save(of.state, tmp_path / "backups")
    shutil.rmtree(of.state)
    restore(snapshot, of.state)
    assert Store(of.exchange).submitted("ben", "exercises", receipt.time) == files
    assert collected.read_text() == "a"
    assert not (of.course_folder / "gradebook.db-journal").exists(), "it does not fit the copy"


def test_what_vanishes_while_it_is_copied_stops_no_snapshot(of, tmp_path, monkeypatch):
    import backup

    kept(of)
    gone = of.course_folder / "autograded.ipynb"
    gone.write_text("{}")
    copy = shutil.copy2

    def taken_away(source, to):
        if source == gone:
            gone.unlink()
        return copy(source, to)

    monkeypatch.setattr(backup.shutil, "copy2", taken_away)
    snapshot = backup.save(of.state, tmp_path / "backups")
    assert not gone.exists()
    assert not (snapshot / gone.relative_to(of.state)).exists()
    assert (snapshot / "grader" / "course" / "gradebook.db").is_file(), "the rest is there"


def test_a_restore_that_fails_leaves_nothing_half_done(of, tmp_path, monkeypatch):
    import backup

    kept(of)
    snapshot = backup.save(of.state, tmp_path / "backups")
    shutil.rmtree(of.state)

    def full(source, to):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(backup.shutil, "copy2", full)
    with pytest.raises(GradingError, match=r"nothing was restored, and the snapshot is untouched: .*No space left"):
        backup.restore(snapshot, of.state)
    monkeypatch.undo()
    backup.restore(snapshot, of.state)
    assert len(Store(of.exchange).submissions()) == 1


def test_only_snapshots_are_thinned_out(of, tmp_path):
    from backup import save

    kept(of)
    of_somebody = tmp_path / "backups" / "0000-keep-me"
    of_somebody.mkdir(parents=True)
    save(of.state, tmp_path / "backups", keep=1)
    assert of_somebody.is_dir()


def test_nothing_is_restored_over_something(of, tmp_path):
    from backup import restore, save

    kept(of)
    snapshot = save(of.state, tmp_path / "backups")
    with pytest.raises(GradingError, match="stop the hub and move"):
        restore(snapshot, of.state)
    with pytest.raises(GradingError, match="there is no snapshot"):
        restore(tmp_path / "nowhere", of.state)
    with pytest.raises(GradingError, match="holds no hub"):
        save(tmp_path / "empty", tmp_path / "backups")


def test_kubernetes_gets_the_same_people_and_rules(tmp_path):
    import yaml
    from cluster import write_kubernetes
    from deployment import read_deployment

    gpu = "[weights]\n", '[gpu]\ndevices = [0]\n[kubernetes]\nimage = "registry.example.org/lab:3"\n[weights]\n'
    of = read_deployment(write_course(tmp_path, **{gpu[0]: gpu[1]}))
    files = {file.name: file for file in write_kubernetes(of, tmp_path / "k8s")}
    chart = yaml.safe_load(files["values.yaml"].read_text())
    assert chart["hub"]["config"]["Authenticator"]["allowed_users"] == list(of.users)
    assert chart["singleuser"]["image"] == {"name": "registry.example.org/lab", "tag": "3"}
    assert [profile["display_name"] for profile in chart["singleuser"]["profileList"]] == [
        "Without a GPU",
        "With a GPU",
    ]
    assert chart["singleuser"]["profileList"][1]["kubespawner_override"]["extra_resource_limits"] == {
        "nvidia.com/gpu": "1"
    }
    for name, code in chart["hub"]["extraConfig"].items():
        compile(code, name, "exec")
    pod = next(one for one in yaml.safe_load_all(files["exchange.yaml"].read_text()) if one["kind"] == "Deployment")
    containers = pod["spec"]["template"]["spec"]["containers"]
    assert {one["image"] for one in containers} == {"registry.example.org/lab-grader:3"}
    assert not re.search(r"[0-9a-f]{32}", files["values.yaml"].read_text() + files["exchange.yaml"].read_text())
    assert subprocess.run(["sh", "-n", str(files["make-secrets.sh"])], check=False).returncode == 0


def test_kubernetes_keeps_nobody_in_a_group_who_is_not_in_the_file(tmp_path):
    """Run the code that is written for the chart on a hub's database."""
    from cluster import values
    from deployment import read_deployment
    from jupyterhub import orm
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session
    from traitlets.config import Config

    c = Config()
    c.JupyterHub.db_url = f"sqlite:///{tmp_path / 'hub.sqlite'}"
    code = values(read_deployment(write_course(tmp_path)))["hub"]["extraConfig"]["groups"]
    exec(code, {"c": c})  # a database that the hub is yet to make
    engine = create_engine(c.JupyterHub.db_url)
    orm.Base.metadata.create_all(engine)
    database = Session(engine)
    gus = orm.User(name="gus")
    for name in ("formgrade-tiles", "nbgrader-tiles", "of-another"):
        database.add(orm.Group(name=name, users=[gus]))
    database.commit()
    exec(code, {"c": c})
    database.expire_all()
    assert [group.name for group in gus.groups] == ["of-another"]
    assert c.JupyterHub.load_groups["formgrade-tiles"] == {"users": ["iris", "gus"]}
    database.close()
    engine.dispose()


def test_the_dockerfile_gives_learners_neither_masters_nor_checks():
    """Read the Dockerfile as far as it can be read without building it."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    stages, stage = {}, ""
    for line in lines:
        word, _, rest = line.partition(" ")
        assert word in {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "ENTRYPOINT", "CMD"}, line
        if word == "FROM":
            source, _, stage = rest.partition(" AS ")
            stages[stage] = [] if ":" in source else list(stages[source])
            assert ":latest" not in source
        stages[stage].append((word, rest))
    assert list(stages)[-1] == "learner", "what is built unless told"
    copied = [rest for word, rest in stages["learner"] if word == "COPY"]
    assert not any(re.search(r"solutions|autograder|notebooks", rest) for rest in copied)
    for steps in (stages["learner"], stages["grader"]):
        assert [rest for word, rest in steps if word == "USER"][-1] == "1000"
    for word, rest in (step for steps in stages.values() for step in steps):
        if word == "COPY" and not rest.startswith("--from"):
            assert all((ROOT / source).exists() for source in shlex.split(rest)[:-1]), rest
        if word == "RUN" and "apt-get install" in rest:
            assert "--no-install-recommends" in rest
            assert "rm -rf /var/lib/apt/lists" in rest


FOR_REAL = {'kind = "shared-password"': 'kind = "pam"', 'url = "http://127.0.0.1:': 'url = "https://hub.example.org:'}


@pytest.mark.slow
@pytest.mark.parametrize("script", ["production", "cluster"])
def test_the_commands_say_what_they_wrote(tmp_path, script):
    file = write_course(tmp_path, **FOR_REAL)
    command = [sys.executable, str(ROOT / "autograder" / "hub" / f"{script}.py"), "--course", str(file)]
    whole = [*command, "--to", str(tmp_path / script)]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(os.path.exists(line) for line in done.stdout.split())


def test_what_a_command_cannot_do_is_said_in_a_line(tmp_path, monkeypatch, capsys):
    import cluster
    import production

    for module in (cluster, production):
        monkeypatch.setattr(sys, "argv", ["it", "--course", str(tmp_path / "no.toml"), "--to", str(tmp_path / "to")])
        assert module.main() == 1
        assert "there is no" in capsys.readouterr().err
    (tmp_path / "to").write_text("a file")
    monkeypatch.setattr(
        sys, "argv", ["it", "--course", str(write_course(tmp_path, **FOR_REAL)), "--to", str(tmp_path / "to")]
    )
    for module in (cluster, production):
        assert module.main() == 1
        assert capsys.readouterr().err == f"{str(tmp_path / 'to')!r}: File exists\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "shared-password"', "'shared-password' is for a demo, where everybody can log in as anybody"),
        ('kind = "dummy"', "'dummy' is for a demo"),
        ('kind = "gihub"', "'gihub' is not known. Here dummy, .*Did you mean 'github'?"),
        (
            'kind = "pam"\n[hub]\naccounts = "shared"',
            "'shared' is for a demo, where all share one account: say 'own'",
        ),
        ('kind = "pam"\n[hub]\nurl = "http://10.0.0.5"', "hub.url = 'http://10.0.0.5', write one such as https"),
    ],
)
def test_a_demo_is_no_server(tmp_path, text, words):
    from deployment import read_deployment
    from production import check_server

    file = tmp_path / "course.toml"
    file.write_text(f"[authenticator]\n{text}\n")
    with pytest.raises(GradingError, match=words):
        check_server(read_deployment(file))


def test_two_courses_on_one_server_have_nothing_in_common(tmp_path):
    """Neither a unit, a port, an account but people's, a folder, nor a variable of nginx."""
    from deployment import read_deployment
    from private_machine import accounts
    from production import site, write_server

    found = []
    for name in ("tiles", "more-tiles"):
        (tmp_path / name).mkdir()
        of = read_deployment(write_course(tmp_path / name, **FOR_REAL, **{'id = "tiles"': f'id = "{name}"'}))
        written = write_server(of, tmp_path / name / "server")
        units = {file.name for file in written if file.suffix in (".service", ".timer")}
        ports = set(re.findall(r"127\.0\.0\.1:\d+", "".join(map(str, (file.read_text() for file in written)))))
        variables = set(re.findall(r"\$upgrade_\w+", site(of)))
        found.append(units | ports | variables | set(accounts(of)) - set(of.users) | {str(of.state)})
        assert len(units) == 5
        assert len(variables) == 1
    assert not found[0] & found[1]
