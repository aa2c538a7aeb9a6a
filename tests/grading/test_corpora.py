"""The corpora: what learners really hand in earns what it is designed to; garbage earns nothing and breaks nothing."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "corpora"))

from cases import CHECKS, cases, problems

from tilelab.grading import python_answers
from tilelab.grading.answers import record
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import Judge
from tilelab.grading.problems import names, problem
from tilelab.layout import Layout

pytestmark = pytest.mark.slow

GARBAGE = [None, -1, 10**30, 0.5, "", "x" * 200, "<script>", [], [[]], [[None]], {}, {"shape": [3], "stride": "x"}]
ALL = [case for name in problems() for case in cases(name)]
#: Seconds that an endless function of a learner's is given here.
ENDLESS = 5.0


def each(of, name):
    """Parameters of a test; those of one problem go to one process, which remembers what a kernel did."""
    return [
        pytest.param(one, id=name(one), marks=pytest.mark.xdist_group(f"corpus of {problem_of(one)}")) for one in of
    ]


def problem_of(one):
    return one if isinstance(one, str) else one.problem


def titled(case):
    return f"{case.problem}: {case.name}"


@pytest.fixture(autouse=True)
def _endless_functions_end_soon(monkeypatch):
    monkeypatch.setattr(python_answers, "LIMITS", replace(python_answers.LIMITS, seconds=ENDLESS))


@pytest.fixture(scope="module")
def judge():
    return Judge(CHECKS)


def test_every_problem_has_a_corpus():
    assert problems() == list(names())


@pytest.mark.parametrize("name", problems())
def test_a_corpus_has_six_wrong_and_three_unusual_answers(name):
    kinds = [case.kind for case in cases(name)]
    assert kinds.count("wrong") >= 6
    assert kinds.count("unusual") >= 3


@pytest.mark.parametrize("case", each(ALL, titled))
def test_answers_earn_what_they_are_designed_to(case, judge):
    judged = case.judge(judge)
    assert {part: found.earned for part, found in judged.items()} == case.expected
    assert {part: found.pending for part, found in judged.items() if found.pending} == case.pending
    if case.kind == "wrong":
        assert any(case.expected[part.name] < part.points for part in problem(case.problem).parts if not part.by_person)
    for found in judged.values():
        assert found.lines, "a verdict gives its reasons"


@pytest.mark.parametrize("case", each([case for case in ALL if case.kind != "wrong"], titled))
def test_an_instant_check_accepts_what_the_judge_accepts(case):
    answers = record(case.problem, case.answers)["answers"]
    for part in problem(case.problem).parts:
        finding = part.look(answers)
        assert finding.ok, f"{part.name}: {finding.text}"


@pytest.mark.parametrize("case", each([case for case in ALL if case.kind == "wrong"], titled))
def test_an_instant_check_gives_no_right_answer_away(case):
    right = next(cases(case.problem)).answers
    secrets = right_layouts(case.problem)
    answers = record(case.problem, case.answers)["answers"]
    for part in problem(case.problem).parts:
        if part.by_person or "kernel" in part.needs or "body" in part.needs or "mended" in part.needs:
            continue  # what a kernel must compute is no secret
        text = part.look(answers).text
        told = [layout for layout in secrets if layout in text and layout not in str(answers).replace(" ", "")]
        assert not told, f"{part.name}: {text}"
        for name in part.needs:
            value = right[name]
            if isinstance(value, int) and value > 9 and str(value) != str(case.answers[name]) and value != 32:
                assert not re.search(rf"\b{value}\b", text), f"{part.name} tells {name}: {text}"


@pytest.mark.parametrize("case", each(ALL, titled))
def test_a_tick_means_all_the_points(case, judge):
    answers = record(case.problem, case.answers)["answers"]
    for name, due in case.expected.items():
        part = problem(case.problem).part(name)
        if {"kernel", "body", "mended"} & set(part.needs):
            continue  # the judge tries more shapes
        if part.look(answers).mark == "✓":
            assert due + case.pending.get(name, 0) == part.points, name


def right_layouts(name):
    """Layouts that earn all points of a problem, as text."""
    right = [value for case in cases(name) if case.kind != "wrong" for value in case.answers.values()]
    return {
        str(value) for value in right if isinstance(value, Layout) or re.fullmatch(r"[\d(),]+:[\d(),]+", str(value))
    }


@pytest.mark.parametrize("name", each(problems(), str))
def test_garbage_is_refused_in_words_by_both(name, judge):
    secrets = right_layouts(name)
    for part in problem(name).parts:
        for garbage in GARBAGE:
            try:
                made = record(name, dict.fromkeys(part.needs, garbage))
            except GradingError:
                continue
            if part.by_person:
                continue
            judged = judge.judge(f"{name}_{part.name}", part.points, [made])
            assert judged.earned == 0, (part.name, garbage)
            assert judged.pending == 0, (part.name, garbage, judged.lines)
            found = part.look(made["answers"])
            assert not found.ok, (part.name, garbage)
            assert not any(layout in line for layout in secrets for line in (found.text, *judged.lines)), (
                garbage,
                found,
            )


def leaves(value, path=()):
    """Paths to the pieces of an answer that is made of several."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, piece in items:
        yield (*path, key)
        yield from leaves(piece, (*path, key))


def changed_at(value, path, piece):
    made = dict(value) if isinstance(value, dict) else list(value)
    made[path[0]] = changed_at(made[path[0]], path[1:], piece) if path[1:] else piece
    return made


@pytest.mark.parametrize("name", each(problems(), str))
def test_garbage_inside_an_answer_is_refused_in_words_by_both(name, judge):
    right = next(cases(name)).answers
    for answer, value in right.items():
        for path in leaves(value):
            for garbage in (*GARBAGE, float("nan"), True, ["x", [None]], {"x": {}}, "(" * 500):
                made = record(name, {**right, answer: changed_at(value, path, garbage)})
                for part in problem(name).parts:
                    if answer not in part.needs or {"kernel", "tiled", "mended", "body"} & set(part.needs):
                        continue
                    said = [part.look(made["answers"]).text]
                    said += judge.judge(f"{name}_{part.name}", part.points, [made]).lines
                    assert not any("itself failed" in line for line in said), (answer, path, garbage, said)
                    assert max(map(len, said)) < 600, (answer, path, garbage, said)
