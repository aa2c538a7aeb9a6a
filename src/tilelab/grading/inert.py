"""Make what a learner wrote inert: instructors read it in formgrader, learners in feedback, and neither may run it.

nbconvert passes HTML through wherever a notebook may hold it: in Markdown, in rich outputs, and unquoted in places
where it expects a number or base64. So the executed notebook is rebuilt here from what is known to be harmless. The
judge's own reports are kept as they are: it escapes what it quotes.
"""

import base64
import binascii
import re
from collections.abc import Collection
from typing import Any

import bleach
from nbformat import NotebookNode, v4

from tilelab.grading.answers import MIME

#: Between ``<`` and a letter this makes a tag plain text, in Markdown and in code alike, and cannot be seen.
BREAK = "\N{ZERO WIDTH SPACE}"
#: A fold is left, without attributes: hints are written in such.
TAG = re.compile(r"<(?!/?(?:details|summary)>)(?=[A-Za-z/!?])")
#: Destinations of a link that lead to a page, an anchor or a file beside, in the forms that need no decoding.
HARMLESS = r"<?(?:https?://[^\s<>\"'&]*|mailto:[\w.@+-]+|#[\w-]*|(?:\./)?[\w-][\w./-]*)>?"
LINK = re.compile(rf"\](?=\((?!\s*{HARMLESS}(?:\s+[\"'][^\"'<>]*[\"'])?\s*\)))")
DEFINITION = re.compile(rf"^([ \t>*+-]*\[[^\]\n]+\])(?=:(?!\s*{HARMLESS}\s*$))", re.MULTILINE)
#: TeX that MathJax turns into links, styles or scripts.
ACTIVE_TEX = re.compile(r"\\(?=(?:href|url|require|style|class|cssId|unicode|html\w*|data|toggle|action)\b)")
IMAGES = ("image/png", "image/jpeg")
DRAWING = re.compile(r"<svg\b.*?</svg\s*>", re.DOTALL | re.IGNORECASE)
TAGS = frozenset(
    {"a", "b", "br", "caption", "code", "div", "em", "i", "img", "li", "ol", "p", "pre", "span", "strong", "sub", "sup"}
    | {"table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
)


def make_inert(nb: NotebookNode, judged: Collection[str]) -> None:
    """Rebuild the cells and outputs of an executed notebook, in place.

    Parameters
    ----------
    nb : NotebookNode
        Executed and judged.
    judged : collection of str
        Names of the grade cells whose outputs are the judge's own.
    """
    nb.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    for cell in nb.cells:
        cell.pop("attachments", None)
        if cell.cell_type == "markdown":
            cell.source = inert_markdown(cell.source)
        elif cell.cell_type == "raw":
            cell.source = TAG.sub(f"<{BREAK}", cell.source)
        else:
            number = cell.get("execution_count")
            cell.execution_count = number if isinstance(number, int) else None
            if cell.metadata.get("nbgrader", {}).get("grade_id") not in judged:
                cell.outputs = [inert_output(output) for output in cell.outputs]


def inert_markdown(source: str) -> str:
    """Return Markdown in which no HTML, no link that runs and no active TeX is left; read, it looks the same."""
    source = TAG.sub(f"<{BREAK}", source)
    source = LINK.sub(f"]{BREAK}", source)
    source = DEFINITION.sub(rf"\1{BREAK}", source)
    return ACTIVE_TEX.sub(rf"\\{BREAK}", source)


def inert_html(source: str) -> str:
    """Return HTML with text, tables and pictures alone. A drawing becomes a picture, in which no script runs."""

    def as_picture(match: re.Match[str]) -> str:
        drawing = match.group()
        if "xmlns=" not in drawing[:400]:
            drawing = drawing.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        return f'<img src="data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}">'

    def allowed(tag: str, name: str, value: str) -> bool:
        if tag == "img" and name == "src":
            return re.fullmatch(r"data:image/(?:svg\+xml|png|jpeg);base64,[A-Za-z0-9+/=]+", value) is not None
        return name in {"colspan", "rowspan", "alt"} or (tag == "a" and name == "href")

    pictured = DRAWING.sub(as_picture, source)
    cleaned: str = bleach.clean(
        pictured, tags=TAGS, attributes=allowed, protocols={"http", "https", "data"}, strip=True
    )
    cleaned = re.sub(r'href="(?!https?://)[^"]*"', "", cleaned)
    return ACTIVE_TEX.sub(rf"\\{BREAK}", cleaned)


def inert_output(output: NotebookNode) -> NotebookNode:
    """Return an output rebuilt from plain text, checked pictures and cleaned HTML."""
    if output.output_type == "stream":
        return v4.new_output("stream", name="stderr" if output.name == "stderr" else "stdout", text=_text(output.text))
    if output.output_type == "error":
        traceback = [_text(line) for line in output.get("traceback", [])]
        return v4.new_output("error", ename=_text(output.ename), evalue=_text(output.evalue), traceback=traceback)
    given = output.get("data", {})
    data: dict[str, Any] = {}
    if "text/plain" in given:
        data["text/plain"] = _text(given["text/plain"])
    for kind in IMAGES:
        if kind in given and (picture := _base64(given[kind])):
            data[kind] = picture
    html = given.get("text/html") or given.get("image/svg+xml")
    if html:
        data["text/html"] = inert_html(_text(html))
    if MIME in given:
        data["text/plain"] = data.get("text/plain", "an answer record")
    return v4.new_output("display_data", data or {"text/plain": "(an output of a kind that is not shown)"})


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def _base64(value: Any) -> str:
    """Return base64 in its one canonical form, or "" for anything else."""
    try:
        return base64.b64encode(base64.b64decode(re.sub(r"\s", "", _text(value)), validate=True)).decode()
    except (binascii.Error, ValueError):
        return ""
