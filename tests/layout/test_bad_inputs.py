"""Sixty wrong inputs: each gives one line that quotes what was given. Then random ones, for ten seconds."""

import inspect
import random

import layout_reference as ref
import pytest

import tilelab as tl
from tilelab import Layout, LayoutError, Swizzle

A, B = Layout((4, 6), (1, 4)), Layout((6, 2), (1, 7))
SWIZZLED = tl.composition(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))


def deep(levels, inside=1):
    for _ in range(levels):
        inside = (inside,)
    return inside


#: What is tried, and what the message must quote.
BAD = [
    # wrong types
    (lambda: Layout("(4,6)"), "(4,6)"),
    (lambda: Layout("(4,6):(1,4)"), "Layout.parse"),
    (lambda: Layout(4.0), "4.0"),
    (lambda: Layout((4, 6.5)), "6.5"),
    (lambda: Layout((4, 6), (1.0, 4)), "1.0"),
    (lambda: Layout(True), "True"),
    (lambda: Layout((4, False)), "False"),
    (lambda: Layout((4, 6), (True, 4)), "True"),
    (lambda: Layout(None), "None"),
    (lambda: Layout({4: 6}), "dict"),
    (lambda: Layout({4, 6}), "set"),
    (lambda: Layout(b"46"), "b'46'"),
    (lambda: Layout((4, None)), "None"),
    (lambda: Layout(A), "(4,6):(1,4)"),
    (lambda: Layout(1 + 2j), "(1+2j)"),
    (lambda: Layout((4, "6")), "'6'"),
    (lambda: Layout((4, object)), "object"),
    # extents and strides
    (lambda: Layout((-4, 6)), "-4"),
    (lambda: Layout((4, 0)), "extent 0"),
    (lambda: Layout((4, 6), (1,)), "(1,)"),
    (lambda: Layout((4, 6), 1), "stride 1"),
    (lambda: Layout((4, (2, 3)), (1, 4)), "(1,4)"),
    (lambda: Layout((4, 6), ((1, 2), 4)), "((1,2),4)"),
    (lambda: Layout(4, (1,)), "(1,)"),
    # huge and deep
    (lambda: Layout(2**64), "18446744073709551616"),
    (lambda: Layout(10**5000), "bits"),
    (lambda: Layout((2**40, 2**40)), "(1099511627776,1099511627776)"),
    (lambda: Layout(3, 2**62), "4611686018427387904"),
    (lambda: Layout(deep(200)), "nested deeper than 64"),
    (lambda: Layout(deep(200), deep(200)), "nested deeper than 64"),
    (lambda: Layout.parse("(" * 200 + "1" + ")" * 200), "nested at most 64"),
    (lambda: A(deep(200)), "nested deeper than 64"),
    # texts
    (lambda: Layout.parse(""), "''"),
    (lambda: Layout.parse("(4,6"), "'(4,6'"),
    (lambda: Layout.parse("(4,6)):(1,4)"), "'(4,6))'"),
    (lambda: Layout.parse("(4,,6):(1,4)"), "(4,,6)"),
    (lambda: Layout.parse("(4,6):(1,4):2"), "':'"),
    (lambda: Layout.parse("(4 6):(1,4)"), "(4 6)"),
    (lambda: Layout.parse("(4,6.5):(1,4)"), "6.5"),
    (lambda: Layout.parse("(a,b)"), "(a,b)"),
    (lambda: Layout.parse("(4,6):(1,_)"), "None"),
    (lambda: Layout.parse("９9９:1"), "９9９"),
    (lambda: Layout.parse("9" * 400), "9999"),
    (lambda: Layout.parse(46), "46"),
    # coordinates
    (lambda: A(1, 2, 3), "(1,2,3)"),
    (lambda: A((1, (2, 3))), "(2,3)"),
    (lambda: A(-1), "-1"),
    (lambda: A("1"), "'1'"),
    (lambda: A(1.5), "1.5"),
    (lambda: A(True, 2), "True"),
    (lambda: A(None, 1, 2), "(None,1,2)"),
    (lambda: tl.idx2crd(-3, (4, 6)), "-3"),
    (lambda: tl.idx2crd((1, 2, 3), (4, 6)), "(1,2,3)"),
    (lambda: A[2], "2"),
    (lambda: A["0"], "'0'"),
    (lambda: A.transpose(0, 0), "(0,0)"),
    # swapped arguments
    (lambda: tl.crd2idx(A, (1, 2)), "(4,6):(1,4)"),
    (lambda: tl.slice_and_offset(A, (1, None)), "(4,6):(1,4)"),
    (lambda: tl.make_tensor(A, [0] * 24), "(4,6):(1,4)"),
    (lambda: tl.upcast(2, A), "(4,6):(1,4)"),
    (lambda: tl.composition(4, A), "4"),
    # operations
    (lambda: tl.coalesce((4, 6)), "(4,6)"),
    (lambda: tl.coalesce(A, (1, 1, 1)), "(1,1,1)"),
    (lambda: tl.composition(A, "4:1"), "'4:1'"),
    (lambda: tl.composition(A, (2, 2, 2)), "(2,2,2)"),
    (lambda: tl.composition(B, Layout((3, 2), (2, 3))), "(2,1)"),
    (lambda: tl.complement(Layout((4, 4), (1, 2)), 24), "(4,4):(1,2)"),
    (lambda: tl.complement(A, 0), "extent 0"),
    (lambda: tl.complement(A, "24"), "'24'"),
    (lambda: tl.complement(SWIZZLED), "Sw<2,0,3>"),
    (lambda: tl.left_inverse(Layout((2, 2), (2, 3))), "(2,2):(2,3)"),
    (lambda: tl.logical_divide(A, (2, 2, 2)), "(2,2,2)"),
    (lambda: tl.logical_divide(A.T, 5), "5:1"),
    (lambda: tl.logical_divide(A, 0), "extent 0"),
    (lambda: tl.logical_divide(A, 2.0), "2.0"),
    (lambda: tl.logical_product(A, (2, 2, 2)), "(2,2,2)"),
    (lambda: tl.logical_product(Layout((4, 4), (1, 2)), 2), "(4,4):(1,2)"),
    (lambda: tl.tile_to_shape(Layout((8, 4)), (12, 8)), "(12,8)"),
    (lambda: tl.make_ordered_layout((2, 2), (0, 1, 2)), "(0,1,2)"),
    (lambda: tl.make_layout(), "()"),
    (lambda: tl.upcast(Layout((4, 5), (1, 3)), 2), "5:3"),
    (lambda: tl.downcast(Layout(4, 2), 2), "4:2"),
    (lambda: tl.recast(A, 16, 24), "24"),
    (lambda: Swizzle(3, 0, 2), "Sw<3,0,2>"),
    (lambda: Swizzle(-1, 0, 3), "-1"),
    (lambda: Swizzle(1, 0, 3.0), "3.0"),
    (lambda: tl.domain_distribute((15, 14), 0), "0"),
    (lambda: tl.make_tensor([0] * 23, A), "23"),
    (lambda: tl.make_tensor("abc", A), "'abc'"),
    (lambda: tl.local_partition(A, Layout((2, 2), (1, 2)), 4), "4"),
    (lambda: tl.local_tile(A, (2, 2), (0, 0), (1, 1, 1)), "(1,1,1)"),
    (lambda: tl.print_tensor(A), "(4,6):(1,4)"),
    (lambda: tl.E(-1), "-1"),
    (lambda: tl.linear_bases(Layout(6)), "6:1"),
]


