"""A process that alone knows the right results: it makes the inputs again from their seeds and compares every output.

No learner's code runs here. What a worker left in its arena is read from a file, guards included.
"""

import importlib
import sys
from typing import Any

from tilelab.grading.timed.arrays import FILL, POISON, Arena, uniform
from tilelab.grading.timed.channel import answer_questions
from tilelab.kernels.verify import allowance

#: Allowances that an element may be off. A job compares some 10⁸ elements, and the farthest of so many lies farther
#: out: summed one after the other, 0.44 of one allowance in 10⁷ of them at K = 1024. TF32 is off by 64 there.
LENIENCE = 2.0


class Comparer:
    """Compares arenas with the exact products, in float64, on the CPU or on a GPU."""

    def __init__(self, which: str) -> None:
        self._on_cpu = which == "emulated"
        self._xp: Any = importlib.import_module("numpy" if self._on_cpu else "cupy")
        self._opened: tuple[str, int] | None = None
        self._kept: Any = None
        if not self._on_cpu:
            self._xp.cuda.Device(int(which)).use()

    def fill(self, shape: tuple[int, int], seed: int) -> Any:
        """Make an input again."""
        if self._on_cpu:
            return uniform(shape[0] * shape[1], seed).reshape(shape)
        made = self._xp.empty(shape, self._xp.float32)
        FILL(made, made.size, seed)
        return made

    def fault(self, file: str, shape: tuple[int, int, int], start: int, seeds: list[int]) -> str:
        """Say what is wrong with an arena, or ``""``."""
        import numpy

        xp, place = self._xp, Arena(shape, start)
        if self._opened != (file, place.total):
            self._kept, self._opened = numpy.memmap(file, numpy.float32, "r", shape=(place.total,)), (file, place.total)
        arena = xp.asarray(self._kept)
        (M, N, K), (a, b, c) = shape, place.matrices(arena)
        exact_a, exact_b = self.fill((M, K), seeds[0]), self.fill((K, N), seeds[1])
        for name, found, kept in (("A", a, exact_a), ("B", b, exact_b)):
            if not bool((found.view(xp.uint32) == kept.view(xp.uint32)).all()):
                return f"the kernel changed its input {name}"
        if not all(bool((guard.view(xp.uint32) == POISON).all()) for guard in place.guards(arena)):
            return "the kernel wrote outside C"
        a, b, c = (x.astype(xp.float64) for x in (exact_a, exact_b, c))
        exact = a @ b
        allowed = LENIENCE * allowance(a, b, xp, around_zero=True)
        with numpy.errstate(invalid="ignore"):
            right = abs(c - exact) <= allowed  # what is not a number is not right
        wrong = int(right.size - right.sum())
        if not wrong:
            return ""
        row, column = divmod(int((~right).ravel().argmax()), N)
        got, due, room = (float(x[row, column]) for x in (c, exact, allowed))
        count = f"{wrong} of {M * N} elements are wrong"
        return f"C[{row},{column}] is {got:.7g}, but {due:.7g} is right to within {room:.1g}; {count}"


def main() -> None:
    """Answer questions: ``python -m tilelab.grading.timed.comparer 0`` for GPU 0, or ``emulated``."""
    comparer = Comparer(sys.argv[1])

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        M, N, K = question["shape"]
        return {"fault": comparer.fault(question["file"], (M, N, K), question["start"], question["seeds"])}

    answer_questions(answer)


if __name__ == "__main__":
    main()
