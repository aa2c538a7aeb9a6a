"""Run a learner's Python kernel ``matmul`` on the simulated GPU, for the shapes of a job.

Reads ``job.json`` and ``answer.py``, writes ``result.json``: for each shape C as it was left, or what the simulator or
Python said.
"""

import importlib.util
import json
import traceback
from typing import Any

import numpy as np

from tilelab.grading.python_kernels import numba_simulated
from tilelab.simt import SimtError
from tilelab.simt.kernel import Kernel

ANSWER = "answer.py"


def run(kernel: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Launch the kernel once; what the simulator finds it raises."""
    m, n, k = job["shape"]
    a = np.array(job["A"], np.float32).reshape(m, k)
    b = np.array(job["B"], np.float32).reshape(k, n)
    c = np.full((m, n), np.nan, np.float32)
    kept = a.copy(), b.copy()
    kernel[tuple(job["grid"]), tuple(job["block"])](a, b, c, m, n, k)
    if not (np.array_equal(a, kept[0]) and np.array_equal(b, kept[1])):
        return {"error": "the kernel changed its inputs"}
    return {"C": [float(value) if np.isfinite(value) else None for value in c.ravel()]}


def words(error: BaseException) -> dict[str, Any]:
    """Say what went wrong: the simulator's own words without its remedy, or Python's and the line of the answer."""
    if isinstance(error, SimtError) and (found := error.finding):
        return {"error": f"{found.kind}: {found.message}", "kinds": [found.kind]}
    if isinstance(error, SimtError):
        return {"error": str(error)}
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(ANSWER)]
    return {"error": f"{type(error).__name__}{f' in line {lines[-1]}' if lines else ''}: {error}"}


def main() -> None:
    """Do the job that lies in this folder."""
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    results: list[dict[str, Any]] = []
    try:
        spec = importlib.util.spec_from_file_location("answer", ANSWER)  # the simulator reads a kernel's own lines
        assert spec is not None
        assert spec.loader is not None
        answer = importlib.util.module_from_spec(spec)
        with numba_simulated():
            spec.loader.exec_module(answer)
        kernel = answer.matmul
        if not isinstance(kernel, Kernel):
            raise TypeError("matmul is no kernel: put @cuda.jit above it")
    except BaseException as error:
        results = [words(error)] * len(job["launches"])
    else:
        for launch in job["launches"]:
            try:
                results.append(run(kernel, launch))
            except BaseException as error:
                results.append(words(error))
    with open("result.json", "w", encoding="utf-8") as file:
        json.dump(results, file)