def test_there_are_at_least_sixty():
    assert len(BAD) >= 60


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number):
    attempt, quoted = BAD[number]
    with pytest.raises(LayoutError) as caught:
        attempt()
    message = str(caught.value)
    assert quoted in message
    assert "\n" not in message
    assert len(message) < 700


def junk(rng, levels=4):
    """Something that may or may not be an integer tuple."""
    kind = rng.random()
    if kind < 0.35 and levels:
        items = [junk(rng, levels - 1) for _ in range(rng.randint(0, 4))]
        return items if rng.random() < 0.2 else tuple(items)
    if kind < 0.75:
        return rng.choice([1, 2, 3, 4, 6, 8, 1, 2, 0, -1, 2**31, 2**62, 2**63, 10**30])
    return rng.choice([None, True, 1.5, "4", b"4", {}, {4}, object(), float("nan"), deep(70), Layout(4), int, 1j])


def text(rng):
    if rng.random() < 0.5:
        return "".join(rng.choice("()[],:_-0123456789 \n\tNone.xé٤") for _ in range(rng.randint(0, 24)))
    letters = list(str(Layout((4, (2, 3)), (1, (4, 8)))))
    for _ in range(rng.randint(1, 3)):
        letters[rng.randrange(len(letters))] = rng.choice(["(", ")", ",", ":", "9" * 30, "", "_", "-", "None"])
    return "".join(letters)


