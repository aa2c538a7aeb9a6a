"""What each operation promises, on random layouts: nested, no powers of two, strides 0, modes of extent 1."""

import itertools
from math import lcm

import layout_reference as ref
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilelab as tl
from tilelab import Layout, LayoutError, Swizzle

any_layout, distinct = ref.layouts(), ref.ordered_layouts()
small = ref.layouts(most=24)


def offsets(layout):
    return [layout(i) for i in range(layout.size)]


@given(ref.layouts(strides=st.integers(-40, 40)))
def test_evaluation_agrees_with_enumeration_in_all_three_kinds_of_coordinate(layout):
    truth = ref.table(layout)
    assert offsets(layout) == truth
    assert [layout(c) for c in layout.coordinates()] == truth
    assert list(tl.offset_table(layout)) == tl.offset_table(layout, numpy=False) == truth
    assert layout.cosize == 1 + sum(
        (s - 1) * abs(d) for s, d in zip(ref.leaves(layout.shape), ref.leaves(layout.stride), strict=True)
    )
    assert Layout.parse(str(layout)) == layout


@given(ref.layouts(strides=st.integers(-40, 40)))
def test_coalesce_keeps_the_function_and_leaves_nothing_to_merge(layout):
    flat = tl.coalesce(layout)
    assert ref.table(flat) == ref.table(layout)
    modes = list(zip(*flat.flat(), strict=True))
    assert flat.depth <= 1
    assert all(d1 != s0 * d0 for (s0, d0), (_, d1) in itertools.pairwise(modes))
    assert 1 not in flat.flat()[0] or flat == Layout(1, 0)
    by_mode = tl.coalesce(layout, (1,) * layout.rank) if layout.depth else layout
    assert ref.table(by_mode) == ref.table(layout)
    assert tl.product_each(by_mode.shape) == tl.product_each(layout.shape)


@given(any_layout)
def test_filter_flatten_sort_and_group_keep_the_offsets(layout):
    assert set(ref.table(tl.filter(layout))) == set(ref.table(layout))
    assert 0 not in list(tl.filter(layout).flat()[1]) or tl.filter(layout) == Layout(1, 0)
    assert ref.table(tl.flatten(layout)) == ref.table(layout)
    assert sorted(ref.table(tl.sort(layout))) == sorted(ref.table(layout))
    if layout.depth:
        grouped = tl.group(layout, 0, layout.rank)
        assert ref.table(grouped) == ref.table(layout)
        assert grouped.rank == 1


@given(any_layout, small)
def test_composition_is_composition(a, b):
    truth = [ref.at(a, i) for i in ref.table(b)]
    try:
        result = tl.composition(a, b)
    except LayoutError:
        assert not ref.reference_accepts(a, b)
        return
    assert ref.table(result) == truth
    assert tl.compatible(b.shape, result.shape)


@given(any_layout, st.lists(st.one_of(st.none(), st.integers(1, 6)), min_size=1, max_size=3))
def test_composition_by_modes(a, tiler):
    assume(a.depth and len(tiler) <= a.rank)
    try:
        result = tl.composition(a, tuple(tiler))
    except LayoutError:
        return
    for mode, part, tile in zip(a, result, tiler, strict=False):
        assert ref.table(part) == [ref.at(mode, i) for i in range(tile or mode.size)]
    assert result.rank == len(tiler)


@given(ref.layouts(most=32), ref.layouts(most=16), ref.layouts(most=8))
def test_composition_is_associative_where_it_is_defined(a, b, c):
    try:
        left, right = tl.composition(tl.composition(a, b), c), tl.composition(a, tl.composition(b, c))
    except LayoutError:
        return
    assume(max(ref.table(c)) < b.size)  # past its end a cut B runs on in its own last mode
    assert ref.table(left) == ref.table(right)


