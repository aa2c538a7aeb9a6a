"""All chapters executed on a GPU: which cells ran there, which failed, and how long each chapter took.

    python benchmarks/record_book.py [--json] [--record benchmarks/records/book_h200.json]

A cell that uses the GPU is tagged ``gpu``; where there is none it says that it did not run. It needs
nbclient and ipykernel.
"""

import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tilelab.measure.records import conclude, target, where_gpu

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted(path for path in (ROOT / "notebooks").glob("*.ipynb") if re.match(r"\d\d-", path.name))
SECONDS = 120


def printed(cell: nbformat.NotebookNode) -> str:
    """Everything that a cell printed, or the name of its error."""
    return "".join(output.get("text", output.get("ename", "")) for output in cell.get("outputs", []))


def run(path: Path) -> dict[str, object]:
    """Execute a chapter from its first cell to its last, or to the first that fails."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    start, failed = time.perf_counter(), ""
    try:
        client.execute()
    except CellExecutionError as error:
        at = next(cell.id for cell in notebook.cells if any(o.output_type == "error" for o in cell.get("outputs", [])))
        failed = f"{at}: {error.ename}: {error.evalue}"[:200]
    on_gpu = [cell for cell in notebook.cells if "gpu" in cell.metadata.get("tags", [])]
    live = [cell for cell in on_gpu if printed(cell) and "not run" not in printed(cell).lower()]
    return {
        "chapter": path.stem,
        "cells": sum(cell.cell_type == "code" for cell in notebook.cells),
        "seconds": round(time.perf_counter() - start, 2),
        "gpu cells": len(on_gpu),
        "live": len(live),
        "said": "; ".join(f"{cell.id}: {printed(cell).strip().splitlines()[-1]}" for cell in live),
        "without nvcc": any("no nvcc here" in printed(cell) for cell in notebook.cells),
        "failed": failed,
    }


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
def main(as_json: bool, record: Path | None) -> None:
    """Execute, count and record."""
    with ThreadPoolExecutor(max(1, min(4, (os.cpu_count() or 1) // 2))) as pool:
        rows = list(pool.map(run, CHAPTERS))
    targets = [
        target("chapters that ran to their end", sum(not row["failed"] for row in rows), len(rows), ">="),
        target("GPU cells that did not run live", sum(row["gpu cells"] - row["live"] for row in rows), 0, "<="),
    ]
    where = where_gpu("as each cell draws it", **{"chapters at a time": max(1, min(4, (os.cpu_count() or 1) // 2))})
    conclude(rows, targets, where, as_json, record)


if __name__ == "__main__":
    main()
