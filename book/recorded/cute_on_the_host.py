"""Record what CuTe says to the programs of chapter 7, for readers without its headers.

``python book/recorded/cute_on_the_host.py`` compiles the programs that stand in the chapter with the functions that
stand in the chapter, and writes ``cute-on-the-host.json`` beside this file.
"""

import datetime
import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import nbformat

HERE = Path(__file__).parent
CHAPTER = HERE.parents[1] / "notebooks" / "07-reading-cute.ipynb"
RECORD = HERE / "cute-on-the-host.json"


def chapter_names() -> dict:
    """Return what the chapter's cells with the programs and the compiler define."""
    names: dict = {}
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        if cell.id in ("unit-4-programs", "unit-4-compile"):
            exec(cell.source, names)
    return names


def record() -> dict:
    """Compile and run the programs, and say with what."""
    chapter = chapter_names()
    if not chapter["header_folders"]():
        raise SystemExit("no CuTe headers here: pip install nvidia-cutlass, and a CUDA toolkit or its wheels")
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    outcomes, _ = chapter["what_cute_says"]()
    return {
        "recorded": {
            "date": datetime.date.today().isoformat(),
            "compiler": f"g++ {compiler}",
            "cute": f"CuTe of CUTLASS {version('nvidia-cutlass').removesuffix('.0')}",
        },
        "programs": chapter["PROGRAMS"],
        "outcomes": outcomes,
    }


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {RECORD.name}")
