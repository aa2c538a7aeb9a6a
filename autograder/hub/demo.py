"""A hub with the course on it, on this machine alone: ``make hub``.

As root, everybody has a Unix account of their own in a private namespace, as on a real server. As an ordinary user,
all share yours: everything works, and nothing keeps learners apart but the exchange.
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from deployment import Deployment, in_words, read_deployment  # noqa: E402  (from the folder that was just put on the path)
from hub_config import environment  # noqa: E402
from private_machine import have_accounts, private_machine  # noqa: E402
from running import RunningHub, make_ready  # noqa: E402

from tilelab.grading.errors import GradingError  # noqa: E402
from tilelab.grading.policy import FILE  # noqa: E402

ROOT = HERE.parents[1]


def walls(of: Deployment) -> tuple[str, list[str]]:
    """Return whose accounts people have, and the command before which to put the hub's."""
    if of.accounts == "own" and os.getuid() == 0:
        if have_accounts(of):
            return "own", []
        if shutil.which("bwrap"):
            return "own", private_machine(of, [ROOT])
    return "shared", []


def release(of: Deployment, before: list[str]) -> None:
    """Release the course, as `release_course` does, behind the same walls as the hub."""
    command = [*before, sys.executable, str(HERE / "release_course.py"), "--course", str(of.file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise GradingError(f"the course was not released: {done.stderr.strip()[-3000:]}")
    print(done.stdout, end="")


def shell(of: Deployment, before: list[str]) -> int:
    """Run a shell as the grader's account, in its home, with the course's commands on its path."""
    if not of.course_folder.is_dir():
        raise GradingError(f"there is no course in {str(of.grader_home)!r} yet: run  make hub  or  make release-course")
    command = [os.environ.get("SHELL", "/bin/sh")]
    variables = os.environ | environment(of) | {"HOME": str(of.grader_home)}
    if of.accounts == "own":
        if os.getuid() != 0:
            raise GradingError(f"only root can act as {of.grader_account!r}")
        drop = ["setpriv", "--reuid", of.grader_account, "--regid", of.grader_account, "--clear-groups"]
        command = [*before, *drop, "--inh-caps=-all", "--no-new-privs", *command]
    print("as the account that grades; try  tilelab grade exercises --course course", file=sys.stderr, flush=True)
    return subprocess.run(command, check=False, cwd=of.grader_home, env=variables).returncode


def end(number: int, frame: object) -> None:
    """End, once: pressing Ctrl-C again must not leave half of the hub behind."""
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    if number == signal.SIGHUP:  # the terminal is gone, and who writes to it fails
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
            os.dup2(nowhere.fileno(), sys.stderr.fileno())
    print("\nending the hub; this takes some seconds …", flush=True)
    raise KeyboardInterrupt


def main() -> int:
    """Release the course, start the hub, say where it is, and end it when told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--course", type=Path, default=HERE.parent / FILE, help="the course.toml")
    parser.add_argument("--shell", action="store_true", help="run a shell as the account that grades instead")
    asked = parser.parse_args()
    if not asked.shell:  # also where it runs in the background of a shell, which has what it starts ignore Ctrl-C
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, end)
    try:
        of = read_deployment(asked.course.resolve())
        if not asked.shell:
            make_ready(of)
        accounts, before = walls(of)
        os.environ["TILELAB_ACCOUNTS"] = accounts
        of = read_deployment(asked.course.resolve())
        if asked.shell:
            return shell(of, before)
        print("releasing the course …", flush=True)
        release(of, before)
        password = secrets.token_urlsafe(9)
        print("starting the hub …", flush=True)
        with RunningHub(of, before, {"TILELAB_DEMO_PASSWORD": password}):
            print(welcome(of, password), flush=True)
            signal.pause()
    except (GradingError, OSError) as error:
        print(in_words(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("the hub has ended; what was handed in is kept in", of.state)
    return 0


def welcome(of: Deployment, password: str) -> str:
    """Return where to go, and as whom."""
    secret = f"password for everybody: {password}"
    if of.authenticator != "shared-password":
        secret = f"people log in by {of.authenticator}"
    apart = "everybody has a Unix account of their own"
    if of.accounts == "shared":
        apart = "all share your Unix account: a demo, not a place for a class"
    return (
        f"\n  {of.url}    {secret}\n"
        f"  learners     {', '.join(learner.id for learner in of.learners)}\n"
        f"  instructors  {', '.join(of.teachers)}, who grade at {of.url}/services/{of.course}/formgrader\n"
        f"  {apart}\n"
        "  Ctrl-C ends it.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
