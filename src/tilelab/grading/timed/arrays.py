"""What a kernel is given: random matrices between guards, all from seeds that its process gets at the last moment.

One arena holds A, B and C of a call with poison before, between and behind them. Where it starts changes from call to
call. The numbers follow from the seed alone, so that the comparer can make them again in its own process.
"""

from dataclasses import dataclass
from typing import Any

from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.launch import ceil_div

Shape = tuple[int, int, int]
#: Floats of poison on each side of a matrix, and the step of its place: 512 bytes, as an allocation would give.
GUARD, STEP = 1024, 128
#: Steps by which an arena's start may move.
STARTS = 64
#: The bits of poison: not a number, and none that arithmetic makes.
POISON = 0x7FC0DEAD

FILL = Kernel(
    r"""extern "C" __global__ void fill(float* x, long long count, unsigned long long seed) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned long long z = seed + (unsigned long long)(i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    x[i] = (float)(z >> 40) * 1.1920928955078125e-7f - 1.0f;
}""",
    "fill",
    grid=lambda p: ceil_div(p.count, 256),
    block=256,
)


def uniform(count: int, seed: int) -> Any:
    """Return what `FILL` writes, made on the CPU: float32 in [-1, 1) (SplitMix64; Steele et al., 2014)."""
    import numpy as np

    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)


@dataclass(frozen=True)
class Arena:
    """Where A, B and C of one call lie, in floats from the arena's first.

    Attributes
    ----------
    shape : tuple of int
        M, N, K.
    start : int
        Steps by which everything is moved, from 0 to `STARTS`.
    """

    shape: Shape
    start: int

    def __post_init__(self) -> None:
        """Refuse what no arena has room for."""
        if not 0 <= self.start <= STARTS or min(self.shape) < 1:
            raise ValueError(f"no arena for {self.shape} from step {self.start}")

    @property
    def sizes(self) -> Shape:
        """Elements of A, B and C."""
        M, N, K = self.shape
        return M * K, K * N, M * N

    @property
    def places(self) -> Shape:
        """Where A, B and C begin."""
        a, b, _ = self.sizes
        first = self.start * STEP + GUARD
        second = _up(first + a) + GUARD
        return first, second, _up(second + b) + GUARD

    @property
    def total(self) -> int:
        """Floats of the whole arena; the same for every start."""
        a, b, c = self.sizes
        return STARTS * STEP + _up(a) + _up(b) + _up(c) + 4 * GUARD + 3 * STEP

    def matrices(self, arena: Any) -> tuple[Any, Any, Any]:
        """Return views of A, B and C in a flat array, numpy's or CuPy's."""
        M, N, K = self.shape
        a, b, c = (arena[place : place + size] for place, size in zip(self.places, self.sizes, strict=True))
        return a.reshape(M, K), b.reshape(K, N), c.reshape(M, N)

    def guards(self, arena: Any) -> list[Any]:
        """Return views of everything that is none of the three."""
        ends = [0, *(place + size for place, size in zip(self.places, self.sizes, strict=True))]
        return [arena[end:place] for end, place in zip(ends, (*self.places, self.total), strict=True)]


def _up(count: int) -> int:
    return ceil_div(count, STEP) * STEP
