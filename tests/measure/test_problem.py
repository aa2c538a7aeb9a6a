"""What compare multiplies and how it checks products, with NumPy in CuPy's place: no GPU is needed for that."""

import numpy as np
import pytest

from tilelab.measure import gpu
from tilelab.measure.compare import Problem


@pytest.fixture
def problem(monkeypatch):
    monkeypatch.setattr(gpu, "require_gpu", lambda: np)
    return Problem((20, 30, 400), sets=2, seed=1)


def multiply(problem):
    for A, B, C in problem.sets:
        C[...] = A @ B


def test_every_element_is_drawn_and_redrawn(problem):
    before = [x.copy() for A, B, _ in problem.sets for x in (A, B)]
    assert all(np.unique(x).size > 0.99 * x.size and -1 <= x.min() < -0.9 and 0.9 < x.max() < 1 for x in before)
    problem.redraw()
    after = [x for A, B, _ in problem.sets for x in (A, B)]
    assert all((x != y).mean() > 0.99 for x, y in zip(before, after, strict=True))


def test_right_products_pass_and_others_do_not(problem):
    problem.poison()
    assert problem.wrong() == "row 0 of the result is not finite: elements were not written"
    multiply(problem)
    assert problem.wrong() == ""
    problem.sets[1][2][::2, 0] = 0
    assert "wrong" in problem.wrong()


@pytest.mark.parametrize("which", [0, 1])
def test_inputs_that_were_written_to_are_refused(problem, which):
    for one in problem.sets:
        one[which][:] = 0
    multiply(problem)
    assert problem.wrong() == f"the input {'AB'[which]} was written to"


@pytest.mark.parametrize(
    "drawn",
    [
        lambda draw, shape: np.full(shape, draw(), "f4"),
        lambda draw, shape: np.broadcast_to(draw(shape[1]), shape),
        lambda draw, shape: np.broadcast_to(draw(shape[0])[:, None], shape),
        lambda draw, shape: np.resize(draw(100), shape),
    ],
    ids=["one number", "one row", "one column", "a hundred numbers"],
)
def test_a_generator_that_repeats_itself_is_refused(problem, drawn):
    class Repeating:
        def __init__(self, true):
            self.true = true

        def random(self, shape, dtype):
            return drawn(self.true.random, shape).astype(dtype)

    problem._random = Repeating(problem._random)
    with pytest.raises(RuntimeError, match=r"the inputs drawn for \(20, 30, 400\) repeat a few numbers"):
        problem.redraw()


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 3, 1), (1, 1, 5000), (5000, 1, 2), (33, 129, 1)])
def test_small_and_narrow_inputs_are_drawn(monkeypatch, shape):
    monkeypatch.setattr(gpu, "require_gpu", lambda: np)
    for seed in range(10):
        problem = Problem(shape, sets=1, seed=seed)
        multiply(problem)
        assert problem.wrong() == ""
