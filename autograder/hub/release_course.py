"""Make what learners get, and hand it out: ``make release-course``.

Chapters and assignments go to the exchange; learners' servers take them from there. Run it again after any change:
only what changed becomes a new version, and what learners wrote stays. Solutions, checks and masters never go there.
"""

import argparse
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
AUTOGRADER = HERE.parent
ROOT = AUTOGRADER.parent
sys.path[:0] = [str(HERE), str(ROOT / "tools")]

from checks import check_state  # noqa: E402  (from the folder that was just put on the path)
from deployment import Deployment, read_deployment, say  # noqa: E402
from derived import write_derived  # noqa: E402
from private_machine import have_accounts, private_machine  # noqa: E402
from roster import read_roster, write_roster  # noqa: E402

import tilelab  # noqa: E402
from tilelab.grading.errors import GradingError  # noqa: E402
from tilelab.grading.exchange.bundle import read_folder  # noqa: E402
from tilelab.grading.exchange.store import Store  # noqa: E402
from tilelab.grading.policy import FILE, meant, read_policy  # noqa: E402

CONFIG = "nbgrader_config.py"
#: Folders of learners' copies: they are handed out as assignments, not as chapters.
ASSIGNMENTS = ("exercises", "practice")


def release_course(of: Deployment, repository: Path = ROOT) -> list[str]:
    """Bring the course's folder and the exchange up to date, and return what was done, line by line.

    Parameters
    ----------
    of : Deployment
        The course.
    repository : path
        Where masters, checks and chapters are.

    Raises
    ------
    GradingError
        An account is missing, an assignment cannot be generated, or the exchange cannot be written.
    """
    check_state(of)
    said = []
    write_derived(of)
    said += make_course_folder(of, repository)
    released = of.course_folder / "release"
    wanted = {name: read_folder(released / name) for name in of.release}
    chapters = read_chapters(repository / "notebooks")
    with acting_as(of.exchange_account if of.accounts == "own" else None, of.exchange):
        store = Store(of.exchange)
        for name, files in wanted.items():
            if store.released().get(name) and store.handed_out(name) == files:
                said.append(f"{name}: unchanged")
            else:
                said.append(f"{name}: version {store.release(name, files, again=True)} is released")
        version, files = store.materials()
        if files == chapters:
            said.append(f"chapters: unchanged, version {version}")
        else:
            said.append(f"chapters: version {store.publish(chapters)}, {len(chapters)} files")
    return said


def read_chapters(notebooks: Path) -> dict[str, bytes]:
    """Return the chapters, whose names begin with their numbers, and what lies beside them; no assignments."""
    files = read_folder(notebooks, [".ipynb_checkpoints", "__pycache__", ".*", *ASSIGNMENTS])
    return {name: content for name, content in files.items() if name[0].isdigit() or not name.endswith(".ipynb")}


def make_course_folder(of: Deployment, repository: Path) -> list[str]:
    """Bring the nbgrader course up to date, as the account that owns it."""
    folder = of.course_folder
    with acting_as(of.grader_account if of.accounts == "own" else None, of.grader_home):
        folder.mkdir(mode=0o700, exist_ok=True)
    account = account_of(of.grader_account) if of.accounts == "own" and os.getuid() == 0 else None
    command = [sys.executable, str(HERE / "release_course.py"), "--folder", str(folder), "--course", str(of.file)]
    environment = os.environ | {"HOME": str(of.grader_home), "PYTHONPATH": str(Path(tilelab.__file__).parents[1])}
    who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
    done = subprocess.run(
        [*command, "--repository", str(repository)], input=write_roster(of.learners),
        env=environment, cwd=folder.parent, capture_output=True, text=True, check=False, **who,
    )  # fmt: skip
    if done.returncode:
        raise GradingError(f"the course's folder was not made: {done.stderr.strip()[-2000:]}")
    return done.stdout.splitlines()


