"""``from tilelab.simt import cuda``: the names of ``from numba import cuda``, on a simulated GPU.

A kernel written for one runs on the other; only the import differs. What is added here is :func:`inspect`, which runs
a kernel and reports what it did line by line, and :func:`simulate`, which sets how a launch is simulated.

A local array lasts as long as the call of its function, as Numba's does: in a loop it keeps what it holds. ``and`` and
``or`` give the operand that decides, in the type that all operands have in common.

Where this differs from Numba: a warp's lanes meet again right after a branch; ``a * b + c`` is rounded twice (a GPU
fuses it); threads that have returned count as missing at a barrier; locks and flags order nothing in the eyes of the
race detector; a loop that waits for another thread runs on the plain engine, and waits for blocks before its own only,
since blocks run one after another; recursion, ``print``, complex numbers, ``else`` of a loop, slices with a step,
assignments to slices, and a variable that holds ``cuda.threadIdx`` whole are refused, with what to write instead. Taken
here, as in CUDA C++, and refused by numba-cuda 0.30: a condition in ``syncthreads_count`` and its kin (there an
integer, ``int(x > 3)``), floats in votes, shuffles of bools and of integers without a sign or of fewer than 32 bits,
``atomic.inc`` and ``atomic.dec`` on signed integers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tilelab.simt import types
from tilelab.simt.errors import SimtError, UnsupportedError
from tilelab.simt.intrinsics import ATOMICS, HALF, MATCHES, SHUFFLES, VOTES, Intrinsic, Namespace
from tilelab.simt.kernel import Kernel, Options, Simulated, with_options
from tilelab.simt.signatures import signature_of
from tilelab.simt.types import *  # noqa: F403  (the number types)

threadIdx, blockIdx, blockDim, gridDim = (Intrinsic(name) for name in ("threadIdx", "blockIdx", "blockDim", "gridDim"))
laneid, warpsize = Intrinsic("laneid"), Intrinsic("warpsize")
grid, gridsize = Intrinsic("grid"), Intrinsic("gridsize")
shared, local = Namespace("shared", ["array"]), Namespace("local", ["array"])
const = Namespace("const", ["array_like"])
atomic = Namespace("atomic", list(ATOMICS))
fp16 = Namespace("fp16", list(HALF))
syncthreads, syncthreads_count, syncthreads_and, syncthreads_or = (
    Intrinsic(f"syncthreads{form}") for form in ("", "_count", "_and", "_or")
)
threadfence, threadfence_block, threadfence_system, nanosleep = (
    Intrinsic(name) for name in ("threadfence", "threadfence_block", "threadfence_system", "nanosleep")
)
syncwarp, activemask, lanemask_lt = (Intrinsic(name) for name in ("syncwarp", "activemask", "lanemask_lt"))
shfl_sync, shfl_up_sync, shfl_down_sync, shfl_xor_sync = (Intrinsic(name) for name in SHUFFLES)
all_sync, any_sync, eq_sync, ballot_sync = (Intrinsic(name) for name in VOTES)
match_any_sync, match_all_sync = (Intrinsic(name) for name in MATCHES)
popc, brev, clz, ffs, fma, cbrt, selp = (
    Intrinsic(name) for name in ("popc", "brev", "clz", "ffs", "fma", "cbrt", "selp")
)
globals().update(types.VECTORS)


@overload
def jit(function: Callable[..., Any], /) -> Kernel: ...
@overload
def jit(
    signature: Any = None, /, *, device: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Kernel]: ...
def jit(function_or_signature: Any = None, /, *, device: bool = False, **options: Any) -> Any:
    """Make a kernel, or with ``device=True`` a function that kernels call.

    Parameters
    ----------
    function_or_signature
        The function; or a signature, which is not needed: types come from the arguments. One that is given as a text
        or a tuple fixes the types of numbers, as it does for Numba.
    device
        Whether kernels call it.
    options
        Numba's other options (``fastmath``, ``opt``, ``lineinfo``, …) are accepted and change nothing.

    Raises
    ------
    UnsupportedError
        It is no function of Python, or it uses Python that no GPU thread has; with the line, and what to write instead.
    """
    given = function_or_signature
    if callable(given) and hasattr(given, "__code__"):
        return Kernel(given, device)
    if not (given is None or isinstance(given, str | list | tuple | types.Scalar | types.Vector | np.generic)):
        raise UnsupportedError(f"cuda.jit({given!r}): put @cuda.jit above a function that is written with def")
    return lambda function: Kernel(function, device, signature_of(given))


def inspect(kernel: Kernel, **options: Any) -> Simulated:
    """``cuda.inspect(kernel)[grid, block](...)`` runs a kernel and returns a report of what it did.

    Races, unwritten reads and the rest do not raise but stand in the report, with counts for each source line.

    Parameters
    ----------
    kernel
        A function under ``@cuda.jit``.
    options
        Fields of :class:`~tilelab.simt.kernel.Options`.
    """
    return Simulated(kernel, with_options(options), inspect=True)


def simulate(kernel: Kernel, **options: Any) -> Simulated:
    """``cuda.simulate(kernel, checks=False)[grid, block](...)`` launches a kernel with other options.

    Parameters
    ----------
    kernel
        A function under ``@cuda.jit``.
    options
        Fields of :class:`~tilelab.simt.kernel.Options`.
    """
    return Simulated(kernel, with_options(options), inspect=False)


# ---- what host code does with arrays, so that one file runs on both
class DeviceArray(np.ndarray[Any, Any]):
    """An array "on the device": here a NumPy array with Numba's copying methods."""

    def copy_to_host(self, ary: NDArray[Any] | None = None, stream: Any = 0) -> NDArray[Any]:
        """A plain copy, or fill ``ary``."""
        if ary is None:
            return np.array(self)
        ary[...] = self
        return ary

    def copy_to_device(self, ary: NDArray[Any], stream: Any = 0) -> None:
        """Take the values of ``ary``."""
        self[...] = ary


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> DeviceArray:
    """A copy of an array on the device."""
    return np.array(obj).view(DeviceArray)


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C", stream: Any = 0
) -> DeviceArray:
    """An array on the device; what it holds at first is not defined (NaN or a large number here)."""
    made = np.empty(shape, dtype.dtype if isinstance(dtype, types.Scalar) else np.dtype(dtype), order)
    made.view(np.uint8).reshape(-1)[:] = 0xFF if made.dtype.kind == "f" else 0xCD
    return made.view(DeviceArray)


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C") -> NDArray[Any]:
    """An array on the host that a device copies fast; here an array like any other."""
    return device_array(shape, dtype, strides, order)


