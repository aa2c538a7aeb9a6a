"""Who takes the course and where it runs: the tables of ``course.toml`` that the hub is derived from.

Everything else in this folder is made from a `Deployment`; nothing is said twice.
"""

import os
import pwd
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from roster import USER, Learner, no_user, read_roster

from tilelab.grading.errors import GradingError
from tilelab.grading.policy import OF_THE_HUB, check_keys, read_policy
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.limits import as_bytes

#: A course's name; that of the exchange's account, which is made of it, must stay one that Unix takes.
COURSE = re.compile(r"[a-z][a-z0-9_-]{0,22}")
ASSIGNMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
#: Services of the hub, beside that which bears the course's name.
SERVICES = ("exchange", "idle-culler")
#: Below this number accounts are the machine's own, root's first.
FIRST_PERSON = 1000
#: Who has a Unix account: everybody has their own, or all share the hub's (a demo, without walls between learners).
ACCOUNTS = ("own", "shared")
#: What listens, from the first port on.
PORTS = ("proxy", "proxy-api", "hub", "exchange", "formgrader")
KEYS = {
    "course": {"id", "title", "release"},
    "people": {"instructors", "graders", "learners", "roster"},
    "hub": {"url", "port", "state", "accounts", "memory", "cpus", "idle_minutes", "kernel_idle_minutes"},
    "gpu": {"devices", "seats", "idle_minutes", "kernel_idle_minutes"},
    "kubernetes": {"host", "image", "gpu_resource", "storage"},
}


@dataclass(frozen=True)
class Gpu:
    """Which GPUs learners may use, how many of them share one, and when an idle one gives it back."""

    devices: tuple[int, ...] = ()
    seats: int = 4
    idle_minutes: int = 20
    kernel_idle_minutes: int = 10


@dataclass(frozen=True)
class Kubernetes:
    """What only a cluster needs to know."""

    host: str = "hub.example.org"
    image: str = "tilelab-hub:latest"
    gpu_resource: str = "nvidia.com/gpu"
    storage: str = "10Gi"


@dataclass(frozen=True)
class Deployment:
    """One course on one hub.

    Attributes
    ----------
    file : Path
        The ``course.toml`` it was read from.
    course, title : str
        The course's name, and how people call it.
    release : tuple of str
        Assignments that ``make release-course`` hands out.
    instructors, graders : tuple of str
        Who teaches; both see formgrader, instructors may also help with learners' servers.
    learners : tuple of Learner
        Who learns.
    authenticator : str
        What JupyterHub calls it, such as ``pam``, ``github`` or a class.
    settings : mapping
        Class of JupyterHub's configuration to its settings.
    url : str
        Where people reach the hub; TLS, where it says https, is the reverse proxy's.
    port : int
        First of five ports on loopback: proxy, the proxy's own interface, hub, exchange, formgrader.
    state : Path
        The folder that holds everything the hub writes.
    """

    file: Path
    course: str = "tilelab"
    title: str = "tilelab"
    release: tuple[str, ...] = ("exercises", "practice")
    instructors: tuple[str, ...] = ()
    graders: tuple[str, ...] = ()
    learners: tuple[Learner, ...] = ()
    authenticator: str = "pam"
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    url: str = "http://127.0.0.1:8000"
    port: int = 8000
    state: Path = Path("/srv/tilelab")
    accounts: str = "own"
    memory: int = 4 * 1024**3
    cpus: int = 2
    idle_minutes: int = 60
    kernel_idle_minutes: int = 30
    gpu: Gpu = Gpu()
    kubernetes: Kubernetes = Kubernetes()

    @property
    def teachers(self) -> tuple[str, ...]:
        """Everybody who sees formgrader."""
        return tuple(dict.fromkeys((*self.instructors, *self.graders)))

    @property
    def users(self) -> tuple[str, ...]:
        """Everybody who may log in."""
        return (*self.teachers, *(learner.id for learner in self.learners))

    @property
    def groups(self) -> dict[str, dict[str, list[str]]]:
        """The hub's groups, learners and teachers, as JupyterHub loads them."""
        learners, teachers = f"nbgrader-{self.course}", f"formgrade-{self.course}"
        return {learners: {"users": [one.id for one in self.learners]}, teachers: {"users": list(self.teachers)}}

    @property
    def grader_account(self) -> str:
        """The Unix account of formgrader and the gradebook."""
        return f"grader-{self.course}"

    @property
    def exchange_account(self) -> str:
        """The Unix account that alone can read the exchange."""
        return f"exchange-{self.course}"

    def at(self, which: str) -> str:
        """Where one of the five listens, such as ``proxy``: all on loopback."""
        return f"http://127.0.0.1:{self.port + PORTS.index(which)}"

    @property
    def base_url(self) -> str:
        """The path below which the hub lies, with slashes at both ends."""
        path = urlsplit(self.url).path.strip("/")
        return f"/{path}/" if path else "/"

    @property
    def exchange_url(self) -> str:
        """Where learners' servers reach the exchange: through the proxy, as everything."""
        return f"{self.at('proxy')}{self.base_url}services/exchange"

    @property
    def exchange(self) -> Path:
        """The exchange's folder."""
        return self.state / "exchange"

    @property
    def grader_home(self) -> Path:
        """Home of the grader's account."""
        return self.state / "grader"

    @property
    def course_folder(self) -> Path:
        """The nbgrader course: sources, checks, submissions, gradebook."""
        return self.grader_home / "course"

    @property
    def etc(self) -> Path:
        """Derived configuration that servers read."""
        return self.state / "etc"


