"""What cannot be measured is refused before anything looks for a GPU."""

import pytest

from tilelab.cudacpp.kernel import Kernel
from tilelab.measure.compare import compare
from tilelab.measure.occupancy import occupancy

KERNEL = Kernel("__global__ void k(float* x) { x[0] = 1; }", "k")


def test_candidates_have_names():
    with pytest.raises(TypeError, match=r"candidates is \[Kernel\(.*give each a name"):
        compare([KERNEL], [(64, 64, 64)])


@pytest.mark.parametrize("shape", [64, (64, 64), (64, 64, 0), (64, 64, 64.0), (64, 64, -1), "abc"])
def test_a_shape_is_three_numbers(shape):
    with pytest.raises(ValueError, match="is no shape; give M, N and K"):
        compare({"mine": KERNEL}, [shape])


@pytest.mark.parametrize("given", ["k", None, 256])
def test_occupancy_is_a_kernels(given):
    with pytest.raises(TypeError, match="is no Kernel; give tilelab"):
        occupancy(given)
