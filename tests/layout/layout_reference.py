"""Layouts worked out the slow, obvious way, and random layouts: what the algebra is held against.

Nothing here uses the package's own evaluation, so that a mistake there cannot hide one here.
"""

import random

from hypothesis import strategies as st

from tilelab import Layout, LayoutError


def attempt(function, *arguments):
    """The result and no error, or no result and the error."""
    try:
        return function(*arguments), None
    except LayoutError as error:
        return None, error


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple) else [value]


def natural(index, shape):
    """The coordinate of an index, each mode filled in turn; the last one takes what is left."""
    modes = leaves(shape)
    coordinate = []
    for extent in modes[:-1]:
        coordinate.append(index % extent)
        index //= extent
    return [*coordinate, index] if modes else []


def at(layout, index):
    return sum(c * d for c, d in zip(natural(index, layout.shape), leaves(layout.stride), strict=True))


def table(layout):
    return [at(layout, i) for i in range(size(layout.shape))]


def size(shape):
    result = 1
    for extent in leaves(shape):
        result *= extent
    return result


def coalesced(layout):
    """The flat modes with neighbours merged, by trying every merge until none is left.

    A last mode of extent 1 stays: indices past the end run along it.
    """
    modes = list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))
    modes = [mode for mode in modes[:-1] if mode[0] != 1] + modes[-1:]
    i = 0
    while i + 1 < len(modes):
        (s0, d0), (s1, d1) = modes[i : i + 2]
        if d1 == s0 * d0:
            modes[i : i + 2] = [(s0 * s1, d0)]
            i = 0
        else:
            i += 1
    return modes or [(1, 0)]


def leaf_rule(extents, n, m):
    """The reference rule for one mode ``n:m``: divide as far as it goes, stop early where the walk ends inside."""
    for extent in extents[:-1]:
        if n == 1 or m == 0 or (n - 1) * m < extent:
            return True
        if m % extent == 0:
            m //= extent
        elif extent % m == 0 and n % (extent // m) == 0:
            n, m = n // (extent // m), 1
        else:
            return False
    return True


def reference_accepts(a, b):
    """The reference rule: each mode by itself, and no carry between modes at any prefix of A."""
    extents = [s for s, _ in coalesced(a)]
    modes = list(zip(leaves(b.shape), leaves(b.stride), strict=True))
    if not all(leaf_rule(extents, n, m) for n, m in modes):
        return False
    prefix = 1
    for extent in extents[:-1]:
        prefix *= extent
        if sum(max(i * m % prefix for i in range(n)) for n, m in modes) >= prefix:
            return False
    return True


def random_layout(rng, *, modes=3, extents=(1, 2, 3, 4, 5, 6, 8), most=10, nested=True):
    """A layout with strides that often, but not always, belong together."""
    count = rng.randint(1, modes)
    shape = [rng.choice(extents) for _ in range(count)]
    running, stride = 1, []
    for extent in shape:
        stride.append(rng.choice([running, running, running, rng.randint(0, most), 0]))
        running *= extent
    order = rng.sample(range(count), count)
    if rng.random() < 0.3:
        stride = [stride[i] for i in order]
    shape, stride = tuple(shape), tuple(stride)
    if count == 1 and rng.random() < 0.5:
        return Layout(shape[0], stride[0])
    if nested and count > 1 and rng.random() < 0.4:
        cut = rng.randint(1, count)
        shape, stride = (shape[:cut], *shape[cut:]), (stride[:cut], *stride[cut:])
    return Layout(shape, stride)


def random_pairs(count, seed):
    """Pairs to compose: hostile ones, ones with strides made of A's extents, and ones that B keeps inside A."""
    rng = random.Random(seed)
    for _ in range(count):
        a = random_layout(rng)
        kind = rng.random()
        if kind < 0.4:
            yield a, random_layout(rng)
            continue
        prefixes = [1]
        for extent in leaves(a.shape):
            prefixes.append(prefixes[-1] * extent)
        shape = tuple(rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(1, 3)))
        stride = tuple(rng.choice(prefixes) * rng.choice((1, 1, 1, 2, 3)) for _ in shape)
        if kind < 0.7:
            yield a, Layout(shape, stride)
        else:
            n, m = rng.randint(1, 12), rng.randint(0, 12)
            yield a, Layout(n, m)


extents = st.sampled_from([1, 1, 2, 2, 3, 4, 5, 6, 8])


@st.composite
def shapes(draw, most=256, deep=2):
    """Nested shapes of limited size."""
    shape = draw(st.recursive(extents, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=5))
    while size(shape) > most:
        shape = shape[0] if isinstance(shape, tuple) else most
    return shape


@st.composite
def layouts(draw, most=256, strides=None):
    """Layouts of any kind: nested, overlapping, with strides 0 and holes."""
    shape = draw(shapes(most))
    steps = st.integers(0, 40) if strides is None else strides

    def fill(mode):
        return tuple([fill(m) for m in mode]) if isinstance(mode, tuple) else draw(steps)

    return Layout(shape, fill(shape))


@st.composite
def ordered_layouts(draw, most=256, rank=None, gaps=(1, 1, 1, 2, 3)):
    """Layouts whose offsets differ: modes one after the other in memory in any order, with holes."""
    shape = draw(shapes(most) if rank is None else st.tuples(*[extents] * rank))
    flat = leaves(shape)
    order = draw(st.permutations(range(len(flat))))
    strides, running = [0] * len(flat), 1
    for place in order:
        running *= draw(st.sampled_from(gaps))
        strides[place] = running
        running *= flat[place]
    steps = iter(strides)

    def fill(mode):
        return tuple([fill(m) for m in mode]) if isinstance(mode, tuple) else next(steps)

    return Layout(shape, fill(shape))
