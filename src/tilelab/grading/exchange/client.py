"""How a learner's server and formgrader speak to the exchange: HTTP, with patience.

A proxy that is down, a hub that is restarting, an answer that got lost: all are tried again until the patience is
used up. An upload carries a key of its own, so that trying again never hands in twice.
"""

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.bundle import Files, as_json, checked, from_json
from tilelab.grading.exchange.store import Receipt, check_name

URL = "TILELAB_EXCHANGE_URL"
TOKEN = "JUPYTERHUB_API_TOKEN"
#: Seconds to try again, and that one try may take.
PATIENCE = 60.0
ONE_TRY = 60.0
#: What proxies say while the service behind them is away, and the service itself while it is being ended.
AWAY = frozenset({500, 502, 503, 504})


class UnreachableError(GradingError):
    """The exchange did not answer while there was patience."""


class Client:
    """The exchange, seen from outside.

    Parameters
    ----------
    url : str, optional
        Of the service, through the hub's proxy; ``$TILELAB_EXCHANGE_URL`` unless given.
    token : str, optional
        The hub's token of whoever asks; ``$JUPYTERHUB_API_TOKEN`` unless given.
    patience : float
        Seconds to try again where the exchange cannot be reached.

    Raises
    ------
    GradingError
        Url or token is neither given nor in the environment.
    """

    def __init__(self, url: str = "", token: str = "", patience: float = PATIENCE) -> None:
        self.url = (url or os.environ.get(URL, "")).rstrip("/")
        self._token = token or os.environ.get(TOKEN, "")
        self._patience = patience
        if not (self.url and self._token):
            missing = URL if not self.url else TOKEN
            raise GradingError(f"this is no server of the course's hub: ${missing} is not set")
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def released(self) -> list[dict[str, Any]]:
        """Return the assignments that are handed out."""
        return list(self._call("GET", "released")["released"])

    def handed_out(self, assignment: str) -> dict[str, bytes]:
        """Return the files of an assignment."""
        return from_json(self._call("GET", f"released/{_name(assignment)}")["files"])

    def release(self, assignment: str, files: Files, again: bool = False) -> int:
        """Release an assignment."""
        said = {"files": as_json(files), "again": again}
        return int(self._call("PUT", f"released/{_name(assignment)}", said)["version"])

    def withdraw(self, assignment: str) -> None:
        """Withdraw an assignment."""
        self._call("DELETE", f"released/{_name(assignment)}")

    def submit(self, assignment: str, files: Files) -> Receipt:
        """Hand in, and return the receipt."""
        said = {"files": as_json(files), "key": uuid.uuid4().hex}
        return Receipt(**self._call("POST", f"submissions/{_name(assignment)}", said)["receipt"])

    def submissions(self, assignment: str = "", everybody: bool = False) -> list[Receipt]:
        """Return one's own receipts, or everybody's."""
        asked = f"submissions?assignment={_name(assignment) if assignment else ''}&everybody={int(everybody)}"
        return [Receipt(**receipt) for receipt in self._call("GET", asked)["submissions"]]

    def submitted(self, receipt: Receipt) -> dict[str, bytes]:
        """Return the files of a submission."""
        path = f"submissions/{receipt.assignment}/{receipt.learner}/{receipt.time}"
        return from_json(self._call("GET", path)["files"])

    def give_feedback(self, receipt: Receipt, files: Files) -> int:
        """Add feedback to a submission."""
        path = f"feedback/{receipt.assignment}/{receipt.learner}/{receipt.time}"
        return int(self._call("PUT", path, {"files": as_json(checked(files))})["version"])

    def feedback(self, assignment: str) -> dict[str, dict[str, bytes]]:
        """Return the feedback to one's own submissions, by their times."""
        found = self._call("GET", f"feedback/{_name(assignment)}")["feedback"]
        return {when: from_json(files) for when, files in found.items()}

    def materials(self, have: int = 0) -> tuple[int, dict[str, bytes]]:
        """Return the newest version of the chapters, and its files where one does not have it yet."""
        said = self._call("GET", f"materials?have={have}")
        return int(said["version"]), from_json(said["files"]) if said["files"] else {}

    def _call(self, method: str, path: str, said: dict[str, Any] | None = None) -> dict[str, Any]:
        body = None if said is None else json.dumps(said).encode()
        headers = {"Authorization": f"token {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", body, headers, method=method)
        end = time.monotonic() + self._patience
        pause = 0.25
        while True:
            try:
                return self._once(request)
            except UnreachableError as error:
                if time.monotonic() + pause > end:
                    raise UnreachableError(
                        f"{error}. It was tried for {self._patience:g} s. Nothing of yours is lost: your files are "
                        "where they were. Try again in a few minutes, and tell your instructor if it stays so"
                    ) from error
            time.sleep(pause)
            pause = min(2 * pause, 4.0)

    def _once(self, request: urllib.request.Request) -> dict[str, Any]:
        try:
            with self._open(request, timeout=ONE_TRY) as answer:
                return _object(answer.read())
        except urllib.error.HTTPError as error:
            words = _words(error.read)
            if words is None or error.code in AWAY:  # not the exchange's own words: a proxy's, or a hub's
                raise UnreachableError(f"the exchange cannot be reached ({words or f'HTTP {error.code}'})") from error
            raise GradingError(words) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise UnreachableError(f"the exchange cannot be reached ({reason})") from error


def _name(assignment: str) -> str:
    """Return an assignment's name, which has nothing in it that an address cannot hold, or raise `GradingError`."""
    check_name("assignment", assignment)
    return assignment


def _object(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise UnreachableError("the exchange cannot be reached (something else answered at its address)")
    return said


def _words(read: Callable[[], bytes]) -> str | None:
    """Return the exchange's own words of an error, or ``None`` where it was not the exchange that spoke."""
    try:
        said = json.loads(read())
        return str(said["error"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return None
