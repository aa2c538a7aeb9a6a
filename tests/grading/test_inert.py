"""What a learner wrote is inert where instructors and learners read it: in formgrader and in feedback."""

import re
import shutil
import sys
from pathlib import Path

import nbgrader
import pytest
from nbconvert.exporters import HTMLExporter
from nbformat import v4
from sandboxes import to_its_end

from tilelab.grading.inert import BREAK, inert_html, inert_markdown, inert_output, make_inert

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "hostile"))
ATTACKS = [
    "<script>x</script>",
    "<img src=x onerror=x>",
    "<svg onload=x></svg>",
    "<iframe srcdoc='<script>x</script>'></iframe>",
    "<!-- --><a href='javascript:x'>a</a>",
    "[a](javascript:x)",
    "[a]( javascript&colon;x)",
    "[a](<javascript:x>)",
    "[a](JaVaScRiPt:x 'title')",
    "[a](data:text/html,<script>x</script>)",
    "[a](vbscript:x)",
    "[a](page.html)",
    "[a](page.png/../page.svg)",
    "[a][b]\n\n[b]: javascript:x",
    "[a][b]\n\n  [b]: javascript&#58;x",
    "<javascript:x>",
    "`<script>x</script>`",
    "    <script>x</script>",
]


#: What may not stand in any tag.
ACTIVE = re.compile(
    r"<(script|svg|iframe|style|form|object|embed|link|meta)|\bon\w+=|javascript|vbscript|data:text|background="
)


def rendered(source):
    """How nbconvert shows a Markdown cell."""
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(source)])
    return HTMLExporter(template_name="basic").from_notebook_node(notebook)[0]


def tags(html):
    """The tags of some HTML, in lower case, with all that stands in them."""
    return re.findall(r"<[a-z!][^>]*>?", html.lower())


@pytest.mark.parametrize("attack", ATTACKS)
def test_markdown_is_inert(attack):
    html = rendered(inert_markdown(f"before\n\n{attack}\n\nafter"))
    inside = tags(html[html.index("before") : html.index("after")])
    assert not [tag for tag in inside if ACTIVE.search(tag) or "href" in tag or tag.startswith(("<img", "<!"))], inside


@pytest.mark.parametrize(
    "harmless",
    [
        "[docs](https://docs.nvidia.com/cuda/)",
        "[below](#the-order)",
        "**bold** and `a < b` and $x_1 < y$",
        "1 < 2",
        "[file](data.csv)",
    ],
)
def test_ordinary_markdown_stays_as_it_is(harmless):
    assert inert_markdown(harmless) == harmless


def test_text_looks_the_same():
    assert inert_markdown("use `vector<int>`").replace(BREAK, "") == "use `vector<int>`"


@pytest.mark.parametrize(
    "attack",
    [
        "<script>x</script>",
        "<b onclick=x>b</b>",
        "<a href='javascript:x'>a</a>",
        "<img src='data:text/html,x'>",
        "<img src='x' onerror='x'>",
        "<style>@import 'x'</style>",
        "<svg><script>x</script></svg>",
        "<svg></svg><svg onload=x",
        "<table background='javascript:x'><tr><td>1</td></tr></table>",
        "<form action=x><input></form>",
    ],
)
def test_html_outputs_are_inert(attack):
    inside = tags(inert_html(attack))
    assert not [tag for tag in inside if ACTIVE.search(tag)], inside


def test_tables_and_drawings_are_still_seen():
    assert "<td>1</td>" in inert_html("<table><tr><td>1</td></tr></table>")
    drawn = inert_html('<div><svg viewBox="0 0 1 1"><rect/></svg></div>')
    assert drawn.startswith('<div><img src="data:image/svg+xml;base64,')


