"""Axe-core on every page, in the light and in the dark, with everything opened that can be opened."""

from pathlib import Path

import axe_playwright_python
import pytest
import yaml

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
TOC = yaml.safe_load((Path(__file__).parents[2] / "_toc.yml").read_text())
PAGES = [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
#: Violations of the theme, outside our content, may be of these impacts; of ours none at all.
HARMLESS = {"minor", "moderate"}

OPENED = """
for (const details of document.querySelectorAll("details")) details.open = true;
document.querySelectorAll("predict-answer").forEach((one, i) => {
  one.querySelector("input").value = i % 2 ? "1" : "x";
  one.querySelector("form").requestSubmit();
});
document.querySelectorAll("tile-picture").forEach((one) => one.focus());
"""
#: What has just opened is looked at by accessible.js once more: with the next frames, and at the events of opening.
LOOKED_AT = """
() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))
"""
FOUND = """
async () => (await axe.run()).violations.flatMap((rule) => rule.nodes.map((node) => ({
  rule: rule.id, impact: rule.impact, html: node.html.slice(0, 160),
  ours: node.target.flat().some((target) => document.querySelector(target)?.closest("article")),
})))
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_accessible(visit, page):
    opened = visit(f"/{page}.html").page
    opened.wait_for_function("document.readyState === 'complete' && !document.querySelector('mjx-container:empty')")
    opened.evaluate(OPENED)
    opened.evaluate("window.MathJax?.startup?.promise")
    opened.evaluate(LOOKED_AT)
    opened.evaluate(AXE)
    found = opened.evaluate(FOUND)
    assert [one for one in found if one["ours"] or one["impact"] not in HARMLESS] == []
