"""Where a worker's kernels run: a GPU, or a CPU that emulates one. Both behind the same five questions."""

import random
import shutil
import time
from collections.abc import Mapping
from typing import Any, Protocol

from tilelab.cudacpp.kernel import Kernel
from tilelab.grading.timed.arrays import FILL, POISON, Arena, uniform

#: Taken at import, before anything else runs in the process.
_wall = time.perf_counter
#: Milliseconds that a busy kernel keeps the device before the timed one, so that starting it costs no device time.
LEAD = 0.3
#: Arenas that take turns.
ARENAS = 3


class Ground(Protocol):
    """What a worker asks of the place where its kernels run."""

    def describe(self) -> dict[str, Any]:
        """Say which device it is."""

    def load(self, name: str, code: Mapping[str, Any]) -> None:
        """Take a kernel in."""

    def prepare(self, name: str, call: Mapping[str, Any]) -> None:
        """Draw the inputs of one call, poison everything else, and clear the caches: no step of a kernel's."""

    def go(self) -> dict[str, float]:
        """Run the prepared call: ``wall`` and ``device`` milliseconds, and what of the wall was spent ``before``."""

    def collect(self, file: str) -> None:
        """Write the call's whole arena to a file."""

    def ceilings(self) -> dict[str, float]:
        """Measure what the device can do at most: ``flops`` and ``bandwidth``, a second."""


IDLE = Kernel('extern "C" __global__ void idle() {}', "idle")