def mapped_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C", stream: Any = 0
) -> DeviceArray:
    """An array that host and device share; here every array is one."""
    return device_array(shape, dtype, strides, order)


@contextmanager
def pinned(*arrays: NDArray[Any]) -> Iterator[None]:
    """Pin arrays of the host while they are copied; here there is nothing to pin."""
    yield


def device_array_like(ary: Any, stream: Any = 0) -> DeviceArray:
    """An array on the device of the same shape and type."""
    return device_array(ary.shape, ary.dtype)


def synchronize() -> None:
    """Wait for the device; a simulated launch is done when it returns."""


class Stream(int):
    """A stream; here all launches run in order, so that nothing is ever waited for."""

    def synchronize(self) -> None:
        """Wait for what was put into the stream."""

    @contextmanager
    def auto_synchronize(self) -> Iterator["Stream"]:
        """Wait for the stream at the end of a ``with`` block."""
        yield self


def stream() -> Stream:
    """A stream; here all launches run in order."""
    return Stream()


def default_stream() -> Stream:
    """The stream of launches that name none."""
    return Stream()


def is_available() -> bool:
    """Whether kernels can run: always, on a simulated GPU."""
    return True


__all__ = [
    "DeviceArray", "Kernel", "Options", "SimtError", "Stream", "activemask", "all_sync", "any_sync", "atomic",
    "ballot_sync", "blockDim", "blockIdx", "brev", "cbrt", "clz", "const", "default_stream", "device_array",
    "device_array_like", "eq_sync", "ffs", "fma", "fp16", "grid", "gridDim", "gridsize", "inspect", "is_available",
    "jit", "laneid", "lanemask_lt", "local", "mapped_array", "match_all_sync", "match_any_sync", "nanosleep",
    "pinned", "pinned_array", "popc", "selp", "shared", "shfl_down_sync", "shfl_sync", "shfl_up_sync",
    "shfl_xor_sync", "simulate", "stream", "synchronize", "syncthreads", "syncthreads_and", "syncthreads_count",
    "syncthreads_or", "syncwarp", "threadIdx", "threadfence", "threadfence_block", "threadfence_system", "to_device",
    "warpsize",
]  # fmt: skip
__all__ += types.__all__
