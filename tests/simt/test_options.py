"""Options and launches that make no sense are refused in the simulator's own words, with what would work."""

import numpy as np
import pytest

from tilelab.simt import LaunchError, SimtError, cuda


@cuda.jit
def one(out):
    out[cuda.grid(1)] = 1


OPTIONS = {
    "chunk": [(0, "a whole number from 1 on"), (-1, "from 1 on"), (1.5, "whole number"), ("8", "whole number"),
              (True, "whole number")],
    "seed": [("a", "a whole number from 0 on"), (-1, "from 0 on"), (0.5, "whole number")],
    "steps": [(0, "a whole number from 1 on"), (None, "whole number")],
    "device": [("foo", "nothing is known of 'foo'; known: V100"), (None, "device=None"), (9, "device=9"),
               ((9,), "device")],
    "engine": [("fast", "use auto, lanes or threads"), (None, "use auto, lanes or threads")],
    "watch": [(3, "the coordinates of a block"), ((), "coordinates"), ((1, 2, 3, 4), "coordinates"),
              ("ab", "coordinates"),
              ((5, 0, 0), "no such block in the grid"), ((-1,), "no such block")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "message"), [(name, value, text) for name, cases in OPTIONS.items() for value, text in cases]
)
def test_options(name, value, message):
    for form in (cuda.inspect, cuda.simulate):
        with pytest.raises(LaunchError, match=message) as caught:
            form(one, **{name: value})[1, 32](np.zeros(32))
        assert repr(value) in str(caught.value)


def test_options_that_work():
    out = np.zeros(64)
    for options in (
        {"chunk": 1}, {"chunk": np.int64(64)}, {"seed": 0}, {"steps": 1}, {"device": "sm_80"}, {"device": "A100"},
        {"watch": (1, 0)}, {"watch": [0]}, {"device": (9, 0)},
    ):  # fmt: skip
        cuda.inspect(one, **options)[2, 32](out).check()
    with pytest.raises(SimtError, match="no option speed; there are checks, engine"):
        cuda.simulate(one, speed=1)


@pytest.mark.parametrize(
    ("nbytes", "message"),
    [(-4, "-4 bytes of dynamic shared memory; use a whole number from 0 on"), (1.5, "1.5 bytes"), ("8", "'8' bytes"),
     (None, "None bytes"), (1 << 30, "bytes of shared memory a block")],
)  # fmt: skip
def test_dynamic_bytes(nbytes, message):
    with pytest.raises(LaunchError, match=message):
        one[1, 32, 0, nbytes](np.zeros(32))
    one[1, 32, 0, np.int32(64)](np.zeros(32))
