"""The answer record: what crosses from a learner's notebook to the judge, and nothing else does.

A record is plain JSON under its own MIME type in a cell's output::

    {"version": 1, "problem": "exercise_1", "answers": {"order": "row-major"}}

Where a course gives every learner numbers of their own, ``learner`` says whose numbers were answered.

Both sides live here: the notebook's (`record`) and the judge's (`read`). The judge trusts nothing that it reads, so
both hold the same limits. Loads nothing but the standard library and the layout floor.
"""

import inspect
import json
import math
import reprlib
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.layout import ComposedLayout, Layout

MIME = "application/vnd.tilelab.answer+json"
VERSION = 1
#: Bytes of JSON in one record. A kernel's source is some kilobytes; 1 MB leaves room and keeps notebooks small.
MAX_BYTES = 1_000_000
#: Lists and objects inside one another.
MAX_DEPTH = 20
#: A set is recorded as an object with this one key: where an order is asked for, it is none.
SET = "set"
#: Characters kept of a learner's id.
LONGEST_NAME = 100
#: Bits of a whole number: what fits in a float too.
MAX_BITS = 1023


def record(problem: str, answers: Mapping[str, object], learner: str = "") -> dict[str, Any]:
    """Make the record of some answers to one problem.

    Parameters
    ----------
    problem : str
        Name of the problem, such as ``exercise_1``.
    answers : mapping
        The answers by name. Numbers, strings, truth values, ``None``, lists, tuples, sets, dicts, whatever turns itself
        into those with ``tolist()`` (arrays and their scalars), layouts (as text) and functions (as their source).
        What JSON cannot hold inside them (infinity, half a character) is recorded as words, so that it costs its own
        cell and no other.
    learner : str
        Whose numbers they are about, where learners have their own.

    Returns
    -------
    dict
        The record, checked against the judge's own limits.

    Raises
    ------
    GradingError
        An answer is not plain data, too deep or too large.
    """
    made = {"version": VERSION, "problem": problem, "answers": plain(dict(answers))}
    if learner:
        made["learner"] = learner
    return read([made], problem)


def plain(value: object, depth: int = 0) -> Any:
    """Turn an answer into JSON's own types, or raise `GradingError` that quotes what is none of them."""
    if depth > MAX_DEPTH:
        raise GradingError(f"the answer is nested more than {MAX_DEPTH} deep, or holds itself")
    if value is None or isinstance(value, bool | int | float | str):
        return _recordable(value)
    if isinstance(value, Mapping):
        return {str(_recordable(str(key))): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return {SET: sorted((plain(item, depth + 2) for item in value), key=json.dumps)}
    if isinstance(value, Layout | ComposedLayout):
        return str(value)
    if hasattr(value, "tolist") and not isinstance(value, type):
        return plain(_listed(value), depth + 1)
    if inspect.isfunction(value):
        return source_of(value)
    raise GradingError(
        f"{_named(value)} cannot be handed in: {reprlib.repr(value):.80}. "
        "Numbers, strings, True, False, lists, arrays, layouts and functions can; of a kernel its text"
    )


def _named(value: object) -> str:
    """Return a value's type with its article."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _listed(value: Any) -> object:
    """Return what a value's own ``tolist()`` makes of it."""
    try:
        return value.tolist()
    except Exception as error:
        raise GradingError(
            f"{_named(value)} cannot be handed in: its tolist() says {type(error).__name__}: {error}"
        ) from None


def _recordable(value: object) -> object:
    """Return a single value, or words for one that JSON or a judge's arithmetic cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a whole number of {value.bit_length():,} bits"
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def source_of(function: Callable[..., object]) -> str:
    """Return a function's source: a function is handed in as its text, and runs only where the judge lets it.

    Raises
    ------
    GradingError
        Its text is not to be had, as that of a ``lambda`` or of what was made by ``exec``.
    """
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        text = ""
    if not text.startswith(("def ", "@")):
        raise GradingError(
            f"the text of {function.__name__!r} cannot be read: define it with def in a cell, or hand in its text"
        )
    return text


def read(found: Iterable[object], problem: str) -> dict[str, Any]:
    """Return the one record of a cell, cleaned, as the judge accepts it.

    Parameters
    ----------
    found : iterable
        Everything that stood under `MIME` in the cell's outputs.
    problem : str
        The problem that the cell belongs to.

    Returns
    -------
    dict
        A fresh record with the keys ``version``, ``problem`` and ``answers``, and ``learner`` where it names one.

    Raises
    ------
    GradingError
        There is not exactly one record, or it is not one that the judge accepts. The message is for the learner.
    """
    records = list(found)
    if not records:
        raise GradingError("no answer was recorded")
    if len(records) > 1:
        raise GradingError(f"{len(records)} answers were recorded in one cell, one is expected")
    try:
        text = json.dumps(records[0], allow_nan=False)
        content = json.loads(text)
        depth = _depth(content)
        longest = _longest_whole(content)
    except RecursionError:
        raise GradingError("the answer is nested too deep") from None
    except ValueError as error:
        if "digits" in str(error):
            raise GradingError("the answer holds a whole number of thousands of digits") from None
        raise GradingError("the answer holds a number that is not finite (NaN or infinity)") from None
    except TypeError as error:
        raise GradingError(f"the answer is not plain data ({error})") from None
    if len(text) > MAX_BYTES:
        raise GradingError(f"the answer takes {len(text):,} bytes, the limit is {MAX_BYTES:,}")
    if depth > MAX_DEPTH:
        raise GradingError(f"the answer is nested more than {MAX_DEPTH} deep")
    if longest > MAX_BITS:
        raise GradingError(f"the answer holds a whole number of {longest:,} bits, the limit is {MAX_BITS:,}")
    match content:
        case {"version": 1, "problem": str(name), "answers": dict(answers)} if name == problem:
            learner = content.get("learner")
            whose = {"learner": learner[:LONGEST_NAME]} if isinstance(learner, str) and learner else {}
            return {"version": VERSION, "problem": name, "answers": answers, **whose}
        case {"problem": str(name)} if name != problem:
            raise GradingError(f"the recorded answer is for {name!r:.60}, this cell belongs to {problem!r}")
        case _:
            raise GradingError("what was recorded is not an answer record of this version of tilelab")


def _longest_whole(content: object) -> int:
    """Bits of the longest whole number; the content is known to be flat enough."""
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        return max(map(_longest_whole, content), default=0)
    return content.bit_length() if isinstance(content, int) else 0


def _depth(content: object) -> int:
    if isinstance(content, dict):
        content = list(content.values())
    return 1 + max(map(_depth, content), default=0) if isinstance(content, list) else 0
