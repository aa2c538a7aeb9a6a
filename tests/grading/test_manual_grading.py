"""nbgrader's formgrader on a graded course, in a browser: what waits, why, and the rubric a person grades by."""

import pytest
from classroom import hand_in, make_course, solved
from formgraders import serve


@pytest.mark.browser
@pytest.mark.slow
def test_an_instructor_sees_what_waits_and_the_rubric(tmp_path, chromium):
    course = make_course(tmp_path / "course", "practice", problems=["practice_6", "practice_8"])
    hand_in(course, "ada", "practice", *((f"{name}.ipynb", solved(name)) for name in ("practice_6", "practice_8")))
    result = course.grade("practice", "ada")
    assert result.status == "graded", result.message
    home = tmp_path / "home"
    home.mkdir()
    with serve(course, home) as address:
        address += "/formgrader"
        page = chromium.new_page()

        def submission_of(problem):
            page.goto(f"{address}/gradebook/practice/{problem}")
            page.locator("a", has_text="Submission #1").first.click()
            page.locator("#toc, .nbgrader_cell").first.wait_for()

        page.goto(f"{address}/manage_submissions/practice")
        page.get_by_text("needs manual grading").wait_for()
        assert page.locator("tr", has_text="ada").get_by_text(f"{result.score:g} / 16").count() == 1

        submission_of("practice_6")
        assert page.get_by_text("0 of 4 points, 4 pending").count() == 1
        assert page.get_by_text("measurement: pending: your instructor compares it, within 10 %").count() == 1

        submission_of("practice_8")
        assert page.get_by_text("This is what is looked for").count() == 1
        assert page.get_by_text("2 points. The decision").count() == 1
        assert page.locator("summary", has_text="Hint 1: flops and bytes").count() == 1
        box = page.locator(".nbgrader_cell", has_text="Example of a plan").locator("input.score").first
        with page.expect_response(lambda r: "/api/grade/" in r.url and r.request.method == "PUT"):
            box.fill("5")
            box.press("Tab")
        page.close()
    (graded,) = course.results("practice")
    text = next(part for part in graded.parts if part.cell == "practice_8_text")
    assert (text.score, text.needs_person) == (5, False), "a person's points are recorded"
