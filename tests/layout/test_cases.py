"""The verified cases, one test each: values from CuTe C++ and from enumeration."""

import json
import re
from pathlib import Path

import pytest

import tilelab as tl
from tilelab import Layout, LayoutError, Swizzle

DATA = Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "layout_algebra.json").read_text())
#: Suffixes that only tell how the case gives its inputs.
SUFFIX = re.compile(r"(_tile|_int|_profile|_step|_default|_stride|_swizzled|2)$")
#: Our own answers where either is right; ``book/where-we-differ.md`` gives the reasons.
POLICY = {
    "comp-neg": LayoutError,
    "linv-noninj": LayoutError,
    "div-coalesced-bound": LayoutError,
    "lp-stride0thr": "3 o (2,4):(4,16)",
    "print-rank3": "(2,3,4):(1,2,6)\n(_,_,0)\n       0    1    2 \n",
    "print-rank1": "(8):(2)\n       0    1    2    3    4    5    6    7 \n    +----+",
}


def value(text):
    """Read an integer tuple, with ``_`` for None."""
    return tl.layout.parsing.parse_tuple(text)


def tile(text):
    return None if text == "_" else Layout.parse(text)


def arguments(case):
    inputs = dict(case["inputs"])
    op = case["op"]
    if op == "slice_and_offset":
        return value(inputs["coord"]), Layout.parse(inputs["layout"])
    if op.startswith("local_tile"):
        rest = [value(inputs[name]) for name in ("tiler", "coord", "proj") if name in inputs]
        return tl.make_tensor(0, Layout.parse(inputs["layout"])), *rest
    if op.startswith("local_partition"):
        rest = [value(inputs[name]) for name in ("idx", "proj") if name in inputs]
        return tl.make_tensor(0, Layout.parse(inputs["layout"])), Layout.parse(inputs["thr"]), *rest
    if op == "idx2crd_stride":
        return tuple(value(inputs[name]) for name in ("idx", "shape", "stride"))
    read = {
        "layout": Layout.parse,
        "block": Layout.parse,
        "a": value if op == "compatible" else Layout.parse,
        "b": value if op == "compatible" else Layout.parse,
        "tiler": lambda tiles: tuple(map(tile, tiles)),
    }
    order = ("idx", "layout", "block", "a", "b", "shape", "cotarget", "tiler", "profile", "order", "n")
    return tuple(read.get(name, value)(inputs[name]) for name in order if name in inputs)


def swizzle(inputs):
    return Swizzle(*(value(inputs[name]) for name in ("bits", "base", "shift")))


def outcome(case):
    """Run one case and return what came out as the case file writes it."""
    op, inputs = case["op"], case["inputs"]
    if op == "call":
        layout = Layout.parse(inputs["layout"])
        return ",".join(str(layout(value(c))) for c in inputs["coords"])
    if op == "construct":
        shape = json.loads(inputs["shape"].replace("(", "[").replace(",)", ")").replace(")", "]"))
        return str(Layout(shape, value(inputs["stride"]) if "stride" in inputs else None))
    if op == "swizzle":
        return ",".join(str(swizzle(inputs)(x)) for x in inputs["xs"])
    if op == "swizzled_layout":
        layout = tl.composition(swizzle(inputs), Layout.parse(inputs["layout"]))
        return ",".join(str(layout(value(c))) for c in inputs["coords"])
    if op == "cosize_swizzled":
        return str(tl.cosize(tl.composition(swizzle(inputs), Layout.parse(inputs["layout"]))))
    if op == "print_layout":
        layout = Layout.parse(inputs["layout"])
        layout = tl.composition(swizzle(inputs), layout) if "bits" in inputs else layout
        return tl.format_layout(layout, static="golden_file" in case["expected"])
    if op == "domain_distribute":
        return str(tl.domain_distribute(value(inputs["shape"]), value(inputs["n"])))
    result = getattr(tl, op if hasattr(tl, op) else SUFFIX.sub("", op))(*arguments(case))
    if isinstance(result, bool):
        return str(int(result))
    if isinstance(result, tl.Tensor):
        return f"{result.offset} o {result.layout}"
    if op == "slice_and_offset":
        return f"{result[1]} o {result[0]}"
    return tl.layout.inttuple.show(result) if isinstance(result, (int, tuple)) else str(result)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case):
    expected = case["expected"]
    if "policy" in expected:
        expected = POLICY[case["id"]]
        if expected is LayoutError:
            expected = {"error": True}
        else:
            assert outcome(case).startswith(expected)
            return
    if expected.get("error"):
        with pytest.raises(LayoutError) as caught:
            outcome(case)
        assert "\n" not in str(caught.value)
        if "true_offsets" in case:
            a, b = (Layout.parse(case["inputs"][name]) for name in "ab")
            details = caught.value.details
            offsets = dict(zip(b.coordinates(), case["true_offsets"], strict=True))
            assert details["right"] == offsets[details["coordinate"]] != details["candidate"]
            assert (details["a"], details["b"]) == (a, b)
        return
    if "golden_file" in expected:
        assert outcome(case).encode() == (DATA / expected["golden_file"]).read_bytes()
    elif "table" in expected:
        result = Layout.parse(outcome(case))
        assert [result(i) for i in range(result.size)] == expected["table"]
        assert "shape" not in expected or result.shape == value(expected["shape"])
    elif "property" in expected:
        layout, inverse = Layout.parse(case["inputs"]["layout"]), Layout.parse(outcome(case))
        assert expected["property"] == "A(R(A(k)))==A(k)"
        assert all(layout(inverse(layout(k))) == layout(k) for k in range(layout.size))
    else:
        (key,) = expected
        assert outcome(case) == expected[key]


def test_every_case_is_here():
    assert len(CASES) == 214
    assert {case["id"] for case in CASES if "policy" in case["expected"]} == set(POLICY)
