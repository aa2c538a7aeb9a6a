"""Kernels as answers: a source and a launch rule, tried over several shapes.

CUDA C++ is emulated; a kernel in Python (``@cuda.jit``) runs on the simulated GPU.

Everything that compiles or runs learner-written code goes through the one runner of `tilelab.cudacpp.processes`; this
module makes the inputs and reads the outputs, outside of it.

What a hostile kernel can and cannot do. In emulation it shares its process with the emulator and the checker. Device
code alone is compiled, system calls are filtered, and the word that closes a whole run is fresh for each; but a kernel
that follows wild pointers could find that word, write it and leave: no process can keep a secret from code that runs in
it. What it wins is that the checker's findings from then on stay unsaid (a race, an access out of bounds), while those
already written stay, for the report only grows. It does not win a result. The inputs are drawn here, the expected
product never enters that process, and the outputs are compared here, all of them, after poison: a kernel that forges
its end must still have computed the product for every shape. That takes more than the barrier it saves; and a GPU that
times it shows no mercy to a race.
"""

import json
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tilelab.cudacpp.errors import READING
from tilelab.grading.device_sources import files_fault, library_fault
from tilelab.grading.errors import GradingError
from tilelab.grading.problems import Finding
from tilelab.grading.python_kernels import looks_like_python
from tilelab.grading.rules import number_of, numbers_of
from tilelab.grading.values import whole

if TYPE_CHECKING:
    from tilelab.cudacpp.emulation import Emulation
    from tilelab.cudacpp.kernel import Kernel

