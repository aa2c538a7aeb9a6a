"""An instructor's plan asks for nothing before the chapters that it needs, and leaves no problem out."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANS = re.split(r"^### ", (ROOT / "book" / "instructors.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:4]
PROBLEMS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "solutions").glob("*.md")}


def needed(problem):
    """Return the chapters that a problem's notebook says it needs."""
    [told] = re.findall(r"^\*\*You need\*\* chapters? ([^*]*)", PROBLEMS[problem], re.MULTILINE)
    numbers = [int(n) for n in re.findall(r"\d+", told.partition(", practice")[0].partition(", exercise")[0])]
    return set(range(numbers[0], numbers[1] + 1)) if " to " in told else set(numbers)


@pytest.mark.parametrize("plan", PLANS, ids=[plan.partition(":")[0] for plan in PLANS])
def test_a_plan_asks_for_what_has_been_read(plan):
    rows = re.findall(r"^\| \d+ \|(.*)\|(.*)\|$", plan, re.MULTILINE)
    read, asked = set(), []
    for chapters, graded in rows:
        read |= {int(n) for n in re.findall(r"/notebooks/(\d\d)-", chapters)}
        for problem in re.findall(r"(?:exercise|practice) \d", graded):
            asked.append(problem.replace(" ", "_"))
            missing = needed(asked[-1]) - read
            assert not missing, f"{problem} needs chapter {missing}"
    kinds = {problem.partition("_")[0] for problem in asked}
    assert sorted(asked) == sorted(name for name in PROBLEMS if name.partition("_")[0] in kinds)
