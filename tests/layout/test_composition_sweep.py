"""A seeded sweep over random pairs: no composition is wrong, and none that the reference rule accepts is refused."""

from collections import Counter

import layout_reference as ref
import pytest

from tilelab import Layout, LayoutError, composition, fit_layout


def judge(a, b):
    """Compose, compare with enumeration, and say what happened."""
    truth = [ref.at(a, i) for i in ref.table(b)]
    result, error = ref.attempt(composition, a, b)
    if error:
        assert not ref.reference_accepts(a, b), f"{a} o {b} was refused: {error}"
        details = error.details
        coordinates = list(b.coordinates())
        assert details["right"] != details["candidate"]
        place = coordinates.index(details["coordinate"])
        assert truth[place] == details["right"]
        other = fit_layout(b.shape, lambda c: truth[coordinates.index(c)])
        if other is None:
            assert "no layout of shape" in str(error)
            return "refused, no layout exists"
        assert ref.table(other) == truth
        assert f"a layout exists for these {len(truth)} points, {other}" in str(error)
        return "refused, though a layout exists"
    assert ref.table(result) == truth, f"{a} o {b} = {result} is wrong"
    assert ref.size(result.shape) == ref.size(b.shape)
    return "accepted" if ref.reference_accepts(a, b) else "accepted beyond the reference rule"


@pytest.mark.timeout(1800)
def test_sweep(request):
    count = request.config.getoption("--sweep")
    seen = Counter(judge(a, b) for a, b in ref.random_pairs(count, seed=20_260_301))
    assert sum(seen.values()) == count
    # The sample must test all four answers, or it proves little.
    assert min(seen[key] / count for key in seen) > 0.001
    assert len(seen) == 4


def test_the_first_bad_coordinate_is_the_first():
    refused = 0
    for a, b in ref.random_pairs(1500, seed=7):
        _, error = ref.attempt(composition, a, b)
        if error:
            refused += 1
            at = error.details["coordinate"]
            before = list(b.coordinates())[: list(b.coordinates()).index(at)]
            text = str(error)
            candidate = Layout.parse(text.partition("the candidate ")[2].partition(" gives")[0])
            flat = ref.table(candidate)
            assert all(flat[i] == a(b(c)) for i, c in enumerate(before)), text
            assert flat[len(before)] == error.details["candidate"]
    assert refused > 200


def test_huge_modes_are_refused_without_walking_to_the_place():
    a, b = Layout((2**40 - 1, 5), (1, 2**50)), Layout((2**39, 4), (1, 2**38))
    with pytest.raises(LayoutError) as caught:
        composition(a, b)
    coordinate = caught.value.details["coordinate"]
    assert a(b(coordinate)) == caught.value.details["right"] != caught.value.details["candidate"]
