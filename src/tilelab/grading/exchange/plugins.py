"""nbgrader's exchange, over the course's service: `configure` puts it in place of nbgrader's shared folder.

Each class is one of nbgrader's steps and does what nbgrader's own does, with the service in place of the folder.
"""

import glob
import hashlib
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.exchange import abc
from traitlets import Bool, Float, Unicode
from traitlets.config import Config

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.bundle import read_folder, write_folder
from tilelab.grading.exchange.client import PATIENCE, Client, UnreachableError
from tilelab.grading.exchange.store import TIME, Receipt, check_name

#: How nbgrader writes a moment; the same text names the folder of a learner's feedback.
STAMP = "%Y-%m-%d %H:%M:%S.%f UTC"
STAMP_FILE = "timestamp.txt"


def configure(config: Config) -> None:
    """Make nbgrader use the course's service as its exchange.

    Parameters
    ----------
    config : Config
        What ``get_config()`` returned in ``nbgrader_config.py``.
    """
    here = __name__
    config.ExchangeFactory.exchange = f"{here}.ServiceExchange"
    config.ExchangeFactory.list = f"{here}.ServiceList"
    config.ExchangeFactory.fetch_assignment = f"{here}.ServiceFetchAssignment"
    config.ExchangeFactory.fetch_feedback = f"{here}.ServiceFetchFeedback"
    config.ExchangeFactory.release_assignment = f"{here}.ServiceReleaseAssignment"
    config.ExchangeFactory.release_feedback = f"{here}.ServiceReleaseFeedback"
    config.ExchangeFactory.submit = f"{here}.ServiceSubmit"
    config.ExchangeFactory.collect = f"{here}.ServiceCollect"


class ServiceExchange(abc.Exchange):
    """What all steps share: the client, where a learner's files are, and errors that nbgrader understands."""

    url = Unicode("", help="The service, through the hub's proxy; $TILELAB_EXCHANGE_URL unless given.").tag(config=True)
    patience = Float(PATIENCE, help="Seconds to try again where the service cannot be reached.").tag(config=True)
    path_includes_course = Bool(False, help="Whether assignments lie in a folder named as the course.").tag(config=True)

    def start(self) -> Any:
        """Do the step; what the exchange refuses becomes nbgrader's `ExchangeError`."""
        try:
            return super().start()
        except GradingError as error:
            self.fail(str(error))
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            self.fail(f"{error.strerror or error}{where}. Nothing was lost: mend that and try again")

    def init_src(self) -> None:
        """Nothing is looked for in advance."""

    def init_dest(self) -> None:
        """Nothing is looked for in advance."""

    def copy_files(self) -> None:
        """Nothing is copied."""

    @property
    def client(self) -> Client:
        """The service, seen by whoever this process belongs to."""
        return Client(self.url, patience=self.patience)

    @property
    def assignment(self) -> str:
        """Return the assignment's name."""
        return str(self.coursedir.assignment_id)

    def place(self, assignment: str) -> Path:
        """Return where an assignment lies among a learner's files, or raise `GradingError`: a name is no path."""
        check_name("assignment", assignment)
        below = Path(self.coursedir.course_id) if self.path_includes_course else Path()
        return Path(self.assignment_dir).absolute() / below / assignment

    def in_course(self, step: str) -> Path:
        """Return the folder of a step of this assignment and learner in the course."""
        student = self.coursedir.student_id or "*"
        return Path(self.coursedir.format_path(step, student, self.assignment))

    def report(self, step: str, failed: dict[str, str]) -> None:
        """End the step with an error that names those for whom it failed; for everybody else it is done."""
        if failed:
            whose = "; ".join(f"{learner}: {words}" for learner, words in failed.items())
            self.fail(f"all others were {step}, and not that of {whose}")

    def wanted(self, receipt: Receipt) -> bool:
        """Whether a submission is of the assignment and learner that were asked for."""
        asked = ((self.coursedir.student_id, receipt.learner), (self.assignment, receipt.assignment))
        return all(pattern in ("", "*", name) for pattern, name in asked)


