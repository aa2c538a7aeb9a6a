"""Kernels beside one another and beside cuBLAS, in one run, on data that nobody has seen before.

Every round draws fresh inputs into the same arrays and poisons the outputs with NaN; every product is checked. So a
result that was kept from last time, a kernel that does nothing, work on a stream that the events do not see, or events
that lie, each show as what they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from tilelab.cudacpp import device
from tilelab.cudacpp.errors import brief
from tilelab.cudacpp.kernel import Kernel
from tilelab.kernels.verify import fault_of_random_product
from tilelab.measure import gpu
from tilelab.measure.bounds import Bound, estimated
from tilelab.measure.occupancy import resident
from tilelab.measure.records import table
from tilelab.measure.rounds import DEFAULT_RULE, Rule, Sample, Timing, measure_in_turns
from tilelab.measure.statistics import Estimate, ratio

#: What computes C = A·B: called with (A, B, C, M, N, K), on CuPy arrays, on the current stream.
Product = Callable[[Any, Any, Any, int, int, int], object]
Shape3 = tuple[int, int, int]
DISTRIBUTION = "uniform in [-1, 1), fresh every round"
#: Names of the two ways to the library; the faster one in a run is the 100 %.
LIBRARY = ("cuBLAS through torch", "cuBLAS through CuPy")


@dataclass(frozen=True)
class Row:
    """One candidate on one shape.

    ``occupancy`` is the share of an SM's warps that can be there at once, 0 where nobody knows. ``trouble`` says why
    its time counts for nothing; empty if it counts.
    """

    name: str
    shape: Shape3
    timing: Timing
    of_library: Estimate
    of_ceiling: float
    bound: Bound
    occupancy: float
    trouble: str

    @property
    def tflops(self) -> float:
        """10¹² floating-point operations a second, 2·M·N·K of them."""
        M, N, K = self.shape
        return 2.0 * M * N * K / self.timing.device.value / 1e9

    def as_dict(self) -> dict[str, Any]:
        """The row as it is recorded and printed."""
        time = self.timing.device
        return {
            "kernel": self.name,
            "M": self.shape[0],
            "N": self.shape[1],
            "K": self.shape[2],
            "ms": time.value,
            "ms_95": [time.low, time.high],
            "wall_ms": self.timing.wall.value,
            "rounds": time.count,
            "tflops": self.tflops,
            "percent_of_cublas": 100 * self.of_library.value,
            "percent_95": [100 * self.of_library.low, 100 * self.of_library.high],
            "percent_of_ceiling": 100 * self.of_ceiling,
            **self.bound.as_dict(),
            "occupancy_percent": 100 * self.occupancy,
            "trouble": self.trouble,
        }


@dataclass(frozen=True)
class Comparison:
    """The outcome of :func:`compare`."""

    rows: tuple[Row, ...]
    before: dict[str, float]
    after: dict[str, float]
    l2: str

    def as_dicts(self) -> list[dict[str, Any]]:
        """All rows, as recorded."""
        return [row.as_dict() for row in self.rows]

    def __str__(self) -> str:
        shown = (
            "kernel",
            "M",
            "N",
            "K",
            "ms",
            "ms_95",
            "tflops",
            "percent_of_cublas",
            "percent_of_ceiling",
            "trouble",
        )
        lines = [{key: row.as_dict()[key] for key in shown} | {"bound": str(row.bound)} for row in self.rows]
        return table([{key: line[key] for key in (*shown[:-1], "bound", "trouble")} for line in lines])


class _ByTorch:
    """torch.mm into a given result, on the default stream, which torch and CuPy share."""

    def prepared(self, A: Any, B: Any, C: Any, M: int, N: int, K: int) -> Callable[[], object]:
        import torch

        a, b, c = (torch.as_tensor(x, device="cuda") for x in (A, B, C))
        return lambda: torch.mm(a, b, out=c)

    def __call__(self, A: Any, B: Any, C: Any, M: int, N: int, K: int) -> object:
        return self.prepared(A, B, C, M, N, K)()


def library_products() -> dict[str, Product]:
    """The library, cuBLAS, by two ways; TF32 off in both."""
    cupy = gpu.require_gpu()
    found: dict[str, Product] = {}
    try:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False

        found[LIBRARY[0]] = _ByTorch()
    except ImportError:
        pass
    from cupy.cuda import cublas

    one, zero = cupy.ones(1, cupy.float32), cupy.zeros(1, cupy.float32)

    def directly(A: Any, B: Any, C: Any, M: int, N: int, K: int) -> object:
        # Row-major C is column-major Cᵀ = Bᵀ·Aᵀ.
        handle = cupy.cuda.device.get_cublas_handle()
        mode = cublas.getPointerMode(handle)
        cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_DEVICE)
        try:
            return cublas.sgemm(
                handle, cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, N, M, K,
                one.data.ptr, B.data.ptr, N, A.data.ptr, K, zero.data.ptr, C.data.ptr, N,
            )  # fmt: skip
        finally:
            cublas.setPointerMode(handle, mode)

    found[LIBRARY[1]] = directly
    return found


class Problem:
    """Inputs and outputs of one shape: as many sets as a batch has calls, redrawn every round."""

    def __init__(self, shape: Shape3, sets: int, seed: int) -> None:
        self._cupy = cupy = gpu.require_gpu()
        M, N, K = self.shape = shape
        self._random = cupy.random.default_rng(seed)
        self.sets = [
            (cupy.empty((M, K), cupy.float32), cupy.empty((K, N), cupy.float32), cupy.empty((M, N), cupy.float32))
            for _ in range(sets)
        ]
        self._kept = [(A.copy(), B.copy()) for A, B, _ in self.sets]
        self.redraw()

    def redraw(self) -> None:
        """New inputs in the same places, and copies of them where no candidate looks."""
        for (A, B, _), kept in zip(self.sets, self._kept, strict=True):
            for x, copy in zip((A, B), kept, strict=True):
                # With out= alone CuPy draws one number and fills the array with it.
                x[...] = self._random.random(x.shape, dtype=self._cupy.float32)
                x *= 2
                x -= 1
                if _monotonous(x, self._cupy):
                    raise RuntimeError(
                        f"the inputs drawn for {self.shape} repeat a few numbers: the generator of "
                        f"{self._cupy.__name__} {self._cupy.__version__} does not draw each element, and nothing is "
                        "timed on such data"
                    )
                copy[...] = x

    def poison(self) -> None:
        """NaN in every output."""
        for _, _, C in self.sets:
            C.fill(self._cupy.nan)

    def wrong(self) -> str:
        """What is wrong with the outputs, or that the inputs were written to; empty if nothing.

        What can hide from it: :func:`~tilelab.kernels.verify.fault_of_random_product`.
        """
        cupy = self._cupy
        for (A, B, C), kept in zip(self.sets, self._kept, strict=True):
            for name, x, before in (("A", A, kept[0]), ("B", B, kept[1])):
                if not bool((x.view(cupy.uint32) == before.view(cupy.uint32)).all()):
                    return f"the input {name} was written to"
            fault = fault_of_random_product(C, *kept, self._random, cupy)
            if fault:
                return fault
        return ""


def _monotonous(x: Any, xp: Any) -> bool:
    """Whether a matrix holds too few different numbers to be random: in its first corner, or all over it."""
    corner, flat = x[:32, :32].ravel(), x.ravel()
    # Of 1024 numbers of 24 random bits hardly one comes twice; rows or columns that repeat show in the corner.
    return any(xp.unique(some).size < 0.9 * some.size for some in (corner, flat[:: max(1, flat.size // 1024)]))


def _prepare(product: Product, problem: Problem) -> list[Callable[[], object]]:
    """One call for each set; a kernel of ours is planned and loaded beforehand."""
    M, N, K = problem.shape
    calls = []
    for A, B, C in problem.sets:
        chosen = product.kernel_for(M, N, K) if hasattr(product, "kernel_for") else product
        prepared = getattr(chosen, "prepared", None)
        calls.append(prepared(A, B, C, M, N, K) if prepared else _bound(product, A, B, C, M, N, K))
    return calls


def _occupancy(product: Product, problem: Problem) -> float:
    """The share of an SM's warps that a kernel of ours can have there; 0 for what is no kernel of ours."""
    chosen = product.kernel_for(*problem.shape) if hasattr(product, "kernel_for") else product
    if not isinstance(chosen, Kernel):
        return 0.0
    loaded = device.load(chosen)
    launch = chosen.plan(*problem.sets[0], *problem.shape)[1]
    return resident(loaded.chip, launch.threads, loaded.registers, loaded.static_shared + launch.shared).share


