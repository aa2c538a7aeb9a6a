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
    """

    name: str
    file: str
    grid: Shape
    block: Shape
    shared: Size = 0
    defines: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def source(self) -> str:
        """The CUDA C++ source."""
        return (FOLDER / f"{self.file}.cu").read_text()

    @cached_property
    def kernel(self) -> Kernel:
        """The rung as something to call: ``rung.kernel(A, B, C, M, N, K)``."""
        return Kernel(self.source, "matmul", self.grid, self.block, self.shared, self.defines)

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


def _tiles(high: int, wide: int) -> Callable[[Any], tuple[int, int]]:
    """A grid of blocks that each compute ``high`` rows and ``wide`` columns, x along the columns."""
    return lambda p: (ceil_div(p.N, wide), ceil_div(p.M, high))


@dataclass(frozen=True)
class WarpTile:
    """Sizes of the warp-tiled rung: of a block, a warp and a thread, the depth of a tile, and the stages in flight."""

    bm: int = 128
    bn: int = 128
    bk: int = 8
    wm: int = 64
    wn: int = 64
    tm: int = 8
    tn: int = 16
    stages: int = 3
    blocks_per_sm: int = 2

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * (self.bm // self.wm) * (self.bn // self.wn)

    @property
    def shared(self) -> int:
        """Dynamic shared bytes of a block; rows of A's transposed tile are 4 floats longer than they need to be."""
        return 4 * self.stages * self.bk * (self.bm + 4 + self.bn)

    def rung(self, name: str = "warp_tiled") -> Rung:
        """The rung with these sizes."""
        defines = {key.upper(): value for key, value in vars(self).items()}
        return Rung(
            name,
            "warp_tiled",
            grid=lambda p: ceil_div(p.M, self.bm) * ceil_div(p.N, self.bn),
            block=self.threads,
            shared=self.shared,
            defines=defines,
        )


#: From the ground up.
LADDER: tuple[Rung, ...] = (
    Rung("naive_uncoalesced", "naive_uncoalesced", lambda p: (ceil_div(p.M, 16), ceil_div(p.N, 16)), (16, 16)),
    Rung("naive", "naive", _tiles(16, 16), (16, 16)),
    Rung("tiled_8", "tiled", _tiles(8, 8), (8, 8), defines={"TILE": 8}),
    Rung("tiled_16", "tiled", _tiles(16, 16), (16, 16), defines={"TILE": 16}),
    Rung("tiled_32", "tiled", _tiles(32, 32), (32, 32), defines={"TILE": 32}),
    Rung("tiled_dynamic", "tiled_dynamic", _tiles(32, 32), (32, 32), shared=2 * 32 * 32 * 4),
    Rung("register_2x2", "register_2x2", _tiles(32, 32), (16, 16)),
    Rung("register_8x8", "register_8x8", _tiles(128, 128), 256),
    Rung("vectorised", "vectorised", _tiles(128, 128), 256),
    Rung("double_buffered", "double_buffered", _tiles(128, 128), 256),
    Rung("async_copy", "async_copy", _tiles(128, 128), 256, defines={"STAGES": 3}),
    WarpTile().rung(),
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
