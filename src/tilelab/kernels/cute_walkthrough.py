"""The CuTe C++ walkthrough as kernels, and its offsets, computed on the host by CuTe itself.

A tile of 128×32 halves, 16×16 threads row-major, a shared tile padded to rows of 33, one K tile at a time, and a plain
GEMM of the same parts. Building needs ``nvcc`` and the headers of the wheel ``nvidia-cutlass``.
"""

from pathlib import Path

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.diagnostics import explain
from tilelab.cudacpp.errors import BuildError, LaunchError
from tilelab.cudacpp.host_build import compiler
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.processes import Limits, Task, run

FOLDER = Path(__file__).parent / "cute"
TILE_M, TILE_N, TILE_K = 128, 128, 32
THREADS = 256


def source() -> str:
    """The CUDA C++ source."""
    return (FOLDER / "walkthrough_b.cu").read_text()


def unavailable() -> str | None:
    """Why the walkthrough cannot be built here, in one sentence; ``None`` if it can."""
    try:
        nvcc.find()
    except BuildError as reason:
        return str(reason)
    if not nvcc.cutlass_include():
        return "the CuTe headers are not installed: pip install nvidia-cutlass"
    return None


def whole_tiles(M: int, N: int, K: int) -> None:
    """Refuse sizes that are no multiples of the tiles.

    Raises
    ------
    LaunchError
        M or N is no multiple of 128, or K none of 32.
    """
    for name, size, tile in (("M", M, TILE_M), ("N", N, TILE_N), ("K", K, TILE_K)):
        if size % tile or size <= 0:
            raise LaunchError(
                f"{name} = {size} is no multiple of {tile}; this walkthrough has no predicates at its edges"
            )


def _rows(p: object) -> int:
    M, K = p.M, p.K  # type: ignore[attr-defined]
    whole_tiles(M, TILE_N, K)
    return int(M // TILE_M)


def _result(p: object) -> tuple[int, int]:
    M, N, K = p.M, p.N, p.K  # type: ignore[attr-defined]
    whole_tiles(M, N, K)
    return N // TILE_N, M // TILE_M


def partition_offsets() -> Kernel:
    """``(int* offsets, int M, int K, int block)``: what each thread copies of a panel, as offsets into A."""
    return Kernel(source(), "partition_offsets", grid=1, block=THREADS, backend="nvcc")


def copy_through_shared() -> Kernel:
    """``(const half* A, half* out, int M, int K)``: a copy by way of the padded shared tile."""
    return Kernel(source(), "copy_through_shared", grid=_rows, block=THREADS, backend="nvcc")


def gemm_nt() -> Kernel:
    """``(const half* A, const half* B, float* C, int M, int N, int K)``: C = A·Bᵀ, B stored N×K."""
    return Kernel(source(), "gemm_nt", grid=_result, block=THREADS, backend="nvcc")


def host_offsets(M: int, K: int, block: int) -> list[list[int]]:
    """Offsets of the partition, by CuTe compiled for the host: for each thread those of i (fastest), j, k.

    Raises
    ------
    BuildError
        ``nvcc`` or the headers are missing.
    LaunchError
        M or K is no multiple of its tile, or ``block`` is past the end.
    """
    whole_tiles(M, TILE_N, K)
    if not 0 <= block < M // TILE_M:
        raise LaunchError(f"block {block}: there are {M // TILE_M} blocks of {TILE_M} rows")
    reason = unavailable()
    if reason:
        raise BuildError(reason)
    files = {name: (FOLDER / name).read_bytes() for name in ("offsets_on_host.cpp", "walkthrough_b.cu")}
    includes = [*nvcc.cutlass_include(), *nvcc.toolkit_include()]
    path, _ = compiler()
    argv = [path, "-std=c++17", "-w", *(f"-I{folder}" for folder in includes), "offsets_on_host.cpp", "-o", "offsets"]
    built = run(Task(argv, files, ["offsets"], Limits(seconds=300), includes))
    if built.code:
        raise explain(built.stderr, source(), "g++")
    printed = run(Task(["./offsets", str(M), str(K), str(block)], {"offsets": built.files["offsets"]})).stdout
    return [[int(word) for word in line.split()] for line in printed.splitlines()]
