"""A step-through of pictures: a slider that works in a static page, without a kernel and without a library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import count

_NUMBERS = count(1)
_STEP = (
    "var f=this.closest('.tl-steps').querySelectorAll('.tl-step');"
    "for(var i=0;i<f.length;i++)f[i].style.display=i==this.value?'':'none';"
    "this.setAttribute('aria-valuetext',f[this.value].querySelector('p').textContent)"
)


def slider(frames: Sequence[tuple[str, str]], label: str) -> str:
    """Return HTML that shows one frame at a time.

    Parameters
    ----------
    frames
        For each frame a caption (plain text) and its HTML.
    label
        What the slider steps through, for the eye and for a screen reader.
    """
    if not frames:
        return ""
    name = f"tl-steps-{next(_NUMBERS)}"
    parts = [
        f'<div class="tl-steps"><label for="{name}">{escape(label)}</label> '
        f'<input type="range" id="{name}" min="0" max="{len(frames) - 1}" value="0" step="1" '
        f'aria-valuetext="1 of {len(frames)}: {escape(frames[0][0])}" '
        f'style="vertical-align:middle;width:min(24rem,60%)" oninput="{_STEP}">'
    ]
    for i, (caption, html) in enumerate(frames):
        hidden = "" if i == 0 else ' style="display:none"'
        parts.append(f'<div class="tl-step"{hidden}><p>{i + 1} of {len(frames)}: {escape(caption)}</p>{html}</div>')
    return "".join([*parts, "</div>"])
