"""Try every trick and print what was designed and what came out.

On a GPU the kernels are timed as submissions are; ``--device emulated`` has a CPU stand in, which runs those that it
can. Python tricks are judged wherever the sandbox is. Exit code 0: everything came out as designed.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from tricks import (  # noqa: E402  (from the folder that was just put on the path)
    CUDA_TRICKS,
    HONEST,
    IMPOSSIBLE,
    LARGE,
    NO_SOURCE,
    PYTHON_TRICKS,
    REFUSED,
    Trick,
    kernel,
)

from tilelab.grading.cuda_answers import CudaAnswer, judge_kernel, read_cuda  # noqa: E402
from tilelab.grading.errors import GradingError  # noqa: E402
from tilelab.grading.timed.conductor import Conductor  # noqa: E402
from tilelab.grading.timed.enough import Effort  # noqa: E402
from tilelab.grading.timed.thresholds import read_thresholds  # noqa: E402
from tilelab.grading.timed.wanted import Measured, Wanted, handed_in  # noqa: E402
from tilelab.grading.timing import YOUR_TILED, courses, want  # noqa: E402

THRESHOLDS = read_thresholds(HERE.parent / "thresholds.toml")
#: How much faster than the honest kernel a trick may come out, for the clock.
SLACK = 1.05
#: What an emulator on a CPU cannot run, or takes for ever over.
ONLY_ON_A_GPU = (
    "asm(",
    "mma.h",
    "clock64",
    "__trap",
    "__assert_fail",
    "131072",
    "printf",
    "1 << 36",
    "while (",
    "float4",
)
#: What keeps something from one launch to the next: emulated launches have nothing in common.
KEEPS = ("__device__ float kept", "__device__ float*", "__device__ const float", "template <int N")
#: What a large problem is where a CPU emulates small ones.
SMALLER = "M * N >= 1000"


def measure(trick: Trick, conductor: Conductor) -> Measured:
    """Time a trick as a submission is timed."""
    source = trick.source
    if conductor.device["emulated"]:
        source = source.replace(LARGE, SMALLER)
    answer = CudaAnswer(source, trick.launch, int(trick.launch.get("TILE", 16)))
    if trick.tiled:
        own = {YOUR_TILED: read_cuda(trick.tiled, dict(trick.launch))}
        return conductor.measure(want(THRESHOLDS.part("practice_7_timed"), answer, own))
    return conductor.measure(want(THRESHOLDS.part("practice_1_timed"), answer))


def gain_of(measured: Measured) -> float:
    """Return how many times as fast a trick was as what it was compared with."""
    first, *others = measured.samples
    return measured.gain(measured.fastest(others), first).value


def timed_tricks(conductor: Conductor, asked: Callable[[Trick], bool] = lambda trick: True) -> Iterator[dict[str, Any]]:
    """Yield a row for each trick that is a kernel in CUDA C++ and asked for; before them, for the honest kernels."""
    honest = kernel()
    emulated = bool(conductor.device["emulated"])
    launch = dict(CUDA_TRICKS[0].launch)
    controls = {
        False: conductor.measure(want(THRESHOLDS.part("practice_1_timed"), read_cuda(honest, launch))),
        True: conductor.measure(
            Wanted((1024, 1024, 1024), (handed_in("yours", read_cuda(honest, launch)), courses("tiled_16")))
        ),
    }
    for against_tiled, control in controls.items():
        yield _row(Trick(0, f"the honest kernel{' against a tiled one' * against_tiled}", HONEST), control, 0.0, True)
    for trick in CUDA_TRICKS:
        if emulated and any(part in trick.source + trick.tiled for part in (*ONLY_ON_A_GPU, *KEEPS)):
            continue
        if not asked(trick):
            continue
        start = perf_counter()
        measured = measure(trick, conductor)
        if trick.designed == REFUSED:
            # An emulator says in other words what a device says.
            ok = measured.outcome == "refused" and (emulated or bool(re.search(trick.words, measured.words)))
        else:
            control = controls[bool(trick.tiled)]
            ok = measured.outcome == "timed" and (emulated or gain_of(measured) <= SLACK * gain_of(control))
        yield _row(trick, measured, perf_counter() - start, ok)


def _row(trick: Trick, measured: Measured, seconds: float, ok: bool) -> dict[str, Any]:
    timed = measured.outcome == "timed"
    came_out = f"timed, {gain_of(measured):.3f} times as fast" if timed else f"{measured.outcome}: {measured.words}"
    return {
        "row": trick.row,
        "trick": trick.name,
        "designed": trick.designed,
        "came out": came_out[:300],
        "seconds": round(seconds, 2),
        "ok": ok,
    }


def python_tricks() -> Iterator[dict[str, Any]]:
    """Yield a row for each trick that is an answer in Python, judged for being right; none of them is ever timed."""
    for trick in PYTHON_TRICKS:
        start = perf_counter()
        found = judge_kernel(lambda trick=trick: read_cuda(trick.source, trick.launch), [(33, 17, 40), (1, 1, 1)])
        said = "; ".join(found.lines)
        yield {
            "row": trick.row,
            "trick": trick.name,
            "designed": trick.designed,
            "came out": f"{found.share:g} of the points: {said}"[:300],
            "seconds": round(perf_counter() - start, 2),
            "ok": found.share == 0 and bool(re.search(trick.words, said)),
        }


def no_source() -> Iterator[dict[str, Any]]:
    """Yield a row for each trick that cannot be written as a source."""
    for trick in NO_SOURCE:
        yield {
            "row": trick.row,
            "trick": trick.name,
            "designed": IMPOSSIBLE,
            "came out": trick.why,
            "seconds": 0.0,
            "ok": True,
        }


def main() -> int:
    """Print the table; 0 where everything came out as designed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="0", help="a GPU's number, or emulated")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    given = parser.parse_args()
    effort = None if given.device == "emulated" else Effort(launch=3.0)
    with Conductor(given.device, effort, THRESHOLDS.ceilings) as conductor:
        rows = list(timed_tricks(conductor))
    rows += [*python_tricks(), *no_source()]
    if given.json:
        print(json.dumps({"rows": rows}, ensure_ascii=False))
    else:
        from tilelab.measure.records import table

        print(table(sorted(rows, key=lambda row: row["row"] or 99)))
    print(f"{sum(row['ok'] for row in rows)} of {len(rows)} as designed", file=sys.stderr)
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GradingError as error:
        sys.exit(str(error))
