"""A course that gives every learner numbers of their own: both sides agree, and a mismatch is explained."""

import shutil

import make_views
import nbformat
import pytest
from classroom import AUTOGRADER, hand_in, make_course, solved
from nbformat import v4

from tilelab.grading import GradingError, check, given, submit
from tilelab.grading.answers import record
from tilelab.grading.judge import Judge
from tilelab.grading.learner import CALL, OF_A_HUB, VARIABLE, check_key, key_in, me, with_key
from tilelab.grading.policy import FILE, read_policy
from tilelab.grading.problems import given_to, names, problem
from tilelab.grading.single import check_notebook
from tilelab.grading.views import learners_copy_of, source_of

KEY = "spring"
VARIED = [name for name in names() if problem(name).layout is not None]
CLASS = [f"learner-{number}" for number in range(60)]


@pytest.fixture(autouse=True)
def nobody(monkeypatch):
    """Start without an identity and without a notebook's memory."""
    for variable in (VARIABLE, *OF_A_HUB, "NBGRADER_EXECUTION"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("tilelab.grading.notebook_side._keys", {})


def right_for(name, layout):
    """The answers that are right for a layout, worked out from it."""
    match name:
        case "exercise_1":
            return {
                "table": [[layout(i, j) for j in range(4)] for i in range(3)],
                "order": "column-major" if layout.stride[0] == 1 else "row-major",
                "contiguous": layout.size == layout.cosize,
            }
        case "exercise_2":
            strides = [4 * stride for stride in layout.T.stride]
            memory = {"starts": 0, "strides": strides, "seen": True}
            return {"layout": layout.T, "memory": memory, "bytes_moved": 0, "order": "row-major"}
        case "exercise_3":
            wanted = len({layout(0, j) % 32 for j in range(32)})
            return {
                "prediction": wanted,
                "degree": 32 // wanted,
                "layout": "(32,32):(1,33)",
                "size": 1024,
                "cosize": 1055,
            }
        case "exercise_4":
            threads = layout.size // 2
            return {
                "a": f"({threads},2):(2,1)",
                "a_thread": 0,
                "b": f"({threads},2):(1,{threads})",
                "b_thread": 0,
                "sectors_a": 8,
                "sectors_b": 4,
                "better": "b",
                "sectors_float2": 8,
                "why": "all used",
            }


def test_the_exercises_about_a_layout_can_differ():
    assert VARIED == ["exercise_1", "exercise_2", "exercise_3", "exercise_4"]


@pytest.mark.parametrize("name", VARIED)
def test_numbers_follow_from_key_and_learner_alone_and_all_of_them_occur(name):
    given_out = [given_to(name, learner, KEY).layout for learner in CLASS]
    assert given_out == [given_to(name, learner, KEY).layout for learner in CLASS]
    assert given_out != [given_to(name, learner, "autumn").layout for learner in CLASS]
    assert len(set(given_out)) >= 5
    assert {given_to(name, learner, "").layout for learner in CLASS} == {problem(name).layout}


@pytest.mark.parametrize("name", VARIED)
def test_what_is_right_for_a_learner_earns_everything_and_what_is_right_for_another_does_not(name):
    earned = set()
    for learner in {given_to(name, learner, KEY).layout: learner for learner in CLASS}.values():
        mine = given_to(name, learner, KEY)
        made = record(name, right_for(name, mine.layout), learner)
        for part in mine.parts:
            assert part.look(made["answers"]).ok, (learner, part.name, part.look(made["answers"]).text)
            judged = Judge(AUTOGRADER / "checks", learner).judge(f"{name}_{part.name}", part.points, [made], key=KEY)
            assert judged.earned == part.points, (learner, judged.lines)
        plain = record(name, right_for(name, problem(name).layout), learner)
        if mine.layout != problem(name).layout:
            judge = Judge(AUTOGRADER / "checks", learner)
            parts = [judge.judge(f"{name}_{part.name}", part.points, [plain], key=KEY) for part in mine.parts]
            earned.add(sum(part.earned for part in parts) < sum(part.points for part in parts))
    assert earned == {True}


def test_answers_to_another_learners_numbers_are_explained():
    mine, theirs = next(
        (one, other)
        for one in CLASS
        for other in CLASS
        if given_to("exercise_1", one, KEY).layout != given_to("exercise_1", other, KEY).layout
    )
    layouts = [given_to("exercise_1", learner, KEY).layout for learner in (mine, theirs)]
    made = record("exercise_1", right_for("exercise_1", layouts[1]), theirs)
    judged = Judge(AUTOGRADER / "checks", mine).judge("exercise_1_table", 2, [made], key=KEY)
    assert judged.earned < 2
    assert f"answers as {theirs!r} and is about the layout {layouts[1]}" in judged.lines[-1]
    assert f"knows you as {mine!r} and gave you the layout {layouts[0]}" in judged.lines[-1]
    assert f"%env TILELAB_LEARNER={mine}" in judged.lines[-1]
    made = record("exercise_1", right_for("exercise_1", layouts[1]))
    judged = Judge(AUTOGRADER / "checks", mine).judge("exercise_1_table", 2, [made], key=KEY)
    assert "the notebook does not say whose numbers it is about" in judged.lines[-1]


def test_without_a_key_everybody_has_the_numbers_of_the_text(capsys):
    assert given("exercise_2") == problem("exercise_2").layout
    assert capsys.readouterr().out == "Given: the layout (3,4):(1,3).\n"


def test_a_notebook_asks_who_the_learner_is_and_then_tells_whose_numbers_they_are(monkeypatch, capsys):
    with pytest.raises(GradingError, match=r"nothing says who you are: write %env TILELAB_LEARNER=…"):
        given("exercise_1", KEY)
    monkeypatch.setenv("NB_USER", "jovyan")
    assert me() == "", "an image calls everybody jovyan"
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    layout = given("exercise_1", KEY)
    assert layout == given_to("exercise_1", "ada", KEY).layout
    said = capsys.readouterr().out
    assert f"Given: the layout {layout}" in said
    assert "yours alone, ada: read it wherever the text says (3,4):(1,3)" in said
    check("exercise_1", table=right_for("exercise_1", layout)["table"])
    assert "✓ table" in capsys.readouterr().out
    monkeypatch.setenv(VARIABLE, "grace")
    assert me() == "grace", "what a learner sets comes first"


def test_a_record_says_whose_numbers_only_where_they_differ(monkeypatch):
    sent = []
    monkeypatch.setenv(VARIABLE, "ada")
    monkeypatch.setattr("tilelab.grading.notebook_side._display", lambda *bundle: sent.append(bundle[-1]))
    given("exercise_1")
    submit("exercise_1", order="row-major")
    assert "learner" not in sent[-1]
    given("exercise_1", KEY)
    submit("exercise_1", order="row-major")
    assert sent[-1]["learner"] == "ada"


def test_a_problem_that_is_the_same_for_everybody_says_so():
    with pytest.raises(GradingError, match="practice_4 is the same for everybody"):
        given("practice_4", KEY)


def test_the_key_stands_in_what_is_handed_out():
    for name in names():
        master = make_views.MASTERS / f"{name}.md"
        handed_out = learners_copy_of(master, AUTOGRADER, KEY)
        assert key_in(cell.source for cell in handed_out.cells) == (KEY if name in VARIED else "")
        assert key_in(cell.source for cell in source_of(master).cells) == ""
        calls = [cell for cell in handed_out.cells if CALL.search(cell.source)]
        assert len(calls) == (name in VARIED)
        assert all(cell.metadata.nbgrader.locked for cell in calls), "else the judge could not trust it"


@pytest.mark.parametrize("key", [7, 'a"b', "a\\b", "two\nlines", "x" * 61])
def test_a_key_that_cannot_stand_in_a_cell_is_refused(key):
    with pytest.raises(GradingError, match="a short text without quotes"):
        check_key(key)


def test_a_key_of_any_letters_comes_back():
    for key in ("Frühling 2027", "{0} $ g<1>", "it's"):
        assert key_in([with_key('layout = given("exercise_1")', check_key(key))]) == key


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[numbers]\nby_learner = 1", "numbers.by_learner = 1, write true or false"),
        ("[numbers]\nby_learner = true", "asks for a key"),
        ("[numbers]\nkey = 7", "numbers.key: a key is a short text"),
        ("[numbers]\nseed = 7", "numbers.seed is not known"),
    ],
)
def test_the_switch_in_course_toml(tmp_path, text, words):
    file = tmp_path / FILE
    file.write_text(text)
    with pytest.raises(GradingError) as caught:
        read_policy(file)
    assert words in str(caught.value)


