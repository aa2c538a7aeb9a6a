"""The files: notebooks in old, future and broken forms, and everything else that a submission's folder can hold."""

import json
import os
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from case_kinds import ALL, NO_ORDER, NOTHING, PROBLEM, RIGHT_TABLE, Case, case, cell, notebook
from nbformat import NotebookNode

from tilelab.grading.answers import MIME

NAME = f"{PROBLEM}.ipynb"
TEXT = json.dumps(notebook(), ensure_ascii=False).encode()
TERABYTE = 1 << 40


def old_format(made: NotebookNode) -> bytes:
    """Return the notebook in the format of 2013."""
    cells = [
        {"cell_type": "code", "language": "python", "input": each.source, "outputs": [], "metadata": each.metadata}
        if each.cell_type == "code"
        else {"cell_type": "markdown", "source": each.source, "metadata": each.metadata}
        for each in made.cells
    ]
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": cells, "metadata": {}}],
    }
    return json.dumps(old).encode()


def future_format(made: NotebookNode) -> bytes:
    """Return the notebook in a format that is not out yet."""
    return json.dumps({**made, "nbformat_minor": 99, "something_new": {}}).encode()


def with_key(**keys: object) -> bytes:
    """Return the right notebook with some of its top keys changed."""
    return json.dumps({**notebook(), **keys}).encode()


def with_old_outputs() -> NotebookNode:
    """Return a notebook with a wrong order, in which outputs are stored that claim a judged right one."""
    made = notebook(order_answer='order = "row-major"')
    record = {"version": 1, "problem": PROBLEM, "answers": {"table": RIGHT_TABLE, "order": "column-major"}}
    report = {"tilelab_report": {"pending": 0, "lines": ["right"], "notes": [], "versions": {}}}
    cell(made, "order").outputs = [
        {
            "output_type": "execute_result",
            "data": {"text/plain": "1.0", MIME: record},
            "metadata": report,
            "execution_count": 1,
        }
    ]
    made.metadata["tilelab_graded"] = {"submission": "0" * 64, "sandbox": True}
    return made


def large(size: int) -> bytes:
    """Return the right notebook, so large with a stored output."""
    made = notebook()
    cell(made, "prediction").outputs = [{"output_type": "stream", "name": "stdout", "text": "x" * size}]
    return json.dumps(made).encode()


def with_cell(**keys: object) -> bytes:
    """Return the right notebook with the order's answer cell changed; a key that is ``None`` is left out."""
    made = json.loads(TEXT)
    for each in made["cells"]:
        if each["metadata"].get("nbgrader", {}).get("grade_id") == f"{PROBLEM}_order_answer":
            each.update(keys)
            for key in [key for key, value in each.items() if value is None]:
                del each[key]
    return json.dumps(made).encode()


def with_ids(*ids: object) -> bytes:
    """Return the right notebook with these as the cells' ids, again and again."""
    made = json.loads(TEXT)
    for each, named in zip(made["cells"], cycle(ids), strict=False):
        each["id"] = named
    return json.dumps(made).encode()


def in_place_of(make: Callable[[Path], object], words: str) -> Case:
    """Return a case in which something that is no file has the notebook's name."""
    return Case({}, NOTHING, words, lambda folder: make(folder / NAME))


def beside(make: Callable[[Path], object], words: str = "") -> Case:
    """Return a case in which something lies beside the right notebook."""
    return Case({NAME: TEXT}, ALL, words, make)


def in_a_folder(folder: Path) -> None:
    """Put the notebook where a folder was handed in whole, with what Jupyter and a Macintosh put there."""
    for place in ("exercises", "exercises/.ipynb_checkpoints", "__MACOSX/exercises"):
        (folder / place).mkdir(parents=True)
        (folder / place / NAME).write_bytes(TEXT)


def sparse(file: Path) -> None:
    """Make a file of a terabyte that takes no room."""
    with file.open("wb") as opened:
        opened.truncate(TERABYTE)


