"""A class of 24 over all thirteen problems, made from the corpora, graded by one command: ``make class``.

Each learner hands in, for each problem, one of the answers that the corpus of that problem holds: the seed says which.
So it is known beforehand what everybody must get, and the run says whether they did.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

AUTOGRADER = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(AUTOGRADER / "corpora")]

from cases import Case, cases, problems  # noqa: E402  (from the folder that was just put on the path)
from classroom import hand_in, make_course, solved  # noqa: E402
from nbformat import NotebookNode, v4  # noqa: E402

from tilelab.cli.grade import command  # noqa: E402
from tilelab.grading.answers import record  # noqa: E402
from tilelab.grading.course import Course, PartResult, Result  # noqa: E402
from tilelab.grading.problems import names, problem, split  # noqa: E402

LEARNERS = 24
ASSIGNMENTS = ("exercises", "practice")


def handed_in(case: Case) -> NotebookNode:
    """Return a notebook in which a case's answers stand right before each grade cell, as a learner's own cells."""
    notebook = solved(case.problem)
    answers = record(case.problem, case.answers)["answers"]
    for place in reversed(range(len(notebook.cells))):
        data = notebook.cells[place].metadata.get("nbgrader", {})
        _, part = split(data.get("grade_id", ""))
        if data.get("grade") and not data.get("solution"):
            needed = problem(case.problem).part(part).needs
            source = "\n".join(f"{name} = {answers[name]!r}" for name in needed)
            notebook.cells.insert(place, v4.new_code_cell(source))
    return notebook


def class_of(learners: int, seed: int) -> dict[str, dict[str, Case]]:
    """Return which case each learner hands in for each problem; the first one does everything right."""
    choose = random.Random(seed)
    chosen = {f"learner-{n:02}": {} for n in range(1, learners + 1)}
    for name in problems():
        corpus = list(cases(name))
        for learner, theirs in chosen.items():
            theirs[name] = corpus[0] if learner == "learner-01" else choose.choice(corpus)
    return chosen


def hand_all_in(course: Course, chosen: Mapping[str, Mapping[str, Case]]) -> None:
    """Put everybody's notebooks where ``nbgrader collect`` would."""
    made: dict[tuple[str, str], NotebookNode] = {}
    for learner, theirs in chosen.items():
        for assignment in ASSIGNMENTS:
            files = []
            for name, case in theirs.items():
                if problem(name).assignment == assignment:
                    key = name, case.name
                    made.setdefault(key, handed_in(case))
                    files.append((f"{name}.ipynb", made[key]))
            hand_in(course, learner, assignment, *files)


def differences(chosen: Mapping[str, Mapping[str, Case]], results: Mapping[str, list[Result]]) -> Iterator[str]:
    """Say for whom something else was recorded than what their answers are designed to earn."""
    for assignment, found in results.items():
        by_learner = {result.student: result for result in found}
        for learner, theirs in chosen.items():
            if learner not in by_learner:
                yield f"{learner}: nothing recorded for {assignment}"
                continue
            parts = {part.cell: part for part in by_learner[learner].parts}
            for name, case in theirs.items():
                if problem(name).assignment != assignment:
                    continue
                for part, points in case.expected.items():
                    got = parts.get(f"{name}_{part}")
                    due = points, case.pending.get(part, 0.0)
                    if got is None or (got.score, got.pending) != due:
                        yield f"{learner}: {name}_{part} ({case.name}) is {got}, designed {due}"


def waiting(results: Mapping[str, list[Result]]) -> Iterator[str]:
    """Say what waits for a GPU or a person: each part's points and learners, and the reason of the first of them."""
    parts: dict[str, list[PartResult]] = {}
    for result in (result for found in results.values() for result in found):
        for part in result.parts:
            if part.pending:
                parts.setdefault(part.cell, []).append(part)
    for cell, found in parts.items():
        lines = [line for line in found[0].lines if "pending" in line]
        why = lines[0] if lines else "a text for a person to read"
        yield f"{cell}: {sum(part.pending for part in found):g} points of {len(found)} learners. {why}"


def graded(course: Course, assignment: str, *options: str) -> list[Result]:
    """Grade an assignment as the command line does, and return what the gradebook holds then."""
    try:
        command.main([assignment, "--course", str(course.root), *options], standalone_mode=False)
    except SystemExit as ended:
        if ended.code:
            raise
    return course.results(assignment)


def main() -> int:
    """Make the class, grade it, and compare with the design."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=LEARNERS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--twice", action="store_true", help="grade all again, and compare with the first time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="make the class in this new folder and keep it")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tilelab-class-") as temporary:
        folder = (asked.keep or Path(temporary)) / "course"
        course = make_course(folder, *ASSIGNMENTS)
        chosen = class_of(asked.learners, asked.seed)
        hand_all_in(course, chosen)
        results = {assignment: graded(course, assignment) for assignment in ASSIGNMENTS}
        found = list(differences(chosen, results))
        if asked.twice:
            again = {assignment: graded(course, assignment, "--force") for assignment in ASSIGNMENTS}
            found += [f"{name}: another result the second time" for name in ASSIGNMENTS if again[name] != results[name]]
    print("pending:", *waiting(results), sep="\n  ")
    print("\n".join(found))
    parts = asked.learners * sum(len(problem(name).parts) for name in names())
    print(f"{asked.learners} learners, {parts} parts: {len(found)} differ from the design")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