@pytest.mark.slow
def test_junk_raises_nothing_but_layout_errors():
    """60,000 calls."""
    rng, made, refused = random.Random(11), 0, 0
    functions = [
        lambda: Layout.parse(text(rng)),
        lambda: Layout(junk(rng)),
        lambda: Layout(junk(rng), junk(rng)),
        lambda: A(junk(rng)),
        lambda: A(junk(rng), junk(rng)),
        lambda: tl.slice_and_offset(junk(rng), A),
        lambda: tl.make_layout(junk(rng), junk(rng)),
        lambda: tl.make_ordered_layout(junk(rng), junk(rng)),
        lambda: tl.make_identity_layout(junk(rng)),
        lambda: tl.composition(A, junk(rng)),
        lambda: tl.logical_divide(A, junk(rng)),
        lambda: tl.zipped_divide(A, junk(rng)),
        lambda: tl.logical_product(B, junk(rng)),
        lambda: tl.complement(B, junk(rng)),
        lambda: tl.tile_to_shape(A, junk(rng), junk(rng)),
        lambda: tl.coalesce(A, junk(rng)),
        lambda: tl.idx2crd(junk(rng), junk(rng)),
        lambda: tl.crd2idx(junk(rng), junk(rng)),
        lambda: Swizzle(junk(rng), junk(rng), junk(rng)),
        lambda: tl.make_tensor(junk(rng), junk(rng)),
        lambda: tl.local_tile(A, junk(rng), junk(rng)),
        lambda: tl.local_partition(A, Layout((2, 2)), junk(rng)),
        lambda: tl.upcast(A, junk(rng)),
        lambda: tl.ceil_div(junk(rng), junk(rng)),
    ]
    for _ in range(2_500):
        for function in functions:
            _, error = ref.attempt(function)
            made, refused = made + (error is None), refused + (error is not None)
            assert "\n" not in str(error)
    assert made > 10_000
    assert refused > 10_000


def takes(function, arguments):
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    return True


def test_every_function_answers_any_mixture_of_arguments_with_a_result_or_a_layout_error():
    """Layouts where tensors belong, swizzles where shapes do, huge layouts, None, floats: 8000 calls."""
    rng = random.Random(5)
    kinds = [
        [A, B, A.T, Layout(8), Layout(()), Layout((4, 3), (0, 1)), Layout((4, 3), (-1, 4)), Layout((2**40, 3))],
        [tl.make_identity_layout((4, 6)), Layout.parse("((2,2),3):((1,4),2)")],
        [SWIZZLED, Swizzle(1, 0, 2), tl.make_tensor(0, A), tl.make_tensor([0] * 24, A), tl.make_identity_tensor(4)],
        [1, 2, 4, 0, -1, 2**70, None, True, 1.5, "4", (2, 2), (2, None), (1, (2, 3)), (), [2, 2], (None, None), {}],
    ]
    names = [
        name for name in tl.layout.__all__ if callable(getattr(tl, name)) and not name.startswith(("print", "fit"))
    ]
    refused = 0
    for _ in range(8000):
        function = getattr(tl, rng.choice(names))
        arguments = [rng.choice(rng.choice(kinds)) for _ in range(rng.randint(1, 3))]
        if takes(function, arguments):
            _, error = ref.attempt(function, *arguments)
            refused += error is not None
            assert "\n" not in str(error)
    assert refused > 2000
