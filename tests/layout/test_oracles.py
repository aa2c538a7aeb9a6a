"""Against CuTe C++, pycute and tensor-layouts: their recorded answers always, themselves with ``make test-oracle``."""

import json
from collections import Counter

import layout_reference as ref
import oracles
import pytest
import test_cases

from tilelab import Layout, LayoutError

CASES = {case["id"]: case for case in oracles.CASES}
RECORDED = json.loads((oracles.DATA / "oracles.json").read_text())["answers"]
CUTE = RECORDED["CuTe C++"]
#: Where we answer and CuTe C++ does not.
ONLY_OURS = {
    "comp-size1-b2": "a mode of extent 1 composes with anything",
    "div-739b": "None inside the tiler of zipped_divide",
    "div-739c": "None inside the tiler of zipped_divide",
    "lp-stride0thr": "threads that share a coordinate; CuTe divides by their stride 0",
}
#: Where both answer and not the same.
DIFFERENT = {
    "comp-3177": "CuTe is wrong",
    "comp-2955": "CuTe is wrong",
    "comp-overlap-b": "CuTe is wrong",
    "comp-carry2": "CuTe is wrong",
    "comp-cppwrong1": "CuTe is wrong",
    "cosize-swizzled": "CuTe leaves the swizzle out",
    "comp-size1-b": "the stride of a mode of extent 1 is arbitrary",
    "linv-all0": "any layout is the inverse of one that gives 0 only",
    "comp-neg": "CuTe evaluates A below its first element",
    "linv-noninj": "CuTe inverts a layout whose offsets repeat",
    "div-coalesced-bound": "CuTe pads the first mode; we ask for a division by modes",
}


def ours(case):
    answer, error = ref.attempt(test_cases.outcome, case)
    return "refused" if error else answer.replace(",)", ")")


def answered(text):
    return text != "does not compile" and not text.startswith("dies")


@pytest.mark.parametrize("name", sorted(CUTE))
def test_agreement_with_cute(name):
    mine, theirs = ours(CASES[name]), CUTE[name]
    if not answered(theirs):
        assert mine == "refused" or name in ONLY_OURS
    elif mine != theirs:
        assert name in DIFFERENT, f"{mine} but CuTe says {theirs}"


def test_no_difference_is_listed_that_is_none():
    different = {name for name, text in CUTE.items() if answered(text) and ours(CASES[name]) != text}
    assert different == set(DIFFERENT)
    assert {name for name in CUTE if not answered(CUTE[name]) and ours(CASES[name]) != "refused"} == set(ONLY_OURS)


@pytest.mark.parametrize("name", [name for name, why in DIFFERENT.items() if why == "CuTe is wrong"])
def test_where_cute_is_wrong_enumeration_proves_it(name):
    a, b = (Layout.parse(CASES[name]["inputs"][key]) for key in "ab")
    truth = [ref.at(a, i) for i in ref.table(b)]
    assert ref.table(Layout.parse(CUTE[name])) != truth
    with pytest.raises(LayoutError):
        test_cases.outcome(CASES[name])


@pytest.mark.parametrize("library", ["pycute", "tensor-layouts"])
def test_the_python_libraries_differ_only_where_an_enumeration_or_cute_decides_for_us(library):
    for name, theirs in RECORDED[library].items():
        case, mine = CASES[name], ours(CASES[name])
        if mine == theirs or mine == "refused" or theirs.endswith("Error"):
            continue
        agree = CUTE.get(name) == mine or "policy" in case["expected"]
        same_function = "layout" in case["expected"] and ref.table(Layout.parse(theirs)) == ref.table(
            Layout.parse(mine)
        )
        assert agree or same_function or name in DIFFERENT, f"{name}: {mine}, {library} says {theirs}"


def test_agreement_with_cute_on_random_cases():
    """Where both answer they give the same offsets, but where an enumeration proves CuTe wrong."""
    seen = Counter()
    for case in json.loads((oracles.DATA / "oracles.json").read_text())["random"]:
        mine, theirs = ours(case), case["cute"]
        if not answered(theirs) or mine == "refused":
            both = not answered(theirs) and mine == "refused"
            seen["both refuse" if both else "only CuTe refuses" if mine != "refused" else "only we refuse"] += 1
            # What CuTe rounds or pads in silence, we refuse.
            padded = case["op"] in ("upcast", "logical_divide", "logical_product", "blocked_product", "raked_product")
            assert both or mine != "refused" or padded or cute_is_wrong(case), case
        elif mine == theirs:
            seen["same"] += 1
        else:
            seen["same offsets"] += 1
            assert ref.table(Layout.parse(mine)) == ref.table(Layout.parse(theirs)), case
    assert seen["same"] >= 100


def cute_is_wrong(case):
    a, b = (Layout.parse(case["inputs"][key]) for key in "ab")
    return ref.table(Layout.parse(case["cute"])) != [ref.at(a, i) for i in ref.table(b)]


@pytest.mark.oracle
@pytest.mark.timeout(1800)
def test_cute_still_says_what_is_recorded():
    try:
        oracles.include_folders()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    assert oracles.ask_cute() == CUTE
    recorded = json.loads((oracles.DATA / "oracles.json").read_text())["random"]
    asked = [{key: value for key, value in case.items() if key != "cute"} for case in recorded]
    assert oracles.ask_cute_about(asked) == recorded


@pytest.mark.oracle
@pytest.mark.parametrize("library", ["pycute", "tensor-layouts"])
def test_the_python_libraries_still_say_what_is_recorded(library):
    pytest.importorskip(library.replace("-", "_"))
    assert oracles.ask_python(library) == RECORDED[library]


@pytest.mark.oracle
def test_swizzles_and_layouts_as_linear_maps_agree_with_triton():
    triton = pytest.importorskip("triton._C.libtriton", reason="Triton is not installed")
    from tilelab import Swizzle, composition, linear_bases

    for swizzle, text in [((3, 3, 3), "(8,64):(64,1)"), ((2, 0, 3), "(8,8):(8,1)"), ((0, 0, 0), "(16,8):(8,1)")]:
        layout = composition(Swizzle(*swizzle), Layout.parse(text))
        bases = [[base] for base in linear_bases(layout)]
        size = layout.size
        linear = triton.linear_layout.LinearLayout.from_bases([("index", bases)], ["offset"], [size], False)
        assert all(linear.apply({"index": i})["offset"] == layout(i) for i in range(size))
