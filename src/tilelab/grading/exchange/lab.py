"""What nbgrader's pages in JupyterLab speak to on a learner's server: assignment list, Validate, course list.

A Jupyter server extension in place of nbgrader's own. Nothing here blocks the server, and what goes wrong is said in
words. When the server starts it also brings the newest chapters.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from nbgrader import __version__ as nbgrader_version
from nbgrader.apps import NbGrader
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError, ExchangeFactory
from tornado.web import authenticated
from traitlets.config import Config

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.client import URL, Client
from tilelab.grading.exchange.materials import update, version_in
from tilelab.grading.exchange.validate import refused

#: Seconds that a whole validation may take: the notebook's own time, and a kernel's start.
VALIDATION = 420.0
#: Folder of the chapters among a learner's files.
CHAPTERS = "course"


class Assignments:
    """nbgrader's exchange steps, for the files below one folder.

    Parameters
    ----------
    folder : path
        Where a learner's assignments lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def config(self) -> Config:
        """Return nbgrader's configuration on this server."""
        app = NbGrader()
        app.load_config_file()
        config: Config = app.config
        config.Exchange.assignment_dir = str(self.folder)
        return config

    @property
    def course(self) -> str:
        """Return the course's name."""
        return str(self.config().CourseDirectory.get("course_id", ""))

    def list(self) -> dict[str, Any]:
        """Return what is released, fetched and submitted."""
        try:
            released = self._step("List")
            submitted = self._step("List", cached=True)
        except (ExchangeError, GradingError) as error:
            return refused(str(error))
        for found in released:
            self._relative(found)
            for notebook in found["notebooks"]:
                self._relative(notebook)
        for found in submitted:
            for submission in found["submissions"]:
                self._relative(submission, "local_feedback_path")
        return {"success": True, "value": released + submitted}

    def act(self, action: str, assignment: str) -> dict[str, Any]:
        """Fetch, submit or fetch feedback, and return the new list, or words."""
        steps = {"fetch": "FetchAssignment", "submit": "Submit", "fetch_feedback": "FetchFeedback"}
        try:
            self._step(steps[action], assignment)
        except (ExchangeError, GradingError, OSError) as error:
            return refused(str(error))
        return self.list()

    def _step(self, name: str, assignment: str = "", **settings: Any) -> Any:
        config = self.config()
        coursedir = CourseDirectory(config=config)
        coursedir.assignment_id = assignment
        step = getattr(ExchangeFactory(config=config), name)(coursedir=coursedir, config=config)
        for setting, value in settings.items():
            setattr(step, setting, value)
        return step.start()

    def _relative(self, found: dict[str, Any], key: str = "path") -> None:
        if found[key]:
            found[key] = os.path.relpath(found[key], self.folder)


class Page(JupyterHandler):
    """What the handlers share."""

    assignments: Assignments

    def initialize(self, assignments: Assignments) -> None:
        """Take what the extension made."""
        self.assignments = assignments

    async def answer(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Let work be done in a thread, and send what comes of it."""
        found = await asyncio.get_running_loop().run_in_executor(None, partial(work, *arguments))
        self.finish(json.dumps(found))


class AssignmentsPage(Page):
    """The assignment list."""

    @authenticated
    async def get(self) -> None:
        """Send it."""
        await self.answer(self.assignments.list)


class ActionPage(Page):
    """Its buttons."""

    @authenticated
    async def post(self, action: str) -> None:
        """Do what a button says."""
        asked = self.get_json_body() or {}
        await self.answer(self.assignments.act, action, str(asked.get("assignment_id", "")))


class CoursesPage(Page):
    """The courses of the assignment list: this one."""

    @authenticated
    async def get(self) -> None:
        """Send its name."""
        self.finish(json.dumps({"success": True, "value": [self.assignments.course]}))


class FormgradersPage(Page):
    """The course list: where the course's formgrader is, as a page of its own, for it refuses to be framed."""

    @authenticated
    async def get(self) -> None:
        """Send its address."""
        course = self.assignments.course
        url = url_path_join(os.environ.get("JUPYTERHUB_BASE_URL", "/"), "services", course, "formgrader")
        self.finish(json.dumps({"success": True, "value": [{"course_id": course, "url": url, "kind": "jupyterhub"}]}))


class VersionPage(Page):
    """Whether page and server are of one version of nbgrader."""

    @authenticated
    async def get(self) -> None:
        """Send the answer."""
        asked = self.get_argument("version")
        same = asked == nbgrader_version
        words = f"the page is of nbgrader {asked}, the server of {nbgrader_version}: reload the page"
        self.finish(json.dumps({"success": same, "message": "" if same else words}))


class ValidatePage(Page):
    """The Validate button."""

    running = asyncio.Lock()

    @authenticated
    async def post(self) -> None:
        """Validate a notebook and send what nbgrader's page shows."""
        asked = self.get_argument("path", None) or (self.get_json_body() or {}).get("path", "")
        root = self.assignments.folder.resolve()
        file = (root / asked).resolve()
        if not (file.is_relative_to(root) and file.is_file()):
            said = refused(f"there is no notebook {asked!r} here")
        elif self.running.locked():
            said = refused("another notebook is being validated: wait until it is done")
        else:
            async with self.running:
                said = await validated(file)
        self.finish(json.dumps(said))


async def validated(file: Path, seconds: float = VALIDATION) -> dict[str, Any]:
    """Validate a notebook in a process of its own, and end it with all its own when the time is over."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tilelab.grading.exchange.validate", str(file)),
        cwd=file.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await asyncio.wait_for(child.communicate(), seconds)
    except TimeoutError:
        return refused(f"{file.name} did not end in {seconds:g} s and was stopped: look for a loop that does not end")
    finally:  # also where the server ends, or the page is closed
        if child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
    try:
        said: dict[str, Any] = json.loads(out)
    except ValueError:
        last = (err.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        return refused(f"{file.name} could not be validated (exit code {child.returncode}): {last}")
    return said


def bring_chapters(folder: Path) -> str:
    """Bring the newest chapters below a learner's folder and say what came."""
    place = folder / CHAPTERS
    try:
        have = version_in(place)
        version, files = Client().materials(have)
        return str(update(place, version, files)) if files else f"the course is at version {have}"
    except (GradingError, OSError) as error:
        return f"the chapters were not brought up to date: {error}"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    folder = Path(server.root_dir)
    what = {"assignments": Assignments(folder)}
    pages = {
        r"assignments": AssignmentsPage,
        r"assignments/(fetch|submit|fetch_feedback)": ActionPage,
        r"assignments/validate": ValidatePage,
        r"courses": CoursesPage,
        r"formgraders": FormgradersPage,
        r"nbgrader_version": VersionPage,
    }
    base = server.web_app.settings["base_url"]
    server.web_app.add_handlers(".*$", [(url_path_join(base, path), page, what) for path, page in pages.items()])
    if os.environ.get(URL):

        async def bring() -> None:
            said = await asyncio.get_running_loop().run_in_executor(None, bring_chapters, folder)
            server.log.info("tilelab: %s", said)

        server.io_loop.add_callback(bring)
