"""One simulator in a process of its own, for ``simulator.py``: needs NumPy and the simulator, nothing else."""

import json
import resource
import sys
import time

import numpy as np
import simulator_matmul as kernels

TILE = 16
#: Kernel -> its launch for a size.
LAUNCHES = {
    "tiled": lambda n: ((-(-n // TILE), -(-n // TILE)), (TILE, TILE)),
    "register_tiled": lambda n: ((n // 64, n // 64), 256),
}


def worker(who: str) -> None:
    """Answer requests ``kernel size checks`` on standard input with CPU seconds, wall seconds and the largest error."""
    for request in sys.stdin:
        name, size, checks = request.split()
        n = int(size)
        rng = np.random.default_rng(0)
        a, b = rng.random((n, n), dtype=np.float32), rng.random((n, n), dtype=np.float32)
        c = np.zeros((n, n), np.float32)
        kernel, (grid, block) = getattr(kernels, name), LAUNCHES[name](n)
        if who == "ours":
            launch = kernels.cuda.simulate(kernel, checks=checks == "True")[grid, block]
        else:
            launch = kernel[grid, block]
        wall, cpu = time.perf_counter(), time.process_time()
        launch(a, b, c)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answer = {
            "cpu": cpu,
            "wall": wall,
            "error": float(np.abs(c - a @ b).max()),
            "memory": memory,
            "sum": c.tobytes().hex()[:64],
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    worker(*sys.argv[1:])
