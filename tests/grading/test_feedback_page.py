"""What learners read back: parts by name, points that wait, hints that open."""

import pytest
from classroom import hand_in, solved

from tilelab.grading.feedback_page import named
from tilelab.grading.inert import inert_markdown

LIST = (
    '<li><a href="#practice_1_timed">Test cell</a> (Score: 0.0 / 3.0)</li>\n'
    '<li><a href="#exercise_5_text">Written response</a> (Score: 0.0 / 5.0)</li>\n'
    '<p><a href="#top">Test cell</a> as somebody wrote it</p>'
)


def test_the_score_list_names_parts_and_what_waits():
    page = named(LIST, {"practice_1_timed": 3.0, "exercise_5_text": 0})
    assert '<a href="#practice_1_timed">practice_1_timed</a> (Score: 0.0 / 3.0, 3 pending)' in page
    assert '<a href="#exercise_5_text">exercise_5_text</a> (Score: 0.0 / 5.0)' in page
    assert "as somebody wrote it" in page
    assert named(page, {}) == page, "a second time changes nothing"


@pytest.mark.parametrize("tag", ["<details>", "</details>", "<summary>", "</summary>"])
def test_a_plain_fold_stays_a_fold(tag):
    assert inert_markdown(f"{tag}Hint 1") == f"{tag}Hint 1"


@pytest.mark.parametrize(
    "tag",
    ["<details open>", "<details ontoggle=alert(1)>", "<summary/onclick=x>", "<detailsx>", "<script>", "<DETAILS x>"],
)
def test_anything_else_is_text(tag):
    assert inert_markdown(f"{tag}Hint 1").startswith("<\N{ZERO WIDTH SPACE}")


@pytest.mark.slow
def test_feedback_of_a_graded_notebook(course):
    hand_in(course, "reads-feedback", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
    assert course.grade("exercises", "reads-feedback").status == "graded"
    page = (course.root / "feedback" / "reads-feedback" / "exercises" / "exercise_1.html").read_text()
    assert '<a href="#exercise_1_table">exercise_1_table</a> (Score: 2.0 / 2.0)' in page
    assert "Test cell" not in page
    assert "<details>\n<summary>Hint 1: what to do with a coordinate</summary>" in page


@pytest.mark.slow
def test_feedback_is_written_again_where_a_person_has_given_points(course):
    hand_in(course, "given-points", "exercises", ("exercise_1.ipynb", solved("exercise_1")))
    course.grade("exercises", "given-points")
    assert course.stale_feedback("exercises", ["given-points"]) == []
    with course.gradebook() as gradebook:
        grade = gradebook.find_grade("exercise_1_table", "exercise_1", "exercises", "given-points")
        grade.manual_score = 1.25
        gradebook.db.commit()
    assert course.stale_feedback("exercises", ["given-points"]) == ["given-points"]
    assert course.grade("exercises", "given-points").status == "kept"
    page = course.root / "feedback" / "given-points" / "exercises" / "exercise_1.html"
    assert '<a href="#exercise_1_table">exercise_1_table</a> (Score: 1.25 / 2.0)' in page.read_text()
    assert course.stale_feedback("exercises", ["given-points"]) == []
    page.write_text(page.read_text()[:-20])
    assert course.stale_feedback("exercises", ["given-points"]) == ["given-points"], "half a page is none"
    course.grade("exercises", "given-points")
    (course.root / "autograded" / "given-points" / "exercises" / "exercise_1.ipynb").unlink()
    assert course.stale_feedback("exercises", ["given-points"]) == ["given-points"], "nobody knows of what it is"
