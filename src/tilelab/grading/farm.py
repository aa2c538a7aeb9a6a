"""Many submissions at once: workers grade, each in a process of its own, and whoever asked records.

Dask carries the work: by itself on this machine, or on a cluster whose scheduler's address is given. Workers need the
course's folder at the same path, and never open the gradebook.
"""

import atexit
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from tilelab.grading.errors import GradingError
from tilelab.grading.evaluate import Evaluated, Job, evaluate
from tilelab.grading.kernels import Kernels

#: How often a submission is given to another worker after its worker was killed.
RETRIES = 3

_kernels: list[Kernels] = []


def each_evaluated(
    jobs: Sequence[Job], workers: int, scheduler: str | None = None
) -> Iterator[tuple[Job, Evaluated | GradingError]]:
    """Evaluate submissions and yield them as they are done, in any order.

    Parameters
    ----------
    jobs : sequence of Job
        What to grade.
    workers : int
        Processes on this machine; with one, the work is done in this process.
    scheduler : str, optional
        Address of a Dask scheduler whose workers do the work instead.

    Yields
    ------
    Job, Evaluated or GradingError
        The job and what came of it; an error is never the learner's fault.
    """
    if scheduler is None and min(workers, len(jobs)) <= 1:
        kernels = Kernels()
        try:
            for job in jobs:
                yield job, _evaluated(job, kernels)
        finally:
            kernels.close()
        return
    import dask

    # Workers are forked from a process that has imported everything once.
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}), ExitStack() as stack:
        from distributed import Client, LocalCluster, as_completed

        if scheduler is None:
            multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed", __name__])
            scheduler = stack.enter_context(
                LocalCluster(
                    n_workers=min(workers, len(jobs)),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    memory_limit=0,
                    silence_logs=50,
                )
            )
        client = stack.enter_context(Client(scheduler, set_as_default=False))
        given = {client.submit(work, job, retries=RETRIES, pure=False): job for job in jobs}
        for future in as_completed(given):
            job = given.pop(future)
            try:
                yield job, future.result()
            except Exception as error:
                yield job, GradingError(f"the worker was lost: {type(error).__name__}: {error}")
            future.release()


def work(job: Job) -> Evaluated | GradingError:
    """Evaluate one submission in a worker, which keeps a kernel started ahead for the next."""
    if not _kernels:
        _kernels.append(Kernels())
        atexit.register(_kernels[0].close)
    return _evaluated(job, _kernels[0])


def _evaluated(job: Job, kernels: Any) -> Evaluated | GradingError:
    try:
        return evaluate(job, kernels)
    except GradingError as error:
        return error