class ServiceList(ServiceExchange, abc.ExchangeList):
    """What is released, what was handed in; withdraws an assignment where that is asked for."""

    def list_files(self) -> list[dict[str, Any]]:
        """Return what there is, in the form in which nbgrader's pages read it."""
        if self.inbound or self.cached:
            return self._submitted()
        asked = ("", "*") if self.assignment in ("", "*") else (self.assignment,)
        released = self.client.released()
        return [self._released(found) for found in released if "*" in asked or found["assignment"] in asked]

    def remove_files(self) -> list[dict[str, Any]]:
        """Withdraw an assignment. Submissions are never removed."""
        if self.inbound or self.cached:
            self.fail("submissions are never removed from this exchange")
        listed = self.list_files()
        for found in listed:
            self.client.withdraw(found["assignment_id"])
            found["status"] = "removed"
        return listed

    def _released(self, found: dict[str, Any]) -> dict[str, Any]:
        name = found["assignment"]
        place = self.place(name)
        fetched = place.is_dir()
        names = sorted(path.name for path in place.glob("*.ipynb")) if fetched else found["files"]
        return {
            "course_id": self.coursedir.course_id,
            "assignment_id": name,
            "status": "fetched" if fetched else "released",
            "path": str(place),
            "notebooks": [
                {"notebook_id": Path(file).stem, "path": str(place / file)} for file in names if file.endswith(".ipynb")
            ],
        }

    def _submitted(self) -> list[dict[str, Any]]:
        groups: dict[tuple[str, str], list[Receipt]] = defaultdict(list)
        for receipt in self.client.submissions(everybody=self.inbound):
            if self.wanted(receipt):
                groups[receipt.learner, receipt.assignment].append(receipt)
        listed = []
        for (learner, assignment), receipts in groups.items():
            feedback = {} if self.inbound else self.client.feedback(assignment)
            about = {"course_id": self.coursedir.course_id, "student_id": learner, "assignment_id": assignment}
            submissions = [about | self._submission(one, feedback.get(one.time, {})) for one in receipts]
            listed.append(about | {"status": "submitted", "submissions": submissions})
        return listed

    def _submission(self, receipt: Receipt, feedback: dict[str, bytes]) -> dict[str, Any]:
        place = feedback_place(self.place(receipt.assignment), receipt.time)
        notebooks = []
        for name in sorted(name for name in receipt.digests if name.endswith(".ipynb") and "/" not in name):
            html = place / f"{Path(name).stem}.html"
            there = feedback.get(html.name)
            here = html.read_bytes() if html.is_file() else None
            notebooks.append(
                {
                    "notebook_id": Path(name).stem,
                    "path": name,
                    "has_local_feedback": here is not None,
                    "has_exchange_feedback": there is not None,
                    "local_feedback_path": str(html) if here is not None else None,
                    "feedback_updated": None not in (here, there) and _digest(here) != _digest(there),
                }
            )
        local = bool(notebooks) and all(notebook["has_local_feedback"] for notebook in notebooks)
        return {
            "timestamp": stamp(receipt.time),
            "status": "submitted",
            "path": "",
            "notebooks": notebooks,
            "has_local_feedback": local,
            "has_exchange_feedback": bool(notebooks) and all(one["has_exchange_feedback"] for one in notebooks),
            "feedback_updated": any(notebook["feedback_updated"] for notebook in notebooks),
            "local_feedback_path": str(place) if local else None,
        }


class ServiceFetchAssignment(ServiceExchange, abc.ExchangeFetchAssignment):
    """Brings an assignment to a learner; what they have is never overwritten."""

    def copy_files(self) -> None:
        """Write the assignment's folder, or the files that are missing in it."""
        place = self.place(self.assignment)
        if place.exists() and not self.replace_missing_files:
            self.fail(
                f"you have {self.assignment} already, in {place}. To begin anew, rename that folder and fetch again"
            )
        files = self.client.handed_out(self.assignment)
        if place.exists():
            files = {name: content for name, content in files.items() if not (place / name).exists()}
        if files:
            put_in_place(place, files)
        self.log.info("Fetched %s: %s", self.assignment, ", ".join(sorted(files)) or "nothing was missing")


class ServiceSubmit(ServiceExchange, abc.ExchangeSubmit):
    """Hands in a folder."""

    def copy_files(self) -> None:
        """Send the folder's files and say what the receipt says."""
        place = self.place(self.assignment)
        if not place.is_dir():
            self.fail(f"there is no folder {place}: fetch {self.assignment!r} first")
        files = read_folder(place, [*self.coursedir.ignore, STAMP_FILE])
        self._compare(files)
        receipt = self.client.submit(self.assignment, files)
        self.log.info("Submitted as: %s %s %s", self.coursedir.course_id, self.assignment, stamp(receipt.time))

    def _compare(self, files: dict[str, bytes]) -> None:
        """Say which notebooks are missing; refuse where nbgrader is told to be strict."""
        released = {one["assignment"]: one["files"] for one in self.client.released()}
        asked = released.get(self.assignment, [])
        missing = sorted(name for name in asked if name.endswith(".ipynb") and name not in files)
        if missing and self.strict:
            self.fail(f"{self.assignment} was not handed in: {', '.join(missing)} is missing in its folder")
        if missing:
            self.log.warning("%s is missing in what you hand in", ", ".join(missing))


class ServiceFetchFeedback(ServiceExchange, abc.ExchangeFetchFeedback):
    """Brings the feedback to a learner's submissions."""

    def copy_files(self) -> None:
        """Write it below the assignment's folder, for each submission in a folder of its own."""
        found = self.client.feedback(self.assignment)
        for time, files in found.items():
            write_folder(feedback_place(self.place(self.assignment), time), files)
        self.log.info("Fetched feedback to %d submissions of %s", len(found), self.assignment)


