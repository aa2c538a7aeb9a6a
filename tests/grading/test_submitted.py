"""Reading and restoring what was handed in: only sources and claimed ids survive."""

import json
import os
import re

import nbformat
import pytest
from nbformat import v4

from tilelab.grading import GradingError
from tilelab.grading.restore import PlannedCell, restore
from tilelab.grading.submitted import MAX_FILE_BYTES, find_notebook, handed_in_at, notes, read_submitted


def raw(**cell):
    return {"cell_type": "code", "source": "", "metadata": {}} | cell


def written(tmp_path, content):
    file = tmp_path / "exercise_1.ipynb"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return file


NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [raw(source=["x = 1\n", "x"])]}


@pytest.mark.parametrize(
    "content",
    [
        NOTEBOOK,
        json.dumps(NOTEBOOK).encode("utf-8-sig"),
        NOTEBOOK | {"nbformat_minor": 99},
        NOTEBOOK | {"metadata": "lost"},
        NOTEBOOK | {"metadata": {"kernelspec": {"name": "bash"}, "tilelab": {"unread": "please"}}},
        NOTEBOOK | {"cells": [raw(source="x = 1\nx", outputs="what?", metadata=[1], execution_count="x", id=7), "?"]},
        {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [
            {"cell_type": "code", "input": "x = 1\nx", "outputs": [], "language": "python", "metadata": {}},
        ], "metadata": {}}]},
    ],
)  # fmt: skip
def test_a_readable_file_gives_a_valid_fresh_notebook(tmp_path, content):
    notebook = read_submitted(written(tmp_path, content))
    nbformat.validate(notebook)
    assert notebook.metadata == {}
    assert [(cell.cell_type, cell.source, cell.outputs) for cell in notebook.cells] == [("code", "x = 1\nx", [])]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no complete notebook file"),
        (json.dumps(NOTEBOOK).encode()[:40], "no complete notebook file"),
        ("é".encode("latin-1"), "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        ([], "holds a JSON list"),
        (b"null", "holds a JSON null"),
        (b"true", "holds a JSON truth value"),
        (b"1.5", "holds a JSON number"),
        (b'"x"', "holds a JSON string"),
        ({"nbformat": 4}, "no list of cells"),
        ({"nbformat": 4, "cells": {}}, "no list of cells"),
        ({"nbformat": 3, "worksheets": 5}, "cannot be converted"),
        (b"\x89PNG\r\n\x1a\n\x00", "not UTF-8"),
    ],
)
def test_an_unreadable_file_is_refused_in_words(tmp_path, content, words):
    with pytest.raises(GradingError, match=words):
        read_submitted(written(tmp_path, content))


def test_a_missing_file_names_what_is_there_instead(tmp_path):
    with pytest.raises(GradingError, match=r"no notebook exercise_1\.ipynb was handed in$"):
        read_submitted(tmp_path / "exercise_1.ipynb")
    (tmp_path / "exercise_1-Copy1.ipynb").write_text("{}")
    with pytest.raises(GradingError, match=re.escape("holds exercise_1-Copy1.ipynb. Rename it to exercise_1.ipynb")):
        read_submitted(tmp_path / "exercise_1.ipynb")


def _as_link(place):
    place.with_name("other.json").write_text(json.dumps(NOTEBOOK))
    place.symlink_to("other.json")


#: What a learner may hand in under a notebook's name that is no file, and how it is called.
NO_FILES = {
    "a folder": lambda place: place.mkdir(),
    "a link": _as_link,
    "a link, ": lambda place: place.symlink_to("nowhere"),
    "a link, not": lambda place: place.symlink_to("/dev/zero"),
    "a device or a pipe": os.mkfifo,
}


@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_file_is_not_opened_and_is_called_what_it_is(tmp_path, what):
    NO_FILES[what](tmp_path / "exercise_1.ipynb")
    with pytest.raises(GradingError, match=re.escape(f"exercise_1.ipynb is {what}")) as caught:
        read_submitted(find_notebook(tmp_path, "exercise_1", (), ())[0])
    assert "Rename" not in str(caught.value)


