"""A kernel in Python is read in the forms that people write it in, whatever the GPU's names are imported from."""

import sys
from pathlib import Path

import pytest

from tilelab.grading.cuda_answers import read_cuda, try_all
from tilelab.grading.errors import GradingError
from tilelab.grading.problems.practice_3 import races

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "corpora"))

from kernels import SIMULATED, TILED, TILES, changed

IMPORT = "from tilelab.simt import cuda, float32\n"
FORMS = {
    "numba's names": changed(SIMULATED, (IMPORT, "from numba import cuda, float32\n")),
    "numba as a whole": changed(
        SIMULATED, (IMPORT, "import numba\nfrom numba import cuda\n"), ("float32", "numba.float32")
    ),
    "numba.cuda's decorator": changed(
        SIMULATED, (IMPORT, "import numba.cuda\nfrom numba import cuda, float32\n"), ("@cuda.jit", "@numba.cuda.jit()")
    ),
    "the decorator alone": changed(SIMULATED, (IMPORT, f"from numba.cuda import jit\n{IMPORT}"), ("@cuda.jit", "@jit")),
    "a word of CUDA C++ in a comment": f"# as a __global__ function\n{SIMULATED}",
    "a part that runs elsewhere": f"{SIMULATED}\nif __name__ == '__main__':\n    print(matmul)\n",
    "imports that change nothing": f"from __future__ import annotations\nfrom typing import Any\n{SIMULATED}",
    "indented": "\n".join(f"    {line}" for line in SIMULATED.splitlines()),
    "Windows's line ends": SIMULATED.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS)
def test_a_right_kernel_is_right_in_every_form(source):
    (trial,) = try_all(read_cuda(source, TILES), [(9, 7, 20)])
    assert trial.ok, trial.words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (changed(SIMULATED, ("@cuda.jit\n", "")), "put @cuda.jit above it"),
        (f"{SIMULATED}\nif __name__ != '__main__':\n    matmul = print\n", "is not part of a kernel"),
        (f"{SIMULATED}\nif __name__ == '__main__':\n    pass\nelse:\n    matmul = print\n", "is not part of a kernel"),
        (f"{SIMULATED}\njit = matmul\nmatmul = 3\n", "matmul is no kernel"),
    ],
)
def test_what_is_no_kernel_is_said(source, words):
    try:
        (trial,) = try_all(read_cuda(source, TILES), [(9, 7, 20)])
        said = "" if trial.ok else trial.words
    except GradingError as error:
        said = str(error)
    assert words in said


def test_the_simulator_of_practice_3_reads_numbas_names_too(capsys):
    modules = {name for name in sys.modules if name.split(".")[0] == "numba"}
    races(changed(SIMULATED, (IMPORT, "from numba import cuda, float32\n")), K=32)
    assert "nothing races" in capsys.readouterr().out
    assert {name for name in sys.modules if name.split(".")[0] == "numba"} == modules


def test_a_kernel_in_cuda_may_speak_of_python():
    assert not read_cuda(f"// @cuda.jit would be the same\n{TILED}", TILES).in_python
