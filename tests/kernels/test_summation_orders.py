"""One bound for products of random inputs: right in every order of summation, wrong in less than float32."""

import shutil

import numpy as np
import pytest

from tilelab.grading.cuda_answers import CudaAnswer, product, try_shape
from tilelab.kernels.verify import UNIT_ROUNDOFF, allowance, check_product, gamma

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")


def drawn(M, N, K, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (M, K)).astype("f4"), rng.uniform(-1, 1, (K, N)).astype("f4")


def in_order(A, B):
    C = np.zeros((A.shape[0], B.shape[1]), "f4")
    for k in range(A.shape[1]):
        C += A[:, k : k + 1] * B[k : k + 1]
    return C


def in_parts(A, B, parts=7):
    return np.sum([in_order(A[:, i::parts], B[i::parts]) for i in range(parts)], axis=0, dtype="f4")


def by_a_tree(A, B):
    terms = A[:, :, None] * B[None]
    while terms.shape[1] > 1:
        odd = terms[:, -1:] if terms.shape[1] % 2 else terms[:, :0]
        terms = np.concatenate([terms[:, : terms.shape[1] // 2 * 2 : 2] + terms[:, 1::2], odd], axis=1)
    return terms[:, 0]


def biased(A, B):
    """Largest products first: partial sums go as far from 0 as they can before they come back."""
    order = np.argsort(-(A[:1] * B.T[:1])[0])
    return in_order(A[:, order], B[order])


@pytest.mark.parametrize("K", [1, 2, 5, 13, 16, 60, 300, 2048])
@pytest.mark.parametrize("summed", [in_order, in_parts, by_a_tree, np.matmul])
def test_every_order_of_summation_is_right(summed, K):
    for seed in range(3):
        A, B = drawn(12, 9, K, seed)
        assert check_product(summed(A, B), A, B, around_zero=True)


@pytest.mark.parametrize("K", [64, 300])
def test_sums_sorted_by_size_are_right_too(K):
    A, B = drawn(1, 1, K)
    assert check_product(biased(A, B), A, B, around_zero=True)


@pytest.mark.parametrize("bits", [10, 7])
def test_fewer_bits_pass_the_bound_for_any_inputs_but_not_this_one(bits):
    A, B = drawn(8, 8, 8192)

    def rounded(x):
        keep = np.uint32(0xFFFFFFFF << 23 - bits & 0xFFFFFFFF)
        return ((x.view("u4") + np.uint32(1 << 22 - bits)) & keep).view("f4")

    C = (rounded(A).astype("f8") @ rounded(B)).astype("f4")
    assert check_product(C, A, B)
    assert not check_product(C, A, B, around_zero=True)


def test_short_sums_are_held_to_the_bound_that_is_certain():
    a, b = (x.astype("f8") for x in drawn(5, 6, 4))
    certain = gamma(4, UNIT_ROUNDOFF["float32"]) * (abs(a) @ abs(b))
    np.testing.assert_allclose(allowance(a, b, np, around_zero=True), certain, rtol=1e-6)
    np.testing.assert_allclose(allowance(a, b, np), certain, rtol=1e-6)


def test_torch_says_the_same():
    torch = pytest.importorskip("torch")
    a, b = (x.astype("f8") for x in drawn(5, 6, 400))
    found = allowance(torch.tensor(a), torch.tensor(b), torch, around_zero=True)
    np.testing.assert_allclose(found.numpy(), allowance(a, b, np, around_zero=True))


KERNEL = """__device__ float in(float x) { ROUNDED; }
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    int n = blockIdx.x * 16 + threadIdx.x, m = blockIdx.y * 16 + threadIdx.y;
    if (n >= N || m >= M) return;
    float sum[PARTS] = {};
    for (int k = K - 1; k >= 0; --k) sum[k % PARTS] += in(A[m * K + k]) * in(B[k * N + n]);
    float total = 0;
    for (int p = 0; p < PARTS; ++p) total += sum[p];
    C[m * N + n] = total;
}"""
LAUNCH = {"grid": ["(N + 15) // 16", "(M + 15) // 16"], "block": [16, 16]}


def handed_in(parts, rounded):
    return CudaAnswer(KERNEL.replace("PARTS", str(parts)).replace("ROUNDED", rounded), LAUNCH, 16)


@needs_gcc
@pytest.mark.parametrize("parts", [1, 4])
def test_a_learners_order_of_summation_is_right(parts):
    answer = handed_in(parts, "return x")
    for K in (1, 15, 300):
        trial = try_shape(answer, (18, 17, K), seed=3)
        assert trial.ok, trial.words
    right, _ = product(answer, (18, 17, 300), seed=3)
    assert right.all()


@needs_gcc
def test_a_learners_tf32_is_wrong():
    tf32 = "return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u)"
    assert not try_shape(handed_in(1, tf32), (18, 17, 300), seed=3).ok
    right, _ = product(handed_in(1, tf32), (18, 17, 300), seed=3)
    assert not right.all()
