"""The exchange through a real hub and proxy: each learner has their own, and the time is the service's."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hubs import PASSWORD, ROOT

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hub")]
NOTEBOOK = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


def asked(client, method, path, said=None, **headers):
    """Ask the service itself, past the client's manners, and return status and answer."""
    body = None if said is None else json.dumps(said).encode()
    headers = {"Authorization": f"token {client._token}"} | headers
    request = urllib.request.Request(f"{client.url}/{path}", body, headers, method=method)
    try:
        with client._open(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.fixture(scope="session")
def adas(exchanges):
    """Return the receipt of a submission of ada's."""
    return exchanges["ada"].submit("exercises", {"exercise_1.ipynb": NOTEBOOK})


def test_everybody_sees_what_is_released_and_none_of_the_solutions(exchanges):
    for client in exchanges.values():
        released = {found["assignment"]: found["files"] for found in client.released()}
        assert "exercise_1.ipynb" in released["exercises"]
        files = client.handed_out("exercises")
        assert all(b"SOLUTION" not in content for content in files.values())


def test_the_receipt_has_the_services_time(exchanges, adas):
    assert abs(datetime.now(UTC) - adas.moment) < timedelta(minutes=10)
    assert adas.learner == "ada"
    assert adas in exchanges["ada"].submissions()
    assert exchanges["ada"].submitted(adas) == {"exercise_1.ipynb": NOTEBOOK}


def test_another_learner_cannot_see_it(exchanges, adas):
    ben = exchanges["ben"]
    assert {one.learner for one in ben.submissions()} <= {"ben"}
    with pytest.raises(GradingError, match="ben does not teach tiles"):
        ben.submitted(adas)
    with pytest.raises(GradingError, match="does not teach"):
        ben.submissions(everybody=True)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_nobody_can_alter_or_delete_it(exchanges, adas, method):
    path = f"submissions/exercises/ada/{adas.time}"
    for name in ("ben", "ada", "iris"):
        status, _ = asked(exchanges[name], method, path, {"files": {"exercise_1.ipynb": "eA=="}})
        assert status in (404, 405)
    assert exchanges["ada"].submitted(adas) == {"exercise_1.ipynb": NOTEBOOK}


@pytest.mark.parametrize(
    "said", [{"learner": "ada"}, {"student_id": "ada"}, {"name": "ada"}, {"time": "2020-01-01T00:00:00.000000Z"}]
)
def test_what_a_message_says_about_who_and_when_is_not_heard(exchanges, said):
    ben = exchanges["ben"]
    said = {"files": {"a.ipynb": "e30="}, "key": uuid.uuid4().hex, **said}
    status, answer = asked(ben, "POST", "submissions/exercises", said)
    assert status == 200
    assert answer["receipt"]["learner"] == "ben"
    assert answer["receipt"]["time"] > "2026"
    assert {one.learner for one in ben.submissions()} == {"ben"}


def test_a_learner_cannot_release_withdraw_or_give_feedback(exchanges, adas):
    ben = exchanges["ben"]
    for work in (
        lambda: ben.release("exercises", {"a.ipynb": b"{}"}, again=True),
        lambda: ben.withdraw("exercises"),
        lambda: ben.give_feedback(adas, {"a.html": b"bad"}),
    ):
        with pytest.raises(GradingError, match="ben does not teach tiles"):
            work()
    assert ben.feedback("exercises") == {}


@pytest.mark.parametrize(
    "path",
    [
        "submissions/exercises/../../../hub",
        "submissions/exercises/ada/..",
        "released/..%2f..%2fsubmissions",
        "released/.hidden",
        "feedback/%2e%2e",
        "nowhere",
    ],
)
def test_paths_that_lead_elsewhere_lead_nowhere(exchanges, path):
    status, answer = asked(exchanges["ben"], "GET", path)
    assert status in (400, 403, 404)
    assert "error" in answer


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"files": {"a": "e30="}}, "key must be"),
        ({"key": "x", "files": {"a": "e30="}}, "key must be"),
        ({"key": "0" * 32, "files": {}}, "no files"),
        ({"key": "0" * 32, "files": {"../a": "e30="}}, "not a name"),
        ({"key": "0" * 32, "files": {"a": "not base64"}}, "not base64"),
        ([], "object"),
    ],
)
def test_bad_uploads_are_refused_in_words(exchanges, said, words):
    status, answer = asked(exchanges["ben"], "POST", "submissions/exercises", said)
    assert status == 400
    assert words in answer["error"]


def test_an_assignment_that_is_not_released_takes_nothing(exchanges):
    with pytest.raises(GradingError, match="no assignment 'practice' is released; there is exercises"):
        exchanges["ben"].submit("practice", {"a.ipynb": b"{}"})


def test_who_has_no_token_is_nobody(hub, people):
    url = f"{hub.base}services/exchange"
    with pytest.raises(GradingError, match="does not know this token"):
        Client(url, "f" * 32, patience=1).released()
    with pytest.raises(GradingError, match="may not use the exchange"):
        Client(url, people["ada"].token("read:users:name!user"), patience=1).released()
    assert people["ada"].get("services/exchange/released").status_code == 401, "a cookie is no token"


def test_formgrader_is_for_teachers(people):
    assert people["ada"].get("services/tiles/formgrader").status_code == 403
    page = people["iris"].get("services/tiles/formgrader")
    assert page.status_code == 200
    assert "formgrader" in page.text
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]


def test_a_stranger_cannot_log_in(hub):
    from visitor import Visitor

    with pytest.raises(GradingError, match="may not log in"):
        Visitor(hub.base, "mallory", PASSWORD)
    with pytest.raises(GradingError, match="may not log in"):
        Visitor(hub.base, "ada", "guess")


def test_a_learner_may_not_rule_the_hub(people):
    assert people["ada"].ask("GET", "users").status_code == 403
    assert people["ada"].ask("GET", "users/ben").status_code in (403, 404)
    assert people["ada"].ask("POST", "groups/formgrade-tiles/users", json={"users": ["ada"]}).status_code == 403


def test_a_course_that_is_released_again_is_unchanged(hub, exchanges):
    before = exchanges["ada"].released(), exchanges["ada"].materials()
    command = [sys.executable, str(ROOT / "autograder" / "hub" / "release_course.py"), "--course", str(hub.of.file)]
    done = subprocess.run([*hub.before, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "exercises: unchanged" in done.stdout
    assert "chapters: unchanged, version 1" in done.stdout
    assert (exchanges["ada"].released(), exchanges["ada"].materials()) == before


def test_chapters_are_chapters_alone(exchanges):
    version, files = exchanges["ben"].materials()
    assert version == 1
    assert any(name.startswith("01-") for name in files)
    assert "template.ipynb" not in files, "it is for authors"
    assert not [name for name in files if re.search(r"solution|exercise|practice|check", name)]
