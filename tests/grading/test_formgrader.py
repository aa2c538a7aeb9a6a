"""nbgrader's formgrader, served over a graded class of attackers and opened in a browser: nothing of theirs runs."""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from classroom import hand_in, make_course, solved
from formgraders import serve
from nbformat import v4
from patience import PATIENCE

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "autograder" / "hostile"))

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.xdist_group("formgrader")]

#: What an attack does that runs, wherever it stands.
ATTACK = "document.title='ATTACKED';top.attacked=1;fetch('/attacked')"
#: In nobody's page but their own: a line of a check, and what another learner wrote.
OF_A_CHECK, OF_ANOTHER = ("lambda i, j: i + 3", "plain truth value counts"), "only-for-the-eyes-of-alice"
#: What nbgrader's own pages load from elsewhere.
MATHJAX = "https://cdnjs.cloudflare.com/ajax/libs/mathjax/"


def attacker():
    """A notebook that attacks in every place that a learner can write, and links to a page of theirs beside it."""
    from submissions import scripts_everywhere

    made = solved("exercise_1")
    scripts_everywhere(made)
    script = f"<script>{ATTACK}</script>"
    made.cells.insert(
        2,
        v4.new_markdown_cell(
            f'{script}<img src=x onerror="{ATTACK}"><svg onload="{ATTACK}"></svg> [page](page.html) '
            f"[script](javascript:{ATTACK}) ![p](page.svg) $\\href{{javascript:{ATTACK}}}{{x}}$ "
            "<a href=page.html>link</a>"
        ),
    )
    for cell in made.cells:
        cell.metadata["name"] = cell.metadata["title"] = script
        if cell.cell_type == "code":
            cell.source = f"# {script}</code></pre>{script}\n{cell.source}"
    made.metadata["title"] = made.metadata["authors"] = [{"name": script}]
    made.metadata["language_info"] = {"name": script, "codemirror_mode": script, "mimetype": script}
    return made


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A class of three, graded: one attacks, one attacks by what the report quotes, one has secrets."""
    made = make_course(tmp_path_factory.mktemp("formgrader") / "course", "exercises", problems=["exercise_1"])
    page = f"<html><script>{ATTACK}</script></html>"
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><script>{ATTACK}</script></svg>'
    files = [("page.html", page), ("page.svg", svg), ("page.htm", page), ("data.csv", "1,2\n")]
    hand_in(made, "mallory", "exercises", ("exercise_1.ipynb", attacker()), *files)
    quoted = f"<img src=x onerror={ATTACK.replace('/', '')}>"
    answers = {
        "exercise_1_order_answer": f"order = {quoted!r}",
        "exercise_1_table_answer": f"raise OSError({quoted!r})",
    }
    hand_in(made, "trudy", "exercises", (f"exercise_1 {quoted}.ipynb", solved("exercise_1", answers)))
    hers = solved("exercise_1", {"exercise_1_prediction": f"prediction = 1  # {OF_ANOTHER}"})
    hand_in(made, "alice", "exercises", ("exercise_1.ipynb", hers))
    results = {result.student: result for result in made.grade_all("exercises", ["alice", "mallory", "trudy"])}
    assert {student: (result.status, result.score) for student, result in results.items()} == {
        "alice": ("graded", 4),
        "mallory": ("graded", 4),
        "trudy": ("graded", 1),
    }
    return made


@pytest.fixture(scope="module")
def server(course, tmp_path_factory):
    """The address of a Jupyter server with formgrader, in the course's folder."""
    with serve(course, tmp_path_factory.mktemp("jupyter")) as address:
        yield address


@pytest.fixture
def page(server, chromium):
    """A page of a browser that notes what it asks for, and every sign that an attack ran."""
    opened = chromium.new_page()
    opened.asked = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("dialog", lambda dialog: (opened.asked.append("/attacked by a dialog"), dialog.dismiss()))
    yield opened
    opened.close()


def assert_nothing_ran(page, address):
    """No script of a learner's ran, none is left to be run by a click, and nothing was asked for elsewhere."""
    page.wait_for_timeout(700)
    assert "ATTACKED" not in page.title()
    assert page.evaluate("window.attacked") is None
    allowed = (address, "data:", "file:", MATHJAX)
    assert not [url for url in page.asked if "attacked" in url or not url.startswith(allowed)]
    html = page.content()
    for words in OF_A_CHECK:
        assert words not in html
    return html


def submissions(address):
    """Numbers of the notebooks handed in, by student."""
    url = f"{address}/formgrader/api/submitted_notebooks/exercises/exercise_1"
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return {found["student"]: found["id"] for found in json.load(answer)}


def test_the_attack_would_run_if_it_were_let(server, page, course):
    """A learner's page as it was handed in, from Jupyter's own view of files: the browser does run it."""
    page.goto((course.root / "submitted" / "mallory" / "exercises" / "page.html").as_uri())
    assert page.title() == "ATTACKED"


@pytest.mark.parametrize("student", ["mallory", "trudy"])
def test_formgrader_shows_a_submission_and_runs_nothing_of_it(server, page, student):
    number = submissions(server)[student]
    page.goto(f"{server}/formgrader/submissions/{number}/", wait_until="load")
    html = assert_nothing_ran(page, server)
    assert "tilelab-report" in html, "the judge's report is not in the page"
    assert OF_ANOTHER not in html
    for link in page.locator("#notebook-container a, .jp-Notebook a, #notebook a").all():
        target = link.get_attribute("href") or ""
        assert not target.lower().startswith(("javascript", "data", "vbscript")), target
        assert not target.endswith((".html", ".svg", ".htm")), target


def test_pages_that_were_handed_in_are_not_served_by_formgrader(server):
    number = submissions(server)["mallory"]
    served = {}
    for name in ("page.html", "page.svg", "page.htm", "data.csv"):
        try:
            with urllib.request.urlopen(f"{server}/formgrader/submissions/{number}/{name}", timeout=PATIENCE) as answer:
                served[name] = answer.headers.get_content_type()
        except urllib.error.HTTPError as error:
            served[name] = error.code
    assert served == {"page.html": 404, "page.svg": 404, "page.htm": 404, "data.csv": "text/csv"}


@pytest.mark.parametrize(
    "place",
    ["manage_submissions/exercises", "gradebook/exercises", "gradebook/exercises/exercise_1", "manage_students", ""],
)
def test_the_lists_of_formgrader_run_nothing(server, page, place):
    page.goto(f"{server}/formgrader/{place}", wait_until="networkidle")
    assert_nothing_ran(page, server)


@pytest.mark.parametrize("student", ["alice", "mallory", "trudy"])
def test_feedback_runs_nothing_and_shows_no_check_and_nobody_else(course, page, student):
    page.goto((course.root / "feedback" / student / "exercises" / "exercise_1.html").as_uri())
    html = assert_nothing_ran(page, "file:")
    assert "tilelab-report" in html
    assert (OF_ANOTHER in html) == (student == "alice")
    others = {"alice", "mallory", "trudy"} - {student}
    assert not [other for other in others if other in html.removeprefix(OF_ANOTHER)]
