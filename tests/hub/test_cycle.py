"""A whole course in the browser, as its people do it: release, fetch, work, Validate, submit, grade, feedback, points.

``make test-hub`` runs this. Nothing is called behind the pages' backs; what is looked at afterwards is looked at
through pages too, or with the commands that the instructor's guide names.
"""

import csv
import sys
from urllib.parse import quote

import pytest
from classroom import solved
from hub_config import environment
from hubs import PASSWORD
from visitor import Visitor

from tilelab.grading.exchange.plugins import STAMP

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("hub"), pytest.mark.timeout(1200)]
PATIENCE = 120_000
#: The notebook in front; the lab keeps others behind it.
SHOWN = ".jp-NotebookPanel:not(.lm-mod-hidden)"
CLI = "from tilelab.cli.main import cli; cli()"
WRONG = "table = [[0, 3, 6, 9], [1, 4, 7, 10]]"


@pytest.fixture(scope="module")
def warmup(hub):
    """Put an assignment of two problems among the sources, as an instructor would: one a person must read."""
    source = hub.of.course_folder / "source"
    script = (
        "import shutil, pathlib\n"
        "source = pathlib.Path('course/source'); made = source / 'warmup'; made.mkdir()\n"
        "shutil.copy(source / 'exercises' / 'exercise_1.ipynb', made)\n"
        "shutil.copy(source / 'practice' / 'practice_8.ipynb', made)\n"
    )
    done = hub.run_as(hub.of.grader_account, sys.executable, "-c", script, cwd=hub.of.grader_home)
    assert done.returncode == 0, done.stderr
    return source / "warmup"


class Person:
    """Somebody with a browser of their own, logged in."""

    def __init__(self, chromium, hub, name):
        self.hub, self.name = hub, name
        self.context = chromium.new_context(viewport={"width": 1400, "height": 1000})
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.goto(f"{hub.base}hub/login")
        self.page.fill("#username_input", name)
        self.page.fill("#password_input", PASSWORD)
        self.page.click("#login_submit")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, at):
        if error is not None:
            self.page.screenshot(path=str(self.hub.of.state.parent / f"{self.name}.png"))
        self.context.close()

    # ---- a learner

    def open_lab(self, path=""):
        self.page.goto(f"{self.hub.base}user/{self.name}/lab{path}")
        self.page.wait_for_selector("#jp-main-dock-panel")

    def menu(self):
        """Return what nbgrader's menu offers."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text="Nbgrader").click()
        entries = self.page.locator(".lm-Menu-itemLabel:visible").all_inner_texts()
        return [entry for entry in entries if entry]

    def open_notebook(self, path):
        self.open_lab(f"/tree/{path}")
        self.page.locator(f"{SHOWN} .jp-CodeCell").first.wait_for()

    def open_assignments(self):
        self.menu()
        self.page.locator(".lm-Menu-itemLabel", has_text="Assignment List").click()
        self.page.wait_for_selector("#released_assignments_list")

    def press(self, which, label, assignment="warmup"):
        """Press an assignment's button in one of the three lists."""
        row = self.page.locator(f"#{which}_assignments_list .list_item", has_text=assignment)
        row.get_by_role("button", name=label, exact=True).first.click()

    def write(self, name, source):
        """Write a cell of an opened notebook, which is found by what its metadata calls it."""
        editor = self.page.locator(f"{SHOWN} .jp-CodeCell").filter(has_text=name).first
        editor.scroll_into_view_if_needed()
        content = editor.locator(".cm-content")
        content.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def write_text(self, source):
        """Write the text that a person will read."""
        cell = self.page.locator(f"{SHOWN} .jp-MarkdownCell").filter(has_text="YOUR ANSWER HERE").first
        cell.dblclick()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def save(self):
        """Save the notebook in front."""
        self.page.keyboard.press("Control+s")
        self.page.locator(".jp-mod-current.jp-mod-dirty").wait_for(state="detached")

    def validate(self):
        """Press Validate in the notebook's toolbar and return what it says."""
        self.page.locator(f"{SHOWN} .jp-Toolbar").get_by_role("button", name="Validate", exact=True).click()
        dialog = self.page.locator(".jp-Dialog")
        dialog.wait_for()
        text = dialog.inner_text()
        dialog.locator("button", has_text="OK").click()
        return text

    def receipts(self):
        """Return what the exchange says that they handed in."""
        return Visitor(self.hub.base, self.name, PASSWORD).exchange().submissions()

    def read(self, path):
        """Open a file of theirs as a page, and return what it says."""
        self.page.goto(f"{self.hub.base}user/{self.name}/files/{quote(path)}")
        return " ".join(self.page.inner_text("body").split())

    # ---- an instructor

    def open_formgrader(self, path=""):
        answer = self.page.goto(f"{self.hub.base}services/{self.hub.of.course}/formgrader{path}")
        assert answer.status == 200

    def act(self, selector):
        """Press one of formgrader's links and wait until it says that it worked."""
        self.page.click(selector)
        dialog = self.page.locator("#success-modal .modal-dialog, #error-modal .modal-dialog").first
        dialog.locator(".modal-title").wait_for()
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.modal-title')].some(t => /Success|Error/.test(t.innerText))"
        )
        title, text = dialog.locator(".modal-title").inner_text(), dialog.inner_text()
        assert "Success" in title, text
        dialog.locator("button", has_text="OK").last.click()
        dialog.wait_for(state="hidden")
        return text

    def grade(self, cell, points, comment):
        """Give points and a comment by hand, and wait until both are stored."""
        self.page.wait_for_load_state("networkidle")
        for selector, said, kind in ((cell, points, "grade"), (f"{cell}-comment", comment, "comment")):
            field = self.page.locator(f"[id='{selector}']")
            with self.page.expect_response(lambda r, kind=kind: f"/api/{kind}/" in r.url and r.request.method == "PUT"):
                field.click()
                field.press_sequentially(said)  # what is filled in at once is no change to the page
                field.press("Tab")


