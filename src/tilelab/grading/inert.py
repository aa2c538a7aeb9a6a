"""Make what a learner wrote inert: instructors read it in formgrader, learners in feedback, and neither may run it.

nbconvert passes HTML through wherever a notebook may hold it: in Markdown, in rich outputs, and unquoted in places
where it expects a number or base64. So the executed notebook is rebuilt here from what is known to be harmless. The
judge's own reports are kept as they are: it escapes what it quotes.
"""

import base64
import binascii
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import bleach
from nbformat import NotebookNode, v4

from tilelab.grading.answers import MIME

#: Between ``<`` and a letter this makes a tag plain text, in Markdown and in code alike, and cannot be seen.
BREAK = "\N{ZERO WIDTH SPACE}"
#: A fold is left, without attributes: hints are written in such.
TAG = re.compile(r"<(?!/?(?:details|summary)>)(?=[A-Za-z/!?])")
#: Files beside a notebook in which nothing can run: formgrader serves what was handed in as if it were its own.
FILES_TO_SHOW = ("csv", "gif", "jpeg", "jpg", "json", "npy", "png", "tsv", "txt")
#: Destinations of a link that lead to a page, an anchor or such a file, in the forms that need no decoding.
HARMLESS = (
    r"<?(?:https?://[^\s<>\"'&]*|mailto:[\w.@+-]+|#[\w-]*|(?:\./)?[\w-][\w/-]*\.(?:" + "|".join(FILES_TO_SHOW) + "))>?"
)
LINK = re.compile(rf"\](?=\((?!\s*{HARMLESS}(?:\s+[\"'][^\"'<>]*[\"'])?\s*\)))")
DEFINITION = re.compile(rf"^([ \t>*+-]*\[[^\]\n]+\])(?=:(?!\s*{HARMLESS}\s*$))", re.MULTILINE)
#: TeX that MathJax turns into links, styles or scripts.
ACTIVE_TEX = re.compile(r"\\(?=(?:href|url|require|style|class|cssId|unicode|html\w*|data|toggle|action)\b)")
IMAGES = ("image/png", "image/jpeg")
DRAWING_BEGINS, DRAWING_ENDS = re.compile(r"<svg\b", re.IGNORECASE), re.compile(r"</svg\s*>", re.IGNORECASE)
#: Characters that are shown of one Markdown cell; of one text or HTML, drawings apart; of drawings and pictures. What
#: turns them into a page takes time that grows with their square, on input that was made for it.
MARKDOWN, SHOWN, PICTURED = 20_000, 50_000, 4_000_000
#: Colour changes in one text.
MOST_COLOURS = 500
CUT = "\n… (the rest is too long to be shown)"


@dataclass
class Room:
    """Characters that all outputs of one notebook may still show together, of each kind."""

    text: int = 2_000_000
    html: int = 500_000
    pictures: int = 20_000_000

    def holds(self, kind: str, size: int) -> bool:
        """Take room for an output and tell whether there was enough."""
        left = getattr(self, kind) - size
        if left >= 0:
            setattr(self, kind, left)
        return bool(left >= 0)


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
    room = Room()
    nb.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    for cell in nb.cells:
        cell.pop("attachments", None)
        if cell.cell_type == "markdown":
            cell.source = inert_markdown(cell.source)
        elif cell.cell_type == "raw":
            cell.source = TAG.sub(f"<{BREAK}", _shortened(cell.source, MARKDOWN))
        else:
            number = cell.get("execution_count")
            cell.execution_count = number if isinstance(number, int) else None
            if cell.metadata.get("nbgrader", {}).get("grade_id") not in judged:
                cell.outputs = [inert_output(output, room) for output in cell.outputs]


def inert_markdown(source: str) -> str:
    """Return Markdown in which no HTML, no link that runs and no active TeX is left; read, it looks the same."""
    source = TAG.sub(f"<{BREAK}", _shortened(source, MARKDOWN))
    source = LINK.sub(f"]{BREAK}", source)
    source = DEFINITION.sub(rf"\1{BREAK}", source)
    return ACTIVE_TEX.sub(rf"\\{BREAK}", source)


