"""Numbers in prose come from code: a link names where, and the book shows what stands there.

``[48 KiB](../book/numbers.md#shared-static)`` shows the value of that id in `known_numbers`, with the day and the
device if it was measured, and leads to the page that says where it comes from. ``[4 sectors](#unit-3-answer)`` leads
to a cell of the same page; the number has to stand in that cell or in what it printed. A plain link has been chosen
because it is readable in Jupyter too. An id or a cell that does not exist, or does not have the number, is a warning,
and warnings fail the build.
"""

import re

import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive
from known_numbers import known_numbers
from sphinx import addnodes
from sphinx.errors import NoUri
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from tilelab.measure.records import read_record, records_folder

PAGE = "book/numbers"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
logger = logging.getLogger(__name__)


def with_value(text: str, value: str) -> str:
    """Return the text with its first number replaced."""
    return NUMBER.sub(value, text, count=1)


class NumbersInProse(SphinxTransform):
    """Put the values in; after translation, before links are resolved."""

    default_priority = 500

    def apply(self, **kwargs):
        """Look at every link of the page."""
        cells = self.cells()
        for link in list(self.document.findall(lambda n: isinstance(n, addnodes.pending_xref | nodes.reference))):
            target = link.get("reftargetid") or ""
            if isinstance(link, addnodes.pending_xref) and str(link.get("reftarget", "")).endswith(PAGE) and target:
                self.from_code(link, target)
            elif link.get("id_link") and link.get("refuri", "")[1:] in cells:
                self.from_cell(link, *cells[link["refuri"][1:]])

    def from_code(self, link, name):
        """Replace a link to an id by the id's value."""
        number = known_numbers().get(name)
        if number is None:
            logger.warning("no number %r; there are %s", name, ", ".join(known_numbers()), location=link)
            return
        text = with_value(link.astext(), number.value)
        shown = nodes.reference(
            "", "", nodes.inline("", text), internal=True, refuri=f"number:{name}", classes=["number"], number=name
        )
        link.replace_self(
            [shown, nodes.inline("", f" ({number.badge})", classes=["recorded-run"])] if number.badge else shown
        )

    def from_cell(self, link, name, cell, source):
        """Let a link lead to a cell that has its number."""
        if name not in cell["ids"]:
            cell["ids"].append(name)
        text, shown = link.astext(), source + cell.astext()
        number = NUMBER.search(text)
        if number is None or number[0] not in NUMBER.findall(shown):
            logger.warning("the cell %s does not have the number of %r", name, text, location=link)
        link.replace_self(
            nodes.reference("", "", nodes.inline("", text), internal=True, refid=name, classes=["number"])
        )

    def cells(self):
        """Cell id -> (id, the cell's node, its source), for a page made from a notebook."""
        path = self.env.doc2path(self.env.docname)
        if not str(path).endswith(".ipynb"):
            return {}
        notebook = nbformat.read(path, as_version=4)
        found = {}
        for node in self.document.findall(nodes.container):
            if "cell_index" in node:
                cell = notebook.cells[node["cell_index"]]
                found[cell.id] = (cell.id, node, cell.source)
        return found


class LinksToNumbers(SphinxPostTransform):
    """Let the numbers lead to the page that says where they come from."""

    default_priority = 5

    def run(self, **kwargs):
        """Turn ids into addresses."""
        for link in self.document.findall(nodes.reference):
            if "number" in link:
                try:
                    page = self.app.builder.get_relative_uri(self.env.docname, PAGE)
                except NoUri:
                    page = ""
                link["refuri"] = f"{page.partition('#')[0]}#number-{link['number']}"


def table(head, rows):
    """Return a table; a row is a list of paragraphs' nodes, with an id for its first cell or none."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]

    def line(cells, name=None):
        row = nodes.row()
        for i, content in enumerate(cells):
            entry = nodes.entry("", nodes.paragraph("", "", *content))
            if name and i == 0:
                entry["ids"].append(name)
            row += entry
        return row

    group += nodes.thead("", line([[nodes.Text(text)] for text in head]))
    group += nodes.tbody("", *(line(cells, name) for name, cells in rows))
    return nodes.table("", group, classes=["sources"])


class KnownNumbers(Directive):
    """A table of all known numbers: where the links of prose lead."""

    def run(self):
        """Return it."""
        rows = []
        for name, number in known_numbers().items():
            value = nodes.inline("", f"{number.value}", classes=["number"])
            source = nodes.literal("", number.source) if "." in number.source else nodes.Text(number.source)
            when = [nodes.Text(f", {number.badge}")] if number.badge else []
            rows.append((f"number-{name}", [[value], [nodes.Text(number.meaning)], [source, *when]]))
        return [table(["number", "of what", "from"], rows)]


def commands_of(record):
    """Return the commands that make a record again: one, or the steps that its script names."""
    scripts = record.parents[1]
    names = [f"record_{record.stem.removesuffix('_h200')}.py", f"{record.stem}.py"]
    script = next(name for name in names if (scripts / name).exists())
    steps = re.findall(rf"^ *(python benchmarks/{script} .*?)(?:  .*)?$", (scripts / script).read_text(), re.M)
    if len(steps) > 1:
        return steps
    more = f"--record benchmarks/records/{record.name}" if script.startswith("record_") else "--json"
    return [f"python benchmarks/{script} {more}"]


class RecordedRuns(Directive):
    """All recorded runs: what each ran on, on which data, what it claims, and how it is made again."""

    def run(self):
        """Return them."""
        runs = nodes.definition_list(classes=["runs"])
        for path in sorted(records_folder().glob("*.json")):
            run = read_record(path)
            where = run["recorded"]
            machine = [where["device"]]
            machine += [f"driver {where['driver']}"] if where["driver"] else []
            machine += [f"CUDA {where['toolkit']}"] if where["toolkit"] else []
            held = sum(target["ok"] for target in run["targets"])
            claims = f"{held} of {len(run['targets'])} hold" if run["targets"] else "none"
            facts = nodes.bullet_list()
            for name, *told in [
                ("on", nodes.Text(f"{', '.join(machine)}; {where['date'][:10]}")),
                ("data", nodes.inline("", str(where["distribution"]), classes=["recorded-run"])),
                ("claims", nodes.Text(claims)),
                ("commit", nodes.literal("", str(where["commit"]))),
            ]:
                facts += nodes.list_item("", nodes.paragraph("", "", nodes.Text(f"{name}: "), *told))
            command = "\n".join(commands_of(path))
            term = nodes.term("", "", nodes.literal("", path.stem), ids=[f"run-{path.stem}"])
            how = nodes.literal_block(command, command, language="text")
            runs += nodes.definition_list_item("", term, nodes.definition("", facts, how))
        return [runs]


def setup(app):
    """Register with Sphinx."""
    app.add_transform(NumbersInProse)
    app.add_post_transform(LinksToNumbers)
    app.add_directive("known-numbers", KnownNumbers)
    app.add_directive("recorded-runs", RecordedRuns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
