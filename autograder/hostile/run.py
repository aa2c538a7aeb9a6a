"""Grade every broken and hostile submission in one class, and try every escape from the sandbox.

Prints what was designed and what came out; root does it a second time as an ordinary user. Exit code 0: all came out
as designed, no attempt escaped, and nothing was left behind.
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "demo")]

from attacks import CASES as ATTACKS  # noqa: E402  (from the folders that were just put on the path)
from case_kinds import PARTS  # noqa: E402
from classroom import hand_in, make_course  # noqa: E402
from escapes import ATTEMPTS, fault_of, targets  # noqa: E402
from odd_files import CASES as FILES  # noqa: E402
from ordinary_user import as_ordinary_user  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from submissions import CASES as NOTEBOOKS  # noqa: E402

from tilelab.grading.course import Result  # noqa: E402
from tilelab.grading.sandbox import cgroups  # noqa: E402
from tilelab.grading.sandbox.processes import texts  # noqa: E402

CASES = NOTEBOOKS | FILES | ATTACKS
#: Shorter than a course's, so that what never ends ends soon.
LIMITS = "[every]\ncell_seconds = 8\nmemory = '1 GiB'\n"
#: Seconds for everything as an ordinary user.
LONGEST = 1800
#: What an attempt would leave behind if it succeeded, in some process's command line.
LEFT = ("tilelab-hostile", "sleep\x0054321")


def grade(folder: Path, names: list[str], workers: int) -> dict[str, tuple[Result, str]]:
    """Grade cases in a new course in a folder; return the result and the feedback's HTML of each."""
    os.environ["TILELAB_HOSTILE_SECRET"] = "1"
    course = make_course(folder / "course", "exercises", problems=["exercise_1"])
    (course.root / "limits.toml").write_text(LIMITS)
    for name in names:
        handed_in = hand_in(course, name, "exercises", *CASES[name].files.items())
        if prepare := CASES[name].prepare:
            prepare(handed_in)
    results = {result.student: result for result in course.grade_all("exercises", names, workers=workers)}
    pages = {name: course.root / "feedback" / name / "exercises" / "exercise_1.html" for name in names}
    return {name: (results[name], page.read_text() if page.exists() else "") for name, page in pages.items()}


def faults(name: str, result: Result, html: str) -> list[str]:
    """Return what did not come out as designed."""
    designed = CASES[name]
    came = {part.cell.removeprefix("exercise_1_"): part.score for part in result.parts}
    points = tuple(came.get(part) for part in PARTS)
    said = "\n".join(line for part in result.parts for line in (*part.lines, *part.notes))
    found = []
    if result.status != "graded":
        found.append(f"{result.status}: {result.message}")
    if designed.points and points != designed.points:
        found.append(f"{points}, designed {designed.points}: {said}")
    if not re.search(designed.words, said):
        found.append(f"{designed.words!r} is not said in: {said}")
    if any(part.needs_person for part in result.parts):
        found.append("waits for a person")
    if not html:
        found.append("no feedback")
    if "lambda i, j: i + 3" in html or "plain truth value counts" in html:
        found.append("feedback shows a check")
    return found


def left_behind() -> list[str]:
    """Return the command lines of processes that submissions left running."""
    return [line.replace("\0", " ") for _, line in texts("cmdline") if any(mark in line for mark in LEFT)]


def main() -> int:
    """Grade, print the table, and return 0 where everything came out as designed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all unless told")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--once", action="store_true", help="as this user alone")
    parser.add_argument("--third", type=int, choices=[0, 1, 2], help="every third case, without the escapes")
    asked = parser.parse_args()
    names = asked.cases or (list(CASES) if asked.third is None else list(CASES)[asked.third :: 3])
    with_escapes = names == list(CASES)
    print(f"as {'root' if os.getuid() == 0 else 'an ordinary user'}, {cgroups.held_by()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tilelab-hostile-") as folder:
        graded = grade(Path(folder), names, asked.workers)
    table = Table("submission", *PARTS, "what came out otherwise")
    right = 0
    for name in names:
        wrong = faults(name, *graded[name])
        right += not wrong
        scores = [f"{part.score:g}" for part in graded[name][0].parts]
        table.add_row(name, *scores, "; ".join(wrong) or "✓")
    Console(width=160).print(table)
    escaped = escapes() if with_escapes else {}
    for attempt, words in escaped.items():
        print(f"{attempt}: {words}")
    orphans = left_behind()
    tried = f"{len(escaped)} of {len(ATTEMPTS)} attempts escaped, " if with_escapes else ""
    print(f"{right} of {len(names)} as designed, {tried}{len(orphans)} processes left behind", flush=True)
    held = right == len(names) and not orphans and not escaped
    if os.getuid() == 0 and not asked.once:
        held &= as_an_ordinary_user([*names, "--once", "--workers", str(asked.workers)])
    return 0 if held else 1


def escapes() -> dict[str, str]:
    """Try every escape; return what is wrong with those that were not held."""
    with tempfile.TemporaryDirectory(prefix="tilelab-targets-") as folder, targets(Path(folder)) as about:
        tried = {name: fault_of(name, about) for name in ATTEMPTS}
    return {name: words for name, words in tried.items() if words}


def as_an_ordinary_user(arguments: list[str]) -> bool:
    """Do the same again as a user without privileges, and tell whether all was well."""
    with tempfile.TemporaryDirectory(prefix="tilelab-open-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, __file__, *arguments]
        done = as_ordinary_user(command, Path(folder), LONGEST, env={"TMPDIR": folder})
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
