"""Every rung of the ladder on odd shapes, emulated: right, inside its arrays, and silent under the checker."""

import shutil

import numpy as np
import pytest

from tilelab.cudacpp.device import gpu_missing
from tilelab.cudacpp.errors import LaunchError
from tilelab.cudacpp.kernel import Kernel
from tilelab.kernels.ladder import LADDER, LARGE, NARROW, WIDE, Rung, rung
from tilelab.kernels.shapes import SIDES, all_shapes, pairwise, uncovered
from tilelab.kernels.verify import check_product

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")
SMALL_SIDES = [side for side in SIDES if side <= 129]
#: Each kernel of the ladder once, by name; the last rung has three.
KERNELS = {one.name: one.kernel for one in LADDER[:-1]}
KERNELS |= {"warp_tiled, large": LARGE.kernel, "warp_tiled, wide": WIDE.kernel, "warp_tiled, narrow": NARROW.kernel}


def takes(name, N):
    """Copies of four columns need N to be a multiple of 4."""
    return name not in ("warp_tiled, large", "warp_tiled, wide") or N % 4 == 0


def inputs(M, N, K, seed=0):
    """Two matrices with distinct elements, and a poisoned result."""
    rng = np.random.default_rng([seed, M, N, K])
    A, B = rng.uniform(-1, 1, (M, K)).astype("f4"), rng.uniform(-1, 1, (K, N)).astype("f4")
    return A, B, np.full((M, N), np.nan, "f4")


def test_the_shapes_cover_every_pair_of_sides():
    assert len(SMALL_SIDES) == 10
    assert uncovered(pairwise(SMALL_SIDES), SMALL_SIDES) == set()
    assert uncovered(pairwise(SMALL_SIDES)[:-1], SMALL_SIDES) != set()
    assert len(list(all_shapes())) == 1728


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_right_on_every_pair_of_odd_sides(name):
    # The arrays stand between guards of NaN: a stray read spoils the result, a stray write raises.
    for M, N, K in pairwise(SMALL_SIDES):
        A, B, C = inputs(M, N, K)
        if not takes(name, N):
            with pytest.raises(LaunchError, match=f"N = {N} is no multiple of 4"):
                KERNELS[name](A, B, C, M, N, K)
            continue
        KERNELS[name](A, B, C, M, N, K)
        verdict = check_product(C, A, B)
        assert verdict, f"{M}×{N}×{K}: {verdict.message}"


#: Sizes at which published ladders were reported wrong; the long ones with sides that an emulation can take.
REPORTED = [
    (100, 100, 100),
    (35, 79, 19),
    (3, 3, 431),
    (3, 3, 3),
    (9, 9, 9),
    (16, 16, 8),
    (128, 128, 64),
    (64, 64, 192),
    (256, 256, 128),
    (30_000, 4, 4),
    (4, 4, 4093),
]


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_right_where_other_ladders_were_reported_wrong(name):
    for M, N, K in REPORTED:
        if takes(name, N):
            A, B, C = inputs(M, N, K)
            KERNELS[name](A, B, C, M, N, K)
            verdict = check_product(C, A, B)
            assert verdict, f"{M}×{N}×{K}: {verdict.message}"


@needs_gcc
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("shape", [(35, 33, 17), (17, 20, 33), (130, 68, 5)])
def test_the_checker_has_nothing_to_say(name, shape):
    M, N, K = shape
    if not takes(name, N):
        N += 4 - N % 4
    A, B, C = inputs(M, N, K)
    KERNELS[name].check(A, B, C, M, N, K)
    assert check_product(C, A, B)


@needs_gcc
@pytest.mark.parametrize("name", ["tiled_16", "warp_tiled, wide"])
def test_infinities_and_nan_stay_where_they_belong(name):
    M, N, K = 20, 24, 18
    A, B, C = inputs(M, N, K)
    A[3, 4], B[5, 6] = np.inf, np.nan
    KERNELS[name](A, B, C, M, N, K)
    assert np.isnan(C[:, 6]).all()
    with np.errstate(invalid="ignore"):
        due = A @ B
    np.testing.assert_array_equal(np.isfinite(C), np.isfinite(due))


