"""The exchange as a service of a JupyterHub: ``python -m tilelab.grading.exchange.service``.

The hub starts it, or systemd does; learners' servers and formgrader reach it through the hub's proxy. Who asks is
whoever the hub says the token belongs to, and what time it is, this process says. Tokens come in the ``Authorization``
header alone, never in a cookie, so no page in a browser can speak for a learner.
"""

import asyncio
import json
import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

import click
from jupyterhub.services.auth import HubAuth
from tornado.httpserver import HTTPServer
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.bundle import MOST_BYTES, as_json, from_json, read_json
from tilelab.grading.exchange.store import MissingError, NoSpaceError, Store

log = logging.getLogger("tilelab.exchange")
#: Seconds for which the hub's word about a token holds.
REMEMBERED = 30
#: Bytes of a message: files in base64, and some words. Of whoever is not known none is kept.
LARGEST = 2 * MOST_BYTES
#: Seconds that one may take to arrive, and how many of one person may be on their way at once.
BODY_SECONDS, AT_ONCE = 300.0, 3
#: Seconds for a connection on which nothing is said.
IDLE = 120.0
NAME = r"([\w.@-]+)"
TIME = r"([\dT:.Z-]+)"


@dataclass(frozen=True)
class Caller:
    """Who asks: a learner, an instructor, or the course's own formgrader."""

    name: str
    teaches: bool


@stream_request_body
class Desk(RequestHandler):
    """What all requests share: who asks, before what they send is taken, and errors in words."""

    store: Store
    auth: HubAuth
    course: str
    name: str
    caller: Caller
    #: Messages on their way, by whom.
    coming: ClassVar[dict[str, set["Desk"]]] = defaultdict(set)

    def initialize(self, store: Store, auth: HubAuth, course: str, name: str) -> None:
        """Take what the service was started with."""
        self.store, self.auth, self.course, self.name = store, auth, course, name
        self.body = bytearray()

    async def prepare(self) -> None:
        """Find out who asks, or refuse; then let them send."""
        self.caller = await self.asked()
        length = self.request.headers.get("Content-Length", "0")
        if length.isdigit() and int(length) > LARGEST:
            raise Refusal(
                413, f"a message of {int(length) / 1e6:.0f} MB is too large: {LARGEST / 1e6:.0f} MB are taken"
            )
        if self.request.method in ("POST", "PUT"):
            if len(self.coming[self.caller.name]) >= AT_ONCE:
                raise Refusal(503, f"{AT_ONCE} messages of {self.caller.name} are on their way: let them arrive first")
            self.coming[self.caller.name].add(self)

    def data_received(self, chunk: bytes) -> None:
        """Keep what arrives."""
        self.body += chunk

    def on_finish(self) -> None:
        """Forget a message that was answered."""
        if hasattr(self, "caller"):
            self.coming[self.caller.name].discard(self)

    def on_connection_close(self) -> None:
        """Forget a message whose sender is gone."""
        super().on_connection_close()
        self.on_finish()

    async def asked(self) -> Caller:
        """Return who asks, or refuse."""
        kind, _, token = self.request.headers.get("Authorization", "").partition(" ")
        if kind.lower() not in ("token", "bearer") or not token:
            raise HTTPError(401, reason="say who you are: Authorization: token …")
        try:
            model = await self.auth.user_for_token(token.strip(), sync=False)
        except HTTPError as error:
            log.warning("the hub does not answer: %s", error)
            raise HTTPError(503, reason="the hub does not answer, so nobody can be recognised; try again") from error
        if model is None:
            raise HTTPError(401, reason="the hub does not know this token: restart your server")
        if not self.auth.check_scopes({f"access:services!service={self.name}"}, model):
            raise HTTPError(403, reason="this token may not use the exchange")
        return who(model, self.course)

    async def keep(self, work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Let the store work in a thread, and put its refusals into HTTP's terms."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, partial(work, *arguments, **named))
        except NoSpaceError as error:
            log.error("%s: %s", self.caller.name, error)
            raise Refusal(507, str(error)) from error
        except MissingError as error:
            raise Refusal(404, str(error)) from error
        except GradingError as error:
            raise Refusal(400, str(error)) from error

    def only_teachers(self) -> None:
        """Refuse a learner."""
        if not self.caller.teaches:
            raise HTTPError(403, reason=f"{self.caller.name} does not teach {self.course}")

    def only_owner(self, learner: str) -> None:
        """Refuse everybody but a learner and their teachers."""
        if learner != self.caller.name:
            self.only_teachers()

    async def said(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the message's object, and the files that it brings."""

        def read() -> tuple[dict[str, Any], dict[str, bytes]]:
            found = read_json(bytes(self.body))
            return found, from_json(found.pop("files", None))

        return cast(tuple[dict[str, Any], dict[str, bytes]], await self.keep(read))

    def say(self, what: dict[str, Any]) -> None:
        """Answer."""
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"course": self.course} | what))

    def write_error(self, status_code: int, **about: Any) -> None:
        """Answer with the reason, in words and in JSON."""
        error = about.get("exc_info", (None, None, None))[1]
        words = getattr(error, "words", None) or (self._reason if status_code < 500 else "")
        words = words or getattr(error, "reason", None) or "the exchange failed: see its log"
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"error": words}))


