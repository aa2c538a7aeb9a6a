"""Masters and their views: one source, stable files, nothing leaks."""

import json
import linecache

import make_views
import nbformat
import pytest

from tilelab.grading import views
from tilelab.grading.problems import names, problem

pytestmark = pytest.mark.slow

MASTERS = make_views.masters()


def learners_copy_of(master):
    return views.learners_copy_of(master, make_views.AUTOGRADER)


def each_master(function):
    return pytest.mark.parametrize("master", MASTERS, ids=lambda path: path.stem)(function)


def test_there_is_a_master_for_each_problem():
    assert [master.stem for master in MASTERS] == list(names())


@each_master
def test_the_learners_copy_is_made_from_the_master(master):
    file = make_views.ROOT / "notebooks" / problem(master.stem).assignment / f"{master.stem}.ipynb"
    made = make_views.text_of(learners_copy_of(master))
    assert file.read_text() == made, "run tools/make_views.py"
    assert "outputs" not in json.dumps([cell for cell in json.loads(made)["cells"] if cell.get("outputs")])


@each_master
def test_the_learners_copy_equals_the_master_outside_the_solution_regions(master):
    source, copy = views.source_of(master), learners_copy_of(master)
    assert [cell.id for cell in source.cells] == [cell.id for cell in copy.cells]
    for ours, theirs in zip(source.cells, copy.cells, strict=True):
        before, marker, rest = ours.source.partition("### BEGIN SOLUTION")
        after = rest.partition("### END SOLUTION")[2]
        stub = "# YOUR ANSWER HERE" if marker else ""
        if ours.cell_type == "markdown" and ours.metadata.get("nbgrader", {}).get("solution"):
            assert theirs.source == "YOUR ANSWER HERE"  # a text for a person to read
        else:
            assert theirs.source == before + stub + after


@each_master
def test_nothing_leaks_into_the_learners_copy(master):
    copy, source = learners_copy_of(master), views.source_of(master)
    text = "\n".join(cell.source for cell in copy.cells)
    assert "SOLUTION" not in text
    assert "def check_" not in text
    for cell in source.cells:
        answer = cell.source.partition("### BEGIN SOLUTION\n")[2].partition("\n### END")[0]
        assert not answer or answer not in text
    worked = [cell.source for cell in views.read_master(master).cells if views.WORKED in cell.metadata.get("tags", [])]
    assert worked, "a master has a worked solution with reasons"
    assert not any(cell in text for cell in worked)


@each_master
def test_the_copy_is_what_nbgrader_releases(master, whole_course):
    released = whole_course.root / "release" / problem(master.stem).assignment / f"{master.stem}.ipynb"
    ours, theirs = learners_copy_of(master), nbformat.read(released, 4)
    assert [(c.id, c.source, c.metadata) for c in ours.cells] == [(c.id, c.source, c.metadata) for c in theirs.cells]


@each_master
def test_grade_cells_are_parts_and_carry_their_points(master):
    graded = {
        cell.metadata.nbgrader.grade_id: (cell.metadata.nbgrader.points, cell.source)
        for cell in views.source_of(master).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    parts = {f"{master.stem}_{part.name}": part.points for part in problem(master.stem).parts}
    assert {name: points for name, (points, _) in graded.items()} == parts
    for part in problem(master.stem).parts:
        name = f"{master.stem}_{part.name}"
        source = graded[name][1]
        if part.by_person:
            continue
        last = source.splitlines()[-1]
        assert last.partition("#")[0].strip() == "0", f"{name} must be worth 0 until the judge has spoken"


@each_master
def test_ids_are_unique_and_stay(master):
    first, second = views.read_master(master), views.read_master(master)
    assert [cell.id for cell in first.cells] == [cell.id for cell in second.cells]
    assert len({cell.id for cell in first.cells}) == len(first.cells)


@pytest.mark.slow
@each_master
def test_the_solution_page_executes_and_its_instant_checks_are_content(master, capsys):
    names = {"__name__": "__main__"}
    for number, cell in enumerate(views.solution_page_of(master).cells):
        if cell.cell_type == "code":
            file = f"<{master.stem} {number}>"
            linecache.cache[file] = len(cell.source), None, cell.source.splitlines(keepends=True), file
            exec(compile(cell.source, file, "exec"), names)  # as a notebook would, in order
    said = capsys.readouterr().out
    assert "✓" in said or "○" in said
    assert "✗" not in said


@each_master
def test_the_solution_page_has_the_answers_and_nothing_to_hand_in(master):
    page = views.solution_page_of(master)
    nbformat.validate(page)
    text = "\n".join(cell.source for cell in page.cells)
    assert "Worked solution" in text
    assert "SOLUTION" not in text
    assert "submit(" not in text
    assert not any("nbgrader" in cell.metadata for cell in page.cells)
    for cell in page.cells:
        if cell.cell_type == "code":
            compile(cell.source, master.name, "exec")