def fill_course_folder(of: Deployment, folder: Path, repository: Path) -> Iterator[str]:
    """Copy configuration and checks, make the sources, generate what is to be released; yield what was done."""
    from make_views import write_source
    from nbgrader.api import Gradebook

    from tilelab.grading.course import Course

    for file in (AUTOGRADER / CONFIG, *AUTOGRADER.glob("*.toml")):  # limits, thresholds
        shutil.copy(file, folder)
    shutil.copy(of.file, folder / FILE)
    shutil.rmtree(folder / "checks", ignore_errors=True)
    shutil.copytree(AUTOGRADER / "checks", folder / "checks", ignore=shutil.ignore_patterns("__pycache__"))
    write_source(folder / "source")
    course = Course(folder)
    sources = sorted({path.parent.name for path in folder.glob("source/*/*.ipynb")})
    policy = read_policy(of.file)
    for table, names in (("weights", policy.weights), ("due", policy.due)):
        for name in sorted(set(names) - set(sources)):
            yield f"note: {of.file.name} has {table}.{name}, and no assignment is called so yet{meant(name, sources)}"
    for assignment in of.release:
        before = newest(folder / "source" / assignment)
        if before is None:
            raise GradingError(
                f"{of.file.name}: course.release names {assignment!r}, which has no sources; {', '.join(sources)} have"
                f"{meant(assignment, sources)}"
            )
        made = newest(folder / "release" / assignment)
        if made is not None and made >= before:
            continue
        done = course.api.generate_assignment(assignment)
        if not done["success"]:
            words = str(done.get("error") or done.get("log")).strip().splitlines() or ["nbgrader does not say why"]
            raise GradingError(f"{assignment} was not generated: {words[-1]}")  # what stands before is a traceback
        yield f"{assignment}: generated"
    with Gradebook(course.api.coursedir.db_url, of.course) as gradebook:
        for learner in of.learners:
            about = {"first_name": learner.first_name, "last_name": learner.last_name, "email": learner.email}
            gradebook.update_or_create_student(learner.id, **{k: v for k, v in about.items() if v})
        for assignment in gradebook.assignments:
            if assignment.name in policy.due:
                assignment.duedate = policy.due[assignment.name].replace(tzinfo=None)
        gradebook.db.commit()
        yield f"gradebook: {len(gradebook.students)} learners, {len(gradebook.assignments)} assignments"


def newest(folder: Path) -> float | None:
    """Return when the youngest notebook in a folder was written; ``None`` where there is none."""
    return max((path.stat().st_mtime for path in folder.glob("*.ipynb")), default=None)


def account_of(name: str) -> pwd.struct_passwd:
    """Return a Unix account, or raise `GradingError` with the command that makes it."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise GradingError(
            f"there is no account {name!r}: make it with  useradd --system --user-group {name}"
        ) from None


@contextmanager
def acting_as(name: str | None, home: Path) -> Iterator[None]:
    """Write as an account, below a folder that it alone can read; without a name, as whoever this is."""
    if name is None or os.getuid():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield
        return
    account = account_of(name)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chown(home, account.pw_uid, account.pw_gid)
    os.setegid(account.pw_gid)
    os.seteuid(account.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def of_the_demo(file: Path) -> list[str]:
    """Return the command that leads among the accounts of `make hub`, where the course lies with such a demo."""
    try:
        of = read_deployment(file)
    except GradingError:
        return []  # it is said where the file is read to be used
    if of.accounts != "own" or os.getuid() or have_accounts(of) or not (of.state / "passwd").exists():
        return []
    return private_machine(of, [ROOT])


def main() -> int:
    """Release the course, or fill its folder as the account that owns it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--course", type=Path, default=AUTOGRADER / FILE, help="the course.toml")
    parser.add_argument("--repository", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)  # this process is the grader's account
    asked = parser.parse_args()
    if not asked.folder and (before := of_the_demo(asked.course.resolve())):
        return subprocess.run([*before, sys.executable, *sys.argv], check=False).returncode

    def work() -> Iterator[str]:
        if asked.folder:  # the roster may be closed to the grader's account; it comes from one who can read it
            of = read_deployment(asked.course.resolve(), read_roster(sys.stdin.read()))
            yield from fill_course_folder(of, asked.folder, asked.repository)
        else:
            yield from release_course(read_deployment(asked.course.resolve()))

    return say(work)


if __name__ == "__main__":
    sys.exit(main())
