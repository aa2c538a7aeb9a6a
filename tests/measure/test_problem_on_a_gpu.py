"""What compare multiplies and how it checks products, by CuPy itself."""

import pytest

from tilelab.cudacpp.device import gpu_missing
from tilelab.kernels.ladder import LADDER
from tilelab.measure.compare import Problem, compare, library_products
from tilelab.measure.rounds import Rule

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu_missing() is not None, reason=str(gpu_missing())),
]
SHAPES = [(1, 1, 1), (35, 33, 17), (129, 132, 1000), (300, 520, 4096), (1024, 1024, 1024)]


def test_every_element_is_drawn_and_redrawn():
    import cupy

    problem = Problem((300, 500, 400), sets=2, seed=1)
    before = [x.get().ravel() for A, B, _ in problem.sets for x in (A, B)]
    problem.redraw()
    after = [x.get().ravel() for A, B, _ in problem.sets for x in (A, B)]
    for old, new in zip(before, after, strict=True):
        assert len(set(old)) > 0.9 * old.size
        assert -1 <= old.min() < -0.99 < 0.99 < old.max() < 1
        assert abs(old.mean()) < 0.01
        assert (old != new).mean() > 0.99
    assert len({cupy.asarray(x).data.ptr for A, B, _ in problem.sets for x in (A, B)}) == 4


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_the_library_and_every_rung_pass_and_less_does_not(shape):
    problem = Problem(shape, sets=2, seed=3)
    for name, multiply in (library_products() | {one.name: one for one in LADDER}).items():
        problem.redraw()
        problem.poison()
        assert problem.wrong() == "row 0 of the result is not finite: elements were not written"
        for A, B, C in problem.sets:
            multiply(A, B, C, *shape)
        assert problem.wrong() == "", name
    C = problem.sets[1][2]
    C[-1, -1] += 1e-2
    assert "wrong" in problem.wrong()
    C[-1, -1] -= 1e-2
    problem.sets[0][0][0, 0] += 1
    assert problem.wrong() == "the input A was written to"


def test_tf32_is_refused():
    import torch

    problem = Problem((256, 384, 2048), sets=1, seed=5)
    A, B, C = (torch.as_tensor(x, device="cuda") for x in problem.sets[0])
    torch.mm(A, B, out=C)
    torch.cuda.synchronize()
    assert problem.wrong() == ""
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        torch.mm(A, B, out=C)
        torch.cuda.synchronize()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert "wrong" in problem.wrong()


def test_compare_checks_what_it_times():
    honest = LADDER[3]

    def nothing(A, B, C, M, N, K):
        pass

    rows = compare({"honest": honest, "nothing": nothing}, [(256, 256, 256)], rule=Rule(least=2, most=2)).rows
    troubles = {row.name: row.trouble for row in rows}
    assert "not finite" in troubles["nothing"]
    assert "row" not in troubles["honest"]
    assert "C[" not in troubles["honest"]
