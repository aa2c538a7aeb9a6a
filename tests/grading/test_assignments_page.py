"""The book's page of assignments lists what there is, as it is."""

import re

import make_views

from tilelab.grading.problems import names, problem

ROWS = [line for line in (make_views.ROOT / "book" / "assignments.md").read_text().splitlines() if "{download}" in line]


def test_every_problem_has_a_row_with_its_title_and_points():
    assert len(ROWS) == len(names())
    for name, row in zip(names(), ROWS, strict=True):
        title = re.search(r"^# (.*)$", (make_views.MASTERS / f"{name}.md").read_text(), re.M)[1]
        said, file, rest, points = re.fullmatch(
            r"\| \{download\}`(.*?) <\.\./(.*?)>`(: .*?) \| .* \| (\d+) \|", row
        ).groups()
        assert f"{said}{rest}".lower() == title.lower()
        assert file == f"notebooks/{problem(name).assignment}/{name}.ipynb"
        assert (make_views.ROOT / file).is_file()
        assert int(points) == sum(part.points for part in problem(name).parts)


def test_every_row_names_the_chapters_that_the_notebook_names():
    for name, row in zip(names(), ROWS, strict=True):
        needed = re.search(r"\*\*You need\*\*(.*?)\*\*Time", (make_views.MASTERS / f"{name}.md").read_text(), re.S)[1]
        asked = re.findall(r"\d+", re.sub(r"(exercise|practice) \d+", "", needed))
        assert re.findall(r"/notebooks/0?(\d+)-", row) == asked, name