class ServiceReleaseAssignment(ServiceExchange, abc.ExchangeReleaseAssignment):
    """Releases what ``nbgrader generate_assignment`` made."""

    def copy_files(self) -> None:
        """Send it to the exchange, which keeps earlier versions."""
        made = Path(self.coursedir.format_path(self.coursedir.release_directory, ".", self.assignment))
        if not made.is_dir():
            self.fail(f"{self.assignment!r} is not generated yet: run nbgrader generate_assignment {self.assignment}")
        files = read_folder(made, self.coursedir.ignore)
        version = self.client.release(self.assignment, files, again=self.force)
        self.log.info("Released as: %s %s, version %d", self.coursedir.course_id, self.assignment, version)


class ServiceReleaseFeedback(ServiceExchange, abc.ExchangeReleaseFeedback):
    """Releases the feedback that was generated."""

    def copy_files(self) -> None:
        """Send each learner's pages to the submission that they are about."""
        excluded = set(filter(None, (self.coursedir.student_id_exclude or "").split(",")))
        receipts = {
            (one.learner, one.assignment, stamp(one.time)): one for one in self.client.submissions(everybody=True)
        }
        failed: dict[str, str] = {}
        for folder in map(Path, sorted(glob.glob(str(self.in_course(self.coursedir.feedback_directory))))):
            learner = folder.parent.name
            pages = {path.name: path.read_bytes() for path in folder.glob("*.html")}
            if learner in excluded or not pages:
                continue
            file = folder / STAMP_FILE
            time = file.read_text().strip() if file.is_file() else ""
            receipt = receipts.get((learner, self.assignment, time))
            if receipt is None:
                self.log.warning(
                    "%s's feedback is about no submission of this exchange (%s)", learner, time or "no time"
                )
                continue
            with one_of_many(learner, failed):
                self.client.give_feedback(receipt, pages)
                self.log.info("Released feedback to %s on %s (%s)", learner, self.assignment, time)
        self.report("released", failed)


class ServiceCollect(ServiceExchange, abc.ExchangeCollect):
    """Brings submissions into the course, with the service's time."""

    def copy_files(self) -> None:
        """Write each learner's newest submission, or the newest in time, below ``submitted/``."""
        groups: dict[str, list[Receipt]] = defaultdict(list)
        for receipt in self.client.submissions(self.assignment, everybody=True):
            if self.wanted(receipt):
                groups[receipt.learner].append(receipt)
        if not groups:
            self.log.warning("No submissions of %s to collect", self.assignment)
        due = self._due() if self.before_duedate else None
        failed: dict[str, str] = {}
        for learner, receipts in groups.items():
            in_time = [one for one in receipts if due is None or one.moment <= due]
            with one_of_many(learner, failed):
                self._collect(learner, (in_time or receipts)[-1])
        self.report("collected", failed)

    def _collect(self, learner: str, receipt: Receipt) -> None:
        step = self.coursedir.submitted_directory
        place = Path(self.coursedir.format_path(step, learner, self.assignment))
        if place.is_dir():
            file = place / STAMP_FILE
            have = file.read_text().strip() if file.is_file() else ""
            if have == stamp(receipt.time):
                self.log.info("No newer submission to collect: %s %s", learner, self.assignment)
                return
            if not (self.update or self.before_duedate):
                self.log.info("Collected before, use --update to update: %s %s", learner, self.assignment)
                return
        files = self.client.submitted(receipt)
        theirs = {name: content for name, content in files.items() if name.split("/")[0] != STAMP_FILE}
        put_in_place(place, theirs | {STAMP_FILE: stamp(receipt.time).encode()}, replace=True)
        self.log.info("Collected %s %s (%s)", learner, self.assignment, stamp(receipt.time))

    def _due(self) -> datetime | None:
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                due = gradebook.find_assignment(self.assignment).duedate
            except MissingEntry:
                return None
        return None if due is None else due.replace(tzinfo=UTC)  # nbgrader keeps UTC without saying so


@contextmanager
def one_of_many(learner: str, failed: dict[str, str]) -> Iterator[None]:
    """Note what fails for one learner, so that it costs nobody else anything; an exchange that is away costs all."""
    try:
        yield
    except UnreachableError:
        raise
    except (GradingError, OSError) as error:
        failed[learner] = str(error)


def put_in_place(place: Path, files: dict[str, bytes], replace: bool = False) -> None:
    """Write a folder's files so that it is there whole or not at all; one that is there is added to, or replaced."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as name:
        draft, old = Path(name) / "new", Path(name) / "old"
        write_folder(draft, files)
        if place.exists() and not replace:
            for path in draft.rglob("*"):
                if path.is_file():
                    target = place / path.relative_to(draft)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(path, target)
            return
        if place.exists():
            place.rename(old)
        try:
            draft.rename(place)
        except OSError:
            if old.exists():
                os.rename(old, place)
            raise


def stamp(time: str) -> str:
    """Return a receipt's time as nbgrader writes it."""
    return datetime.strptime(time, TIME).strftime(STAMP)


def feedback_place(assignment: Path, time: str) -> Path:
    """Return where a learner keeps the feedback to one submission."""
    return assignment / "feedback" / stamp(time)


def _digest(content: bytes | None) -> bytes:
    return hashlib.sha256(content or b"").digest()
