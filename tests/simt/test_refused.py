"""Python that no GPU thread has is refused where the kernel is decorated, with the line and what to write instead."""

import importlib.util

import numpy as np
import pytest

from tilelab.simt import SimtError, UnsupportedError, cuda

CASES = {
    "try:\n        out[0] = 1\n    except ValueError:\n        pass": "line 9: `try:`: a kernel cannot use try; check",
    "x = [1, 2]": "cannot use a list; use cuda.local.array",
    "x = [i for i in range(3)]": "a list comprehension; fill a cuda.local.array in a loop",
    "x = sum(i for i in range(3))": "a generator expression|cannot call sum",
    "out.append(1)": "the method append; arrays have a fixed size",
    "print(out[0])": "cannot call print; write values into an array",
    "yield 1": "cannot use yield",
    "with out:\n        pass": "cannot use with",
    "raise ValueError": "cannot use raise; write a flag into an array",
    "assert out[0]": "cannot use assert",
    "f = lambda x: x": r"cannot use lambda; write a function under @cuda.jit\(device=True\)",
    "def inner():\n        pass": "a function inside a kernel; move it out",
    "import math": "import at the top of the file",
    "global TILE": "cannot use global",
    "x = 'text'": "cannot use a string",
    "x = f'{1}'": "cannot use a string",
    "x = {1: 2}": "cannot use a dict",
    "x = {1, 2}": "cannot use a set",
    "x = out is None": "cannot use is; compare with ==",
    "x = 1 in (1, 2)": "cannot use in;",
    "for x in out:\n        pass": r"loops over range\(...\)",
    "for i, j in range(3):\n        pass": "one loop variable",
    "while out[0]:\n        pass\n    else:\n        pass": "cannot have else; set a variable before break and test it",
    "for i in range(3):\n        pass\n    else:\n        pass": "cannot have else; set a variable",
    "if (x := 1):\n        pass": "cannot use :=",
    "x = out @ out": "cannot use @",
    "cuda.sync_threads()": r"cuda.sync_threads does not exist in tilelab.simt; did you mean cuda.syncthreads\?",
    "x = cuda.threadIdx.x()": "cuda.threadIdx.x is a number and is not called; leave out the parentheses",
    "x = cuda.teleport()": "cuda.teleport does not exist in tilelab.simt$",
    "x = math.sqroot(2)": r"math has no sqroot; did you mean math.sqrt\?",
    "cuda.atomic.Add(out, 0, 1)": r"cuda.atomic.Add does not exist in tilelab.simt; did you mean cuda.atomic.add\?",
    "x = sorted(out)": "cannot call sorted",
    "match out[0]:\n        case 1:\n            pass": "use if and elif",
    "del out": "cannot use del",
    "x = cuda.cg.this_grid()": "cuda.cg does not exist in tilelab.simt; end the kernel where all blocks should wait",
    "cuda.atomic.grow(out, 0, 1)": "cuda.atomic.grow does not exist in tilelab.simt",
    "x = out.sum()": "cannot call the method sum; write a loop over the elements",
}
LATER = {
    "return 3": "a kernel returns nothing; store the result",
    "x = undefined_name": "the name undefined_name is not defined$",
    "x = threadIdx.x": "the name threadIdx is not defined; write cuda.threadIdx$",
    "syncthreads()": "the name syncthreads is not defined; write cuda.syncthreads$",
    "x = float33(1)": r"the name float33 is not defined; did you mean float32\?",
    "x = cuda.blockdim.x": r"cuda.blockdim does not exist in tilelab.simt; did you mean cuda.blockDim\?",
    "x = np.zeros(4)": r"cannot call np.zeros; use cuda.local.array\(shape, dtype\)",
    "x = np.random.rand()": "cannot call np.random.rand; numbers have",
    "x = max(out)": r"array\(float64, 1d, global\) is no number; write a loop over the elements",
    "x = host(1)": r"host is a host function; put @cuda.jit\(device=True\) above it",
    "s = cuda.shared.array(n, float32)": "must be a number known when the kernel is compiled",
    "s = cuda.shared.array(4, 'f4x')": "cannot use a string|is no type",
    "out[0.5] = 1": r"an index is a float64; write int\(...\) or use //",
    "out[0, 1] = 1": "2 indices for an array of 1 dimension$",
    "x = y\n    y = 1": "y is read before anything is assigned",
    "x = out + 1": r"array\(float64, 1d, global\) \+ int64 has no meaning",
    "x = out.strides": "has no strides in a kernel",
    "x = cuda.grid(4)": "takes 1, 2 or 3",
    "x = cuda.threadIdx.w": "has x, y and z, not w",
    "cuda.atomic.add(out, 0)": "cuda.atomic.add takes an array, an index",
    "cuda.atomic.xor(out, 0, 1)": "does not work on float64",
    "x = out[::2]": "a slice in a kernel has no step",
    "for i in range(0, 4, 0):\n        pass": "never ends",
    "x = recursive(3)": "recursive calls itself",
    "x = 1j": "complex numbers are not simulated",
    "x = None": "cannot use None as a value",
    "x, y, z = cuda.grid(2)": "cannot be unpacked into 3 names",
    "x = min(1)": "min takes two or more numbers",
    "t = cuda.threadIdx": "cuda.threadIdx cannot be held in a variable; write cuda.threadIdx.x, .y or .z",
    "x = cuda.blockDim[0]": "cuda.blockDim cannot be held in a variable",
    "f = cuda.syncthreads": "cuda.syncthreads is no value; call it where it is wanted",
    "cuda.atomic.add(out, 1.5, 1)": r"an index is a float64; write int\(...\) or use //",
    "cuda.atomic.add(out, out, 1)": r"an index is an array\(float64",
    "cuda.atomic.add(out, (0, 1), 1)": "2 indices for an array of 1 dimension$",
    "cuda.syncwarp(1.5)": "the mask of cuda.syncwarp is a float64; an integer is wanted",
    "x = cuda.shfl_sync(0xffffffff, n, 1.5)": "the lane of cuda.shfl_sync is a float64; an integer is wanted",
    "x = cuda.any_sync(0.5, n)": "the mask of cuda.any_sync is a float64",
    "x = cuda.grid()": "takes 1, 2 or 3",
    "x = cuda.grid(1, 2)": "takes 1, 2 or 3",
    "x = cuda.activemask(1)": "takes 0 arguments, not 1",
    "x = cuda.to_device(out)": "cuda.to_device works on the host, before a launch or after it",
    "x = cuda.syncthreads()": r"line 9: `x = cuda.syncthreads\(\)`: x would be None, for nothing is given to it here",
    "x = np.sqrt(2.0)": "Numba has no np.sqrt in a kernel; write math.sqrt",
    "x = np.abs(out[0])": "Numba has no np.abs in a kernel; write abs",
    "x = np.log(float16(2))": r"take no float16; write float32\(...\) around it",
    "x = math.cbrt(2.0)": "Numba has no math.cbrt in a kernel; write cuda.cbrt",
    "s = cuda.shared.array(4, int16)\n    cuda.atomic.add(s, 0, 1)": "a GPU has atomics for 32 and 64 bits",
    "x = cuda.shfl_sync(0xffffffff, float16(n), 1)": "does not work on float16",
    "x = cuda.selp(n > 1, n, 1.0)": "takes two of one type, not int64 and float64",
    "if out:\n        pass": r"an array\(float64, 1d, global\) is neither true nor false",
    "x = cuda.const.array_like()": "takes a NumPy array from outside",
}
HEAD = """\
import math
import numpy as np
from tilelab.simt import cuda, float16, float32, int16
def host(x): return x
@cuda.jit(device=True)
def recursive(n): return recursive(n - 1)
"""


