"""A process that holds kernels and runs them when it is told to. It knows no right result and decides nothing.

What a learner handed in runs here, on the device alone. If it hangs or faults, this process is what ends.
"""

import sys
from collections.abc import Callable
from typing import Any

from tilelab.cudacpp.errors import CudaError
from tilelab.grading.timed.channel import answer_questions
from tilelab.grading.timed.grounds import Ground, OnCpu, OnGpu


def ground_of(which: str) -> Ground:
    """Return the GPU of that number, or ``emulated``."""
    return OnCpu() if which == "emulated" else OnGpu(int(which))


def answering(ground: Ground) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what answers the conductor's questions on a ground.

    A question has ``do``. Where it fails, the answer has ``fault``, the device's or the emulator's own words, and
    ``ours``: whether a step of ours failed, in which no code that was handed in has a part.
    """

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        try:
            match question["do"]:
                case "describe":
                    return ground.describe()
                case "load":
                    ground.load(question["name"], question["code"])
                case "prepare":
                    ground.prepare(question["name"], question.get("call", {}))
                case "go":
                    return ground.go()
                case "collect":
                    ground.collect(question["file"])
                case "ceilings":
                    return ground.ceilings()
        except CudaError as error:
            return {"fault": str(error)[:600], "ours": False}
        except (RuntimeError, MemoryError) as error:
            ours = question["do"] not in ("load", "go")
            return {"fault": f"{type(error).__name__}: {error}"[:600], "ours": ours}
        return {}

    return answer


def main() -> None:
    """Answer questions: ``python -m tilelab.grading.timed.worker 0`` for GPU 0, or ``emulated`` in the sandbox."""
    which = sys.argv[1]
    if which != "emulated":
        answer_questions(answering(ground_of(which)))
        return
    from tilelab.cudacpp.processes import use_runner
    from tilelab.grading.sandbox.emulation import run_inside

    with use_runner(run_inside):
        answer_questions(answering(ground_of(which)))


if __name__ == "__main__":
    main()
