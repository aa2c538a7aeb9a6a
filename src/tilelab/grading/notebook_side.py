"""What a learner calls: `given` says what it is about, `check` looks, `submit` hands in. No score is made here."""

import math
import os
import reprlib
import sys
from collections.abc import Mapping
from html import escape
from typing import Any

from tilelab.grading.answers import MIME, record
from tilelab.grading.errors import GradingError
from tilelab.grading.learner import VARIABLE, me
from tilelab.grading.problems import Finding, Part, Problem, given_to, names, problem, split
from tilelab.layout import Layout

#: Told where a check could look at an answer's form alone.
OPEN = "○ can be judged; whether it is right is not told here"
#: The course's key, by problem, from `given`: it says that learners have numbers of their own.
_keys: dict[str, str] = {}


def given(name: str, key: str = "") -> Layout:
    """Return the layout that an exercise is about, and say which it is.

    A course can give every learner a layout of their own. Then ``key`` stands in the notebook that it hands out, and
    the layout follows from the key and the learner's id: on a JupyterHub that is the user, elsewhere the learner
    writes ``%env TILELAB_LEARNER=ada`` in a cell above. The judge knows the id by itself.

    Parameters
    ----------
    name : str
        A problem, such as ``"exercise_1"``.
    key : str
        The course's key; without one everybody has the layout of the text.

    Raises
    ------
    GradingError
        There is no such problem, all learners have the same, or nothing says who the learner is.
    """
    asked = problem(name)
    if asked.layout is None:
        raise GradingError(f"{name} is the same for everybody")
    if key and not me():
        raise GradingError(
            "in this course everybody has numbers of their own, and nothing says who you are: write "
            f"%env {VARIABLE}=… in a cell above, with the name that you hand in under, and run this cell again"
        )
    _keys[name] = key
    mine = _posed(name)
    assert mine.layout is not None
    text, html = f"Given: {mine.statement}.", f"<p>Given: <b>{escape(mine.statement)}</b>.</p>"
    if key:
        rest = (
            f"It is yours alone, {me()}: read it wherever the text says {asked.layout}. "
            "Examples that are worked out in the hints are about the text's."
        )
        text, html = f"{text} {rest}", f"{html}<p>{escape(rest)}</p>"
    _display(text, html)
    return mine.layout


def check(name: str, *unnamed: object, **answers: object) -> None:
    """Look at answers at once, draw them, and say what is not right yet, without giving a right answer away.

    Under *autograde* it does nothing.

    Parameters
    ----------
    name : str
        A problem, ``"exercise_1"``, or one of its parts, ``"exercise_1_table"``.
    *unnamed
        None: an answer without its name is refused in words.
    **answers
        The answers by name, as many as are there.

    Raises
    ------
    GradingError
        There is no such problem or answer, or an answer has no name or is not plain data.
    """
    made, parts = _answered(name, answers, unnamed)
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        return  # nobody reads it there, and it may run a kernel
    findings = [(part, _look(part, made["answers"])) for part in parts]
    _display(_table_text(findings), _table_html(findings))
    _remember(made["problem"], findings)
    _draw(made["problem"], made["answers"])


def submit(name: str, *unnamed: object, **answers: object) -> None:
    """Hand answers in: record them in this cell's output, where the judge reads them.

    At work it also runs the instant checks and says how they went. Under nbgrader's *Validate* it raises where one
    of them fails. Under *autograde* it only records; the cell is worth 0 until the judge has spoken.

    Parameters
    ----------
    name : str
        A problem, ``"exercise_1"``, or one of its parts, ``"exercise_1_table"``.
    *unnamed
        None: an answer without its name is refused in words.
    **answers
        The answers by name: one part's, several parts', or all.

    Raises
    ------
    GradingError
        There is no such problem or answer, or an answer has no name, is not plain data or too large; under Validate
        also where an instant check fails.
    """
    made, parts = _answered(name, answers, unnamed)
    empty = [answer for answer, value in answers.items() if _is_empty(value)]
    head = f"{made['problem']}: recorded {', '.join(answers)}"
    if empty:
        head += f"; holding no answer yet: {', '.join(empty)}"
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
    _remember(made["problem"], findings, [part.name for part in parts if not set(part.needs) & set(empty)])
    note = "The judge decides when the notebook is graded; you can change your answer until then."
    _display(
        f"{head}\n{_table_text(findings)}\n{note}",
        f"<p><b>{escape(head)}</b></p>{_table_html(findings)}<p>{note}</p>",
        made,
    )


