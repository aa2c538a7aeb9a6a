"""Run a learner's notebook so that nothing in it can cost more than its own question.

A kernel that exits, hangs or sends what cannot be parsed loses the cell it was in; another kernel is started, the
cells before are run again with their outputs thrown away, and the rest goes on. Output is limited as it arrives.
Kernels run in the sandbox unless that is switched off by name.
"""

import asyncio
import copy
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import Empty
from time import monotonic
from typing import Any

import zmq
from jupyter_core.utils import ensure_async, run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode, v4
from nbformat.v4 import new_output
from nbgrader.preprocessors import Execute
from traitlets import Bool, Instance, List, Unicode

from tilelab.grading.budgets import Budget, budget
from tilelab.grading.kernels import ARGUMENTS, Kernels, enclose
from tilelab.grading.learner import key_in, telling
from tilelab.grading.problems import split
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.provisioner import SandboxProvisioner
from tilelab.grading.submitted import NOTES

#: Seconds a kernel has to answer after it was interrupted, before it counts as lost.
PATIENCE = 5.0
#: Runs before what a grade cell says. Not ``tilelab.grading``: that module's name is easily given another value.
THE_COURSES_OWN = "from tilelab.grading.notebook_side import submit"
#: When all cells of a notebook have shown this many times what one may, each of the rest may show a little: an answer
#: always fits.
CELLS_FULL_OF_OUTPUT, A_LITTLE = 5, 100_000
#: What every output counts besides its own size: a page of thousands of small ones is heavy too.
OF_EACH_OUTPUT = 1000
#: A longer message is not received: the kernel that sends it is lost.
LONGEST_MESSAGE = 128 << 20


