"""The examples in the docstrings run."""

import doctest
import shutil

import pytest

import tilelab.cudacpp.kernel


@pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")
def test_the_example_of_kernel():
    failed, tried = doctest.testmod(tilelab.cudacpp.kernel, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 0
    assert failed == 0