def module(tmp_path, body):
    path = tmp_path / "refused.py"
    path.write_text(f"{HEAD}@cuda.jit\ndef kernel(out, n):\n    {body}\n")
    spec = importlib.util.spec_from_file_location("refused", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("body", CASES)
def test_refused_at_decoration(tmp_path, body):
    with pytest.raises(UnsupportedError, match=CASES[body]):
        module(tmp_path, body)


@pytest.mark.parametrize("body", LATER)
def test_refused_when_the_types_are_known(tmp_path, body):
    with pytest.raises(UnsupportedError, match=LATER[body]) as caught:
        module(tmp_path, body).kernel[1, 1](np.zeros(4), 3)
    assert "line " in str(caught.value)


def test_parameters_must_be_plain():
    with pytest.raises(UnsupportedError, match="plain positional parameters"):

        @cuda.jit
        def kernel(out, n=3):
            out[0] = n


def test_a_kernel_is_launched_and_nothing_else():
    @cuda.jit
    def kernel(out):
        out[0] = 1

    @cuda.jit(device=True)
    def helper(x):
        return x

    out = np.zeros(1)
    with pytest.raises(SimtError, match=r"launch kernel with a grid and a block: kernel\[grid, block\]"):
        kernel(out)
    with pytest.raises(SimtError, match="call it from a kernel"):
        helper[1, 1](out)
    with pytest.raises(SimtError, match="call it from a kernel"):
        helper(1)
    with pytest.raises(SimtError, match="takes two to four values"):
        kernel[1,](out)
    with pytest.raises(SimtError, match="must be one to three whole numbers"):
        kernel[1.5, 1](out)
    with pytest.raises(SimtError, match="has a meaning only inside a kernel"):
        cuda.syncthreads()
    with pytest.raises(AttributeError, match="there is array"):
        _ = cuda.shared.arrays
    with pytest.raises(SimtError, match="is no kernel"):
        cuda.inspect(print)
    kernel.forall(1)(out)
    assert out[0] == 1


def test_source_that_cannot_be_found():
    names = {"cuda": cuda}
    with pytest.raises(UnsupportedError, match="define kernels in a file or a notebook cell"):
        exec("@cuda.jit\ndef kernel(out):\n    out[0] = 1\n", names)