@pytest.mark.parametrize(
    "output",
    [
        v4.new_output("stream", text="\x1b[1m" * 1_000_000),
        v4.new_output("error", ename="E", evalue="x" * 1_000_000, traceback=["\x1b[1m\n"] * 500_000),
        v4.new_output("display_data", {"text/html": "<b>" * 300_000}),
        v4.new_output("display_data", {"text/html": "<svg" * 1_000_000}),
        v4.new_output("display_data", {"text/html": "<svg></svg>" * 400_000}),
    ],
)
def test_what_would_take_hours_to_show_is_cut(output):
    shown = inert_output(output)
    assert len(str(shown)) < 200_000
    assert str(shown).count("\x1b") <= 500
    assert "too long to be shown" in str(shown)


def test_all_outputs_of_a_notebook_together_have_an_end():
    cells = [
        v4.new_code_cell(outputs=[v4.new_output("display_data", {"text/html": "<b>x</b>" * 5000})] * 10)
        for _ in range(10)
    ]
    notebook = v4.new_notebook(cells=cells)
    make_inert(notebook, ())
    assert len(str(notebook)) < 1_000_000
    assert "too long to be shown" in str(notebook.cells[-1])
    assert "<b>x</b>" in str(notebook.cells[0])


def test_pictures_are_base64_and_nothing_else():
    bad = v4.new_output("display_data", {"image/png": 'x" onerror="x'}, metadata={"image/png": {"width": "1 onload=x"}})
    made = inert_output(bad)
    assert made.data == {"text/plain": "(an output of a kind that is not shown)"}
    assert made.metadata == {}
    good = inert_output(v4.new_output("display_data", {"image/png": "iVBORw0K\nGgo="}))
    assert good.data == {"image/png": "iVBORw0KGgo="}


def page(notebook, template):
    """A notebook as nbgrader's formgrader or feedback shows it."""
    templates = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
    styles = templates.parent / "static" / "node_modules" / "bootstrap" / "dist" / "css"
    exporter = HTMLExporter(
        template_name=template, extra_template_basedirs=[str(templates)], extra_template_paths=[str(styles)]
    )
    resources = {
        "nbgrader": {"score": 0, "max_score": 4, "late_penalty": 0, "student": "s", "assignment": "a", "notebook": "n"},
        **dict.fromkeys(("assignment_id", "notebook_id", "submission_id", "base_url", "student", "notebook_path"), "x"),
        "last_name": "",
        "first_name": "",
        "index": 0,
        "total": 1,
    }  # fmt: skip
    html, _ = exporter.from_notebook_node(notebook, resources)
    return html


def title_in_a_browser(html, folder):
    file = folder / "page.html"
    file.write_text(html)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    options = ["headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "virtual-time-budget=3000", "dump-dom"]
    command = [browser, *(f"--{option}" for option in options), f"--user-data-dir={folder / 'profile'}", file.as_uri()]
    text = to_its_end(command, 120).stdout
    return text[text.index("<title>") + 7 : text.index("</title>")]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("chromium") or shutil.which("google-chrome")), reason="needs Chromium")
@pytest.mark.parametrize("template", ["formgrade", "feedback"])
def test_nothing_runs_in_a_browser(template, tmp_path):
    from case_kinds import notebook
    from submissions import scripts_everywhere

    attacked = notebook()
    scripts_everywhere(attacked)
    attack = "document.title='ATTACKED'"
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{attack}"/>'
    outputs = [
        v4.new_output("display_data", {"text/html": f"<script>{attack}</script>"}),
        v4.new_output("display_data", {"image/svg+xml": drawing}),
        v4.new_output("display_data", {"application/javascript": attack}),
        v4.new_output("stream", name="stdout", text=f"<script>{attack}</script>"),
    ]
    next(cell for cell in attacked.cells if cell.cell_type == "code").outputs = outputs
    for cell in attacked.cells:
        if cell.metadata.get("nbgrader"):
            cell.metadata.nbgrader.update(score=0, comment="")
    assert title_in_a_browser(page(attacked, template), tmp_path) == "ATTACKED", "the attack itself does not work"
    make_inert(attacked, ())
    assert title_in_a_browser(page(attacked, template), tmp_path) != "ATTACKED"