def _bound(product: Product, *arguments: Any) -> Callable[[], object]:
    return lambda: product(*arguments)


def compare(
    candidates: Mapping[str, Product],
    shapes: Sequence[Shape3],
    cold: bool = True,
    rule: Rule = DEFAULT_RULE,
    seed: int = 0,
) -> Comparison:
    """Time products of float32 matrices beside cuBLAS, check every one of them, and say what bounds each.

    Parameters
    ----------
    candidates
        Name -> what computes C = A·B: a :class:`~tilelab.cudacpp.kernel.Kernel`, a rung, or a function of
        (A, B, C, M, N, K) on CuPy arrays.
    shapes
        (M, N, K) each.
    cold
        Whether the L2 is cleared before each timing.
    rule
        When to stop.
    seed
        Of the inputs.

    Returns
    -------
    Comparison
        Rows for cuBLAS first, then the candidates, shape by shape. A row whose result is wrong, whose two clocks
        disagree, or whose rate is beyond what the device can do, says so in ``trouble``.

    Raises
    ------
    TypeError, ValueError
        Candidates without names, or a shape that is not three whole numbers from 1 on.
    RuntimeError
        There is no GPU.
    """
    if not isinstance(candidates, Mapping):
        raise TypeError(f"candidates is {brief(candidates)}; give each a name, such as {{'mine': kernel}}")
    for shape in shapes:
        if not isinstance(shape, Sequence) or len(shape) != 3 or not all(isinstance(n, int) and n > 0 for n in shape):
            raise ValueError(f"{brief(shape)} is no shape; give M, N and K of each, such as [(1024, 1024, 1024)]")
    library = library_products()
    before = gpu.state()
    rows: list[Row] = []
    for number, shape in enumerate(shapes):
        rows += _compare_one({**library, **candidates}, list(library), shape, cold, rule, seed + number)
    return Comparison(tuple(rows), before, gpu.state(), "cleared before each timing" if cold else "warm")


