"""The examples in the docstrings are right."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import tilelab

SRC = Path(tilelab.__file__).parent
FILES = [file for floor in ("layout", "tensor", "draw") for file in sorted((SRC / floor).glob("[a-z]*.py"))]
MODULES = [f"tilelab.{file.parent.name}.{file.stem}" for file in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    names = {key: getattr(tilelab, key) for key in [*tilelab.__all__, "explain"]}
    assert doctest.testmod(import_module(name), extraglobs=names).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    assert sum(bool(test.examples) for name in MODULES for test in finder.find(import_module(name))) > 12
