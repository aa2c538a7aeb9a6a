"""The ladder of fp32 matrix products: one ``.cu`` a rung, each a step closer to cuBLAS.

Every rung computes C (M×N) = A (M×K) · B (K×N) for row-major contiguous float32 of any size, with the signature
``matmul(const float* A, const float* B, float* C, int M, int N, int K)``. Its header says what it adds to the rung
below, what bounds it, and its limits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tilelab.cudacpp.arguments import address
from tilelab.cudacpp.errors import LaunchError, brief
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.launch import Shape, Size, ceil_div

FOLDER = Path(__file__).parent / "fp32"


@dataclass(frozen=True)
class Rung:
    """One step of the ladder.

    Parameters
    ----------
    name
        Short and unique, such as ``tiled_16``.
    file
        The source in ``fp32/``, without its ending.
    grid, block, shared
        The launch rule, as in :class:`~tilelab.cudacpp.kernel.Kernel`.
    defines
        Macros that make this rung of its source.
    passes
        Passes through the load/store pipe, to L1 or to shared memory, for each multiply-add of a warp: from the reads
        of its inner loop, and held to a profiler's count by a test.
    """

    name: str
    file: str
    grid: Shape
    block: Shape
    shared: Size = 0
    defines: Mapping[str, object] = field(default_factory=dict)
    passes: float = 0.0

    @property
    def loads_from(self) -> str:
        """Where its inner loop reads: ``L1`` or ``shared memory``."""
        return "shared memory" if "__shared__" in self.source else "L1"

    @cached_property
    def source(self) -> str:
        """The CUDA C++ source."""
        return (FOLDER / f"{self.file}.cu").read_text()

    @cached_property
    def kernel(self) -> Kernel:
        """The rung's kernel; where it chooses between tiles, the one with the largest."""
        return Kernel(self.source, "matmul", self.grid, self.block, self.shared, self.defines)

    def kernel_for(self, M: int, N: int, K: int) -> Kernel:
        """The kernel that multiplies these sizes."""
        return self.kernel

    def __call__(self, A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        """Compute C = A·B on the GPU, or emulated, wherever the arrays live."""
        self.kernel_for(M, N, K)(A, B, C, M, N, K)

    @cached_property
    def notes(self) -> dict[str, str]:
        """What the header says, by keyword: ``adds``, ``bound`` and ``limits``."""
        notes: dict[str, str] = {}
        key = ""
        for line in self.source.splitlines():
            text = line.removeprefix("//")
            if text == line or text.startswith(" C (M×N)"):
                break
            word, colon, rest = text.strip().partition(":")
            if colon and word in ("Adds", "Bound", "Limits"):
                key = word.lower()
                notes[key] = rest.strip()
            elif key:
                notes[key] += " " + text.strip()
        return notes


def fitting(p: Any) -> Any:
    """A problem whose arrays are as large as M, N and K say; flat ones of the right length will do.

    Raises
    ------
    LaunchError
        They are not: the kernel would read and write past them.
    """
    for side in "MNK":
        if getattr(p, side) < 1:
            raise LaunchError(f"{side} = {getattr(p, side)}: there is nothing to compute on")
    for name, rows, columns in (("A", "M", "K"), ("B", "K", "N"), ("C", "M", "N")):
        shape, due = getattr(p, name), (getattr(p, rows), getattr(p, columns))
        if shape not in (due, (due[0] * due[1],)):
            raise LaunchError(f"{name} has shape {shape}, but {rows}×{columns} is {due[0]}×{due[1]}")
    return p


def _tiles(high: int, wide: int) -> Callable[[Any], tuple[int, int]]:
    """A grid of blocks that each compute ``high`` rows and ``wide`` columns, x along the columns."""
    return lambda p: (ceil_div(fitting(p).N, wide), ceil_div(p.M, high))


def _tiles_sideways(side: int) -> Callable[[Any], tuple[int, int]]:
    """The same with x along the rows."""
    return lambda p: (ceil_div(fitting(p).M, side), ceil_div(p.N, side))


@dataclass(frozen=True)
class WarpTile:
    """Sizes of the warp-tiled rung.

    Of a block (``bm``×``bn``×``bk``), of a warp (``wm``×``wn``), of a thread (``tm``×``tn``); how many stages of tiles
    are in flight, in how many bursts a tile's copies are issued, how many blocks share an SM; how many columns of B a
    copy moves (4 needs rows of B and C that start at multiples of 16 bytes), and the share of the best tile's rate
    that it reaches where there is work for every SM (measured on an H200).
    """

    bm: int
    bn: int
    bk: int
    wm: int
    wn: int
    tm: int
    tn: int
    stages: int
    bursts: int
    blocks_per_sm: int
    vector: int
    rate: float

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * (self.bm // self.wm) * (self.bn // self.wn)

    @property
    def shared(self) -> int:
        """Dynamic shared bytes of a block; rows of A's transposed tile are 4 floats longer than they need to be."""
        return 4 * self.stages * self.bk * (self.bm + 4 + self.bn)

    def blocks(self, M: int, N: int) -> int:
        """Blocks that cover an M×N result."""
        return ceil_div(M, self.bm) * ceil_div(N, self.bn)

    def grid(self, p: Any) -> int:
        """Blocks for a problem.

        Raises
        ------
        LaunchError
            N is no multiple of what a copy moves, or an array has another shape.
        """
        if fitting(p).N % self.vector:
            raise LaunchError(f"N = {p.N} is no multiple of {self.vector}, which this tile's copies need: take NARROW")
        return self.blocks(p.M, p.N)

    def cost(self, M: int, N: int, sms: int = 132) -> float:
        """Time of one K step over the whole result, in units of one output at the best rate.

        Blocks run in waves; a last wave that is nearly empty costs as much as a full one.
        """
        blocks = self.blocks(M, N)
        resident = min(self.blocks_per_sm, ceil_div(blocks, sms))
        waves = ceil_div(blocks, sms * resident)
        # Alone on its SM, a block of a tile that is meant to share it reaches about half the rate.
        alone = 0.5 + 0.5 * resident / self.blocks_per_sm
        return waves * resident * self.bm * self.bn / (alone * self.rate)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel with these sizes."""
        names = ("bm", "bn", "bk", "wm", "wn", "tm", "tn", "stages", "bursts", "blocks_per_sm", "vector")
        return Kernel(
            (FOLDER / "warp_tiled.cu").read_text(),
            "matmul",
            grid=self.grid,
            block=self.threads,
            shared=self.shared,
            defines={name.upper(): getattr(self, name) for name in names},
            alignment=4 * self.vector,
        )


#: For results that fill the GPU.
LARGE = WarpTile(128, 256, 16, 64, 64, 8, 16, stages=3, bursts=4, blocks_per_sm=1, vector=4, rate=1.0)
#: For those that do not.
WIDE = WarpTile(64, 128, 8, 32, 64, 8, 8, stages=3, bursts=2, blocks_per_sm=4, vector=4, rate=0.8)
#: For rows of B that have to be copied word by word.
NARROW = WarpTile(128, 64, 8, 64, 32, 8, 8, stages=3, bursts=2, blocks_per_sm=4, vector=1, rate=0.8)


@dataclass(frozen=True)
class WarpTiledRung(Rung):
    """The last rung: it takes the tile that wastes least, as a library does."""

    tiles: tuple[WarpTile, ...] = (LARGE, WIDE, NARROW)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel with the largest tile."""
        return self.tiles[0].kernel

    def kernel_for(self, M: int, N: int, K: int, aligned: bool = True) -> Kernel:
        """The kernel that covers an M×N result in the least time; ``aligned`` says that arrays start at 16 bytes."""
        sizes: dict[str, object] = {"M": M, "N": N, "K": K}
        for side, value in sizes.items():
            if not hasattr(value, "__index__"):
                raise LaunchError(f"{side} is {brief(value)}: pass a whole number")
        if min(M, N, K) < 1:
            raise LaunchError(f"{M}×{N}×{K}: there is nothing to compute on")
        able = [tile for tile in self.tiles if tile.vector == 1 or (aligned and N % tile.vector == 0)]
        return min(able, key=lambda tile: tile.cost(M, N)).kernel

    def __call__(self, A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        """Compute C = A·B on the GPU, or emulated, wherever the arrays live and wherever they start."""
        aligned = all(address(array) % 16 == 0 for array in (B, C))
        self.kernel_for(M, N, K, aligned)(A, B, C, M, N, K)


#: From the ground up.
LADDER: tuple[Rung, ...] = (
    Rung("naive_uncoalesced", "naive_uncoalesced", _tiles_sideways(16), (16, 16), passes=17),
    Rung("naive", "naive", _tiles(16, 16), (16, 16), passes=3),
    Rung("tiled_8", "tiled", _tiles(8, 8), (8, 8), defines={"TILE": 8}, passes=3),
    Rung("tiled_16", "tiled", _tiles(16, 16), (16, 16), defines={"TILE": 16}, passes=2),
    Rung("tiled_32", "tiled", _tiles(32, 32), (32, 32), defines={"TILE": 32}, passes=1.6),
    Rung("tiled_dynamic", "tiled_dynamic", _tiles(32, 32), (32, 32), shared=2 * 32 * 32 * 4, passes=2.1),
    Rung("register_2x2", "register_2x2", _tiles(32, 32), (16, 16), passes=1),
    Rung("register_8x8", "register_8x8", _tiles(128, 128), 256, passes=0.31),
    Rung("vectorised", "vectorised", _tiles(128, 128), 256, passes=0.25),
    Rung("double_buffered", "double_buffered", _tiles(128, 128), 256, passes=0.24),
    Rung("async_copy", "async_copy", _tiles(128, 128), 256, defines={"STAGES": 3}, passes=0.25),
    WarpTiledRung("warp_tiled", "warp_tiled", grid=LARGE.grid, block=LARGE.threads, passes=0.18),
)


def rung(name: str) -> Rung:
    """A rung by its name.

    Raises
    ------
    KeyError
        There is none of that name; the message lists those there are.
    """
    for one in LADDER:
        if one.name == name:
            return one
    raise KeyError(f"no rung {name!r}; there are {', '.join(one.name for one in LADDER)}")
