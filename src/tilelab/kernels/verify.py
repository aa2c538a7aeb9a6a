"""Is this product right? A bound from error analysis, with what is not finite never passing.

A dot product of length K in float32, summed in any order, differs from the exact one by at most γ·Σ|a||b| with
γ = K·u / (1 − K·u) and u = 2⁻²⁴ (Higham, *Accuracy and Stability of Numerical Algorithms*, §3.1; one rounding less
where the multiply-add is fused).

That holds for any inputs, and is too wide where K is large: rounding every input to bfloat16 stays inside it at
K = 8192. Of inputs that are known to be random, :func:`allowance` asks for more.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison; true if the product is right.

    ``worst`` is the largest error as a share of what is allowed there; ``where`` is its index.
    """

    right: bool
    worst: float
    where: tuple[int, int]
    message: str

    def __bool__(self) -> bool:
        return self.right


#: How many standard deviations of rounding a product of random inputs may be off.
LENIENCE = 10.0
_TINY = 2.0**-126
#: Rows and columns of a large product that are compared element by element.
SAMPLED = 256


def gamma(length: int, roundoff: float) -> float:
    """Higham's γ: the relative error bound of a sum of ``length`` products."""
    return length * roundoff / (1 - length * roundoff)


def allowance(a: Any, b: Any, xp: Any, around_zero: bool = False) -> Any:
    """How far each element of a float32 product may be from the exact one, summed in any order.

    For any inputs that is γ·Σ|a||b|. Where inputs were drawn independently around 0, partial sums walk at random, and
    their roundings add up to about u·√K·‖a∘b‖₂ (the statistical side of Higham & Mary, *A New Approach to Probabilistic
    Rounding Error Analysis*, 2019): that ten times over, or the first where it is less, as it is for K up to a dozen.
    Inputs rounded to TF32 or bfloat16 are beyond it up to K = 50,000 and more, and so is a product that leaves out any
    step of K. Plain sums, backwards, in parts or by a tree stay well inside.

    Parameters
    ----------
    a, b
        M×K and K×N, float64, of whichever library.
    xp
        ``numpy``, ``cupy`` or ``torch``.
    around_zero
        Whether the inputs were drawn independently around 0.
    """
    K = a.shape[1]
    worst = gamma(K, UNIT_ROUNDOFF["float32"]) * (abs(a) @ abs(b))
    if not around_zero:
        return worst + _TINY
    return xp.minimum(worst, _usual(K) * xp.sqrt(a**2 @ b**2)) + _TINY


def _usual(K: int) -> float:
    """How far a sum of K random products may be off, as a share of the norm of the products."""
    return float(LENIENCE * UNIT_ROUNDOFF["float32"] * K**0.5)


