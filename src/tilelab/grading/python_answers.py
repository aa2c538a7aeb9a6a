"""Python sources as answers: run in a process of their own, through the one runner for learner-written code."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tilelab
from tilelab.cudacpp.processes import Limits, Task, run
from tilelab.grading.errors import GradingError
from tilelab.grading.values import number

if TYPE_CHECKING:
    import ast

#: Seconds and bytes that a learner's Python may take.
LIMITS = Limits(seconds=10.0, memory=2 * 1024**3, file_size=64 * 1024**2)
#: Expressions and statements inside one another.
DEEPEST = 100
#: Characters of a source. What is longer is no answer to a problem of this course.
LONGEST = 50_000


def read_python(source: object, function: str) -> str:
    """Return a Python source that defines a function of that name at its top level.

    Raises
    ------
    GradingError
        It does not. The message is for the learner.
    """
    import ast

    if source is None or (isinstance(source, str) and not source.strip()):
        raise GradingError("no function is handed in yet")
    if not isinstance(source, str):
        raise GradingError(f"hand in the function itself or its text, not {source!r:.60}")
    source = source.removeprefix("\ufeff")
    if len(source) > LONGEST:
        raise GradingError(f"the source has {len(source):,} characters, the limit is {LONGEST:,}")
    try:
        top = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        raise GradingError(f"the source cannot be read as Python: {said}") from None
    if _too_deep(top):
        raise GradingError(f"the source has expressions nested more than {DEEPEST} deep: write them as several lines")
    if not any(isinstance(node, ast.FunctionDef) and node.name == function for node in top):
        raise GradingError(f"the source does not define a function {function!r}")
    return source


def _too_deep(top: Sequence["ast.AST"]) -> bool:
    """Tell whether a source is nested deeper than what reads it later can follow."""
    import ast

    level: list[ast.AST] = list(top)
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def python_fault(source: object, function: str) -> str:
    """Say why a source does not define that function, or ``""``."""
    try:
        read_python(source, function)
    except GradingError as error:
        return str(error)
    return ""


def run_python(module: str, source: str, job: dict[str, Any]) -> Any:
    """Run a module of `tilelab.grading.inside` on a job, beside a learner's source.

    Parameters
    ----------
    module : str
        Its name, such as ``tiled_block``.
    source : str
        The learner's source.
    job : dict
        Plain data, for the module.

    Returns
    -------
    object
        What the module wrote down: plain data that learner-written code may have touched.

    Raises
    ------
    GradingError
        It took too long, ended the process, or wrote nothing that can be read. The message is for the learner.
    """
    root = Path(tilelab.__file__).resolve().parents[1]
    start = (
        f"import sys\nsys.path.insert(0, {str(root)!r})\nfrom tilelab.grading.inside import {module}\n{module}.main()\n"
    )
    files = {"start.py": start.encode(), "answer.py": source.encode(), "job.json": json.dumps(job).encode()}
    done = run(Task([sys.executable, "-I", "-B", "start.py"], files, ["result.json"], LIMITS, [root]))
    if done.timed_out:
        raise GradingError(f"your function did not end within {LIMITS.seconds:g} s: look for a loop that never ends")
    try:
        return json.loads(done.files["result.json"], parse_int=_whole)
    except (KeyError, ValueError, RecursionError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.code}"]
        raise GradingError(f"your function ended the process before there was a result: {last[0]:.200}") from None


def products(source: str, function: str, launches: list[dict[str, Any]]) -> list[Any]:
    """Run a kernel for the simulated GPU, in a process of its own for all launches.

    Parameters
    ----------
    source : str
        The text of its module.
    function : str
        The kernel's name.
    launches : list of dict
        ``shape`` (M, N, K), ``A`` and ``B`` as flat lists, ``grid`` and ``block``.

    Returns
    -------
    list
        For each launch C as an array, NaN where it holds no finite number, or a dict that says what went wrong.

    Raises
    ------
    GradingError
        The source cannot be read, or the process gave no results. The message is for the learner.
    """
    import numpy as np

    results = run_python("simulated_matmul", read_python(source, function), {"launches": launches})
    if not isinstance(results, list) or len(results) != len(launches):
        raise GradingError("the kernel disturbed the record of its results")
    found: list[Any] = []
    for launch, result in zip(launches, results, strict=True):
        said = result if isinstance(result, dict) else {}
        (m, n, _), values = launch["shape"], said.get("C")
        if isinstance(values, list) and len(values) == m * n:
            plain = [np.nan if number(value) is None else value for value in values]
            found.append(np.array(plain, np.float64).reshape(m, n))
        else:
            found.append(said)
    return found


def _whole(text: str) -> int | float:
    """Read a whole number; one that no float can hold is none that the judge could compare."""
    return int(text) if len(text) < 20 else float("inf")