def inert_html(source: str, room: Room | None = None) -> str:
    """Return HTML with text, tables and pictures alone. A drawing becomes a picture, in which no script runs."""

    def as_picture(drawing: str) -> str:
        if "xmlns=" not in drawing[:400]:
            drawing = DRAWING_BEGINS.sub('<svg xmlns="http://www.w3.org/2000/svg"', drawing, count=1)
        return f'<img src="data:image/svg+xml;base64,{base64.b64encode(drawing.encode(errors="replace")).decode()}">'

    def allowed(tag: str, name: str, value: str) -> bool:
        if tag == "img" and name == "src":
            return re.fullmatch(r"data:image/(?:svg\+xml|png|jpeg);base64,[A-Za-z0-9+/=]+", value) is not None
        return name in {"colspan", "rowspan", "alt"} or (tag == "a" and name == "href")

    pieces, place, around = [], 0, len(source)
    while (begins := DRAWING_BEGINS.search(source, place)) and (ends := DRAWING_ENDS.search(source, begins.end())):
        pieces += [source[place : begins.start()], as_picture(source[begins.start() : ends.end()])]
        place, around = ends.end(), around - (ends.end() - begins.start())
    pictured = "".join([*pieces, source[place:]])
    room = room or Room()
    too_long = around > SHOWN or len(pictured) > PICTURED
    if too_long or not (room.holds("html", around) and room.holds("pictures", len(pictured))):
        return f"<p>(an output of {len(source):,} characters is too long to be shown)</p>"
    cleaned: str = bleach.clean(
        pictured, tags=TAGS, attributes=allowed, protocols={"http", "https", "data"}, strip=True
    )
    cleaned = re.sub(r'href="(?!https?://)[^"]*"', "", cleaned)
    return ACTIVE_TEX.sub(rf"\\{BREAK}", cleaned)


def inert_output(output: NotebookNode, room: Room | None = None) -> NotebookNode:
    """Return an output rebuilt from plain text, checked pictures and cleaned HTML."""
    room = room or Room()
    text = _text(output.get("text") or output.get("data", {}).get("text/plain", ""))
    if not room.holds("text", len(text) + len(str(output.get("traceback", "")))):
        return v4.new_output("stream", name="stdout", text=CUT.strip())
    if output.output_type == "stream":
        return v4.new_output("stream", name="stderr" if output.name == "stderr" else "stdout", text=text)
    if output.output_type == "error":
        traceback = _text("\n".join(map(str, output.get("traceback", [])))).split("\n")
        return v4.new_output("error", ename=_text(output.ename), evalue=_text(output.evalue), traceback=traceback)
    given = output.get("data", {})
    data: dict[str, Any] = {}
    if "text/plain" in given:
        data["text/plain"] = text
    for kind in IMAGES:
        if kind in given and (picture := _base64(_whole(given[kind]))) and room.holds("pictures", len(picture)):
            data[kind] = picture
    html = given.get("text/html") or given.get("image/svg+xml")
    if html:
        data["text/html"] = inert_html(_whole(html), room)
    if MIME in given:
        data["text/plain"] = data.get("text/plain", "an answer record")
    return v4.new_output("display_data", data or {"text/plain": "(an output of a kind that is not shown)"})


def _whole(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def _shortened(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else text[:most] + CUT


def _text(value: Any) -> str:
    """Return text to show: not too much of it, and without colours where it changes them again and again."""
    text = _shortened(_whole(value))
    return text if text.count("\x1b") <= MOST_COLOURS else text.replace("\x1b", "")


def _base64(text: str) -> str:
    """Return base64 in its one canonical form, or "" for anything else."""
    try:
        return base64.b64encode(base64.b64decode(re.sub(r"\s", "", text), validate=True)).decode()
    except (binascii.Error, ValueError):
        return ""