def _compare_one(
    products: Mapping[str, Product], library: Sequence[str], shape: Shape3, cold: bool, rule: Rule, seed: int
) -> Iterator[Row]:
    M, N, K = shape
    peak, bandwidth = gpu.fp32_ceiling(), gpu.bandwidth_ceiling()
    flops, compulsory = 2.0 * M * N * K, 4.0 * (M * K + K * N + M * N)
    floor = max(flops / peak, compulsory / bandwidth) * 1e3
    # Under a millisecond, several inputs in a go.
    problem = Problem(shape, sets=min(16, max(1, ceil(1.0 / (2 * floor)))), seed=seed)
    watch = gpu.Stopwatch(cold)
    calls = {name: _prepare(product, problem) for name, product in products.items()}
    wrong: dict[str, str] = dict.fromkeys(products, "")

    def timed(name: str) -> Callable[[int], Sample]:
        def one(turn: int) -> Sample:
            problem.redraw()
            problem.poison()
            sample = watch(calls[name])
            wrong[name] = wrong[name] or problem.wrong()
            return sample

        return one

    for name in products:  # warm-up, and a first check
        timed(name)(0)
    timings = measure_in_turns({name: timed(name) for name in products}, rule)
    best = min(library, key=lambda name: timings[name].device.value)
    base = [sample.device for sample in timings[best].samples]
    for name, timing in timings.items():
        # A little beyond the measured ceiling may be the clock's doing; more is not possible.
        impossible = timing.device.value < 0.95 * floor
        troubles = [wrong[name], timing.disagreement(), "faster than the device can be" if impossible else ""]
        yield Row(
            name,
            shape,
            timing,
            ratio(base, [sample.device for sample in timing.samples]),
            flops / peak / (timing.device.value * 1e-3),
            estimated(
                shape,
                timing.device.value,
                peak,
                bandwidth,
                getattr(products[name], "passes", 0.0),
                part=getattr(products[name], "loads_from", "shared memory"),
            ),
            _occupancy(products[name], problem),
            "; ".join(trouble for trouble in troubles if trouble),
        )
