"""The exchange's service by itself: what strangers, slow senders and crafted messages cost everybody else."""

import asyncio
import json
import shutil
import socket
import threading
import urllib.error
import urllib.request
import uuid

import pytest
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError
from patience import PATIENCE, until
from tornado.netutil import bind_sockets

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange import service
from tilelab.grading.exchange.client import TOKEN, URL, Client
from tilelab.grading.exchange.plugins import ServiceCollect, ServiceReleaseFeedback, stamp
from tilelab.grading.exchange.store import Store

NOTEBOOK = {"exercise_1.ipynb": b"{}"}


class Auth:
    """A hub that knows everybody by a token that is their name, but for "stranger"."""

    async def user_for_token(self, token, sync):
        group = "formgrade-tiles" if token == "iris" else "nbgrader-tiles"
        return None if token == "stranger" else {"name": token, "groups": [group]}

    def check_scopes(self, asked, model):
        return True


@pytest.fixture
def desk(tmp_path):
    """Serve an exchange in a thread; return its address."""
    store = Store(tmp_path / "exchange")
    store.release("exercises", NOTEBOOK)
    (listening,) = bind_sockets(0, "127.0.0.1")
    loop = asyncio.new_event_loop()

    async def serve():
        server = service.server_of(service.application(store, Auth(), "tiles", "exchange", "/"), seconds=PATIENCE)
        server.add_sockets([listening])

    def run():
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run)
    thread.start()
    yield listening.getsockname()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    listening.close()
    loop.close()


def at(desk, name):
    return Client("http://{}:{}".format(*desk), name, patience=0.1)


def post(desk, name, body):
    """Hand in a message as it is; return the answer's status and words."""
    address = "http://{}:{}/submissions/exercises".format(*desk)
    request = urllib.request.Request(address, body, {"Authorization": f"token {name}"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=PATIENCE)
    return refused.value.code, json.loads(refused.value.read())["error"]


def begun(desk, name, length=1_000_000):
    """Begin to hand in, and stop."""
    sender = socket.create_connection(desk, timeout=PATIENCE)
    head = f"POST /submissions/exercises HTTP/1.1\r\nHost: x\r\nAuthorization: token {name}\r\n"
    sender.sendall(f"{head}Content-Length: {length}\r\n\r\nx".encode())
    return sender


def has_gone(name):
    """Wait until nothing of somebody's is on its way."""
    assert until(lambda: not service.Desk.coming[name])


def test_nothing_is_kept_of_what_a_stranger_sends(desk, monkeypatch):
    kept = []
    monkeypatch.setattr(service.Desk, "data_received", lambda desk, chunk: kept.append(chunk))
    assert post(desk, "stranger", b"x" * 1_000_000) == (401, "the hub does not know this token: restart your server")
    assert not kept


def test_a_message_of_any_length_is_answered_in_words(desk):
    with begun(desk, "ada", 10 * service.LARGEST) as sender:
        answer = sender.recv(1000)
    assert b"413" in answer
    assert b"a message of 1342 MB is too large: 134 MB are taken" in answer


def test_many_small_values_are_not_read(desk):
    body = b'{"files": [' + b"{}," * 1_000_000 + b"{}]}"
    assert post(desk, "ada", body) == (400, "the message holds more than 20,000 values")


def test_slow_senders_cost_themselves_alone(desk):
    senders = [begun(desk, "ben") for _ in range(service.AT_ONCE)]
    assert until(lambda: len(service.Desk.coming["ben"]) == service.AT_ONCE)
    code, words = post(desk, "ben", b"{}")
    assert (code, words) == (503, "3 messages of ben are on their way: let them arrive first")
    assert at(desk, "ada").submit("exercises", NOTEBOOK).learner == "ada"
    for sender in senders:
        sender.close()
    has_gone("ben")
    assert at(desk, "ben").submit("exercises", NOTEBOOK).learner == "ben"


def test_feedback_that_is_too_large_is_refused_before_it_is_sent(desk, monkeypatch):
    receipt = at(desk, "ada").submit("exercises", NOTEBOOK)
    monkeypatch.setattr("tilelab.grading.exchange.bundle.MOST_BYTES", 1000)
    with pytest.raises(GradingError, match=r"'exercise_1\.html' alone"):
        at(desk, "iris").give_feedback(receipt, {"exercise_1.html": b"x" * 1001})


def test_a_message_is_answered_whatever_it_is(desk):
    for body in (b"", b"[]", b"{", b'{"files": {}}', b'{"files": {"a": "eA=="}}'):
        code, words = post(desk, "ada", body)
        assert code == 400
        assert words
    assert uuid.UUID(hex=at(desk, "ada").submit("exercises", NOTEBOOK).key)
    has_gone("ada")


@pytest.fixture
def course(desk, tmp_path, monkeypatch):
    """Return what runs nbgrader's steps as formgrader does, in a course whose exchange this is."""
    monkeypatch.setenv(URL, "http://{}:{}".format(*desk))
    monkeypatch.setenv(TOKEN, "iris")
    coursedir = CourseDirectory(root=str(tmp_path / "course"), assignment_id="exercises", course_id="tiles")

    def run(step):
        step(coursedir=coursedir).start()
        return tmp_path / "course"

    return run


def test_nothing_that_a_learner_hands_in_keeps_the_others_from_being_collected(desk, course, monkeypatch):
    monkeypatch.setattr("tilelab.grading.exchange.bundle.MOST_FILES", 5)
    at(desk, "ada").submit("exercises", NOTEBOOK)
    at(desk, "ben").submit("exercises", NOTEBOOK | {"timestamp.txt/x": b""})
    at(desk, "cleo").submit("exercises", NOTEBOOK | {f"{number}": b"" for number in range(4)})
    at(desk, "dan").submit("exercises", NOTEBOOK)
    submitted = course(ServiceCollect) / "submitted"
    for name in ("ada", "ben", "cleo", "dan"):
        (receipt,) = at(desk, name).submissions()
        assert (submitted / name / "exercises" / "timestamp.txt").read_text() == stamp(receipt.time)
        assert (submitted / name / "exercises" / "exercise_1.ipynb").read_bytes() == b"{}"


def test_what_fails_for_one_learner_is_done_for_the_others_and_said(desk, course, monkeypatch):
    pages = {"ada": b"one", "ben": b"x" * 2000, "cleo": b"three"}
    for name in pages:
        at(desk, name).submit("exercises", NOTEBOOK)
    root = course(ServiceCollect)
    for name, page in pages.items():
        folder = root / "feedback" / name / "exercises"
        folder.mkdir(parents=True)
        (folder / "exercise_1.html").write_bytes(page)
        shutil.copy(root / "submitted" / name / "exercises" / "timestamp.txt", folder)
    monkeypatch.setattr("tilelab.grading.exchange.bundle.MOST_BYTES", 1000)
    with pytest.raises(ExchangeError, match=r"all others were released, and not that of ben: .*'exercise_1\.html'"):
        course(ServiceReleaseFeedback)
    given = {name: [*at(desk, name).feedback("exercises").values()] for name in pages}
    assert given == {"ada": [{"exercise_1.html": b"one"}], "ben": [], "cleo": [{"exercise_1.html": b"three"}]}
