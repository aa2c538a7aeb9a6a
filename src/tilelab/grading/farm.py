"""Much work at once: workers do it, each in a process of its own, and whoever asked gathers it.

Dask carries the work on this machine, or to a cluster whose scheduler's address is given; there, workers need the
course's folder at the same path. A worker that is killed is replaced, and what it was at is done again.
"""

import atexit
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.kernels import Kernels

#: How often work is given to another worker after its worker was killed.
RETRIES = 3
#: Of dask. Workers are forked from a process that has imported everything once. A worker holds what it works on and
#: nothing else: where it is lost, nobody else is blamed.
SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.scheduler.worker-saturation": 1.0,
}
#: Where dask keeps the environment of processes that are about to start.
SET_AT_START = "distributed.nanny.pre-spawn-environ"
IMPORTED = ["tilelab.grading.undisturbed", "distributed", "tilelab.grading.lean"]

_kernels: list[Kernels] = []


class Farm:
    """Workers for functions of one argument; with one worker, this process does the work.

    Parameters
    ----------
    workers : int
        Processes on this machine.
    scheduler : str, optional
        Address of a Dask scheduler whose workers do the work instead.
    """

    def __init__(self, workers: int, scheduler: str | None = None) -> None:
        self._stack = ExitStack()
        self._client: Any = None
        self._cluster: Any = None
        self._gathering: Any = None
        self._given: dict[Any, tuple[Callable[[Any], Any], Any]] = {}
        self._now: list[Any] = []
        self._here: deque[tuple[Callable[[Any], Any], Any]] = deque()
        if workers > 1 or scheduler is not None:
            try:
                with interrupts_put_off():  # a cluster that is half there cannot be closed, nor can it without noise
                    self._connect(workers, scheduler)
            except BaseException as error:
                self.__exit__(error)
                raise

    def _connect(self, workers: int, scheduler: str | None) -> None:
        import dask
        from distributed import Client, LocalCluster, as_completed  # first: it adds its defaults to dask's settings

        self._stack.enter_context(dask.config.set(SETTINGS))
        if scheduler is None:
            get_ready()
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # a free port, where another cluster has the usual one
                memory_limit=0,
                silence_logs=50,
            )
            self._cluster = scheduler = self._stack.enter_context(cluster)
        self._client = self._stack.enter_context(Client(scheduler, set_as_default=False))
        self._gathering = as_completed(loop=self._client.loop)

    def __enter__(self) -> "Farm":
        """Return the farm."""
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Send the workers home; where something stopped the work, at once."""
        if error is not None:
            self._now = self.at_work()  # for who asks what was stopped
        if error is not None and self._cluster is not None:
            for nanny in self._cluster.workers.values():
                with suppress(ProcessLookupError, TypeError):  # one that is gone already
                    os.kill(nanny.pid, signal.SIGKILL)  # what it was at is not recorded, and its kernel ends with it
        self._stack.close()
        self._cluster = None
        if self._client is None:
            close_kernels()

    def start(self, function: Callable[[Any], Any], argument: Any, first: bool = False) -> None:
        """Have something done; ``first`` puts it before what waits."""
        if self._client is None:
            (self._here.appendleft if first else self._here.append)((function, argument))
            return
        future = self._client.submit(function, argument, retries=RETRIES, pure=False, priority=1 if first else 0)
        self._given[future] = (function, argument)
        self._gathering.add(future)

    def at_work(self) -> list[Any]:
        """Return the arguments of what is being done now."""
        if self._cluster is None:
            return list(self._now)
        keys = {task.key for worker in self._cluster.scheduler.workers.values() for task in worker.processing}
        return [argument for future, (_, argument) in self._given.items() if future.key in keys]

    def done(self) -> Iterator[tuple[Callable[[Any], Any], Any, Any]]:
        """Yield (function, argument, result) as things are done, also those started meanwhile.

        The result is a `GradingError` where the work raised, or its workers were killed again and again.
        """
        while self._here:
            function, argument = self._here.popleft()
            self._now = [argument]
            try:
                result = function(argument)
            except Exception as error:
                result = _as_grading_error(error)
            yield function, argument, result
        while self._given:
            future = next(self._gathering)
            function, argument = self._given.pop(future)
            try:
                result = future.result()
            except Exception as error:
                result = _as_grading_error(error)
            future.release()
            yield function, argument, result


def get_ready() -> None:
    """Start the process that workers are forked from, unless it runs: it imports what they need in the meantime."""
    import dask
    from distributed.utils import get_mp_context  # first: it adds its defaults to dask's settings

    with dask.config.set(SETTINGS):
        get_mp_context()  # sets what is imported in advance, once; here more is
    multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
    # What dask sets before it starts a worker, such as when memory is given back, is read at a process's start.
    wanted = {name: str(value) for name, value in dask.config.get(SET_AT_START).items() if value is not None}
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    resource_tracker.ensure_running()  # first: it unblocks interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the process inherits it, and ends it
    os.environ.update(added)
    try:
        forkserver.ensure_running()
    finally:
        for name in added:
            del os.environ[name]
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_put_off() -> Iterator[None]:
    """Let Ctrl-C wait until this is over, a second one excepted; only the main thread hears of it at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def later(number: int, _: object) -> None:
        came.append(number)
        if len(came) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


def kernels() -> Kernels:
    """Return this process's kernels, some of them started ahead."""
    if not _kernels:
        _kernels.append(Kernels())
        atexit.register(close_kernels)
    return _kernels[0]


def close_kernels() -> None:
    """End the kernels of this process that nobody took."""
    while _kernels:
        _kernels.pop().close()


def _as_grading_error(error: Exception) -> GradingError:
    return error if isinstance(error, GradingError) else GradingError(f"{type(error).__name__}: {error}")