def read_deployment(file: Path, learners: tuple[Learner, ...] | None = None) -> Deployment:
    """Read ``course.toml``.

    Parameters
    ----------
    file : Path
        Paths in it are relative to its folder.
    learners : tuple of Learner, optional
        Who learns, where the roster was read already, by one who may.

    Raises
    ------
    GradingError
        It cannot be read, or says something that cannot be meant: the message quotes it.
    """
    if not file.is_file():
        raise GradingError(f"there is no {str(file)!r}")
    read_policy(file)  # weights, due dates, lateness; and that it is TOML
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    for table, keys in KEYS.items():
        check_keys(file, table, said.get(table, {}), keys)
    assert set(KEYS) | {"authenticator"} == OF_THE_HUB
    course, people, hub = said.get("course", {}), said.get("people", {}), said.get("hub", {})
    found: dict[str, Any] = {"file": file, "gpu": _gpu(file, said.get("gpu", {}))}
    if "id" in course:
        found["course"] = _course_id(file, course["id"])
    found |= {"title": str(course["title"])} if "title" in course else {}
    found |= {"release": _assignments(file, course["release"])} if "release" in course else {}
    for key in ("instructors", "graders"):
        found[key] = _names(file, f"people.{key}", people.get(key, []))
    found["learners"] = _learners(file, people) if learners is None else learners
    _check_people(file, found)
    found["authenticator"], found["settings"] = _authenticator(file, said.get("authenticator", {}))
    found |= _hub(file, hub)
    if "TILELAB_ACCOUNTS" in os.environ:  # a demo where nobody can have an account
        found["accounts"] = os.environ["TILELAB_ACCOUNTS"]
    if found.get("accounts", Deployment.accounts) == "own":
        _check_accounts(file, (*found["instructors"], *found["graders"], *(one.id for one in found["learners"])))
    cluster = said.get("kubernetes", {})
    found["kubernetes"] = Kubernetes(**{key: _text(file, f"kubernetes.{key}", cluster[key]) for key in cluster})
    return Deployment(**found)


def say(work: Callable[[], Iterable[object]]) -> int:
    """Print what a command does, line by line, and return its exit code; what is refused goes to standard error."""
    try:
        for line in work():
            print(line, flush=True)
    except (GradingError, OSError) as error:
        print(in_words(error), file=sys.stderr)
        return 1
    return 0


def in_words(error: GradingError | OSError) -> str:
    """Return what an error says; of the system's own, which file it is about."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{str(error.filename)!r}: {error.strerror}"
    return str(error)


def _learners(file: Path, people: Mapping[str, Any]) -> tuple[Learner, ...]:
    named = [Learner(name) for name in _names(file, "people.learners", people.get("learners", []))]
    if "roster" not in people:
        return tuple(named)
    roster = file.parent / _text(file, "people.roster", people["roster"])
    try:
        text = roster.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise GradingError(f"{roster.name} is not UTF-8 (byte {error.start}): save it as CSV UTF-8") from None
    except OSError as error:
        raise GradingError(f"cannot read the roster {str(roster)!r}: {error.strerror}") from None
    return (*named, *read_roster(text, roster.name))


def _check_people(file: Path, found: Mapping[str, Any]) -> None:
    """Refuse a learner who is there twice or teaches, and anybody who has an account's name."""
    learners = [learner.id for learner in found["learners"]]
    if twice := [name for name in learners if learners.count(name) > 1]:
        raise GradingError(f"{file.name}: learner {twice[0]!r} is there twice")
    teachers = (*found["instructors"], *found["graders"])
    course = found.get("course", Deployment.course)
    accounts = {f"grader-{course}": "is formgrader's account", f"exchange-{course}": "is the exchange's account"}
    for names, do, taken in (
        (learners, "learns", dict.fromkeys(teachers, "teaches") | accounts),
        (teachers, "teaches", accounts),
    ):
        if name := next((name for name in names if name in taken), None):
            raise GradingError(f"{file.name}: {name!r} {do} and {taken[name]}: give one of the two another name")


def _check_accounts(file: Path, names: Iterable[str]) -> None:
    """Refuse people whose Unix account would be one of the machine's own."""
    for name in names:
        try:
            number = pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
        if number < FIRST_PERSON or name == "nobody":
            raise GradingError(
                f"{file.name}: {name!r} is an account of this machine itself (number {number}), which nobody of the "
                "course may have: give that person another name"
            )