def test_a_file_that_is_too_large(tmp_path):
    file = tmp_path / "exercise_1.ipynb"
    with file.open("wb") as opened:
        opened.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(GradingError, match="larger than 50 MB"):
        read_submitted(file)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([raw()] * 1001, "has 1,001 cells; at most 1,000"),
        ([raw(source="x" * 30_001)], "30,001 of them in one cell"),
        ([raw(source="x" * 30_000)] * 11, "330,000 characters"),
        ([{}] * 2_000_001, "more than 2,000,000 values"),
    ],
)
def test_a_file_that_would_take_too_much_to_grade(tmp_path, cells, words):
    with pytest.raises(GradingError, match=words):
        read_submitted(written(tmp_path, NOTEBOOK | {"cells": cells}))


@pytest.mark.parametrize(
    ("content", "when"),
    [
        (b"2026-01-02 03:04:05.678 UTC", "2026-01-02 03:04:05.678000"),
        (b"2026-01-02 03:04:05 UTC\n", "2026-01-02 03:04:05"),
        (b"", None),
        (b"yesterday", None),
        (b"\xff\xfe", None),
        (b"0001-01-01 00:00:00 Etc/GMT-14", None),
        (b"99999-01-01 00:00:00 UTC", None),
    ],
)
def test_where_a_time_cannot_be_read_that_of_its_file_counts_with_a_note(tmp_path, content, when):
    (tmp_path / "timestamp.txt").write_bytes(content)
    os.utime(tmp_path / "timestamp.txt", (1767000000, 1767000000))
    found, said = handed_in_at(tmp_path)
    assert str(found) == (when or "2025-12-29 09:20:00")
    assert bool(said) == (when is None)


def test_without_a_time_there_is_nothing_to_say(tmp_path):
    assert handed_in_at(tmp_path) == (None, "")


def planned(name, *, grade=False, solution=False, source="released"):
    return PlannedCell(name, "code", source, "sum", not solution, grade, solution, False, 2.0 if grade else 0.0)


PLAN = [planned("setup"), planned("answer", solution=True), planned("test", grade=True)]


def claiming(name, source, make=v4.new_code_cell):
    return make(source, metadata={"nbgrader": {"grade_id": name, "points": 100, "grade": True, "solution": True}})


def restored(*cells):
    notebook = v4.new_notebook(cells=list(cells))
    restore(notebook, PLAN)
    nbformat.validate(notebook)
    return notebook


def test_locked_cells_come_back_as_released_and_answers_stay():
    notebook = restored(claiming("setup", "hacked"), claiming("answer", "mine"), claiming("test", "hacked"))
    assert [cell.source for cell in notebook.cells] == ["released", "mine", "released"]
    assert [cell.metadata.nbgrader.get("points") for cell in notebook.cells] == [None, None, 2.0]
    assert notebook.cells[2].metadata.nbgrader.grade
    assert not notebook.cells[2].metadata.nbgrader.solution
    assert "had been changed" in notes(notebook.cells[2])[0]


def test_a_deleted_cell_is_put_back_where_it_was():
    extra = v4.new_code_cell("extra")
    notebook = restored(claiming("answer", "mine"), extra)
    assert [cell.source for cell in notebook.cells] == ["released", "mine", "released", "extra"]
    assert notes(notebook.cells[2]) == ["this cell was missing: it was put back"]


def test_of_a_copied_cell_the_last_one_counts():
    notebook = restored(claiming("answer", "first"), claiming("answer", "second"), claiming("test", "released"))
    answers = [
        cell.source for cell in notebook.cells if "nbgrader" in cell.metadata and cell.metadata.nbgrader.solution
    ]
    assert answers == ["second"]
    assert "first" in [cell.source for cell in notebook.cells]  # it still runs, as an ordinary cell


def test_a_cell_of_another_type_or_with_an_unknown_id():
    notebook = restored(
        claiming("bonus", "50 points"), claiming("answer", "mine"), claiming("test", "x", v4.new_markdown_cell)
    )
    assert [cell.cell_type for cell in notebook.cells] == ["code"] * 4
    assert "nbgrader" not in notebook.cells[1].metadata


def test_an_empty_notebook_gets_every_locked_cell():
    assert [cell.metadata.nbgrader.grade_id for cell in restored().cells] == ["setup", "test"]
