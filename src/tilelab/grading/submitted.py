"""Read what a learner handed in, whatever it is, into a fresh notebook.

Nothing of the file survives but each cell's type, its source and the grade id that it *claims*: metadata, outputs,
tags, cell ids, schema versions and kernel names are the learner's to edit, and nbgrader stumbles over many of them.
"""

import json
import os
import re
import stat
from collections.abc import Collection
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode, v4
from nbgrader.utils import parse_utc

from tilelab.grading.errors import GradingError
from tilelab.grading.sandbox.files import beginning, regular_files

#: Key in a notebook's and a cell's metadata under which the grader notes what happened on the way.
NOTES = "tilelab"
MAX_FILE_BYTES = 50_000_000
#: More than any notebook of a course has. What is below costs little to run, to show and to keep.
MAX_VALUES, MAX_CELLS, MAX_CELL_CHARACTERS, MAX_CHARACTERS = 2_000_000, 1_000, 30_000, 300_000
#: Files of another name that are looked into for a missing notebook.
MAX_CANDIDATES = 20
#: Levels of folders that are looked into for one, and folders of which nothing was handed in.
DEEPEST, NO_FOLDERS = 3, frozenset({".ipynb_checkpoints", "__MACOSX"})
#: What JSON calls its values.
JSON_WORDS = {type(None): "null", bool: "truth value", int: "number", float: "number", str: "string", list: "list"}


def read_submitted(path: str | Path) -> NotebookNode:
    """Return a fresh notebook with the file's cells.

    Parameters
    ----------
    path : path
        The notebook file.

    Returns
    -------
    NotebookNode
        Valid nbformat 4.5; a cell that claims a grade id has ``metadata.nbgrader == {"grade_id": …}``.

    Raises
    ------
    GradingError
        There is no such file, it is a link, a folder or a device, or it cannot be read as a notebook. The message is
        for the learner.
    """
    file = Path(path)
    if not os.path.lexists(file):
        raise GradingError(f"no notebook {file.name} was handed in{_others(file)}")
    try:
        content = json.loads(_decoded(_counted(_bytes_of(file), file.name)), parse_int=_whole_number)
    except UnicodeDecodeError:
        raise GradingError(f"{file.name} is not UTF-8 text; save it again from Jupyter") from None
    except RecursionError:
        raise GradingError(f"{file.name} is nested too deep to be a notebook") from None
    except ValueError as error:
        raise GradingError(f"{file.name} is no complete notebook file ({error}); save it again from Jupyter") from None
    if not isinstance(content, dict):
        raise GradingError(f"{file.name} is not a notebook: it holds a JSON {JSON_WORDS[type(content)]}")
    cells = _cells(content, file.name)
    if len(cells) > MAX_CELLS:
        raise GradingError(f"{file.name} has {len(cells):,} cells; at most {MAX_CELLS:,} are graded")
    fresh = [_fresh(cell, number) for number, cell in enumerate(cells)]
    longest, all_together = max([len(cell.source) for cell in fresh], default=0), sum(len(c.source) for c in fresh)
    if longest > MAX_CELL_CHARACTERS or all_together > MAX_CHARACTERS:
        raise GradingError(
            f"{file.name} holds {all_together:,} characters, {longest:,} of them in one cell; "
            f"at most {MAX_CHARACTERS:,} are graded, and {MAX_CELL_CHARACTERS:,} in a cell"
        )
    return v4.new_notebook(cells=fresh)


def _bytes_of(file: Path) -> bytes:
    """Return what a plain file holds. Nothing else is opened: a link may lead to any file that the grader can read."""
    kind = file.lstat().st_mode
    if not stat.S_ISREG(kind):
        what = "a link" if stat.S_ISLNK(kind) else "a folder" if stat.S_ISDIR(kind) else "a device or a pipe"
        raise GradingError(f"{file.name} is {what}, not a notebook file; hand in the file itself")
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except PermissionError:
        raise GradingError(f"{file.name} may not be read by the grader: its permissions forbid it") from None
    if len(content) > MAX_FILE_BYTES:
        raise GradingError(f"{file.name} is larger than {MAX_FILE_BYTES // 1_000_000} MB; clear its outputs first")
    return content


def _counted(content: bytes, name: str) -> bytes:
    """Return what a file holds, unless reading it would take far more memory than the file."""
    if sum(map(content.count, (b",", b"{", b"["))) > MAX_VALUES:
        raise GradingError(f"{name} holds more than {MAX_VALUES:,} values; clear its outputs first")
    return content