def _authenticator(file: Path, said: Mapping[str, Any]) -> tuple[str, dict[str, dict[str, Any]]]:
    settings = {name: value for name, value in said.items() if name != "kind"}
    for name, value in settings.items():
        if not isinstance(value, dict) or not name[:1].isupper():
            raise GradingError(
                f"{file.name}: authenticator.{name} is not known; write kind, and a table such as "
                "[authenticator.GitHubOAuthenticator] for the settings of that class"
            )
        if secret := next((key for key in value if re.search("secret|password", key, re.IGNORECASE)), None):
            raise GradingError(
                f"{file.name}: authenticator.{name}.{secret} is a secret: put it in the hub's environment file"
            )
    return _text(file, "authenticator.kind", said.get("kind", "pam")), settings


def _hub(file: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "url" in said:
        _text(file, "hub.url", said["url"])
        try:
            parts = urlsplit(said["url"])
            meant = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # half an IPv6 address, or a port that is none
            meant = False
        if not meant:
            raise GradingError(f"{file.name}: hub.url = {said['url']!r}, write one such as https://hub.example.org")
        found["url"] = said["url"].rstrip("/")
    if "state" in said:
        found["state"] = (file.parent / _text(file, "hub.state", said["state"])).resolve()
        if blocked := next((one for one in (found["state"], *found["state"].parents) if one.is_file()), None):
            raise GradingError(
                f"{file.name}: hub.state = {said['state']!r}, but {str(blocked)!r} is a file, not a folder"
            )
    if "accounts" in said:
        if said["accounts"] not in ACCOUNTS:
            raise GradingError(
                f"{file.name}: hub.accounts = {said['accounts']!r}, {' or '.join(ACCOUNTS)} is asked for"
            )
        found["accounts"] = said["accounts"]
    if "memory" in said:
        try:
            found["memory"] = as_bytes(said["memory"])
        except SandboxError as error:
            raise GradingError(f"{file.name}: hub.memory: {error}") from None
        _whole(file, "hub.memory", found["memory"], 1 << 20)
    for key, least in (("port", 1024), ("cpus", 1), ("idle_minutes", 0), ("kernel_idle_minutes", 0)):
        if key in said:
            found[key] = _whole(file, f"hub.{key}", said[key], least)
    if found.get("port", 0) + len(PORTS) - 1 > 65535:
        raise GradingError(
            f"{file.name}: hub.port = {said['port']!r}, the hub takes {len(PORTS)} from there on, up to 65535"
        )
    return found


def _gpu(file: Path, said: Mapping[str, Any]) -> Gpu:
    found: dict[str, Any] = {}
    if "devices" in said:
        devices = said["devices"]
        if not isinstance(devices, list) or len(set(map(str, devices))) < len(devices):
            raise GradingError(f"{file.name}: gpu.devices = {devices!r}, a list such as [0, 1] is asked for")
        found["devices"] = tuple(_whole(file, "gpu.devices", device, 0) for device in devices)
    for key, least in (("seats", 1), ("idle_minutes", 1), ("kernel_idle_minutes", 1)):
        if key in said:
            found[key] = _whole(file, f"gpu.{key}", said[key], least)
    return Gpu(**found)


def _names(file: Path, what: str, said: Any) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(name, str) for name in said):
        raise GradingError(f"{file.name}: {what} = {said!r}, a list of names is asked for")
    for name in said:
        if not USER.fullmatch(name):
            raise GradingError(f"{file.name}: {what}: {no_user(name)}")
    if what != "people.learners" and len(set(said)) < len(said):
        raise GradingError(f"{file.name}: {what} = {said!r} names somebody twice")
    return tuple(said)


def _course_id(file: Path, said: Any) -> str:
    found = _match(file, "course.id", said, COURSE)
    if found in SERVICES:
        raise GradingError(f"{file.name}: course.id = {said!r} is the name of a service of the hub: choose another")
    return found


def _assignments(file: Path, said: Any) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(name, str) and name for name in said):
        raise GradingError(f"{file.name}: course.release = {said!r}, a list of names is asked for")
    if wrong := next((name for name in said if not ASSIGNMENT.fullmatch(name)), None):
        raise GradingError(f"{file.name}: course.release: {wrong!r} is no name of an assignment, such as 'exercises'")
    if len(set(said)) < len(said):
        raise GradingError(f"{file.name}: course.release = {said!r} names one twice")
    return tuple(said)


def _match(file: Path, what: str, said: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(said, str) or not pattern.fullmatch(said):
        raise GradingError(f"{file.name}: {what} = {said!r}, up to 23 small letters, digits, _ and - are asked for")
    return said


def _text(file: Path, what: str, said: Any) -> str:
    if not isinstance(said, str) or not said:
        raise GradingError(f"{file.name}: {what} = {said!r}, a text is asked for")
    return said


def _whole(file: Path, what: str, said: Any, least: int) -> int:
    if isinstance(said, bool) or not isinstance(said, int) or said < least:
        raise GradingError(f"{file.name}: {what} = {said!r}, a whole number from {least} on is asked for")
    return said