@needs_gcc
def test_emulation_builds_fast_and_the_second_time_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TILELAB_CACHE", str(tmp_path))
    tiled = rung("tiled_16").kernel
    first = tiled.build()
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "emulator").iterdir()}
    assert tiled.build() == first
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "emulator").iterdir()} == files


@pytest.mark.parametrize("one", LADDER, ids=lambda one: one.name)
def test_every_rung_says_what_it_adds_what_bounds_it_and_its_limits(one: Rung):
    assert set(one.notes) == {"adds", "bound", "limits"}
    assert all(len(note) > 10 for note in one.notes.values())


def test_rungs_by_name():
    assert rung("naive").name == "naive"
    assert len({one.name for one in LADDER}) == len(LADDER)
    with pytest.raises(KeyError, match="no rung 'fast'; there are naive_uncoalesced, naive"):
        rung("fast")


def test_the_last_rung_takes_the_tile_that_wastes_least():
    last = rung("warp_tiled")
    assert last.kernel_for(4096, 4096, 4096) is LARGE.kernel
    assert last.kernel_for(1024, 1024, 1024) is WIDE.kernel
    # 4097 columns would leave the large tile a fifth wave for a single column.
    assert last.kernel_for(4095, 4097, 4093) is NARROW.kernel
    assert last.kernel_for(4096, 4096, 4096, aligned=False) is NARROW.kernel


@pytest.mark.parametrize("one", LADDER, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((9, 8, 12), r"A has shape \(8, 12\), but M×K is 9×12"),
        ((8, 8, 13), r"A has shape \(8, 12\), but M×K is 8×13"),
        ((8, 12, 12), r"B has shape \(12, 8\), but K×N is 12×12"),
        ((4, 8, 24), r"A has shape \(8, 12\), but M×K is 4×24"),
        ((0, 8, 12), "nothing to compute on"),
        ((8, 8, 0), "nothing to compute on"),
        ((-8, 8, 12), "nothing to compute on"),
    ],
)
def test_sizes_that_are_not_those_of_the_arrays(one, sizes, said):
    A, B, C = inputs(8, 8, 12)
    with pytest.raises(LaunchError, match=said):
        one(A, B, C, *sizes)
    with pytest.raises(LaunchError, match=said):
        one.kernel.plan(A, B, C, *sizes)
    assert np.isnan(C).all()


def test_flat_arrays_of_the_right_length_will_do():
    A, B, C = (array.reshape(-1) for array in inputs(8, 8, 12))
    assert rung("tiled_16").kernel.plan(A, B, C, 8, 8, 12)[1].grid == (1, 1, 1)
    with pytest.raises(LaunchError, match=r"C has shape \(63,\), but M×N is 8×8"):
        rung("tiled_16").kernel.plan(A, B, C[1:], 8, 8, 12)


@needs_gcc
@pytest.mark.slow
def test_the_last_rung_is_right_on_every_pair_of_odd_sides():
    for M, N, K in pairwise(SMALL_SIDES):
        A, B, C = inputs(M, N, K)
        rung("warp_tiled")(A, B, C, M, N, K)
        assert check_product(C, A, B)


@pytest.mark.gpu
@pytest.mark.skipif(gpu_missing() is not None, reason=str(gpu_missing()))
@pytest.mark.parametrize("name", KERNELS)
def test_right_on_a_gpu(name):
    import cupy

    for M, N, K in pairwise(SMALL_SIDES):
        if not takes(name, N):
            continue
        A, B, _ = inputs(M, N, K)
        C = cupy.full((M, N), cupy.nan, "f4")
        KERNELS[name](cupy.asarray(A), cupy.asarray(B), C, M, N, K)
        assert check_product(C.get(), A, B)


@needs_gcc
def test_a_rung_is_an_ordinary_kernel():
    """The source alone, with its launch rule, is all that a learner needs to rebuild a rung."""
    one = rung("tiled_dynamic")
    A, B, C = inputs(9, 10, 11)
    Kernel(one.source, "matmul", grid=(2, 2), block=(8, 8), shared=2 * 8 * 8 * 4)(A, B, C, 9, 10, 11)
    assert check_product(C, A, B)