def deep(folder: Path) -> None:
    """Make folders in folders."""
    (folder / "/".join("d" * 300)).mkdir(parents=True)
    (folder / "/".join("d" * 300) / "end.txt").write_text("here")


def many(folder: Path) -> None:
    """Make thousands of files whose names come first."""
    for number in range(3000):
        (folder / f"0{number}").touch()


def closed(folder: Path) -> None:
    """Make a file and a folder that nobody may read."""
    (folder / "closed").mkdir()
    (folder / "closed.txt").write_text("x")
    for path in (folder / "closed", folder / "closed.txt"):
        path.chmod(0)


def python_files(*names: str, source: str = "raise SystemExit(3)\n") -> Callable[[Path], None]:
    """Return what makes Python files that stand in for other modules."""

    def make(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(source)

    return make


OWN_SUBMIT = "import builtins, json\nbuiltins.submit = lambda *a, **k: 2.0\n"
HOME_PACKAGES = ".local/lib/python3.{}/site-packages/usercustomize.py"

CASES: dict[str, Case] = {
    # files
    "missing": Case({}, NOTHING, "no notebook exercise_1.ipynb was handed in"),
    "wrong_name": Case({f"{PROBLEM}-Copy1.ipynb": TEXT}, ALL, "exercise_1-Copy1.ipynb was taken for it"),
    "in_a_folder": Case({}, ALL, "exercises/exercise_1.ipynb was taken for it", in_a_folder),
    "suffix_of_a_browser": Case({f"{NAME}.json": TEXT}, ALL, "exercise_1.ipynb.json was taken for it"),
    "space_at_its_end": Case({f"{NAME} ": TEXT}, ALL, "was taken for it"),
    "capitals": Case({"Exercise_1.IPYNB": TEXT}, ALL, "Exercise_1.IPYNB was taken for it"),
    "copy_beside": Case({NAME: TEXT, f"{PROBLEM}-Copy1.ipynb": TEXT}, ALL, "exercise_1-Copy1.ipynb beside it was not"),
    "wrong_file": Case({"essay.txt": b"my answer"}, NOTHING, "no notebook exercise_1.ipynb was handed in"),
    "latin1": case(TEXT.decode().replace("prediction = 1", "prediction = 1  # \xe4").encode("latin-1"), ALL),
    "utf8_bom": case(b"\xef\xbb\xbf" + TEXT, ALL),
    "truncated": case(TEXT[: len(TEXT) // 2], NOTHING, "no complete notebook file"),
    "emptyfile": case(b"", NOTHING, "no complete notebook file"),
    "nbformat3": case(old_format(notebook()), ALL),
    "future_minor": case(future_format(notebook()), ALL),
    "nbformat2": case(json.dumps({"nbformat": 2, "worksheets": [{"cells": "?"}]}).encode(), NOTHING, "old notebook"),
    "nbformat5": case(with_key(nbformat=5, nbformat_minor=0), ALL),
    "cells_called_old": case(with_key(nbformat=3), ALL),
    "no_nbformat": case(with_key(nbformat=None), ALL),
    "metadata_no_table": case(with_key(metadata=[1, 2]), ALL),
    "not_a_number": case(TEXT.replace(b'"metadata"', b'"x": NaN, "y": -Infinity, "metadata"', 1), ALL),
    "half_a_character": case(TEXT.replace(b"prediction = 1", b"prediction = 1  # \\ud800"), ALL),
    "a_number_of_5000_digits": case(TEXT.replace(b'"nbformat": 4', b'"nbformat": ' + b"9" * 5000), ALL),
    "cell_ids_of_all_kinds": case(with_ids(5, None, [], {}, "", "a b", "\u202e", True, 1.5, "x" * 100_000), ALL),
    "keys_twice": case(TEXT.replace(b'"cells"', b'"cells": [], "cells"', 1), ALL),
    "no_cells": case(with_key(cells=None), NOTHING, "no list of cells"),
    "cells_no_list": case(with_key(cells={"0": {}}), NOTHING, "no list of cells"),
    "cells_of_all_kinds": case(with_key(cells=[None, 3, "x", [], {}, {"cell_type": 7}, *notebook().cells]), ALL),
    "cell_without_source": case(with_cell(source=None), NO_ORDER, "'order' is not defined"),
    "source_is_a_number": case(with_cell(source=5), NO_ORDER, "'order' is not defined"),
    "utf16": case(TEXT.decode().encode("utf-16"), NOTHING, "not UTF-8"),
    "zeros": case(bytes(100_000), NOTHING, "no complete notebook file"),
    "a_zip": case(b"PK\3\4\x14\0\x08\0" + bytes(range(256)), NOTHING, "not UTF-8|no complete"),
    "windows_lines": case(TEXT.replace(b"\n", b"\r\n"), ALL),
    "outputs_of_48_mb": case(large(48_000_000), ALL),
    "millions_of_values": case(b'{"cells": [' + b"{}," * 3_000_000 + b"{}]}", NOTHING, "more than 2,000,000 values"),
    "thousands_of_cells": case(
        with_key(cells=[{"cell_type": "code", "source": "1"}] * 5000), NOTHING, "at most 1,000 are graded"
    ),
    "a_cell_of_a_million": case(with_cell(source="x = 0  # " + "a." * 500_000), NOTHING, "at most 300,000 are graded"),
    "outputs_stored": case(with_old_outputs(), NO_ORDER, "order: not right"),
    # what has the notebook's name
    "over_50_mb": in_place_of(sparse, "larger than 50 MB"),
    "a_folder": in_place_of(Path.mkdir, "is a folder"),
    "a_pipe": in_place_of(os.mkfifo, "a device or a pipe"),
    "a_link": in_place_of(lambda place: place.symlink_to("/etc/passwd"), "is a link"),
    "a_link_to_itself": in_place_of(lambda place: place.symlink_to(place.name), "is a link"),
    "a_name_with_html": Case({f"{PROBLEM} <img src=x onerror=alert(1)>.ipynb": TEXT}, ALL, "was taken for it"),
    "a_name_that_is_no_text": Case({os.fsdecode(b"exercise_1-\xff.ipynb"): TEXT}, ALL, "was taken for it"),
    "two_copies": Case(dict.fromkeys(("a.ipynb", "b.ipynb"), TEXT), NOTHING, "the folder holds a.ipynb, b.ipynb"),
    # what lies beside it
    "hard_link": beside(lambda folder: (folder / "twin.bin").hardlink_to(folder / NAME)),
    "pipe_beside": beside(lambda folder: os.mkfifo(folder / "data.csv")),
    "terabyte_beside": beside(lambda folder: sparse(folder / "data.bin")),
    "links_beside": beside(lambda folder: [(folder / f"l{n}").symlink_to(to) for n, to in enumerate(("/", ".", "x"))]),
    "deep_folders": beside(deep),
    "many_files": beside(many),
    "closed_files": beside(closed),
    "odd_names": beside(lambda folder: [(folder / name).touch() for name in ("-rf", "a\nb", "$(id)", "*", " ")]),
    "timestamp_garbled": beside(
        lambda folder: (folder / "timestamp.txt").write_bytes(b"\xff<b>"), "the time at which it was written counts"
    ),
    "timestamp_a_pipe": beside(
        lambda folder: os.mkfifo(folder / "timestamp.txt"), "the time at which it was written counts"
    ),
    # files that a kernel may load
    "module_of_the_kernel": beside(python_files("ipykernel_launcher.py"), "ran without them"),
    "modules_of_python": beside(python_files("random.py", "queue.py", "json.py", "zmq.py", "tilelab.py", "numpy.py")),
    "site_files": beside(python_files("sitecustomize.py", "usercustomize.py", ".pythonrc.py", "ipython_config.py")),
    "files_of_the_home": beside(
        python_files(
            ".ipython/profile_default/startup/00.py",
            ".ipython/profile_default/ipython_config.py",
            ".jupyter/jupyter_config.py",
            *map(HOME_PACKAGES.format, range(11, 15)),
        )
    ),
}