@given(distinct, st.integers(1, 600))
def test_complement_is_disjoint_ordered_and_fills(layout, cotarget):
    rest = tl.complement(layout, cotarget)
    sums = {x + y for x in set(ref.table(layout)) for y in ref.table(rest)}
    assert len(sums) == len(set(ref.table(layout))) * rest.size
    ordered = ref.table(rest)
    assert ordered == sorted(set(ordered))
    assert layout.cosize + rest.cosize - 1 >= min(cotarget, layout.cosize)
    gaps = sorted((d, s) for s, d in zip(*layout.flat(), strict=True) if s > 1 and d)
    if all(d1 % (s0 * d0) == 0 for (d0, s0), (d1, _) in itertools.pairwise(gaps)):
        assert set(range(min(cotarget, layout.cosize))) <= sums


@given(any_layout, st.integers(1, 100))
def test_complement_of_repeated_offsets_is_refused(layout, cotarget):
    kept = tl.filter(layout)
    if len(set(ref.table(kept))) < kept.size:
        with pytest.raises(LayoutError, match="one after the other"):
            tl.complement(layout, cotarget)


@given(any_layout)
def test_right_inverse(layout):
    inverse = tl.right_inverse(layout)
    assert [ref.at(layout, i) for i in ref.table(inverse)] == list(range(inverse.size))


@given(distinct)
def test_right_inverse_is_the_largest(layout):
    inverse, found = tl.right_inverse(layout), set(ref.table(layout))
    reached = next(i for i in range(layout.cosize + 1) if i not in found)
    # No layout reaches beyond the first offset that is missing; here the modes give all of it but ragged ends.
    assert inverse.size <= reached
    if layout.cosize == layout.size:
        assert inverse.size == layout.size


@given(distinct)
def test_left_inverse(layout):
    inverse, error = ref.attempt(tl.left_inverse, layout)
    if error:
        assert "does not divide" in str(error)
        return
    assert [ref.at(inverse, offset) for offset in ref.table(layout)] == list(range(layout.size))


@given(any_layout)
def test_left_inverse_with_strides_0(layout):
    try:
        inverse = tl.left_inverse(layout)
    except LayoutError:
        return
    assert [ref.at(layout, ref.at(inverse, offset)) for offset in ref.table(layout)] == ref.table(layout)


@given(any_layout)
def test_nullspace(layout):
    null = tl.nullspace(layout)
    assert {ref.at(layout, i) for i in ref.table(null)} == {0}
    zeros = [s for s, d in zip(*layout.flat(), strict=True) if d == 0]
    assert null.size == tl.product(tuple(zeros))


@given(any_layout, any_layout)
def test_max_common_layout(a, b):
    common = tl.max_common_layout(a, b)
    assert [a(i) for i in ref.table(common)] == [b(i) for i in ref.table(common)] == list(range(common.size))
    assert tl.max_common_vector(a, b) == common.size


@given(distinct)
def test_max_common_with_itself_is_the_right_inverse(layout):
    assert tl.max_common_layout(layout, layout) == tl.right_inverse(layout)


@given(any_layout, small)
def test_logical_divide_reads_tile_by_tile(layout, tile):
    try:
        result = tl.logical_divide(layout, tile)
    except LayoutError:
        return
    index = tl.make_layout(tile, tl.complement(tile, layout.size))
    indices = ref.table(index)
    assert ref.table(result) == [ref.at(layout, i) for i in indices]
    inside = [i for i in indices if i < layout.size]
    assert result.extra == len(indices) - len(inside)
    assert result.covers == (set(inside) == set(range(layout.size)))
    for form in (tl.zipped_divide, tl.tiled_divide, tl.flat_divide):
        other = form(layout, tile)
        assert ref.table(other) == ref.table(result)
        assert (other.covers, other.extra) == (result.covers, result.extra)


