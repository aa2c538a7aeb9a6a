"""Run a learner's notebook so that nothing in it can cost more than its own question.

A kernel that exits, hangs or sends what cannot be parsed loses the cell it was in; another kernel is started, the
cells before are run again with their outputs thrown away, and the rest goes on. Output is limited as it arrives.
"""

import copy
import json
from time import monotonic
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import Execute
from traitlets import Float, Integer, List, Unicode

from tilelab.grading.submitted import NOTES

#: Where learners' kernels run: the name of a jupyter_client kernel provisioner. The one place that chooses it.
PROVISIONER = "local-provisioner"


class ContainedExecute(Execute):
    """nbgrader's ``Execute``, which never loses a notebook."""

    provisioner = Unicode(PROVISIONER, help="Kernel provisioner for learners' kernels.").tag(config=True)
    budget = Float(300, help="Seconds for all cells of one notebook.").tag(config=True)
    max_output = Integer(4_000_000, help="Bytes of output kept of one cell.").tag(config=True)
    max_restarts = Integer(2, help="Kernels started again after one was lost, for one notebook.").tag(config=True)

    extra_arguments = List(
        ["--IPKernelApp.log_level=ERROR"],  # a kernel's own warnings are noise in the grader's terminal
        help="Arguments for learners' kernels.",
    ).tag(config=True)
    shutdown_kernel = "immediate"  # nothing in it is worth a farewell
    store_widget_state = False

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Execute all cells. Raises only where no kernel could be started at all: that is no learner's fault."""
        if "unread" in nb.metadata.get(NOTES, {}):
            return nb, resources
        self._end = float("inf")
        self._lost: dict[int, str] = {}
        self._over = ""
        self._sizes: dict[int, int] = {}
        self._began = False
        cap = self.timeout or self.budget
        self.timeout_func = lambda cell: max(1.0, min(cap, self._end - monotonic()))
        try:
            super().preprocess(nb, resources, km)
        except Exception:
            if not self._began:
                raise
            self.log.warning("the kernel did not end cleanly", exc_info=True)
        return nb, resources

    def create_kernel_manager(self) -> Any:
        """Make the kernel manager, with the provisioner chosen here and by nothing else."""
        manager = super().create_kernel_manager()
        manager.kernel_spec.metadata["kernel_provisioner"] = {"provisioner_name": self.provisioner, "config": {}}
        return manager

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        """Execute one cell and survive it."""
        if not self._began:  # a kernel's start is not the learner's time
            self._began, self._end = True, monotonic() + self.budget
        if cell.cell_type != "code":
            return cell, resources
        if not self._over and monotonic() > self._end:
            self._over = f"the {self.budget:g} s for this notebook were used up"
        if self._over:
            cell.outputs = [_error("NotReached", self._over)]
            return cell, resources
        try:
            super().preprocess_cell(cell, resources, index)
        except Exception as error:
            self._lose(cell, index, error, resources)
        return cell, resources

    def _lose(self, cell: NotebookNode, index: int, error: Exception, resources: Any) -> None:
        """Record that the kernel was lost in this cell, and bring another one to where it was."""
        words = {
            "DeadKernelError": "the kernel ended in a cell",
            "CellTimeoutError": "a cell ran past its time and could not be interrupted",
        }
        reason = words.get(type(error).__name__, f"the kernel was lost in a cell ({type(error).__name__})")
        cell.outputs = [*cell.outputs, _error("KernelLost", reason)]
        self._lost[index] = reason
        if len(self._lost) > self.max_restarts:
            self._over = f"the kernel was lost {len(self._lost)} times before this cell"
            return
        try:
            self._replay(index, resources)
        except Exception as failure:
            self._over = f"the kernel was lost before and could not be brought back ({type(failure).__name__})"

    def _replay(self, upto: int, resources: Any) -> None:
        """Bring a fresh kernel to the state before the lost cell; what was recorded stays as it is."""
        self._cleanup_kernel()
        self.km = self.create_kernel_manager()
        self.start_new_kernel()
        self.start_new_kernel_client()
        for index in range(upto):
            recorded = self.nb.cells[index]
            if recorded.cell_type == "code" and index not in self._lost:
                self._sizes.pop(index, None)
                try:
                    super().preprocess_cell(copy.deepcopy(recorded), resources, index)
                finally:
                    self.nb.cells[index] = recorded

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """Ignore messages that reach into other cells' outputs or back into this process."""
        if msg["msg_type"] == "update_display_data" or msg["msg_type"].startswith("comm"):
            return None
        kept: NotebookNode | None = super().process_message(msg, cell, cell_index)
        return kept

    def output(
        self, outs: list[NotebookNode], msg: dict[str, Any], display_id: str | None, cell_index: int
    ) -> NotebookNode | None:
        """Drop output over the limit as it arrives, before anything copies or validates it."""
        try:
            size = len(json.dumps(msg["content"], default=str))
        except (RecursionError, ValueError):
            size = self.max_output + 1
        before = self._sizes.get(cell_index, 0)
        self._sizes[cell_index] = before + size
        if before + size <= self.max_output:
            kept: NotebookNode | None = super().output(outs, msg, display_id, cell_index)
            return kept
        if before <= self.max_output:
            outs.append(_error("OutputLimit", f"output over {self.max_output:,} bytes was dropped"))
        return None


def _error(name: str, text: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])