def test_it_is_off_unless_switched_on(tmp_path):
    assert read_policy(AUTOGRADER / FILE).key == ""
    (tmp_path / FILE).write_text('[numbers]\nby_learner = true\nkey = "spring"')
    assert read_policy(tmp_path / FILE).key == "spring"


@pytest.mark.slow
def test_a_course_with_numbers_by_learner_is_graded_in_it(tmp_path, monkeypatch):
    """Source, release, restoring, sandbox, judge and `tilelab check`; a learner's copy from another earns little."""
    autograder = tmp_path / "autograder"
    shutil.copytree(AUTOGRADER, autograder, ignore=shutil.ignore_patterns("source", "release", "__pycache__"))
    text = (autograder / FILE).read_text()
    (autograder / FILE).write_text(text.replace("by_learner = false", "by_learner = true"))
    key = read_policy(autograder / FILE).key
    monkeypatch.setattr("classroom.AUTOGRADER", autograder)
    course = make_course(tmp_path / "course", "exercises", problems=["exercise_1"])
    one, other = next(
        (a, b)
        for a in CLASS
        for b in CLASS
        if given_to("exercise_1", a, key).layout.stride[0] == 1 and given_to("exercise_1", b, key).layout.stride[1] == 1
    )
    # The answer is computed from what the notebook gives, so it is right only where the notebook knows its author.
    computed = {
        "exercise_1_table_answer": "table = [[layout(i, j) for j in range(4)] for i in range(3)]",
        "exercise_1_order_answer": 'order = "column-major" if layout.stride[0] == 1 else "row-major"',
        "exercise_1_contiguous_answer": "contiguous = layout.size == layout.cosize",
    }
    notebook = solved("exercise_1", computed)
    for student in (one, other):
        hand_in(course, student, "exercises", ("exercise_1.ipynb", notebook))
        result = course.grade("exercises", student)
        assert result.score == 4, [part.lines for part in result.parts]
    notebook.cells.insert(0, v4.new_code_cell(f"%env TILELAB_LEARNER={one}"))
    hand_in(course, f"{other}-too", "exercises", ("exercise_1.ipynb", notebook))
    result = course.grade("exercises", f"{other}-too")
    assert given_to("exercise_1", f"{other}-too", key).layout != given_to("exercise_1", one, key).layout
    assert result.score < 4
    table = next(part for part in result.parts if part.cell == "exercise_1_table")
    assert f"answers as {one!r}" in table.lines[-1]
    assert f"knows you as '{other}-too'" in table.lines[-1]
    feedback = (course.root / "feedback" / one / "exercises" / "exercise_1.html").read_text()
    assert "os.environ" not in feedback


@pytest.mark.slow
def test_tilelab_check_judges_the_numbers_of_the_notebook(tmp_path, monkeypatch):
    notebook = solved(
        "exercise_1", {"exercise_1_table_answer": "table = [[layout(i, j) for j in range(4)] for i in range(3)]"}
    )
    for cell in notebook.cells:
        cell.source = with_key(cell.source, KEY)
    file = tmp_path / "exercise_1.ipynb"
    nbformat.write(notebook, file)
    with pytest.raises(GradingError, match=r"one learner's own: say whose, by TILELAB_LEARNER=…"):
        check_notebook(file, AUTOGRADER.parent)
    monkeypatch.setenv(VARIABLE, "ada")
    table = check_notebook(file, AUTOGRADER.parent)[0]
    assert table.earned == 2
    assert table.record["learner"] == "ada"
