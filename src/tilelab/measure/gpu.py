"""The GPU as a measuring device: two clocks at once, a cleared L2, its state, and what it can do at most."""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tilelab.cudacpp.device import gpu_missing
from tilelab.cudacpp.kernel import Kernel
from tilelab.measure.rounds import Sample
from tilelab.measure.statistics import estimate

# Taken once, at import, so that nothing a kernel's host code patches later changes the clocks.
_wall = time.perf_counter

SPIN = Kernel(
    """__device__ inline long long now() {
    long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}
extern "C" __global__ void spin(long long* sink, long long nanoseconds) {
    const long long start = now();
    while (now() - start < nanoseconds) {}
    if (nanoseconds < 0) *sink = start;
}""",
    "spin",
)

FMA = Kernel(
    """extern "C" __global__ void __launch_bounds__(256) fma_rate(float* out, int rounds, float a, float b) {
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = threadIdx.x * 0.5f + i;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int u = 0; u < 8; ++u)
#pragma unroll
            for (int i = 0; i < 16; ++i) x[i] = x[i] * a + b;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += x[i];
    if (sum == 12345.0f) out[0] = sum;
}""",
    "fma_rate",
    grid=lambda p: p.out[0],
    block=256,
)


def require_gpu() -> Any:
    """CuPy, where a GPU can be measured.

    Raises
    ------
    RuntimeError
        There is none; the message says what is missing.
    """
    reason = gpu_missing()
    if reason:
        raise RuntimeError(f"nothing can be timed here: {reason}")
    import cupy

    return cupy


class Stopwatch:
    """Times calls on the current stream with CUDA events and the wall clock together.

    Before each timing the L2 cache is overwritten (``cold``) or left as it is, and a short busy kernel is put in front,
    so that by the time the timed calls start they all stand in the queue: what Python needs to launch them is hidden.

    Parameters
    ----------
    cold
        Whether to clear the L2, by writing twice its size (read from the device).
    lead
        Milliseconds of the busy kernel in front; 0.05 more for each call.
    """

    def __init__(self, cold: bool = True, lead: float = 0.3) -> None:
        self._cupy = cupy = require_gpu()
        self._event, self._elapsed = cupy.cuda.Event, cupy.cuda.get_elapsed_time
        self._synchronize = cupy.cuda.runtime.deviceSynchronize
        self._l2 = int(cupy.cuda.Device().attributes["L2CacheSize"])
        self._scratch = cupy.empty(2 * self._l2 // 4 + 1024, cupy.float32) if cold else None
        self._sink = cupy.zeros(1, cupy.int64)
        self._lead = int(lead * 1e6)
        SPIN(self._sink, 1000)

    def __call__(self, calls: Sequence[Callable[[], object]]) -> Sample:
        """Time calls made one after another; the sample is milliseconds for one."""
        if self._scratch is not None:
            self._scratch.fill(1.0)
        self._synchronize()
        before, start, stop = self._event(), self._event(), self._event()
        began = _wall()
        before.record()
        SPIN(self._sink, self._lead + 50_000 * len(calls))
        start.record()
        for call in calls:
            call()
        stop.record()
        self._synchronize()  # all streams, not only this one
        wall = (_wall() - began) * 1e3 - float(self._elapsed(before, start))
        return Sample(float(self._elapsed(start, stop)) / len(calls), wall / len(calls))


def state() -> dict[str, float]:
    """Clocks (MHz), temperature (°C) and power (W) right now, by NVML; empty without ``nvidia-ml-py``."""
    try:
        import pynvml
    except ImportError:
        return {}
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    return {
        "sm_mhz": float(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM)),
        "memory_mhz": float(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM)),
        "celsius": float(pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU)),
        "watts": pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
    }


@lru_cache
def fp32_ceiling() -> float:
    """What this GPU's multiply-add pipe reaches, FLOP/s: independent chains in registers, no memory."""
    cupy = require_gpu()
    blocks, rounds = int(cupy.cuda.Device().attributes["MultiProcessorCount"]) * 8, 4000
    out = cupy.zeros(blocks, cupy.float32)
    watch = Stopwatch(cold=False)
    samples = [watch([lambda: FMA(out, rounds, 0.999, 0.001)]).device for _ in range(7)]
    return 2.0 * blocks * 256 * rounds * 8 * 16 / (estimate(samples[2:]).value * 1e-3)


@lru_cache
def bandwidth_ceiling() -> float:
    """What a large copy on this GPU reaches, bytes/s, read and written bytes counted."""
    cupy = require_gpu()
    source = cupy.random.random(2**28, dtype=cupy.float32)
    target = cupy.empty_like(source)
    watch = Stopwatch()
    samples = [watch([lambda: cupy.copyto(target, source)]).device for _ in range(7)]
    return 2.0 * float(source.nbytes) / (estimate(samples[2:]).value * 1e-3)
