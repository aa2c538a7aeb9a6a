"""``tilelab check``: the judge for one notebook, without a course."""

import json
import os
import shutil

import nbformat
import pytest
from classroom import AUTOGRADER, solved
from click.testing import CliRunner

from tilelab.cli.main import cli

pytestmark = pytest.mark.slow


def run(*arguments):
    return CliRunner().invoke(cli, ["check", *map(str, arguments)])


@pytest.fixture
def notebook(tmp_path):
    def write(name="exercise_1.ipynb", **changes):
        nbformat.write(solved("exercise_1", changes), tmp_path / name)
        return tmp_path / name

    return write


WRONG = {"exercise_1_table_answer": "table = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 9, 13]]"}


def test_a_readable_table(notebook):
    result = run(notebook(**WRONG))
    assert result.exit_code == 0, result.output
    assert "1.67 of 2" in result.output
    assert "(2,2), (2,3)" in " ".join(result.output.split())
    assert "3.67 of 4" in result.output


@pytest.mark.slow
def test_json_and_a_renamed_notebook(notebook):
    result = run(notebook("my work.ipynb", exercise_1_order_answer="import os; os._exit(1)"), "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [(row["part"], row["score"], row["points"]) for row in rows] == [
        ("exercise_1_table", 2, 2),
        ("exercise_1_order", 0, 1),
        ("exercise_1_contiguous", 1, 1),
    ]
    assert "the kernel ended" in rows[1]["report"][1]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.ipynb", None, "no file"),
        ("exercise_1.ipynb", b'{"cells": [', "no complete notebook file"),
        ("other.ipynb", b'{"nbformat": 4, "cells": []}', "belongs to no problem of this course"),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_is_written(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.iterdir())
    result = run(tmp_path / name)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda place: place.mkdir(), "is a folder, not a notebook file"),
        (lambda place: place.symlink_to("nowhere"), "is a link, not a notebook file"),
        (lambda place: place.symlink_to("/dev/zero"), "is a device or a pipe, not a notebook file"),
        (os.mkfifo, "is a device or a pipe, not a notebook file"),
    ],
)
def test_what_is_no_file_is_called_what_it_is(tmp_path, make, words):
    make(tmp_path / "exercise_1.ipynb")
    result = run(tmp_path / "exercise_1.ipynb")
    assert result.exit_code == 1
    assert words in result.output


def test_a_link_of_ones_own_is_followed(tmp_path, notebook):
    (tmp_path / "link.ipynb").symlink_to(notebook())
    result = run(tmp_path / "link.ipynb")
    assert result.exit_code == 0, result.output
    assert "4 of 4" in result.output


def test_checks_that_do_not_load_are_named(tmp_path, notebook):
    (tmp_path / "autograder" / "checks").mkdir(parents=True)
    (tmp_path / "autograder" / "checks" / "exercise_1.py").write_text("def (")
    result = run(notebook(), "--course", tmp_path)
    assert result.exit_code == 1
    assert "exercise_1.py' does not load: SyntaxError" in result.output


def test_a_clone_that_is_not_whole(tmp_path, notebook):
    shutil.copytree(AUTOGRADER / "checks", tmp_path / "clone" / "autograder" / "checks")
    result = run(notebook(), "--course", tmp_path / "clone")
    assert result.exit_code == 1
    assert "is no whole clone of the course: it has no solutions/exercise_1.md" in result.output
    result = run(notebook(), "--course", tmp_path / "nowhere")
    assert "no folder of trusted checks" in result.output
