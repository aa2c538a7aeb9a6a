"""The first rungs of simulating a GPU in plain Python: what a lecture writes on the board, to see what each lacks.

Three ways to run one function for every thread: one thread after another, with a barrier that works, and with a
"shared" array that every thread has for itself, which is wrong. :mod:`tilelab.simt.cuda` is the rung after these.

Source ------ The ladder of GPU MODE's lectures 3 and 5 (*Getting started with CUDA for Python programmers*, *Going
further*).
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Extents = int | tuple[int, ...]


class Index(NamedTuple):
    """Coordinates of a block or thread, or the extents of a grid or block."""

    x: int
    y: int = 1
    z: int = 1


def _extents(value: Extents) -> Index:
    return Index(value) if isinstance(value, int) else Index(*value)


def _indices(extents: Index) -> Iterator[Index]:
    return (
        Index(x, y, z) for z in range(extents.z) for y in range(extents.y) for x in range(extents.x)
    )  # x runs fastest, as on a GPU


def one_thread_at_a_time(function: Callable[..., None], grid: Extents, block: Extents, *args: Any) -> None:
    """Call ``function(block, thread, block_dim, *args)`` for every thread of every block, in order.

    Right for kernels whose threads share nothing; there is nothing that a barrier could wait for.

    Parameters
    ----------
    function
        What one thread does.
    grid, block
        Blocks, and threads of a block: a number or up to three, x first.
    args
        Passed on.
    """
    dim = _extents(block)
    for where in _indices(_extents(grid)):
        for thread in _indices(dim):
            function(where, thread, dim, *args)


def block_with_a_barrier(
    function: Callable[..., None], grid: Extents, block: Extents, shared: tuple[int, ...], *args: Any
) -> None:
    """Run the threads of a block side by side, with one shared array and a barrier that waits for all of them.

    Calls ``function(block, thread, block_dim, shared, barrier, *args)``; ``barrier()`` waits.

    Parameters
    ----------
    function
        What one thread does.
    grid, block
        Blocks, and threads of a block: a number or up to three, x first.
    shared
        Shape of the shared array of float32; it starts as NaN, for nobody wrote it.
    args
        Passed on.

    Raises
    ------
    Exception
        Whatever a thread raises first. A barrier that some thread misses breaks (``threading.BrokenBarrierError``).
    """
    dim = _extents(block)
    count = dim.x * dim.y * dim.z
    for where in _indices(_extents(grid)):
        memory = np.full(shared, np.nan, np.float32)
        barrier = threading.Barrier(count, timeout=5)
        failures: list[Exception] = []

        def run(
            thread: Index,
            where: Index = where,
            memory: NDArray[np.float32] = memory,
            barrier: threading.Barrier = barrier,
            failures: list[Exception] = failures,
        ) -> None:
            try:
                function(where, thread, dim, memory, barrier.wait, *args)
            except Exception as failure:
                failures.append(failure)
                barrier.abort()

        threads = [threading.Thread(target=run, args=(thread,)) for thread in _indices(dim)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            # the barrier breaks for all; the cause is whatever else was raised
            raise next((f for f in failures if not isinstance(f, threading.BrokenBarrierError)), failures[0])


def private_shared(
    function: Callable[..., None], grid: Extents, block: Extents, shared: tuple[int, ...], *args: Any
) -> None:
    """The wrong mock: every thread runs alone, with a "shared" array of its own and a barrier that does nothing.

    Takes the same function as :func:`block_with_a_barrier`. A tiled kernel computes the wrong thing with it, unless
    every thread fills the whole tile.

    Parameters
    ----------
    function
        What one thread does.
    grid, block
        Blocks, and threads of a block: a number or up to three, x first.
    shared
        Shape of the array that each thread gets, full of zeros.
    args
        Passed on.
    """
    dim = _extents(block)
    for where in _indices(_extents(grid)):
        for thread in _indices(dim):
            function(where, thread, dim, np.zeros(shared, np.float32), lambda: None, *args)