class ContainedExecute(Execute):
    """nbgrader's ``Execute``, which never loses a notebook."""

    sandboxed = Bool(True, help="Run learners' kernels in the sandbox.").tag(config=True)
    limits = Unicode("", help="The course's limits.toml.").tag(config=True)
    allowed = Instance(Budget, allow_none=True, help="What a notebook may use; from the limits unless given.")
    kernels = Instance(Kernels, allow_none=True, help="Where kernels that were started ahead are taken from.")
    #: Name and limits of the kernel that the next notebook needs, started while this one runs.
    following: tuple[str, Limits] | None = None
    extra_arguments = List(list(ARGUMENTS), help="Arguments for learners' kernels.").tag(config=True)
    shutdown_kernel = "immediate"  # nothing in it is worth a farewell
    store_widget_state = False
    record_timing = False  # nobody reads it, and nbclient asks a clock for it that newer Pythons warn of

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Execute all cells. Raises only where no kernel could be started at all: that is no learner's fault."""
        if "unread" in nb.metadata.get(NOTES, {}):
            return nb, resources
        name = (resources or {}).get("nbgrader", {}).get("notebook", "")
        self._budget = self.allowed or budget(Path(self.limits) if self.limits else None, name)
        self._end = float("inf")
        self._questions = _questions(nb)
        self._lost: dict[int, str] = {}
        self._left_out: frozenset[str] = frozenset()
        self._over = ""
        self._sizes: dict[int, int] = {}
        self._began = False
        self.timeout_func = self._seconds_for
        student = (resources or {}).get("nbgrader", {}).get("student", "")
        told = [v4.new_code_cell(telling(student))] if student and key_in(cell.source for cell in nb.cells) else []
        nb.cells[:0] = told
        try:
            super().preprocess(nb, resources, km)
        except Exception:
            if not self._began:
                raise
            self.log.warning("the kernel did not end cleanly", exc_info=True)
        finally:
            del nb.cells[: len(told)]
        return nb, resources

    def _seconds_for(self, cell: NotebookNode) -> float:
        own = self._budget.of(self._questions.get(cell.get("id"), ""), "cell_seconds")
        return float(max(1.0, min(own, self._end - monotonic())))

    def create_kernel_manager(self) -> Any:
        """Make the kernel manager; where its kernel runs is chosen here and by nothing else."""
        manager = super().create_kernel_manager()
        if self.sandboxed:
            enclose(manager, self._budget.limits)
        else:
            local = {"provisioner_name": "local-provisioner", "config": {}}
            manager.kernel_spec.metadata["kernel_provisioner"] = local
        return manager

    @contextmanager
    def setup_kernel(self, **options: Any) -> Iterator[None]:
        """Take a kernel that was started ahead, or start one; it is ended in any case."""
        if self.kernels is not None and self.sandboxed:
            name = self.nb.metadata.get("kernelspec", {}).get("name", "python3")
            folder = self.resources.get("metadata", {}).get("path")
            self.km = self.kernels.take(name, self._budget.limits, folder)
        options["cleanup_kc"] = True
        with super().setup_kernel(**options):
            if self.sandboxed and not isinstance(self.km.provisioner, SandboxProvisioner):
                raise RuntimeError(f"the kernel is not in the sandbox but in a {type(self.km.provisioner).__name__}")
            if self.kernels is not None and self.sandboxed and self.following is not None:
                self.kernels.start_ahead(*self.following)
            yield

    async def async_start_new_kernel_client(self) -> Any:
        """Connect to the kernel and wait until it answers, no longer: the base class listens 0.2 s to silence."""
        try:
            if isinstance(self.km.provisioner, SandboxProvisioner):
                await self.km.provisioner.reachable()
            self.kc = self.km.client()
            self.kc.context.setsockopt(zmq.MAXMSGSIZE, LONGEST_MESSAGE)  # of sockets made from here on
            self.kc.start_channels()
            end = monotonic() + self.startup_timeout
            while not await self._answers(1.0):
                if monotonic() > end or not await ensure_async(self.kc.is_alive()):
                    raise RuntimeError(f"the kernel did not answer in {self.startup_timeout} s")
        except Exception:
            await self._async_cleanup_kernel()
            raise
        self.kc.allow_stdin = False
        return self.kc

    start_new_kernel_client = run_sync(async_start_new_kernel_client)

    async def _answers(self, seconds: float) -> bool:
        """Tell whether the kernel takes a request, and reports on all channels that it did."""
        request = self.kc.kernel_info()
        try:
            for receive in (self.kc.get_shell_msg, self.kc.get_iopub_msg):
                while True:
                    message = await receive(timeout=seconds)
                    if message["parent_header"].get("msg_id") != request:
                        continue
                    if message["msg_type"] != "status" or message["content"]["execution_state"] == "idle":
                        break
        except Empty:
            return False
        return True

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        """Execute one cell and survive it."""
        if not self._began:  # a kernel's start is not the learner's time
            self._began, self._end = True, monotonic() + self._budget.limits.seconds
        if cell.cell_type != "code":
            return cell, resources
        if not self._over and monotonic() > self._end:
            self._over = f"the {self._budget.limits.seconds:g} s for this notebook were used up"
        if self._over:
            cell.outputs = [_error("NotReached", self._over)]
            return cell, resources
        try:
            self._run(cell, resources, index)
        except DeadKernelError as error:
            # A limit that ended it would end it again. Anything else may have come from outside: once more.
            again = partial(self._ran_again, cell, resources, index)
            if self._why_it_ended() or not (again() or self._spared(index, again)):
                self._lose(cell, index, error, resources)
        except TimeoutError as error:
            # Perhaps an earlier cell broke the kernel; then this one deserves another.
            known = len(self._lost), self._left_out
            ran = self._ran_again(cell, resources, index, only_if=lambda: (len(self._lost), self._left_out) != known)
            if not ran:
                self._lose(cell, index, error, resources)
        except Exception as error:
            self._lose(cell, index, error, resources)
        return cell, resources

    def _run(self, cell: NotebookNode, resources: Any, index: int) -> None:
        self._execute(cell, resources, index)
        if _timed_out(cell) and not run_sync(self._still_runs)():
            raise TimeoutError

    def _execute(self, cell: NotebookNode, resources: Any, index: int) -> None:
        """Execute one cell; in a cell that hands an answer in, ``submit`` is the course's own."""
        source = cell.source
        data = cell.metadata.get("nbgrader", {})
        if self._questions.get(cell.get("id")) and data.get("grade") and not data.get("solution"):
            cell.source = f"{THE_COURSES_OWN}\n{source}"
        try:
            super().preprocess_cell(cell, resources, index)
        finally:
            cell.source = source

    def _ran_again(
        self, cell: NotebookNode, resources: Any, index: int, only_if: Callable[[], bool] = lambda: True
    ) -> bool:
        """Run a cell once more in another kernel, and tell whether that one lived."""
        before, cell.outputs = cell.outputs, []
        self._sizes.pop(index, None)
        try:
            self._replay(index, resources)
            if not only_if():
                raise TimeoutError
            self._run(cell, resources, index)
        except Exception:
            cell.outputs = before
            return False
        return True

    def _why_it_ended(self) -> str:
        provisioner = getattr(self.km, "provisioner", None)
        return (provisioner.why_it_ended() or "") if isinstance(provisioner, SandboxProvisioner) else ""

    async def _async_poll_kernel_alive(self) -> None:
        """Watch the kernel while a reply is awaited; the base class goes on after one that cannot be read."""
        watching = asyncio.current_task()
        assert watching is not None
        self.task_poll_for_reply.add_done_callback(lambda _: watching.cancel())
        await super()._async_poll_kernel_alive()

    async def _still_runs(self) -> bool:
        """Tell whether a kernel that was interrupted still runs cells: one without a stdout, say, does not."""
        request = self.kc.execute("pass", silent=True)
        end = monotonic() + PATIENCE
        while (left := end - monotonic()) > 0:
            try:
                if (await self.kc.get_shell_msg(timeout=min(left, 0.5)))["parent_header"].get("msg_id") == request:
                    return True
            except Empty:
                if not await ensure_async(self.km.is_alive()):
                    break
        return False

    def _lose(self, cell: NotebookNode, index: int, error: Exception, resources: Any) -> None:
        """Record that the kernel was lost in this cell, and bring another one to where it was."""
        words = {
            "DeadKernelError": "the kernel ended in a cell",
            "CellTimeoutError": "a cell ran past its time and could not be interrupted",
            "TimeoutError": "a cell ran past its time and left a kernel that does not answer",
        }
        reason = words.get(type(error).__name__, f"the kernel was lost in a cell ({type(error).__name__})")
        if why := self._why_it_ended():
            reason = f"the kernel was ended in a cell: {why}"
        cell.outputs = [*cell.outputs, _error("KernelLost", reason)]
        self._lost[index] = reason
        if len(self._lost) > self._budget.restarts:
            self._over = f"the kernel was lost {len(self._lost)} times before this cell"
            return
        back = partial(self._brought_back, index, resources)
        if not (back() or self._spared(index, back)):
            self._over = "the kernel was lost before and could not be brought back"

    def _brought_back(self, index: int, resources: Any) -> bool:
        try:
            self._replay(index, resources)
        except Exception:
            return False
        return True

    def _spared(self, index: int, work: Callable[[], bool]) -> bool:
        """Do what an earlier question may be in the way of, and tell whether it could be done without that question.

        A thread or a timer of one question can end the kernel when another one runs. Without all earlier ones it is
        tried first: where that is no help, the fault is not theirs.
        """
        before, own = self._left_out, self._question(index)
        earlier = [one for one in dict.fromkeys(map(self._question, range(index))) if one not in before | {own, ""}]

        def without(some: Iterable[str]) -> bool:
            self._left_out = before.union(some)
            return monotonic() <= self._end and work()

        one_by_one = ([one] for one in reversed(earlier))
        if earlier and without(earlier) and (len(earlier) == 1 or any(map(without, one_by_one)) or without(earlier)):
            return True
        self._left_out = before
        return False

    def _question(self, index: int) -> str:
        return self._questions.get(self.nb.cells[index].get("id"), "")

    def _replay(self, upto: int, resources: Any) -> None:
        """Bring a fresh kernel to the state before the lost cell; what was recorded stays as it is.

        A cell after which the kernel does not answer any more is found here, and left out from then on.
        """
        while (broken := self._first_that_breaks(upto, resources)) is not None:
            if len(self._lost) > self._budget.restarts:
                raise TimeoutError
            if not self._spared(broken, partial(self._holds, broken, resources)):
                reason = "a cell left a kernel that does not answer"
                self._lost[broken] = reason
                self.nb.cells[broken].outputs.append(_error("KernelLost", reason))

    def _holds(self, index: int, resources: Any) -> bool:
        """Tell whether a fresh kernel still answers after the cells up to this one."""
        try:
            return self._first_that_breaks(index + 1, resources) is None
        except Exception:
            return False

    def _first_that_breaks(self, upto: int, resources: Any) -> int | None:
        """Run the cells before one in a fresh kernel; return the first that leaves it without an answer, if any."""
        self._cleanup_kernel()
        self.km = self.create_kernel_manager()
        self.start_new_kernel()
        self.start_new_kernel_client()
        for index in range(upto):
            if monotonic() > self._end:
                raise TimeoutError
            recorded = self.nb.cells[index]
            spoiled = index in self._lost or _timed_out(recorded) or self._question(index) in self._left_out
            if recorded.cell_type == "code" and not spoiled:
                self._sizes.pop(index, None)
                try:
                    self._execute(copy.deepcopy(recorded), resources, index)
                finally:
                    self.nb.cells[index] = recorded
                if not run_sync(self._still_runs)():
                    return index
        return None

    def on_cell_executed(self, **done: Any) -> None:
        """Take a kernel in which a cell said ``quit()`` for ended: it goes on for a moment, into the next cell."""
        super().on_cell_executed(**done)
        payload = done["execute_reply"]["content"].get("payload")
        for one in payload if isinstance(payload, list) else []:
            if isinstance(one, dict) and one.get("source") == "ask_exit" and not one.get("keepkernel"):
                raise DeadKernelError("the cell ended the kernel")

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """Ignore messages that reach into other cells' outputs or back into this process."""
        if msg["msg_type"] == "update_display_data" or msg["msg_type"].startswith("comm"):
            return None
        if not isinstance(msg["content"].get("execution_count", 0), int):
            del msg["content"]["execution_count"]
        kept: NotebookNode | None = super().process_message(msg, cell, cell_index)
        return kept

    def output(
        self, outs: list[NotebookNode], msg: dict[str, Any], display_id: str | None, cell_index: int
    ) -> NotebookNode | None:
        """Drop output over the limit as it arrives, before anything copies or validates it."""
        most = self._budget.of(self._question(cell_index), "cell_output")
        if sum(self._sizes.values()) - self._sizes.get(cell_index, 0) > CELLS_FULL_OF_OUTPUT * most:
            most = min(most, A_LITTLE)
        try:
            size = len(json.dumps(msg["content"], default=str)) + OF_EACH_OUTPUT
        except (RecursionError, ValueError):
            size = most + 1
        before = self._sizes.get(cell_index, 0)
        if before + size <= most:
            self._sizes[cell_index] = before + size
            kept: NotebookNode | None = super().output(outs, msg, display_id, cell_index)
            return kept
        self._sizes[cell_index] = most + 1  # nothing comes after
        if before <= most:
            outs.append(_error("OutputLimit", f"output over {most:,} bytes was dropped"))
        return None


def _questions(nb: NotebookNode) -> dict[str, str]:
    """Return the question that each cell belongs to, by the cell's id: that of the next grade cell."""
    found, question = {}, ""
    for cell in reversed(nb.cells):
        data = cell.metadata.get("nbgrader", {})
        if data.get("grade"):
            question = split(data["grade_id"])[1]
        found[cell.get("id")] = question
    return found


def _timed_out(cell: NotebookNode) -> bool:
    return any(output.get("ename") == "CellTimeoutError" for output in cell.get("outputs", []))


def _error(name: str, text: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])