def run_tilelab(hub, *arguments):
    """Run a command of tilelab's as the grader's account, in its home, as the guide says."""
    command = [sys.executable, "-c", CLI, *arguments, "--course", "course"]
    variables = environment(hub.of) | {"HOME": str(hub.of.grader_home)}
    done = hub.run_as(hub.of.grader_account, *command, cwd=hub.of.grader_home, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_course_from_release_to_points_and_export(chromium, hub, warmup):
    answers = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in solved("exercise_1").cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    with Person(chromium, hub, "ada") as early:  # her server starts while the assignment is released
        early.page.goto(f"{hub.base}user/ada/lab")

    with Person(chromium, hub, "iris") as iris:
        iris.open_formgrader()
        iris.page.locator("tr", has_text="warmup").wait_for()
        iris.act("tr:has-text('warmup') td.assign a")
        iris.page.reload()
        iris.act("tr:has-text('warmup') td.release a")
        iris.open_lab()
        assert iris.menu() == ["Assignment List", "Course List"], "Formgrader in a tab would show nothing"
        iris.page.locator(".lm-Menu-itemLabel", has_text="Course List").click()
        link = iris.page.locator("#formgrader_list a", has_text="tiles")
        assert link.get_attribute("href").endswith("/services/tiles/formgrader")

    with Person(chromium, hub, "ada") as ada:
        ada.open_lab()
        assert ada.menu() == ["Assignment List"], "no page that is not for learners"
        ada.page.keyboard.press("Escape")
        ada.open_assignments()
        ada.press("released", "Fetch")
        ada.page.locator("#fetched_assignments_list .list_item", has_text="warmup").first.wait_for()

        ada.open_notebook("warmup/exercise_1.ipynb")
        ada.write("table = [", WRONG)
        said = ada.validate()
        assert "table: the table has 2 rows, the shape asks for 3" in said
        assert "Traceback" not in said
        for name, start in (("table", WRONG), ("order", "order = None"), ("contiguous", "contiguous = None")):
            ada.write(start, answers[f"exercise_1_{name}_answer"])
        assert "Success! Your notebook passes all the tests." in ada.validate()

        ada.open_notebook("warmup/practice_8.ipynb")
        ada.write_text("Thin, so bound by memory: we keep cuBLAS.")
        ada.save()
        ada.open_assignments()
        ada.press("fetched", "Submit")
        ada.page.locator("#submitted_assignments_list .list_item", has_text="warmup").first.wait_for()

    with Person(chromium, hub, "iris") as iris:
        iris.open_formgrader()
        assert "Collected ada warmup" in iris.act("tr:has-text('warmup') td.collect a")
        iris.open_formgrader("/manage_submissions/warmup")
        said = iris.act("tr:has-text('ada') td.autograde a")
        assert "JudgeAnswers" in said
        iris.page.reload()
        row = iris.page.locator("tr", has_text="ada")
        row.locator("td.autograde").wait_for()
        assert "needs manual grading" in row.inner_text(), "points that wait for a person can be seen"
        assert "4 / 14" in row.inner_text()

        iris.open_formgrader("/gradebook/warmup/practice_8")
        iris.page.locator("td.needs-manual-grade .glyphicon").wait_for()
        iris.page.locator("td.name a.name-hidden").click()
        iris.page.get_by_text("The roofline is used").wait_for()  # the rubric stands above the answer
        assert "we keep cuBLAS" in iris.page.inner_text("body")
        iris.grade("practice_8_text", "3", "Put the fused neighbour in bytes.")

        iris.open_formgrader()
        iris.act("tr:has-text('warmup') td.generate-feedback a")
        iris.act("tr:has-text('warmup') td.release-feedback a")

    with Person(chromium, hub, "ada") as ada:
        ada.open_lab()
        ada.open_assignments()
        ada.press("submitted", "Fetch Feedback")
        ada.page.get_by_text("(view feedback)").wait_for()
        (receipt,) = (one for one in ada.receipts() if one.assignment == "warmup")
        place = f"warmup/feedback/{receipt.moment.strftime(STAMP)}"
        assert "Score: 4.0 / 4.0" in ada.read(f"{place}/exercise_1.html")
        said = ada.read(f"{place}/practice_8.html")
        assert "Score: 3.0 / 10.0" in said
        assert "Put the fused neighbour in bytes." in said

    # The whole class at once, and its export: what was given by hand in formgrader stays.
    run_tilelab(hub, "grade", "warmup", "--workers", "1")
    header, possible, *rows = csv.reader(run_tilelab(hub, "export", "warmup", "--form", "canvas").splitlines())
    scores = [(row[header.index("SIS Login ID")], float(row[header.index("warmup")])) for row in rows]
    assert scores == [("ada", 7.0)]
    assert float(possible[header.index("warmup")]) == 14.0