@given(any_layout, st.lists(st.one_of(st.none(), st.integers(1, 5)), min_size=1, max_size=3))
def test_division_by_modes_covers_and_counts_what_is_extra(layout, tiler):
    assume(layout.depth and len(tiler) <= layout.rank)
    try:
        result = tl.logical_divide(layout, tuple(tiler))
    except LayoutError:
        return
    sizes = tl.product_each(layout.shape)
    rounded = [-(-s // (t or 1)) * (t or 1) for s, t in zip(sizes, tiler, strict=False)] + list(sizes[len(tiler) :])
    assert result.covers
    assert result.extra == tl.product(tuple(rounded)) - layout.size
    zipped = tl.zipped_divide(layout, tuple(tiler))
    assert zipped.rank == 2
    assert sorted(ref.table(zipped)) == sorted(ref.table(result))
    flat = tl.flat_divide(layout, tuple(tiler))
    assert flat.rank == len(tiler) + layout.rank
    assert ref.table(flat) == ref.table(zipped)
    assert ref.table(tl.tiled_divide(layout, tuple(tiler))) == ref.table(zipped)


@given(ref.ordered_layouts(most=32), ref.layouts(most=12, strides=st.integers(0, 8)))
def test_logical_product_repeats_the_block_without_overlap(block, tiler):
    try:
        result = tl.logical_product(block, tiler)
    except LayoutError:
        return
    assert result[0] == block
    starts = ref.table(result[1])
    assert ref.table(result) == [start + x for start in starts for x in ref.table(block)]
    # Copies land where the tiler says, in its order, and different copies do not overlap.
    kinds = dict(zip(ref.table(tiler), starts, strict=True))
    assert [kinds[place] for place in ref.table(tiler)] == starts
    assert sorted(kinds, key=kinds.get) == sorted(kinds)
    block_offsets = set(ref.table(block))
    assert len({start + x for start in kinds.values() for x in block_offsets}) == len(kinds) * len(block_offsets)
    for form in (tl.zipped_product, tl.tiled_product, tl.flat_product):
        assert ref.table(form(block, tiler)) == ref.table(result)


@given(ref.ordered_layouts(rank=2), ref.ordered_layouts(rank=2))
def test_blocked_and_raked_products_are_the_same_elements_in_two_orders(block, tiler):
    try:
        product = tl.logical_product(block, tiler)
    except LayoutError:
        return
    blocked, raked = tl.blocked_product(block, tiler), tl.raked_product(block, tiler)
    assert sorted(ref.table(blocked)) == sorted(ref.table(raked)) == sorted(ref.table(product))
    for i in range(block.rank):
        assert blocked[i] == tl.make_layout(product[0][i], product[1][i])
        assert raked[i] == tl.make_layout(product[1][i], product[0][i])


@given(
    ref.ordered_layouts(rank=2, gaps=[1]),
    st.lists(st.integers(1, 3), min_size=3, max_size=3),
    st.permutations(range(3)),
)
def test_tile_to_shape(block, times, order):
    sizes = [*tl.product_each(block.shape), 1]
    shape = tuple(s * t for s, t in zip(sizes, times, strict=True))
    result = tl.tile_to_shape(block, shape, tuple(order))
    assert tl.product_each(result.shape) == shape
    assert len(set(ref.table(result))) == len(set(ref.table(block))) * tl.product(tuple(times))


@given(ref.shapes(most=200), st.randoms())
def test_ordered_layouts_have_no_holes_and_keep_the_order(shape, rng):
    keys = [rng.randint(0, 3) for _ in ref.leaves(shape)]
    order = tl.unflatten(keys, shape) if isinstance(shape, tuple) else keys[0]
    layout = tl.make_ordered_layout(shape, order)
    assert sorted(ref.table(layout)) == list(range(layout.size))
    steps = sorted((k, i, d) for i, (k, s, d) in enumerate(zip(keys, *layout.flat(), strict=True)) if s > 1)
    assert [d for *_, d in steps] == sorted(d for *_, d in steps)


@given(any_layout)
def test_layouts_like_another(layout):
    like, fragment = tl.make_layout_like(layout), tl.make_fragment_like(layout)
    assert like.shape == fragment.shape == layout.shape
    kept = tl.filter(like)
    assert sorted(ref.table(kept)) == list(range(kept.size))
    pairs = [(d, e) for s, d, e in zip(*layout.flat(), like.flat()[1], strict=True) if s > 1 and d]
    assert [e for _, e in sorted(pairs, key=lambda pair: pair[0])] == sorted(e for _, e in pairs)
    assert all((e == 0) == (d == 0) for s, d, e in zip(*layout.flat(), like.flat()[1], strict=True) if s > 1)


@given(any_layout, st.sampled_from([1, 2, 3, 4, 6, 8]))
def test_upcast_finds_the_vector_of_every_element(layout, n):
    try:
        result = tl.upcast(layout, n)
    except LayoutError:
        assert n > 1
        return
    assert {x // n for x in ref.table(layout)} == set(ref.table(result))


@given(any_layout, st.sampled_from([1, 2, 3, 4]))
def test_downcast_finds_the_parts_of_every_element(layout, n):
    try:
        result = tl.downcast(layout, n)
    except LayoutError:
        assert n > 1
        return
    assert set(ref.table(result)) == {x * n + part for x in ref.table(layout) for part in range(n)}
    assert tl.upcast(result, n).size == layout.size


@given(distinct)
def test_max_alignment_is_the_largest_upcast(layout):
    layout = tl.coalesce(layout)
    n = tl.max_alignment(layout)
    assert tl.upcast(layout, n).size * n == layout.size or n == 1
    for more in range(n + 1, layout.size + 1):
        try:
            wider = tl.upcast(layout, more)
        except LayoutError:
            continue
        assert wider.size * more != layout.size


swizzles = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4)).filter(lambda t: abs(t[2]) >= t[0])


@given(swizzles, ref.layouts(most=128), st.integers(0, 20))
def test_swizzled_layouts(parts, layout, offset):
    swizzle = Swizzle(*parts)
    assert all(swizzle(swizzle(x)) == x for x in range(300))
    assert sorted(swizzle(x) for x in range(1 << swizzle.top)) == list(range(1 << swizzle.top))
    swizzled = tl.ComposedLayout(swizzle, offset, layout)
    truth = [swizzle(offset + x) for x in ref.table(layout)]
    assert offsets(swizzled) == list(tl.offset_table(swizzled)) == tl.offset_table(swizzled, numpy=False) == truth
    assert swizzled.cosize == max(truth) + 1
    assert offsets(tl.coalesce(swizzled)) == truth


@given(st.integers(0, 2000), ref.shapes())
def test_index_and_coordinate(index, shape):
    coordinate = tl.idx2crd(index, shape)
    assert tl.crd2idx(coordinate, shape) == index
    assert tl.crd2crd(coordinate, shape, size_of := ref.size(shape)) == index
    assert size_of == tl.size(shape)


@given(ref.shapes(), ref.shapes())
def test_rounding_and_dividing_tuples(a, b):
    assert tl.ceil_div(ref.size(a), ref.size(b)) == -(-ref.size(a) // ref.size(b))
    assert tl.ceil_div(a, 1) == a
    assert tl.size(tl.ceil_div(a, ref.size(a))) == 1
    assert tl.round_up(a, a) == a
    assert tl.compatible(ref.size(a), a)
    assert tl.weakly_congruent(0, a)
    assert lcm(*ref.leaves(a)) <= tl.product(a)


@given(ref.layouts(most=64))
def test_slices_are_the_elements_they_say(layout):
    assume(layout.depth)
    for i in range(tl.product_each(layout.shape)[0]):
        rest, offset = tl.slice_and_offset((i,) + (None,) * (layout.rank - 1), layout)
        truth = ref.table(layout)[i :: tl.product_each(layout.shape)[0]]
        assert [offset + x for x in ref.table(rest)] == truth


@given(ref.layouts(most=64))
def test_identity_layouts_give_the_coordinate(layout):
    identity = tl.make_identity_layout(layout.shape)
    assert [identity(c) for c in layout.coordinates()] == list(layout.coordinates())


@given(ref.layouts(most=24))
def test_fitting_finds_every_layout(layout):
    truth = dict(zip(layout.coordinates(), ref.table(layout), strict=True))
    assert ref.table(tl.fit_layout(layout.shape, truth.__getitem__)) == ref.table(layout)


@given(ref.ordered_layouts(most=16), ref.ordered_layouts(most=8))
def test_thread_value_layouts_place_each_value_of_each_thread_once(threads, values):
    threads, values = tl.make_layout_like(threads), tl.make_layout_like(values)
    try:
        tile, tv = tl.make_layout_tv(threads, values)
    except LayoutError:
        return
    assert tl.size(tile) == threads.size * values.size
    assert sorted(ref.table(tv)) == list(range(tl.size(tile)))
    raked = tl.raked_product(threads, values)
    assert all(raked(tv(t, v)) == t + v * threads.size for t in range(threads.size) for v in range(values.size))