def _decoded(content: bytes) -> str:
    """Return the text of a file in UTF-8, with or without a mark at its start, or of a whole notebook in Latin-1.

    Raises
    ------
    UnicodeDecodeError
        It is neither.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
        try:
            cells = json.loads(text, parse_int=_whole_number).get("cells")
        except (ValueError, AttributeError, RecursionError):
            cells = None
        if isinstance(cells, list) and any(isinstance(cell, dict) and "cell_type" in cell for cell in cells):
            return text
        raise


def _whole_number(digits: str) -> int | str:
    """Return a number, or its digits where Python reads none so long; nothing that is graded hangs on it."""
    try:
        return int(digits)
    except ValueError:
        return digits


def find_notebook(folder: Path, name: str, grade_ids: Collection[str], others: Collection[str]) -> tuple[Path, str]:
    """Return the file that holds a notebook, and a note where its name is not the right one.

    Parameters
    ----------
    folder : Path
        What was handed in.
    name : str
        The notebook's name.
    grade_ids : collection of str
        The ids of its cells: a file of another name, or in a folder below, is taken for it where it is the only one
        that claims some, or the only one of those with the right name.
    others : collection of str
        Names of the assignment's notebooks; a file of another one's name is that one.
    """
    right, others = folder / f"{name}.ipynb", set(others) - {name}
    if not folder.is_dir():
        return right, ""
    if os.path.lexists(right):
        copies = [file.name for file in _notebooks_in(folder, 1) if file != right and _stem(file).startswith(name)]
        copies = [copy for copy in copies if _stem(Path(copy)) not in others]
        return right, f"what counts is {right.name}; {', '.join(copies[:5])} beside it was not read" if copies else ""
    candidates = []
    renamed = (file for file in _notebooks_in(folder) if _stem(file) not in others or file.parent != folder)
    for file in islice(renamed, MAX_CANDIDATES):
        try:
            cells = read_submitted(file).cells
        except GradingError:
            continue
        if any(cell.metadata.get("nbgrader", {}).get("grade_id") in grade_ids for cell in cells):
            candidates.append(file)
    if len(candidates) > 1:
        candidates = [file for file in candidates if _stem(file).casefold() == name.casefold()]
    if len(candidates) == 1:
        taken = candidates[0].relative_to(folder)
        return candidates[0], f"{right.name} was missing: {taken} was taken for it"
    return right, ""


def handed_in_at(folder: Path) -> tuple[datetime | None, str]:
    """Return when a folder was handed in, by its ``timestamp.txt`` (in UTC), and a note where that cannot be read.

    Then the time at which that file was written counts: otherwise spoiling it would always be on time.
    nbgrader's own reader ends the program on such a file.
    """
    file = folder / "timestamp.txt"
    if not os.path.lexists(file):
        return None, ""
    try:
        when = parse_utc(beginning(file, 200).decode().strip())
        if when.year < 1970:
            raise ValueError(f"the year {when.year}")
    except (ValueError, OverflowError, TypeError, AttributeError) as error:
        when = datetime.fromtimestamp(int(file.lstat().st_mtime), UTC).replace(tzinfo=None)
        said = f"timestamp.txt cannot be read ({type(error).__name__})"
        return when, f"{said}: the time at which it was written counts, {when} UTC"
    return when, ""


def substitute(reason: str) -> NotebookNode:
    """Return an empty notebook in place of one that could not be read; its parts are judged 0 with the reason."""
    return v4.new_notebook(metadata={NOTES: {"unread": reason}})


def note(cell: NotebookNode, text: str) -> None:
    """Note on a cell what happened to it, for its report."""
    cell.metadata.setdefault(NOTES, {}).setdefault("notes", []).append(text)


def notes(cell: NotebookNode) -> list[str]:
    """Return what was noted on a cell."""
    return list(cell.metadata.get(NOTES, {}).get("notes", []))


def _notebooks_in(folder: Path, deepest: int = DEEPEST) -> list[Path]:
    """Return files that are notebooks by their names, also by those that browsers and other systems give them."""
    return [
        file
        for file, _ in regular_files(folder, deepest)
        if _stem(file) != file.name and not set(file.relative_to(folder).parts[:-1]) & NO_FOLDERS
    ]


def _stem(file: Path) -> str:
    """Return a notebook's name without its suffix; the whole name of what is none by its suffix."""
    return re.sub(r"\.ipynb(\.txt|\.json)?\s*\Z", "", file.name, flags=re.I)


def _others(file: Path) -> str:
    """Name the notebooks beside a missing one: a renamed copy is the usual reason."""
    found = [str(other.relative_to(file.parent)) for other in _notebooks_in(file.parent)]
    return f"; the folder holds {', '.join(found[:5])}. Rename it to {file.name} and hand it in again" if found else ""


def _cells(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the raw cells, of old notebook formats too."""
    if content.get("nbformat") in (1, 2, 3) and not isinstance(content.get("cells"), list):
        try:
            content = nbformat.convert(nbformat.reader.reads(json.dumps(content)), 4)
        except Exception as error:  # the old converters trust their input
            raise GradingError(f"{name} is an old notebook that cannot be converted ({type(error).__name__})") from None
    cells = content.get("cells")
    if not isinstance(cells, list):
        raise GradingError(f"{name} is not a notebook: it has no list of cells")
    return [cell for cell in cells if isinstance(cell, dict)]


def _fresh(cell: dict[str, Any], number: int) -> NotebookNode:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    make = {"code": v4.new_code_cell, "markdown": v4.new_markdown_cell}.get(str(cell.get("cell_type")), v4.new_raw_cell)
    fresh: NotebookNode = make(source if isinstance(source, str) else "", id=f"cell-{number}")
    if claimed := claimed_id(cell):
        fresh.metadata["nbgrader"] = NotebookNode(grade_id=claimed)
    return fresh


def claimed_id(cell: dict[str, Any]) -> str:
    """Return the grade id that a raw cell claims, or ``""``."""
    metadata = cell.get("metadata")
    claims = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = claims.get("grade_id") if isinstance(claims, dict) else None
    return grade_id if isinstance(grade_id, str) else ""
