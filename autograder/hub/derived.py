"""The files that Jupyter servers read, derived from a `Deployment`: a folder for each of three roles."""

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from deployment import Deployment, read_deployment  # noqa: E402  (from the folder that was just put on the path)

from tilelab.grading.budgets import FILE as LIMITS  # noqa: E402

#: nbgrader's entries in JupyterLab that somebody does not need. *Formgrader* would frame a page that refuses to be
#: framed, and show nothing: nobody has it, formgrader is a page of its own.
HIDDEN = {
    "learner": ("formgrader", "create-assignment", "course-list"),
    "teacher": ("formgrader", "create-assignment"),
    "grader": ("formgrader", "assignment-list", "course-list", "validate-assignment"),
}
NBGRADER = """\
from tilelab.grading.exchange.plugins import configure

c = get_config()
{own}configure(c)
c.CourseDirectory.course_id = {course!r}
c.ContainedExecute.limits = {limits!r}  # Validate stops what grading would stop
"""
OF_THE_GRADER = """\
load_subconfig("nbgrader_config.py", path={folder!r})
c.CourseDirectory.root = {folder!r}
"""
SERVER = """\
c = get_config()
c.ServerApp.jpserver_extensions = {extensions!r}
"""


def write_derived(of: Deployment) -> None:
    """Write what is below ``etc/``, anew."""
    of.etc.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE.parent / LIMITS, of.etc)
    for role in HIDDEN:
        folder = of.etc / role
        folder.mkdir(parents=True, exist_ok=True)
        own = OF_THE_GRADER.format(folder=str(of.course_folder)) if role == "grader" else ""
        _write(folder / "nbgrader_config.py", NBGRADER.format(own=own, course=of.course, limits=str(of.etc / LIMITS)))
        _write(folder / "jupyter_server_config.py", SERVER.format(extensions=_extensions(role)))
        hidden = {f"@jupyter/nbgrader:{name}": True for name in HIDDEN[role]}
        hidden |= {"@jupyterlab/apputils-extension:announcements": True}  # it would ask a server elsewhere for news
        _write(folder / "labconfig" / "page_config.json", json.dumps({"disabledExtensions": hidden}, indent=1))
    for folder in (of.state, of.etc, *of.etc.rglob("*")):
        folder.chmod(0o755 if folder.is_dir() else 0o644)


def _extensions(role: str) -> dict[str, bool]:
    """Return which of nbgrader's server extensions run; ours stand in for those that learners and teachers use."""
    base = "nbgrader.server_extensions"
    grader = role == "grader"
    return {
        f"{base}.formgrader": grader,
        f"{base}.assignment_list": False,
        f"{base}.validate_assignment": False,
        f"{base}.course_list": False,
        "tilelab.grading.exchange.lab": not grader,
        "tilelab.grading.exchange.formgrader": grader,
    }


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def main() -> None:
    """Write the files below another folder than the hub's, for an image."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--course", type=Path, required=True, help="the course.toml")
    parser.add_argument("--to", type=Path, required=True, help="the folder above etc/")
    asked = parser.parse_args()
    write_derived(replace(read_deployment(asked.course.resolve()), state=asked.to.resolve()))


if __name__ == "__main__":
    main()
