"""The CuTe C++ that chapter 6 prints is the kernel that is built, and partitions as the chapter says."""

import re
from pathlib import Path

import nbformat
import pytest

from tilelab import Layout, LayoutRight, local_partition, local_tile, size
from tilelab.kernels import cute_walkthrough

CHAPTER = Path(__file__).parents[2] / "notebooks" / "06-tensors.ipynb"


def listing():
    """Return the chapter's C++."""
    text = next(c.source for c in nbformat.read(CHAPTER, as_version=4).cells if c.id == "cute-text")
    return re.search(r"```cpp\n(.*?)```", text, re.DOTALL)[1]


def bare(code):
    """Return code without comments and white space."""
    return re.sub(r"\s", "", re.sub(r"//[^\n]*", "", code))


def test_the_listing_is_the_kernel():
    source = bare(cute_walkthrough.source())
    declarations, kernel = listing().split("\n\n", 1)
    assert bare(kernel) in source
    for declaration in declarations.splitlines():
        assert bare(declaration) in source


@pytest.mark.slow
def test_cute_partitions_as_we_do():
    reason = cute_walkthrough.unavailable()
    if reason:
        pytest.skip(reason)
    block = local_tile(Layout((256, 128), LayoutRight), (128, 32), (1, None))
    ours = [local_partition(block, Layout((16, 16), LayoutRight), t) for t in range(256)]
    assert cute_walkthrough.host_offsets(M=256, K=128, block=1) == [[x[i] for i in range(size(x))] for x in ours]