NAME = "matmul"
SIGNATURE = "matmul(const float* A, const float* B, float* C, int M, int N, int K)"
#: Seconds that one launch may take in emulation.
PATIENCE = 30.0
#: Characters of a source. What is longer is no kernel of this course, and all that reads a source reads it in no time.
LONGEST = 50_000
#: Words for a launch that took longer, and after how many of them the other shapes are not tried any more.
ENDLESS, MOST_ENDLESS = "the kernel did not end within", 2
#: Threads of a launch: so many times the elements of C at most, and so many in any case. More are not even tried.
MOST_THREADS, FREE_THREADS = 64, 1 << 18
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class CudaAnswer:
    """A kernel that was handed in: its source, its launch rule, and the value that TILE stands for in the rule.

    ``tile_argument`` says that the kernel takes TILE as its last argument.
    """

    source: str
    launch: Mapping[str, Any]
    tile: int
    tile_argument: bool = False

    @property
    def in_python(self) -> bool:
        """Whether it is a kernel for the simulated GPU."""
        return looks_like_python(self.source)

    @property
    def defines(self) -> dict[str, int]:
        """``TILE`` where the source uses it without saying what it is."""
        said = re.search(r"#\s*define\s+TILE\b|\bTILE\s*=|\bint\s+TILE\b", self.source)
        return {} if said or self.tile_argument else {"TILE": self.tile}

    def extents(self, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the launch's grid and block for one shape.

        Raises
        ------
        GradingError
            A launch rule cannot be worked out, or asks for far more threads than C has elements.
        """
        names = dict(zip("MNK", shape, strict=True)) | {"TILE": self.tile}
        grid, block = (numbers_of(self.launch[what], names) for what in ("grid", "block"))
        blocks, threads, outputs = math.prod(grid), math.prod(block), shape[0] * shape[1]
        if min(*grid, *block) > 0 and blocks * threads > max(MOST_THREADS * outputs, FREE_THREADS):
            raise GradingError(
                f"the grid {self.launch['grid']!r:.80} asks for {blocks} blocks of {threads} threads, and C has "
                f"{outputs} elements: it was not started"
            )
        return grid, block

    def kernel(self, shape: Shape) -> "Kernel":
        """Return the kernel with its launch for one shape.

        Raises
        ------
        GradingError
            A launch rule cannot be worked out.
        BuildError
            The source has no such kernel.
        """
        from tilelab.cudacpp.kernel import Kernel

        names = dict(zip("MNK", shape, strict=True)) | {"TILE": self.tile}
        grid, block = self.extents(shape)
        return Kernel(
            self.source,
            NAME,
            grid=grid,
            block=block,
            shared=number_of(self.launch.get("shared", 0), names),
            defines=self.defines,
        )

    def run(self, shape: Shape, a: Any, b: Any, c: Any) -> "Emulation":
        """Run the kernel in emulation under the checker; ``c`` changes in place."""
        values = (a, b, c, *shape, self.tile)[: 7 if self.tile_argument else 6]
        return self.kernel(shape).emulate(*values, checked=True, seconds=PATIENCE)


def read_cuda(kernel: object, launch: object, tile: int | None = None, tile_argument: bool = False) -> CudaAnswer:
    """Read a kernel and its launch rule.

    Parameters
    ----------
    kernel : str
        CUDA C++ device code with a ``__global__`` function ``matmul``; or the text of a Python module with a
        ``@cuda.jit`` function ``matmul(A, B, C, M, N, K)``.
    launch : mapping
        ``grid`` and ``block`` (x first), ``shared`` bytes where it needs any, ``TILE`` where the rules use it.
    tile : int, optional
        The judge's own choice of TILE, for kernels that take it as an argument.
    tile_argument : bool
        The kernel's last parameter is ``int TILE``.

    Raises
    ------
    GradingError
        They are not of this form. The message is for the learner.
    """
    if kernel is None or (isinstance(kernel, str) and not kernel.strip()):
        raise GradingError("no kernel is handed in yet")
    if not isinstance(kernel, str):
        raise GradingError(f"the kernel is its CUDA C++ source as a text, not {kernel!r:.60}")
    if len(kernel) > LONGEST:
        raise GradingError(f"the kernel's source has {len(kernel):,} characters, the limit is {LONGEST:,}")
    kernel = kernel.removeprefix("\ufeff")  # what some editors put before a text
    if in_python := looks_like_python(kernel) and not tile_argument:
        kernel = textwrap.dedent(kernel)
    if not in_python and "__global__" not in kernel and re.search(rf"^def {NAME}\b", kernel, re.M):
        raise GradingError(f"the function {NAME} is no kernel yet: put @cuda.jit above it")
    if not in_python and "__global__" not in kernel:
        raise GradingError(f"the source has no __global__ function; write __global__ void {SIGNATURE}")
    if launch is None:
        raise GradingError('no launch rule is handed in yet; write {"grid": …, "block": …}')
    if not isinstance(launch, Mapping) or not {"grid", "block"} <= set(launch):
        raise GradingError(f'the launch rule is {{"grid": …, "block": …}}, not {launch!r:.80}')
    launch = {name: rule for name, rule in launch.items() if rule is not None or name in ("grid", "block")}
    if unknown := sorted(set(launch) - {"grid", "block", "shared", "TILE"}):
        raise GradingError(f"the launch rule knows grid, block, shared and TILE, not {', '.join(unknown)!s:.60}")
    if tile is None:
        given = launch.get("TILE", 16)
        tile = whole(given)
        if tile is None or not 1 <= tile <= 1024:
            raise GradingError(f"TILE is a whole number from 1 to 1024, not {given!r:.40}")
    return CudaAnswer(kernel, launch, tile, tile_argument)


@dataclass(frozen=True)
class Trial:
    """How a kernel did for one shape. ``kinds`` names what the checker found, such as ``race``."""

    name: str
    ok: bool
    words: str
    kinds: tuple[str, ...] = ()


def can_emulate() -> bool:
    """Whether this machine can compile for emulation."""
    return shutil.which("g++") is not None


def try_shape(answer: CudaAnswer, shape: Shape, seed: int) -> Trial:
    """Run a kernel once in emulation, every access watched, and compare with the exact product.

    Inputs are distinct for each element, the output is poisoned with NaN beforehand and all arrays are surrounded by
    poison; what is not finite is wrong, and the tolerance is that of random inputs
    (:func:`tilelab.kernels.verify.allowance`). A race is a fault whether or not a wrong value happened to come out.

    Parameters
    ----------
    answer : CudaAnswer
        The kernel.
    shape : tuple of int
        M, N, K.
    seed : int
        For the inputs.
    """
    import numpy as np

    from tilelab.cudacpp.errors import CudaError, KernelFault

    name = _name(answer, shape)
    a, b, c = matrices(shape, seed)
    kept = a.copy(), b.copy()
    try:
        done = answer.run(shape, a, b, c)
    except KernelFault as fault:
        return Trial(name, False, _first(str(fault)), tuple(getattr(found, "kind", "") for found in fault.findings))
    except (CudaError, GradingError) as fault:
        return Trial(name, False, _first(str(fault)))
    except READING as fault:  # what the learner wrote, or what their kernel left behind
        return Trial(name, False, f"what was handed in cannot be tried ({type(fault).__name__})")
    # What the compiler only suspects is no fault where the result is right.
    found = [finding for finding in done.findings if finding.kind != "unset"]
    if found:
        return Trial(name, False, _first(found[0].message), tuple(finding.kind for finding in found))
    if not (np.array_equal(a, kept[0]) and np.array_equal(b, kept[1])):
        return Trial(name, False, "the kernel changed its inputs")
    compared = _compared(name, c, a, b)
    suspected = "" if compared.ok else "".join(f"; {_first(finding.message)}" for finding in done.findings[:1])
    return replace(compared, words=compared.words + suspected)


def _compared(name: str, c: Any, a: Any, b: Any) -> Trial:
    from tilelab.kernels.verify import check_product

    verdict = check_product(c, a, b, around_zero=True)
    nan = " (nan: nothing was written there, or poison was read)" if " is nan" in verdict.message else ""
    return Trial(name, bool(verdict), verdict.message + nan)


def product(answer: CudaAnswer, shape: Shape, seed: int) -> tuple[Any, Any] | None:
    """Return where a kernel's product is right, and the product; ``None`` where it does not run."""
    import numpy as np

    from tilelab.cudacpp.errors import CudaError
    from tilelab.kernels.verify import allowance

    a, b, c = matrices(shape, seed)
    if answer.in_python:
        (c,) = _simulated_products(answer, [shape], [(a, b)])
        if isinstance(c, dict):
            return None
    elif not can_emulate():
        return None
    else:
        try:
            answer.run(shape, a, b, c)
        except (CudaError, GradingError, *READING):
            return None
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.abs(c - a @ b) <= allowance(a, b, np, around_zero=True), c


def matrices(shape: Shape, seed: int) -> tuple[Any, Any, Any]:
    """Return A and B with distinct elements, and C full of NaN."""
    import numpy as np

    (m, n, k), random = shape, np.random.default_rng(seed)
    return distinct(random, m, k), distinct(random, k, n), np.full((m, n), np.nan, np.float32)


def distinct(random: Any, rows: int, columns: int) -> Any:
    """Return a float32 matrix of distinct numbers between -1 and 1, none of them 0, in random order."""
    import numpy as np

    count = rows * columns
    values = (random.permutation(count) + 0.75) * (2 / count) - 1
    return (values * random.uniform(0.5, 1.0)).reshape(rows, columns).astype(np.float32)


def try_all(answer: CudaAnswer, shapes: Iterable[Shape], seed: int = 1) -> tuple[Trial, ...]:
    """Run a kernel for several shapes; remembered by what was handed in.

    Raises
    ------
    RuntimeError
        This machine has no C++ compiler: that is no learner's fault.
    """
    if not (answer.in_python or can_emulate()):
        raise RuntimeError("no C++ compiler: kernels cannot be judged here")
    launch = json.dumps(dict(answer.launch), sort_keys=True)
    return _tried(answer.source, launch, answer.tile, answer.tile_argument, tuple(shapes), seed)


@lru_cache(256)
def _tried(
    source: str, launch: str, tile: int, tile_argument: bool, shapes: tuple[Shape, ...], seed: int
) -> tuple[Trial, ...]:
    answer = CudaAnswer(source, json.loads(launch), tile, tile_argument)
    if answer.in_python:
        return _simulated(answer, shapes, seed)
    trials: list[Trial] = []
    endless: list[Trial] = []
    for place, shape in enumerate(shapes):
        stop = len(endless) >= MOST_ENDLESS
        trial = endless[0] if stop else try_shape(answer, shape, seed + place)
        if ENDLESS in trial.words:
            endless.append(trial)
            # Which of the threads was met running is chance: one sentence for all of them.
            trial = Trial(_name(answer, shape), False, endless[0].words, trial.kinds)
        trials.append(trial)
    return tuple(trials)


def _name(answer: CudaAnswer, shape: Shape) -> str:
    return "M={} N={} K={}".format(*shape) + (f" TILE={answer.tile}" if answer.tile_argument else "")


def _simulated(answer: CudaAnswer, shapes: tuple[Shape, ...], seed: int) -> tuple[Trial, ...]:
    """Run a Python kernel on the simulated GPU for all shapes and compare with the exact products."""
    inputs = [matrices(shape, seed + place)[:2] for place, shape in enumerate(shapes)]
    try:
        results = _simulated_products(answer, shapes, inputs)
    except GradingError as error:
        results = [{"error": str(error)}] * len(shapes)
    except READING as error:
        results = [{"error": f"what was handed in cannot be tried ({type(error).__name__})"}] * len(shapes)
    trials = []
    for shape, (a, b), c in zip(shapes, inputs, results, strict=True):
        name = "M={} N={} K={}".format(*shape)
        if isinstance(c, dict):
            kinds = tuple(map(str, c.get("kinds", ())))
            trials.append(Trial(name, False, _first(str(c.get("error", "there is no result"))), kinds))
        else:
            trials.append(_compared(name, c, a, b))
    return tuple(trials)


def _simulated_products(answer: CudaAnswer, shapes: Sequence[Shape], inputs: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Return a Python kernel's products; see `tilelab.grading.python_answers.products`."""
    from tilelab.grading.python_answers import products, read_python
    from tilelab.grading.python_kernels import form_fault

    if fault := form_fault(read_python(answer.source, NAME)):
        raise GradingError(fault)
    launches = []
    for shape, (a, b) in zip(shapes, inputs, strict=True):
        grid, block = answer.extents(shape)
        launches.append(
            {"shape": shape, "A": a.ravel().tolist(), "B": b.ravel().tolist(), "grid": grid, "block": block}
        )
    return products(answer.source, NAME, launches)


def report(trials: Sequence[Trial], most: int = 4) -> tuple[str, ...]:
    """Say for how many shapes a kernel is right, and what came out for the first of the others."""
    wrong = [trial for trial in trials if not trial.ok]
    head = f"right for {len(trials) - len(wrong)} of {len(trials)} shapes"
    if not wrong:
        return (head,)
    words: dict[str, list[str]] = {}
    for trial in wrong:
        words.setdefault(trial.words, []).append(trial.name)
    lines = [f"{', '.join(names[:6])}: {said}" for said, names in list(words.items())[:most]]
    return (head, *lines)


def _first(text: str) -> str:
    """The first finding, in one line: the learner's own line of code, then what is said of it."""
    return " — ".join(" ".join(line.split()) for line in text.split("\n\n")[0].splitlines())[:500]


def parameters_fault(answer: CudaAnswer) -> str:
    """Say why the kernel's parameters are not those that are asked for, or ``""``."""
    from tilelab.cudacpp.errors import BuildError
    from tilelab.cudacpp.source import signature
    from tilelab.grading.python_answers import python_fault

    if answer.in_python:
        return python_fault(answer.source, NAME)
    asked = SIGNATURE[:-1] + (", int TILE)" if answer.tile_argument else ")")
    try:
        found = signature(answer.source, NAME)
    except BuildError as error:
        return f"{_first(str(error))}; write __global__ void {asked}"
    except READING:
        return f"the kernel's parameters cannot be read; write __global__ void {asked}"
    pointers = [parameter.pointer for parameter in found]
    if pointers != [True] * 3 + [False] * (3 + answer.tile_argument):
        return f"the kernel's parameters are ({', '.join(map(str, found))}); write {asked}"
    for name, parameter in zip(("M", "N", "K", "TILE"), found[3:], strict=False):
        # A type that is not known here fails in emulation, and one that is read wrongly here does too: the compiler
        # checks what was read (`tilelab.cudacpp.signature_check`).
        if parameter.dtype not in ("int32", "uint32", ""):
            name = parameter.name or name
            return f"{name} is declared `{str(parameter).strip()}`; the launch passes an int: declare it `int {name}`"
    return ""


def kernel_fault(answer: CudaAnswer) -> str:
    """Say why a kernel is refused before it runs anywhere, or ``""``: on the CPU and on the judge's GPU in one way."""
    fault = parameters_fault(answer)
    return fault if fault or answer.in_python else files_fault(answer.source) or library_fault(answer.source)


def look_at_kernel(read: Callable[[], CudaAnswer], shapes: Sequence[Shape]) -> Finding:
    """Try a kernel on a learner's own machine, for an instant check.

    Parameters
    ----------
    read : callable
        Gives the answer, or raises `GradingError`.
    shapes : sequence
        Shapes to try.
    """
    what = ""
    try:
        answer = read()
        if fault := kernel_fault(answer):
            return Finding(False, fault)
        names = dict(zip("MNK", shapes[0], strict=True)) | {"TILE": answer.tile}
        for what, rule in answer.launch.items():
            (number_of if what == "shared" else numbers_of)(rule, names)
    except GradingError as error:
        return Finding(False, f"{what}: {error}" if what else str(error))
    if not (answer.in_python or can_emulate()):
        return Finding.undecided("readable; this machine has no C++ compiler to try it with, the judge will")
    trials = try_all(answer, shapes)
    lines = report(trials, most=1)
    return Finding(all(trial.ok for trial in trials), "; ".join(lines))


@dataclass(frozen=True)
class Judgement:
    """How a kernel did in the judge's trials: the share of shapes it is right for, and the lines that say so."""

    share: float
    lines: tuple[str, ...]
    trials: tuple[Trial, ...] = ()
    answer: CudaAnswer | None = None

    def hinted(self, hint: str) -> "Judgement":
        """Return it with a hint where to look, if a shape came out wrong and no finding names a line already."""
        wrong = [trial for trial in self.trials if not trial.ok]
        if not wrong or any("line " in trial.words for trial in wrong):
            return self
        return replace(self, lines=(*self.lines, f"where to look: {hint}"))

    def lowered(self, factor: float, reason: str) -> "Judgement":
        """Return it with its share lowered for a reason."""
        return Judgement(self.share * factor, (*self.lines, reason), self.trials, self.answer)


def judge_kernel(read: Callable[[], CudaAnswer], shapes: Sequence[Shape], seed: int = 1) -> Judgement:
    """Try a kernel for the judge's shapes. Never raises for what a learner did."""
    try:
        answer = read()
    except GradingError as error:
        return Judgement(0.0, (str(error),))
    if fault := kernel_fault(answer):
        return Judgement(0.0, (fault,))
    trials = try_all(answer, shapes, seed)
    right = sum(trial.ok for trial in trials)
    return Judgement(right / len(trials), report(trials), trials, answer)
