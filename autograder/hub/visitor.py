"""Somebody at a hub, by HTTP and without a browser: logs in, and asks for a token as their server would have one."""

from typing import Any
from urllib.parse import urljoin

import requests

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.client import Client


class Visitor:
    """A user who logged in.

    Parameters
    ----------
    base : str
        The hub's address, with a slash at the end.
    name, password : str
        Who.

    Raises
    ------
    GradingError
        The hub does not let them in.
    """

    def __init__(self, base: str, name: str, password: str) -> None:
        self.base, self.name = base, name
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.get(urljoin(base, "hub/login"), timeout=60)
        form = {"username": name, "password": password, "_xsrf": self._xsrf()}
        answer = self._session.post(urljoin(base, "hub/login"), data=form, timeout=60, allow_redirects=False)
        if answer.status_code != 302:
            raise GradingError(f"{name} may not log in (HTTP {answer.status_code})")

    def _xsrf(self) -> str:
        return next((cookie.value or "" for cookie in self._session.cookies if cookie.name == "_xsrf"), "")

    def ask(self, method: str, path: str, **said: Any) -> requests.Response:
        """Ask the hub's API, as the browser of this user would."""
        url = urljoin(self.base, f"hub/api/{path}")
        headers = {"X-XSRFToken": self._xsrf(), "Referer": urljoin(self.base, "hub/home")}
        return self._session.request(method, url, headers=headers, timeout=60, **said)

    def get(self, path: str) -> requests.Response:
        """Open a page."""
        return self._session.get(urljoin(self.base, path), timeout=60)

    def token(self, *scopes: str) -> str:
        """Return a token with these scopes, of those that the user has."""
        answer = self.ask("POST", f"users/{self.name}/tokens", json={"note": "exchange", "scopes": list(scopes)})
        answer.raise_for_status()
        return str(answer.json()["token"])

    def exchange(self, patience: float = 60.0) -> Client:
        """Return the exchange as this user's server sees it."""
        token = self.token("access:services!service=exchange")
        return Client(urljoin(self.base, "services/exchange"), token, patience)