class OnGpu:
    """An NVIDIA GPU, by CuPy.

    The timed call stands in the queue behind a busy kernel when it starts. The wall clock runs from before the queue
    is filled until everything on the device is done, streams of any kind included.
    """

    def __init__(self, ordinal: int) -> None:
        import ctypes

        import cupy
        import numpy

        from tilelab.cudacpp import device
        from tilelab.measure.gpu import SPIN

        self._cupy, self._ordinal = cupy, ordinal
        cupy.cuda.Device(ordinal).use()
        self._event, self._elapsed = cupy.cuda.Event, cupy.cuda.get_elapsed_time
        self._synchronize = cupy.cuda.runtime.deviceSynchronize
        # Lines that a kernel has marked as persisting would outlive the clearing of the cache.
        self._forget = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache
        self._scratch = cupy.empty(2 * int(cupy.cuda.Device().attributes["L2CacheSize"]) // 4 + 1024, cupy.float32)
        self._sink = cupy.zeros(1, cupy.int64)
        self._lead = (self._sink, numpy.int64(LEAD * 1e6))
        self._spin = device.load(SPIN, ordinal).function
        self._idle = device.load(IDLE, ordinal).function
        self._spin((1,), (1,), (self._sink, numpy.int64(50_000_000)))  # clocks rise
        self._kernels: dict[str, Any] = {}
        self._arenas: list[Any] = []
        self._call: tuple[Any, Any, Any, int] | None = None
        self._arena: Any = None
        self._opened: tuple[str, int] | None = None
        self._kept: Any = None
        self._synchronize()

    def describe(self) -> dict[str, Any]:
        """Say which device it is."""
        cupy = self._cupy
        properties = cupy.cuda.runtime.getDeviceProperties(self._ordinal)
        driver = cupy.cuda.runtime.driverGetVersion()
        return {
            "name": properties["name"].decode(),
            "architecture": f"sm_{properties['major']}{properties['minor']}",
            "l2": int(properties["l2CacheSize"]),
            "cuda": f"{driver // 1000}.{driver % 1000 // 10}",
            "emulated": False,
        }

    def load(self, name: str, code: Mapping[str, Any]) -> None:
        """Take a kernel in."""
        self._kernels[name] = self._cupy.RawModule(path=code["cubin"]).get_function(code["symbol"])

    def prepare(self, name: str, call: Mapping[str, Any]) -> None:
        """Draw the inputs of one call, poison everything else, and clear the caches."""
        import numpy

        cupy = self._cupy
        if not name:
            self._call = (self._idle, (1,), (1,), 0)
            self._values: tuple[Any, ...] = ()
        else:
            place = Arena(tuple(call["shape"]), call["start"])
            if not self._arenas or self._arenas[0].size < place.total:
                self._arenas = []
                self._arenas = [cupy.empty(place.total, cupy.float32) for _ in range(ARENAS)]
            whole = random.choice(self._arenas)
            self._arena = whole[: place.total]
            whole.view(cupy.uint32).fill(POISON)
            a, b, c = place.matrices(self._arena)
            for matrix, seed in zip((a, b), call["seeds"], strict=True):
                FILL(matrix, matrix.size, seed)
            self._values = (a, b, c, *map(numpy.int32, call["shape"]))
            self._call = (self._kernels[name], tuple(call["grid"]), tuple(call["block"]), call["shared"])
        self._events = self._event(), self._event(), self._event()
        self._forget()
        self._scratch.fill(1.0)
        self._synchronize()

    def go(self) -> dict[str, float]:
        """Run the prepared call."""
        assert self._call is not None
        function, grid, block, shared = self._call
        before, start, stop = self._events
        if shared and shared > 48 * 1024 - int(function.shared_size_bytes):
            function.max_dynamic_shared_size_bytes = shared  # here, where a refusal is the launch's own
        began = _wall()
        before.record()
        self._spin((1,), (1,), self._lead)
        start.record()
        function(grid, block, self._values, shared_mem=shared)
        stop.record()
        self._synchronize()
        wall = (_wall() - began) * 1e3
        return {
            "wall": wall,
            "device": float(self._elapsed(start, stop)),
            "before": float(self._elapsed(before, start)),
        }

    def collect(self, file: str) -> None:
        """Write the call's whole arena to a file."""
        import numpy

        count = int(self._arena.size)
        if self._opened != (file, count):
            self._kept, self._opened = numpy.memmap(file, numpy.float32, "r+", shape=(count,)), (file, count)
        self._cupy.cuda.runtime.memcpy(self._kept.ctypes.data, self._arena.data.ptr, 4 * count, 2)  # device to host

    def ceilings(self) -> dict[str, float]:
        """Measure what the device can do at most."""
        from tilelab.measure.gpu import bandwidth_ceiling, fp32_ceiling

        found = {"flops": fp32_ceiling(), "bandwidth": bandwidth_ceiling()}
        self._cupy.get_default_memory_pool().free_all_blocks()
        return found


class OnCpu:
    """Emulation, each launch in a process of its own in the sandbox. Times are a CPU's and say nothing."""

    def __init__(self) -> None:
        self._kernels: dict[str, Mapping[str, Any]] = {}
        self._call: tuple[Kernel, tuple[Any, ...]] | None = None
        self._arena: Any = None

    def describe(self) -> dict[str, Any]:
        """Say what stands in."""
        return {"name": "emulation on a CPU", "architecture": "sm_90", "l2": 0, "cuda": "", "emulated": True}

    def load(self, name: str, code: Mapping[str, Any]) -> None:
        """Take a kernel in."""
        self._kernels[name] = code

    def prepare(self, name: str, call: Mapping[str, Any]) -> None:
        """Draw the inputs of one call and poison everything else."""
        import numpy

        if not name:
            self._call = None
            return
        place = Arena(tuple(call["shape"]), call["start"])
        self._arena = numpy.full(place.total, POISON, numpy.uint32).view(numpy.float32)
        a, b, c = place.matrices(self._arena)
        for matrix, seed in zip((a, b), call["seeds"], strict=True):
            matrix[...] = uniform(matrix.size, seed).reshape(matrix.shape)
        code = self._kernels[name]
        kernel = Kernel(
            code["source"], code["kernel"], tuple(call["grid"]), tuple(call["block"]), call["shared"], code["defines"]
        )
        self._call = kernel, (a, b, c, *call["shape"])

    def go(self) -> dict[str, float]:
        """Run the prepared call."""
        began = _wall()
        if self._call is not None:
            kernel, values = self._call
            kernel.emulate(*values, seconds=20.0)
        wall = (_wall() - began) * 1e3
        return {"wall": wall, "device": wall, "before": 0.0}

    def collect(self, file: str) -> None:
        """Write the call's whole arena to a file."""
        with open(file, "r+b") as opened:
            self._arena.tofile(opened)

    def ceilings(self) -> dict[str, float]:
        """Say that nothing is known: no time is too good for an emulator."""
        return {"flops": 1e30, "bandwidth": 1e30}


def can_wall_in() -> bool:
    """Whether there is a sandbox for what a CPU compiles and runs."""
    return shutil.which("bwrap") is not None
