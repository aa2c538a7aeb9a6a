"""The CuTe C++ walkthrough: its offsets, computed by CuTe on the host, equal tilelab's; and it builds."""

import pytest

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.errors import BuildError, LaunchError
from tilelab.kernels import cute_walkthrough as walkthrough
from tilelab.layout.layout import Layout

reason = walkthrough.unavailable()
needs_cute = pytest.mark.skipif(reason is not None, reason=str(reason))
M, K = 256, 96


def offsets_by_tilelab(thread: int, block: int) -> list[int]:
    """What thread ``thread`` of 16×16 row-major copies of row block ``block``: i fastest, then j, then the K tile.

    The matrix as one layout: rows are (thread row, i, block), columns (thread column, j, K tile).
    """
    rows, columns = ((16, 8, M // 128), (K, 16 * K, 128 * K)), ((16, 2, K // 32), (1, 16, 32))
    matrix = Layout((rows[0], columns[0]), (rows[1], columns[1]))
    return [
        matrix(((thread // 16, i, block), (thread % 16, j, k)))
        for k in range(K // 32)
        for j in range(2)
        for i in range(8)
    ]


@needs_cute
@pytest.mark.slow
def test_offsets_of_the_partition():
    block = 1
    by_cute = walkthrough.host_offsets(M, K, block)
    assert by_cute == [offsets_by_tilelab(thread, block) for thread in range(256)]
    assert sorted(offset for row in by_cute for offset in row) == list(range(block * 128 * K, (block + 1) * 128 * K))


@needs_cute
@pytest.mark.slow
def test_it_builds_for_hopper():
    built = nvcc.compile_cubin(walkthrough.source(), "sm_90")
    padded = 2 * (127 * 33 + 31 + 1)  # bytes: cosize, not rows times pitch
    assert built.resources["copy_through_shared"].static_shared == padded
    assert built.resources["gemm_nt"].spill_loads == 0


@pytest.mark.parametrize(
    ("sizes", "said"), [((100, 128, 32), "M = 100 is no multiple of 128"), ((128, 128, 0), "K = 0")]
)
def test_ragged_sizes_are_refused(sizes, said):
    with pytest.raises(LaunchError, match=said):
        walkthrough.whole_tiles(*sizes)
    with pytest.raises(LaunchError, match=r"block 2: there are 2 blocks"):
        walkthrough.host_offsets(256, 32, 2)


def test_where_there_is_no_nvcc_it_says_so(monkeypatch):
    monkeypatch.setattr(nvcc, "find", lambda: (_ for _ in ()).throw(BuildError("no nvcc here")))
    assert walkthrough.unavailable() == "no nvcc here"
    with pytest.raises(BuildError, match="no nvcc here"):
        walkthrough.host_offsets(256, 32, 0)
