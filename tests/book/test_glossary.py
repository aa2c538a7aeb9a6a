"""The glossary names, for each word, the chapter that explains it."""

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
CHAPTERS = {int(path.name[:2]): path for path in sorted((ROOT / "notebooks").glob("[01][0-9]-*.ipynb"))}
#: Words of an entry, the number that it names, and the page that it links.
ENTRIES = re.findall(
    r"^(.+?) · <span lang=\"ko\">.+\n: .+ \{doc\}`Chapter (\d+) </notebooks/(\S+)>`$",
    (ROOT / "book" / "glossary.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
#: So many letters of a word are the same in all its forms: coalesce, coalesced, coalescing.
STEM = 5


@cache
def text(number, *kinds):
    cells = nbformat.read(CHAPTERS[number], as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type in kinds)


def words(entry):
    """The words that an entry explains; of ``static, dynamic shared memory`` both are of shared memory."""
    return [word.strip("`") for word in entry.split(", ")]


def test_every_entry_names_a_chapter():
    entries = re.findall(r"^(.+?) · ", (ROOT / "book" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [entry for entry, _, _ in ENTRIES] == entries
    assert [page for _, number, page in ENTRIES if CHAPTERS[int(number)].stem != page] == []


@pytest.mark.parametrize(("entry", "number"), [(entry, int(number)) for entry, number, _ in ENTRIES])
def test_the_chapter_uses_the_word_and_none_before_it_explains_it(entry, number):
    used = text(number, "markdown", "code").lower()
    assert any(all(part[:STEM].lower() in used for part in word.split()) for word in words(entry))
    for before in range(1, number):
        explained = re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", text(before, "markdown"))
        found = {one.lower() for one in explained} & {form for word in words(entry) for form in (word, word + "s")}
        assert not found, f"chapter {before} sets {', '.join(found)} in italics: it explains it"