def check_product(C: Any, A: Any, B: Any, around_zero: bool = False) -> Verdict:
    """Compare C with A·B computed in float64.

    Parameters
    ----------
    C
        M×N, float32, as a kernel left it.
    A, B
        M×K and K×N, the kernel's inputs; on the CPU. M, N and K are 1 at least, for of nothing anything is right.
    around_zero
        Whether the inputs were drawn independently around 0; more is asked for then (:func:`allowance`).

    Returns
    -------
    Verdict
        Right only if every element is finite and within its own bound. Where the exact result is infinite
        (an infinite input, or more than float32 holds) the element has to be that infinity; where it is NaN, nothing
        is right.

    Raises
    ------
    ValueError
        What is given is no matrix of real numbers, or A and B have no product.
    """
    import numpy as np

    for name, given in (("C", C), ("A", A), ("B", B)):
        array = np.asarray(given)
        if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "fiub":
            what = f"{array.dtype} of shape {array.shape}"
            raise ValueError(
                f"{name} is {what}; a product is checked on matrices of real numbers with at least one element"
            )
    if np.shape(A)[1] != np.shape(B)[0]:
        raise ValueError(f"A has shape {np.shape(A)} and B {np.shape(B)}: they have no product")
    a, b = np.asarray(A, np.float64), np.asarray(B, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = a @ b
        allowed = allowance(a, b, np, around_zero)
    return against(np.asarray(C), exact, allowed)


def against(C: "np.ndarray[Any, Any]", exact: "np.ndarray[Any, Any]", allowed: "np.ndarray[Any, Any]") -> Verdict:
    """Compare element by element with an allowance for each; what is not finite where it should be is wrong."""
    import numpy as np

    if C.shape != exact.shape:
        return Verdict(False, float("inf"), (0, 0), f"the result has shape {C.shape}, but {exact.shape} is right")
    # What no float32 can hold overflows to infinity, and is right so.
    exact = np.where(np.abs(exact) > np.finfo(np.float32).max, np.copysign(np.inf, exact), exact)
    with np.errstate(invalid="ignore", over="ignore"):
        share = np.abs(C.astype(np.float64) - exact) / allowed
        # Not "share > 1": a NaN compares false with everything.
        wrong = ~(share <= 1) & ~((exact == C) & ~np.isfinite(exact))
    count = int(wrong.sum())
    if not count:
        worst = int(np.nanargmax(share)) if np.isfinite(share).any() else 0
        at = divmod(worst, C.shape[1])
        return Verdict(
            True, float(share.flat[worst]), at, f"right: the largest error is {share.flat[worst]:.2f} of the bound"
        )
    row, column = divmod(int(np.argmax(wrong)), C.shape[1])
    got, due = C[row, column], exact[row, column]
    if np.isnan(due):
        text = f"C[{row},{column}] is {got:.7g}, and no number is right there: the inputs hold infinities or NaN"
    else:
        text = f"C[{row},{column}] is {got:.7g}, but {due:.7g} is right"
    if np.isfinite(got) and np.isfinite(due):
        text += f" to within {allowed[row, column]:.1g}"
    return Verdict(False, float("inf"), (row, column), f"{text}; {count} of {C.size} elements are wrong")


def fault_of_random_product(C: Any, A: Any, B: Any, random: Any, xp: Any) -> str:
    """Say what is wrong with a float32 product of inputs that were drawn independently around 0; empty if nothing.

    By :func:`allowance`, for matrices too large to be compared whole. Compared are every element of 256 rows and of 256
    columns drawn anew each time, and C·x for a vector x of random signs (Freivalds, 1977), where a row may be off by
    what its elements may be off together: 10·u·√K·√N times the typical ‖a∘b‖₂. What can hide: in at most a few rows and
    columns, an element that is off by less than √N times its own bound (at N = K = 8192 by less than half a per cent of
    a typical element).

    Parameters
    ----------
    C
        M×N, float32.
    A, B
        M×K and K×N, float32, as the kernel was given them.
    random
        A generator, ``xp.random.default_rng(seed)``.
    xp
        ``numpy``, or ``cupy`` for arrays on a GPU.
    """
    (M, K), N = A.shape, B.shape[1]
    x = xp.where(random.random(N) < 0.5, -1.0, 1.0).astype(xp.float64)
    squares = (A.astype(xp.float64) ** 2) @ (B.astype(xp.float64) ** 2).sum(1)
    off = abs(C.astype(xp.float64) @ x - A.astype(xp.float64) @ (B.astype(xp.float64) @ x))
    right = off <= _usual(K) * xp.sqrt(squares) + _TINY * N  # what is not a number is not right
    if not bool(right.all()):
        row = int(xp.argmin(right))
        finite = bool(xp.isfinite(C[row]).all())
        return f"row {row} of the result is {'wrong' if finite else 'not finite: elements were not written'}"
    rows, columns = (xp.argsort(random.random(side))[:SAMPLED] for side in (M, N))
    for at_rows, at_columns in ((rows, xp.arange(N)), (xp.arange(M), columns)):
        a, b = A[at_rows].astype(xp.float64), B[:, at_columns].astype(xp.float64)
        right = abs(C[at_rows][:, at_columns] - a @ b) <= allowance(a, b, xp, around_zero=True)
        if not bool(right.all()):
            i, j = divmod(int(xp.argmin(right)), right.shape[1])
            row, column = int(at_rows[i]), int(at_columns[j])
            got, due = float(C[row, column]), float(a[i] @ b[:, j])
            wrong = f"{int(right.size - right.sum())} of {right.size} elements looked at are wrong"
            return f"C[{row},{column}] is {got:.7g}, but {due:.7g} is right; {wrong}"
    return ""
