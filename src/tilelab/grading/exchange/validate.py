"""Validate a learner's notebook, as JupyterLab's button asks: ``python -m tilelab.grading.exchange.validate FILE``.

It runs in a process of its own, so that a notebook that hangs costs the learner's server nothing, and prints one JSON
object: what nbgrader's page expects, with words in place of tracebacks.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from nbconvert.filters import ansi2html
from nbformat import NotebookNode
from nbgrader.apps import NbGrader
from nbgrader.nbgraderformat import SchemaTooNewError, SchemaTooOldError
from nbgrader.preprocessors import CheckCellMetadata, ClearOutput
from nbgrader.validator import Validator
from traitlets.config import Config

from tilelab.grading.errors import GradingError
from tilelab.grading.execute import ContainedExecute

#: Errors whose text says all; of others the last line of the traceback is shown.
OURS = frozenset({GradingError.__name__, "KernelLost", "NotReached", "OutputLimit"})
TOO_LONG = (
    "this cell ran longer than it may and was stopped: look for a loop that does not end, or for work that belongs in "
    "a smaller example"
)


class InWords(Validator):
    """nbgrader's validator on our executor: no cell can hang it, and what it says can be read."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.preprocessors = [CheckCellMetadata, ClearOutput, ContainedExecute]

    def _get_failed_cells(self, nb: NotebookNode) -> list[NotebookNode]:
        """Return the grade cells that do not pass, and the cells that failed before them."""
        failed = super()._get_failed_cells(nb)
        return [cell for cell in nb.cells if cell in failed or any(map(_error, cell.get("outputs", [])))]

    def _extract_error(self, cell: NotebookNode) -> str:
        words = [words for output in cell.get("outputs", []) if (words := _error(output))]
        return "\n".join(words) or str(super()._extract_error(cell))


def _error(output: NotebookNode) -> str:
    """Return what an output says went wrong, in a line; ``""`` where it is no error."""
    if output.output_type != "error":
        return ""
    if output.ename == "CellTimeoutError":
        return TOO_LONG
    return str(output.evalue) if output.ename in OURS else f"{output.ename}: {output.evalue}"


def validate(file: Path, config: Config) -> dict[str, Any]:
    """Return what nbgrader's page shows for a notebook."""
    config.ContainedExecute.sandboxed = False  # the learner's own code, on the learner's own server
    try:
        found = InWords(config=config).validate(str(file))
    except (SchemaTooOldError, SchemaTooNewError) as error:
        return refused(f"{file.name} was made by another version of nbgrader: fetch the assignment again. ({error})")
    except OSError as error:
        return refused(f"{file.name} cannot be read: {error.strerror}")
    except Exception as error:
        return refused(f"{file.name} could not be validated: {type(error).__name__}: {error}")
    for cell in found.get("failed", []):
        cell["error"] = ansi2html(cell["raw_error"])
    return {"success": True, "value": found}


def refused(words: str) -> dict[str, Any]:
    """Return words as nbgrader's pages show them."""
    return {"success": False, "value": words}


def main() -> int:
    """Validate the file that the command line names."""
    app = NbGrader()
    app.load_config_file()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print, or the notebook's own programs, must not come between
    said = validate(Path(sys.argv[1]), app.config)
    out.write(json.dumps(said))
    out.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
