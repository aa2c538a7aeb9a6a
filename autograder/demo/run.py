"""A class of three, from release to feedback, in a temporary folder: ``make demo``.

The submissions are generated from the master: one right, one partly right, one whose kernel dies. They go through
nbgrader's own exchange (release, fetch, submit, collect) and are graded as ``tilelab grade`` grades.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import nbformat
from classroom import make_course, solved
from nbgrader.utils import capture_log, temp_attrs
from rich.console import Console
from traitlets.config import Config

from tilelab.cli.grade import command
from tilelab.grading.course import Course
from tilelab.grading.errors import GradingError

#: What each learner writes in place of the master's answers.
CLASS = {
    "ada": {},
    "ben": {
        "exercise_1_table_answer": "table = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 9, 13]]",
        "exercise_1_order_answer": 'order = "row-major"',
    },
    "cleo": {"exercise_1_order_answer": 'import os\n\norder = "column-major"\nos._exit(1)'},
}


def exchange(course: Course, step: str, student: str, home: Path) -> None:
    """Run one of nbgrader's exchange steps as a student, whose notebooks are in ``home``."""
    api = course.api
    with temp_attrs(api.coursedir, assignment_id="exercises", student_id=student):
        app = getattr(api.exchange, step)(coursedir=api.coursedir, authenticator=api.authenticator, parent=api)
        app.assignment_dir = str(home)
        done(step, capture_log(app))


def done(step: str, outcome: dict) -> None:
    """Stop where a step did not succeed."""
    if not outcome["success"]:
        raise GradingError(f"{step}: {outcome.get('log') or outcome.get('error')}")


def run(folder: Path) -> Course:
    """Make the course and the class in a folder; release, hand in and collect; return the course ready to be graded."""
    course = make_course(folder / "course", "exercises", problems=["exercise_1"])
    root = folder / "exchange"
    root.mkdir()
    course.api.update_config(Config(Exchange={"root": str(root), "cache": str(folder / "cache")}))
    course.api.update_config(Config(ExchangeCollect={"check_owner": False}))  # one OS user plays the whole class
    done("release", course.api.release_assignment("exercises"))
    for student, changes in CLASS.items():
        home = folder / student
        home.mkdir()
        exchange(course, "FetchAssignment", student, home)
        nbformat.write(solved("exercise_1", changes), home / "exercises" / "exercise_1.ipynb")
        exchange(course, "Submit", student, home)
    done("collect", course.api.collect("exercises"))
    return course


def main() -> None:
    """Run the demo and print its grade table, as ``tilelab grade`` prints it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="make the class in this new folder and keep it")
    keep = parser.parse_args().keep
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="tilelab-demo-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with console.status("a class of three: release, fetch, submit, collect"):
            course = run(folder)
        command.main(["exercises", "--course", str(course.root)], standalone_mode=False)
    if keep:
        print(f"the gradebook: {course.root / 'gradebook.db'}")
        print(f"what ben reads: {course.root / 'feedback' / 'ben' / 'exercises' / 'exercise_1.html'}")


if __name__ == "__main__":
    sys.exit(main())
