"""The check of a product: a bound that right kernels meet, and nothing that is not finite passes."""

import numpy as np
import pytest

from tilelab.kernels.verify import check_product, gamma


def product(M=40, N=30, K=1000, seed=0):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((M, K), "f4"), rng.standard_normal((K, N), "f4")
    return A, B, (A @ B).astype("f4")


def in_order(A, B):
    """A product summed in order, each step rounded: the plainest kernel there is."""
    C = np.zeros((A.shape[0], B.shape[1]), "f4")
    for k in range(A.shape[1]):
        C = (C + (A[:, k : k + 1] * B[k : k + 1]).astype("f4")).astype("f4")
    return C


def test_right_kernels_pass_where_allclose_rejects_them():
    A, B, _ = product(K=1000)
    C = in_order(A, B)
    assert check_product(C, A, B)
    assert not np.allclose(C, A.astype(float) @ B.astype(float))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [(0, 0), (39, 29), (7, 3)])
def test_what_is_not_finite_never_passes(bad, at):
    A, B, C = product()
    C[at] = bad
    verdict = check_product(C, A, B)
    assert not verdict
    assert verdict.where == at
    assert f"C[{at[0]},{at[1]}] is {bad:.7g}" in verdict.message
    assert not check_product(np.full_like(C, bad), A, B)


@pytest.mark.parametrize("K", [1, 3, 16, 100])
def test_zeros_unwritten_elements_and_one_missing_step_fail(K):
    A, B, C = product(K=K)
    assert check_product(C, A, B)
    assert not check_product(np.zeros_like(C), A, B)
    assert not check_product(in_order(A[:, :-1], B[:-1]), A, B)
    C[5, 5] = C[5, 6]
    assert not check_product(C, A, B)


def test_tf32_fails():
    A, B, _ = product(K=64)

    def tf32(x):
        return ((x.view("u4") + 0x1000) & np.uint32(0xFFFFE000)).view("f4")

    assert not check_product((tf32(A) @ tf32(B)).astype("f4"), A, B)


def test_an_infinite_result_has_to_be_that_infinity():
    A, B = np.array([[np.inf, 1]], "f4"), np.array([[1.0], [1.0]], "f4")
    assert check_product(np.array([[np.inf]], "f4"), A, B)
    assert not check_product(np.array([[-np.inf]], "f4"), A, B)
    assert not check_product(np.array([[1.0]], "f4"), A, B)


def test_overflow_is_right_where_no_float32_could_hold_the_result():
    A = B = np.array([[1e30]], "f4")
    assert check_product(np.array([[np.inf]], "f4"), A, B)
    assert not check_product(np.array([[-np.inf]], "f4"), A, B)
    assert not check_product(np.array([[1.0]], "f4"), A, B)
    nowhere = check_product(np.array([[np.nan]], "f4"), np.array([[np.inf]], "f4"), np.array([[0.0]], "f4"))
    assert nowhere.message.startswith("C[0,0] is nan, and no number is right there: the inputs hold infinities or NaN;")


def test_wrong_shape():
    A, B, C = product(4, 5, 6)
    assert "(5, 4), but (4, 5) is right" in check_product(C.T, A, B).message


@pytest.mark.parametrize(
    ("shapes", "dtype", "said"),
    [
        (((0, 3), (0, 4), (4, 3)), "f4", r"C is float32 of shape \(0, 3\); .* at least one element"),
        (((2, 3), (2, 0), (0, 3)), "f4", r"A is float32 of shape \(2, 0\)"),
        (
            ((2, 3), (2, 4), (4, 3)),
            "c8",
            r"C is complex64 of shape \(2, 3\); a product is checked on matrices of real numbers",
        ),
        (((2, 3), (2, 4), (4, 3)), "S4", "matrices of real numbers"),
        (((6,), (2, 4), (4, 3)), "f4", r"C is float32 of shape \(6,\)"),
        (((2, 3), (2, 4), (5, 3)), "f4", r"A has shape \(2, 4\) and B \(5, 3\): they have no product"),
    ],
)
def test_what_is_no_product_is_refused(shapes, dtype, said):
    with pytest.raises(ValueError, match=said):
        check_product(*(np.zeros(shape, dtype) for shape in shapes))


def test_gamma_grows_with_the_length():
    assert gamma(1, 2.0**-24) == pytest.approx(2.0**-24, rel=1e-6)
    assert gamma(2**23, 2.0**-24) == pytest.approx(1.0)
