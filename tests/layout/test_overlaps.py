"""What a fresh pair of eyes found: copies that overlapped, numbers that do not exist, input that was not refused."""

import random

import pytest

import tilelab as tl
from tilelab import Layout, LayoutError

PRODUCTS = [tl.logical_product, tl.zipped_product, tl.tiled_product, tl.flat_product, tl.blocked_product]


def offsets(layout):
    return [layout(i) for i in range(layout.size)]


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    ("block", "tiler"),
    [("(2,2):(2,6)", "3:1"), ("(2,2):(6,2)", "2:2"), ("(4,2):(24,7)", "8:1"), ("(2,3):(3,8)", "(2,2):(1,2)")],
)
def test_copies_of_a_block_with_holes_do_not_overlap(product, block, tiler):
    try:
        result = product(Layout.parse(block), Layout.parse(tiler))
    except LayoutError:
        return
    assert len(set(offsets(result))) == result.size


@pytest.mark.parametrize(("block", "shape"), [("(2,2):(2,6)", (2, 6)), ("(2,3):(3,8)", (4, 6))])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_block_repeated_to_a_shape_does_not_overlap(block, shape, order):
    try:
        result = tl.tile_to_shape(Layout.parse(block), shape, order)
    except LayoutError:
        return
    assert len(set(offsets(result))) == result.size


def test_copies_of_random_blocks_do_not_overlap():
    rng, kept = random.Random(7), 0
    for _ in range(6000):
        block = Layout((rng.randint(1, 4), rng.randint(1, 4)), (rng.randint(1, 24), rng.randint(1, 24)))
        tiler = Layout((rng.randint(1, 4), rng.randint(1, 3)), (rng.randint(1, 6), rng.randint(1, 6)))
        if len(set(offsets(block))) < block.size or len(set(offsets(tiler))) < tiler.size:
            continue
        try:
            result = tl.logical_product(block, tiler)
        except LayoutError:
            continue
        kept += 1
        assert len(set(offsets(result))) == result.size, (block, tiler, result)
    assert kept > 500


@pytest.mark.parametrize(
    "call",
    [
        lambda: tl.make_layout_tv(Layout(4, 2), Layout(2, 1)),
        lambda: tl.downcast(Layout(2, -1), 3),
        lambda: tl.round_up(7, 0),
        lambda: tl.round_up(7, -3),
        lambda: tl.Swizzle(2, 0, 3)(2.5),
        lambda: tl.Swizzle(2, 0, 3)("a"),
        lambda: tl.Swizzle(2, 0, 3)(True),
        lambda: tl.Swizzle(2, 0, 3)((1, 2)),
        lambda: tl.coordinates("ab"),
        lambda: tl.coordinates(0),
        lambda: tl.coordinates(True),
        lambda: tl.coordinates(10**400),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(call):
    with pytest.raises(LayoutError) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_numpy_integer_is_swizzled_to_an_integer():
    np = pytest.importorskip("numpy")
    swizzled = tl.Swizzle(2, 0, 3)(np.uint8(200))
    assert type(swizzled) is int
    assert swizzled == tl.Swizzle(2, 0, 3)(200)


@pytest.mark.parametrize("operation", [tl.composition, tl.logical_divide, tl.logical_product])
def test_a_tiler_nested_too_deep_is_refused(operation):
    tiler = 4
    for _ in range(200):
        tiler = (tiler,)
    with pytest.raises(LayoutError):
        operation(Layout((4, 6)), tiler)
