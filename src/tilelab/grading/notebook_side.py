"""What a learner calls: `check` looks and says, `submit` hands in. No score is made here."""

import os
import sys
from html import escape
from typing import Any

from tilelab.grading.answers import MIME, record
from tilelab.grading.errors import GradingError
from tilelab.grading.problems import Finding, Part, Problem, problem, split


def check(name: str, **answers: object) -> None:
    """Look at answers at once, draw them, and say what is not right yet, without giving a right answer away.

    Under *autograde* it does nothing.

    Parameters
    ----------
    name : str
        A problem, ``"exercise_1"``, or one of its parts, ``"exercise_1_table"``.
    **answers
        The answers by name, as many as are there.

    Raises
    ------
    GradingError
        There is no such problem or answer, or an answer is not plain data.
    """
    made, parts = _answered(name, answers)
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        return  # nobody reads it there, and it may run a kernel
    findings = [(part, _look(part, made["answers"])) for part in parts]
    _display(_table_text(findings), _table_html(findings))
    _remember(made["problem"], findings)
    _draw(name, made["answers"])


def submit(name: str, **answers: object) -> None:
    """Hand answers in: record them in this cell's output, where the judge reads them.

    At work it also runs the instant checks and says how they went. Under nbgrader's *Validate* it raises where one
    of them fails. Under *autograde* it only records; the cell is worth 0 until the judge has spoken.

    Parameters
    ----------
    name : str
        A problem, ``"exercise_1"``, or one of its parts, ``"exercise_1_table"``.
    **answers
        The answers by name: one part's, several parts', or all.

    Raises
    ------
    GradingError
        There is no such problem or answer, an answer is not plain data, too large or not finite; under Validate also
        where an instant check fails.
    """
    made, parts = _answered(name, answers)
    head = f"{made['problem']}: recorded {', '.join(answers)}"
    mode = os.environ.get("NBGRADER_EXECUTION")
    if mode == "autograde":
        _display(head, f"<p>{escape(head)}</p>", made)
        return
    findings = [(part, _look(part, made["answers"])) for part in parts]
    if mode == "validate":
        failed = [f"{part.name}: {finding.text}" for part, finding in findings if not finding.ok]
        if failed:
            raise GradingError("; ".join(failed))
        _passes_validation(sum(part.points for part in parts))
        return
    _remember(made["problem"], findings, handed_in=True)
    note = "The judge decides when the notebook is graded; you can change your answer until then."
    _display(
        f"{head}\n{_table_text(findings)}\n{note}",
        f"<p><b>{escape(head)}</b></p>{_table_html(findings)}<p>{note}</p>",
        made,
    )


def _answered(name: str, answers: dict[str, object]) -> tuple[dict[str, Any], tuple[Part, ...]]:
    """Return the record of the answers and the parts that they answer."""
    asked = _problem(name)
    parts = asked.answered(answers)
    _, only = split(name)
    if only:
        parts = (asked.part(only),)
        missing = [need for need in parts[0].needs if need not in answers]
        if missing:
            raise GradingError(f"{name} needs {', '.join(missing)}")
    if not parts:
        needs = "; ".join(f"{part.name} needs {', '.join(part.needs)}" for part in asked.parts)
        raise GradingError(f"{name}: no part has all its answers here: {needs}")
    return record(asked.name, answers), parts


def _problem(name: str) -> Problem:
    owner, _ = split(name)
    return problem(owner or name)


def _look(part: Part, answers: dict[str, Any]) -> Finding:
    """Run an instant check; a fault of the check itself must not stop a learner."""
    try:
        return part.look(answers)
    except Exception as error:
        return Finding(True, f"the instant check itself failed ({type(error).__name__}: {error}); the judge will look")


def _remember(name: str, findings: list[tuple[Part, Finding]], handed_in: bool = False) -> None:
    """Keep a reader's progress on their own machine; a judge's run leaves no trace."""
    if os.environ.get("NBGRADER_EXECUTION"):
        return
    from tilelab.grading.progress import seen

    seen(name, [(part.name, finding.ok) for part, finding in findings], handed_in)


def _passes_validation(points: float) -> None:
    """Tell nbgrader's Validate that the cell passes.

    Its locked 0 would read as "failed". Validate counts a cell's first result, so a result with the full points is
    published before that 0. Validate records no grade.
    """
    sys.displayhook(float(points))


def _table_text(findings: list[tuple[Part, Finding]]) -> str:
    return "\n".join(f"  {'✓' if finding.ok else '✗'} {part.name}: {finding.text}" for part, finding in findings)


def _table_html(findings: list[tuple[Part, Finding]]) -> str:
    items = "".join(
        f"<li>{'✓' if finding.ok else '✗'} <b>{escape(part.name)}</b>: {escape(finding.text)}</li>"
        for part, finding in findings
    )
    return f'<ul style="list-style: none; padding-left: 0.5em">{items}</ul>'


def _draw(name: str, answers: dict[str, Any]) -> None:
    """Show a learner's answers as a picture in a notebook; a fault of the drawing must not stop them."""
    picture = _problem(name).picture
    shell = _shell()
    if picture is None or shell is None:
        return
    try:
        drawn = picture(answers)
    except Exception as error:
        print(f"your answer could not be drawn ({type(error).__name__}: {error})")
        return
    if drawn is not None:
        from IPython.display import display

        display(drawn)


def _shell() -> object | None:
    """Return the notebook's shell, or ``None`` in plain Python."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell: object | None = get_ipython()
    return shell


def _display(text: str, html: str, made: dict[str, Any] | None = None) -> None:
    """Show text in a terminal and HTML in a notebook, with the record beside it where there is one."""
    if _shell() is None:
        print(text)
        return
    from IPython.display import display

    bundle: dict[str, Any] = {"text/plain": text, "text/html": html}
    if made is not None:
        bundle[MIME] = made
    display(bundle, raw=True)
