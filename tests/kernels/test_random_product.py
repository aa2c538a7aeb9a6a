"""The check of a product of random inputs: fp32 in any order passes, less precision and less work do not."""

import numpy as np
import pytest

from tilelab.kernels.ladder import LADDER
from tilelab.kernels.verify import fault_of_random_product

M, N = 40, 48


def drawn(K, seed=0):
    rng = np.random.default_rng(seed)
    A, B = (2 * rng.random(shape, "f4") - 1 for shape in ((M, K), (K, N)))
    return A.astype("f4"), B.astype("f4")


def fault(C, A, B, seed=1):
    return fault_of_random_product(C, A, B, np.random.default_rng(seed), np)


def in_order(A, B):
    C = np.zeros((A.shape[0], B.shape[1]), "f4")
    for k in range(A.shape[1]):
        C += A[:, k : k + 1] * B[k : k + 1]
    return C


def rounded(x, bits):
    """Mantissas of so many bits: 10 are TF32, 7 bfloat16."""
    drop = 23 - bits
    half = np.uint32(1 << (drop - 1))
    return ((x.view("u4") + half) & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)).view("f4")


@pytest.mark.parametrize("K", [1, 2, 7, 100, 2048, 8192])
def test_plain_fp32_passes_in_any_order(K):
    for seed in range(3 if K < 1000 else 1):
        A, B = drawn(K, seed)
        backwards = in_order(A[:, ::-1], B[::-1])
        halves = in_order(A[:, ::2], B[::2]) + in_order(A[:, 1::2], B[1::2])
        for C in (in_order(A, B), backwards, halves, A @ B):
            assert fault(C, A, B, seed) == ""


@pytest.mark.parametrize("K", [64, 2048, 4096, 8192])
@pytest.mark.parametrize("bits", [10, 7])
def test_rounded_inputs_fail(bits, K):
    A, B = drawn(K)
    assert fault(rounded(A, bits) @ rounded(B, bits), A, B)


@pytest.mark.parametrize("K", [100, 4096, 8192])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3])
def test_skipped_steps_fail(K, share):
    A, B = drawn(K)
    skipped = max(1, int(share * K))
    assert fault(A[:, skipped:] @ B[skipped:], A, B)


@pytest.mark.parametrize("at", [np.s_[::2, 0], np.s_[17, 5], np.s_[:, 3], np.s_[-1, -1]])
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_wrong_elements_fail(at, value):
    A, B = drawn(8192)
    C = A @ B
    C[at] = value
    assert fault(C, A, B)


def test_what_is_said():
    A, B = drawn(100)
    C = A @ B
    C[7, 5] += 1e-4  # too little for its row
    assert f"C[7,5] is {C[7, 5]:.7g}, but" in fault(C, A, B)
    assert "1 of 1920 elements looked at are wrong" in fault(C, A, B)
    C[7, 5] = np.nan
    assert fault(C, A, B) == "row 7 of the result is not finite: elements were not written"


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_every_rung_passes(rung):
    A, B = drawn(70)
    C = np.full((M, N), np.nan, "f4")
    rung(A, B, C, M, N, 70)
    assert fault(C, A, B) == ""
