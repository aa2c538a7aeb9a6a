"""A GPU that is none: the conductor's whole way of measuring, with times drawn from what an H200 showed.

Its processes are objects in this one, so a measurement takes milliseconds. Nothing runs: every kernel is right, unless
a test says what becomes of it.
"""

import random
import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

from tilelab.grading.timed import calls, rounds
from tilelab.grading.timed import conductor as module
from tilelab.grading.timed.channel import Lost
from tilelab.grading.timed.cubin import Code
from tilelab.grading.timed.worker import answering
from tilelab.kernels.ladder import rung

H200 = {"flops": 65e12, "bandwidth": 4.2e12}
NAIVE, TILED = (rung(name).kernel.source for name in ("naive", "tiled_16"))


class Times:
    """Milliseconds of kernels by their source, as drawn on an H200 at 1024³.

    The naive kernel has two speeds from call to call, the others one.
    """

    def __init__(self, seed: int = 0) -> None:
        self._draw = random.Random(seed)
        self.of = {NAIVE: (0.425, 0.441), TILED: (0.2945,)}

    def __call__(self, source: str) -> float:
        return self._draw.choice(self.of.get(source, (0.2805,))) * self._draw.gauss(
            1.0, 0.01 if source == NAIVE else 0.003
        )


class Clock:
    """The conductor's clock, moved by the kernels alone."""

    def __init__(self) -> None:
        self.now, self.last, self.calls, self.busy = 0.0, "", 0, range(0)

    def __call__(self) -> float:
        return self.now


class PretendGround:
    """Where a worker's kernels would run."""

    def __init__(self, times, clock, faults, moved) -> None:
        self._times, self._clock, self._faults, self._moved = times, clock, faults, moved
        self._kernels, self._name, self._shape = {}, "", ()

    def _step(self, step):
        """Fail, where a test says so."""
        source = self._kernels.get(self._name, "")
        said = self._faults.get(source, "")
        said = said(step, self._shape) if callable(said) else said * (step == "go")
        if isinstance(said, Exception):
            raise said
        if said:
            raise RuntimeError(said)
        return source

    def describe(self):
        return {"name": "NVIDIA H200", "architecture": "sm_90", "l2": 0, "cuda": "13.0", "emulated": False}

    def load(self, name, code):
        self._kernels[name], self._name, self._shape = code["source"], name, ()
        self._step("load")

    def prepare(self, name, call):
        self._name, self._shape = name, tuple(call.get("shape", ()))
        self._step("prepare")

    def go(self):
        source = self._clock.last = self._step("go")
        device = self._times(source) * (1 if max(self._shape) > 500 else 1e-3) if source else 0.002
        wall = 0.3 + device + (0.2 if self._clock.calls in self._clock.busy else 0.005)
        self._clock.calls += 1
        self._clock.now += (wall + 0.04) / 1e3
        start, before = self._moved.get(source, (0.0, 0.0))
        return {"wall": wall, "device": device - start, "before": 0.3 + before}

    def collect(self, file):
        pass

    def ceilings(self):
        return H200


class PretendNvml(ModuleType):
    """What NVML would say of a GPU; a test changes it.

    ``reasons`` are those for low clocks, one for each look; the last one stays.
    """

    NVMLError = type("NVMLError", (Exception,), {})
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = "sm", "memory", "core"

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.reasons = [0]
        self.processes = lambda: []
        self.silent = False
        self.looks = 0

    def __getattr__(self, name):
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def answer(*_):
            if self.silent and name not in ("nvmlInit", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"):
                raise self.NVMLError("not supported")
            if name == "nvmlDeviceGetCurrentClocksThrottleReasons":
                self.looks += 1
                return self.reasons.pop(0) if len(self.reasons) > 1 else self.reasons[0]
            if name == "nvmlDeviceGetComputeRunningProcesses":
                return [SimpleNamespace(pid=pid) for pid in self.processes()]
            return {"nvmlDeviceGetClockInfo": 1980, "nvmlDeviceGetUUID": "GPU-pretend"}.get(name, 0)

        return answer


@contextmanager
def pretend_gpu(monkeypatch, times=None, faults=None, nvml=None, moved=None, wrong=None, busy=range(0)):
    """Let a `Conductor` measure on a GPU that is none; yield what NVML says of it.

    ``faults`` maps sources to what the driver says of their launch, or to a function of step and shape that gives it,
    or gives what is raised instead; ``wrong`` to a function of the shape that gives what the comparer says; ``moved``
    to what a source does to its events: by how many milliseconds it moves its start, and by how many it lengthens what
    was before. The source ``""`` is the kernel that does nothing. In the calls that are ``busy``, counted from the
    first one, the machine does something else before it says that a kernel has ended.
    """
    clock, nvml, pids = Clock(), nvml or PretendNvml(), iter(range(100, 1_000_000))
    times, clock.busy = times or Times(), busy
    living = set()
    nvml.processes = lambda: sorted(living)

    class Companion:
        def __init__(self, what, *_):
            self.pid = next(pids)
            living.add(self.pid)
            self._answer = (
                answering(PretendGround(times, clock, faults or {}, moved or {})) if what.endswith("worker") else None
            )

        def ask(self, question, seconds, eager=False):
            if self.pid not in living:
                raise Lost("its process ended (SIGKILL)", signal=9)
            try:
                if self._answer:
                    return self._answer(question)
                return {"fault": (wrong or {}).get(clock.last, lambda shape: "")(tuple(question["shape"]))}
            except Lost:
                self.end()
                raise

        def end(self):
            living.discard(self.pid)

    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(module, "Companion", Companion)
    monkeypatch.setattr(module, "_now", clock)
    monkeypatch.setattr(calls, "_now", clock)
    monkeypatch.setattr(rounds, "_lot", random.Random(0))  # what is drawn is the same each time, as the times are
    monkeypatch.setattr(module, "compile_cubin", lambda *_: Code(b"", "matmul"))
    yield nvml
