"""What nbgrader's feedback page leaves unsaid: which part a line of its score list is about, and what still waits."""

import re
from collections.abc import Mapping

#: A line of the list on top: nbgrader calls every part "Test cell".
LINE = re.compile(
    r'<a href="#(?P<cell>\w+)">(?:Test cell|Written response|Coding free-response|Task)</a> '
    r"\(Score: (?P<score>[^)<]*)\)"
)


def named(html: str, pending: Mapping[str, float]) -> str:
    """Return a feedback page whose score list names the parts.

    Parameters
    ----------
    html : str
        The page as nbgrader wrote it.
    pending : mapping
        Points that wait, by grade cell.
    """

    def line(match: re.Match[str]) -> str:
        cell, score = match["cell"], match["score"]
        waits = f", {pending[cell]:g} pending" if pending.get(cell) else ""
        return f'<a href="#{cell}">{cell}</a> (Score: {score}{waits})'

    return LINE.sub(line, html)
