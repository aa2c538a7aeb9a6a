"""The course as nbgrader sees it. Run nbgrader's commands in this folder, or ``tilelab grade`` beside it.

What nbgrader calls the source is made from the masters: run ``tools/make_views.py source`` before
``nbgrader generate_assignment``.
"""

from pathlib import Path

from tilelab.grading.nbgrader import configure
from tilelab.grading.policy import FILE, read_policy

c = get_config()  # noqa: F821  (nbgrader defines it)
c.CourseDirectory.course_id = read_policy(Path(__file__).parent / FILE).course

# What a learner finds in place of a solution: a comment, so that an untouched cell runs and shows nothing.
c.ClearSolutions.code_stub = {"python": "# YOUR ANSWER HERE"}

# Between execution and grade the judge reads the answers. Without this line every answer cell scores 0.
configure(c, checks=Path(__file__).parent / "checks", limits=Path(__file__).parent / "limits.toml")