def _answered(
    name: str, answers: dict[str, object], unnamed: tuple[object, ...] = ()
) -> tuple[dict[str, Any], tuple[Part, ...]]:
    """Return the record of the answers and the parts that they answer."""
    if not isinstance(name, str):
        raise GradingError(f"name the problem first, such as {names()[0]!r}, not {reprlib.repr(name):.60}")
    owner, only = split(name)
    asked = _posed(owner or name)
    if unnamed:
        first = next(need for part in asked.parts for need in part.needs)
        raise GradingError(f"an answer needs its name: write {first}=…, not {reprlib.repr(unnamed[0]):.60} alone")
    parts = asked.answered(answers)
    if only:
        parts = (asked.part(only),)
        missing = [need for need in parts[0].needs if need not in answers]
        if missing:
            raise GradingError(f"{name} needs {', '.join(missing)}")
    if not parts:
        needs = "; ".join(f"{part.name} needs {', '.join(part.needs)}" for part in asked.parts)
        raise GradingError(f"{name}: no part has all its answers here: {needs}")
    return record(asked.name, answers, me() if _keys.get(asked.name) else ""), parts


def _is_empty(value: object) -> bool:
    """Whether nothing is answered: ``None``, a number that is none, or a collection of nothing but those."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, list | tuple) and all(map(_is_empty, value)))


def _posed(name: str) -> Problem:
    """Return a problem as this learner has it."""
    key = _keys.get(name, "")
    return given_to(name, me() if key else "", key)


def _look(part: Part, answers: dict[str, Any]) -> Finding:
    """Run an instant check; a fault of the check itself must not stop a learner."""
    try:
        return part.look(answers)
    except Exception as error:
        return Finding.undecided(
            f"the instant check itself failed ({type(error).__name__}: {error}); the judge will look"
        )


def _remember(name: str, findings: list[tuple[Part, Finding]], handed_in: list[str] | None = None) -> None:
    """Keep a reader's progress on their own machine; a judge's run leaves no trace."""
    if os.environ.get("NBGRADER_EXECUTION"):
        return
    from tilelab.grading.progress import seen

    seen(name, [(part.name, finding) for part, finding in findings], handed_in)


def _passes_validation(points: float) -> None:
    """Tell nbgrader's Validate that the cell passes.

    Its locked 0 would read as "failed". Validate counts a cell's first result, so a result with the full points is
    published before that 0. Validate records no grade.
    """
    sys.displayhook(float(points))


def _table_text(findings: list[tuple[Part, Finding]]) -> str:
    lines = [f"  {finding.mark} {part.name}: {finding.text}" for part, finding in findings]
    return "\n".join(lines + [f"  {OPEN}"] * any(finding.mark == "○" for _, finding in findings))


def _table_html(findings: list[tuple[Part, Finding]]) -> str:
    items = "".join(
        f"<li>{finding.mark} <b>{escape(part.name)}</b>: {escape(finding.text)}</li>" for part, finding in findings
    )
    legend = f"<li><small>{OPEN}</small></li>" if any(finding.mark == "○" for _, finding in findings) else ""
    return f'<ul style="list-style: none; padding-left: 0.5em">{items}{legend}</ul>'


def _draw(name: str, answers: dict[str, Any]) -> None:
    """Show a learner's answers as a picture in a notebook; a fault of the drawing must not stop them."""
    picture = _posed(name).picture
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