class Refusal(HTTPError):
    """An HTTP error whose words may be long: HTTP's own reason may not."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status)
        self.words = words


@stream_request_body
class Health(RequestHandler):
    """Whether the service runs; anyone may ask."""

    def data_received(self, chunk: bytes) -> None:
        """Keep nothing."""

    def get(self) -> None:
        """Say so."""
        self.finish({"ok": True})


class Nowhere(Desk):
    """Every other path: a 404 that is ours, where a proxy's or a hub's own would mean "not there yet"."""

    async def asked(self) -> Caller:
        """Answer whoever asks."""
        raise HTTPError(404, reason=f"the exchange has no {self.request.path}")


class Released(Desk):
    """Which assignments are handed out."""

    async def get(self) -> None:
        """List them."""
        found = []
        for name, version in (await self.keep(self.store.released)).items():
            files = await self.keep(self.store.handed_out, name)
            found.append({"assignment": name, "version": version, "files": sorted(files)})
        self.say({"released": found})


class Assignment(Desk):
    """One assignment as it is handed out."""

    async def get(self, assignment: str) -> None:
        """Send its files."""
        self.say({"files": as_json(await self.keep(self.store.handed_out, assignment))})

    async def put(self, assignment: str) -> None:
        """Release it."""
        self.only_teachers()
        said, files = await self.said()
        version = await self.keep(self.store.release, assignment, files, again=said.get("again") is True)
        log.info("%s released %s, version %d", self.caller.name, assignment, version)
        self.say({"version": version})

    async def delete(self, assignment: str) -> None:
        """Withdraw it."""
        self.only_teachers()
        await self.keep(self.store.withdraw, assignment)
        log.info("%s withdrew %s", self.caller.name, assignment)
        self.say({})


class Submissions(Desk):
    """The receipts of a learner, or of all for their teachers."""

    async def get(self) -> None:
        """List them: ``?everybody=1`` or ``?assignment=…``."""
        everybody = self.get_query_argument("everybody", "") == "1"
        if everybody:
            self.only_teachers()
        whose = None if everybody else self.caller.name
        which = self.get_query_argument("assignment", "") or None
        found = await self.keep(self.store.submissions, whose, which)
        self.say({"submissions": [asdict(receipt) for receipt in found]})


class Submit(Desk):
    """Where learners hand in: always their own, always now."""

    async def post(self, assignment: str) -> None:
        """Keep a submission and answer with its receipt."""
        said, files = await self.said()
        key = said.get("key")
        if not isinstance(key, str) or not re.fullmatch(r"[0-9a-f]{32}", key):
            raise HTTPError(400, reason="key must be 32 hexadecimal digits that name this upload")
        receipt = await self.keep(self.store.submit, self.caller.name, assignment, files, key)
        log.info("%s handed in %s at %s", receipt.learner, assignment, receipt.time)
        self.say({"receipt": asdict(receipt)})


class Submitted(Desk):
    """The files of one submission."""

    async def get(self, assignment: str, learner: str, time: str) -> None:
        """Send them to their owner or to a teacher."""
        self.only_owner(learner)
        self.say({"files": as_json(await self.keep(self.store.submitted, learner, assignment, time))})


class Feedback(Desk):
    """Feedback to one submission."""

    async def put(self, assignment: str, learner: str, time: str) -> None:
        """Add it."""
        self.only_teachers()
        _, files = await self.said()
        version = await self.keep(self.store.give_feedback, learner, assignment, time, files)
        self.say({"version": version})


class OwnFeedback(Desk):
    """All feedback of the learner who asks."""

    async def get(self, assignment: str) -> None:
        """Send it, by the times of the submissions."""
        found = await self.keep(self.store.feedback, self.caller.name, assignment)
        self.say({"feedback": {time: as_json(files) for time, files in found.items()}})


class Materials(Desk):
    """The chapters."""

    async def get(self) -> None:
        """Send the newest version; without files where ``?have=`` is that version."""
        version, files = await self.keep(self.store.materials)
        new = self.get_query_argument("have", "") != str(version)
        self.say({"version": version, "files": as_json(files) if new else {}})


def who(model: dict[str, Any], course: str) -> Caller:
    """Return the caller whom the hub describes.

    Raises
    ------
    HTTPError
        They are not in the course.
    """
    name = model["name"]
    if model.get("kind") == "service":
        if name == course:
            return Caller(name, teaches=True)
    else:
        groups = model.get("groups", [])
        if f"formgrade-{course}" in groups:
            return Caller(name, teaches=True)
        if f"nbgrader-{course}" in groups:
            return Caller(name, teaches=False)
    raise HTTPError(403, reason=f"{name} is not in {course}: ask your instructor to add you")


def application(store: Store, auth: HubAuth, course: str, name: str, prefix: str) -> Application:
    """Return the web application, under the name and below the prefix that the hub gave it."""
    what = {"store": store, "auth": auth, "course": course, "name": name}
    routes: list[Any] = [
        (r"released", Released, what),
        (rf"released/{NAME}", Assignment, what),
        (r"submissions", Submissions, what),
        (rf"submissions/{NAME}", Submit, what),
        (rf"submissions/{NAME}/{NAME}/{TIME}", Submitted, what),
        (rf"feedback/{NAME}", OwnFeedback, what),
        (rf"feedback/{NAME}/{NAME}/{TIME}", Feedback, what),
        (r"materials", Materials, what),
        (r"health", Health),
        (r".*", Nowhere, what),
    ]
    return Application([(f"{re.escape(prefix)}{route[0]}", *route[1:]) for route in routes])


def server_of(app: Application, seconds: float = BODY_SECONDS) -> HTTPServer:
    """Return the server of the application, which waits for nobody longer than that."""
    return HTTPServer(app, max_body_size=LARGEST, body_timeout=seconds, idle_connection_timeout=IDLE)


async def serve(store: Store, course: str) -> None:
    """Serve until the process is ended."""
    url = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    auth = HubAuth(cache_max_age=REMEMBERED)
    name, prefix = os.environ["JUPYTERHUB_SERVICE_NAME"], os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    app = application(store, auth, course, name, prefix)
    server = server_of(app)
    server.listen(url.port or 80, url.hostname or "127.0.0.1")
    log.info("the exchange of %s serves %s", course, store.root)
    await asyncio.Event().wait()


@click.command()
@click.option("--course", required=True, help="The course's name.")
@click.option("--root", required=True, type=click.Path(path_type=Path), help="The folder that keeps everything.")
def main(course: str, root: Path) -> None:
    """Serve the exchange of a course to its JupyterHub."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        store = Store(root)
    except GradingError as error:
        raise click.ClickException(str(error)) from error
    if left := store.sweep():
        log.warning("removed %d half-written folders of a writer that was killed", left)
    asyncio.run(serve(store, course))


if __name__ == "__main__":
    main()
