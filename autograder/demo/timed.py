"""A class of three on the two timed problems, practice 1 and practice 7, graded as far as a CPU can.

ada hands in the worked solutions. ben's tiled kernel reads along columns, so it is slow, and he compares with it.
cleo has other tiles, and four rows a thread instead of a patch.
"""

import sys
from pathlib import Path

from classroom import AUTOGRADER, hand_in, make_course, solved

from tilelab.grading.course import Course

sys.path.insert(0, str(AUTOGRADER / "corpora"))

from kernels import TILED, changed
from practice_7 import STRIP

UNCOALESCED = changed(
    TILED,
    ("int ti = threadIdx.y, tj = threadIdx.x;", "int ti = threadIdx.x, tj = threadIdx.y;"),
)


def cell(name: str, source: str) -> str:
    """Return a learner's cell that gives a name to a source."""
    return f'{name} = r"""{source}"""\n'


LAUNCH = 'launch = {"grid": "ceil_div(N, TILE), ceil_div(M, TILE)", "block": "TILE, TILE", "TILE": 16}\n'
#: Problem -> grade id of an answer cell -> what stands there instead of the worked solution.
CLASS: dict[str, dict[str, dict[str, str]]] = {
    "ada": {},
    "ben": {
        "practice_1": {"practice_1_kernel_answer": cell("kernel", UNCOALESCED) + LAUNCH},
        "practice_7": {"practice_7_tiled_answer": cell("tiled", UNCOALESCED) + "tiled_" + LAUNCH},
    },
    "cleo": {
        "practice_1": {
            "practice_1_kernel_answer": cell("kernel", changed(TILED, ("TILE 16", "TILE 32")))
            + LAUNCH.replace("16", "32"),
            "practice_1_explanation_answer": 'explanation = {"a": False, "b": True, "c": True, "d": False}\n'
            "measured_ratio = 5.0\n",
        },
        "practice_7": {
            "practice_7_kernel_answer": cell("kernel", STRIP)
            + 'launch = {"grid": "ceil_div(N, 32), ceil_div(M, 32)", "block": "32, 8"}\n'
        },
    },
}
PROBLEMS = ("practice_1", "practice_7")


def make(folder: Path) -> Course:
    """Make the course and hand the class's notebooks in; nothing is graded yet."""
    course = make_course(folder, "practice", problems=PROBLEMS)
    for student, changes in CLASS.items():
        hand_in(course, student, "practice", *((f"{name}.ipynb", solved(name, changes.get(name))) for name in PROBLEMS))
    return course
