"""The CUDA C++ floor builds and runs learner-written kernels inside: what they do there costs only their own run."""

import numpy as np
import pytest

from tilelab.cudacpp.errors import BuildError, KernelFault
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.processes import use_runner
from tilelab.grading.sandbox.emulation import run_inside

pytestmark = pytest.mark.slow  # the first kernel builds the emulator


@pytest.fixture(autouse=True)
def _inside(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TILELAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    with use_runner(run_inside):
        yield


def launch(source, **options):
    x = np.arange(64, dtype=np.float32)
    Kernel(source, "k", grid=1, block=64).emulate(x, **options)
    return x


def test_a_right_kernel_gives_the_right_result():
    doubled = launch("__global__ void k(float* x) { x[threadIdx.x] *= 2; }")
    assert np.array_equal(doubled, 2 * np.arange(64, dtype=np.float32))


def test_a_race_is_still_found():
    x = np.zeros(64, dtype=np.float32)
    race = "__global__ void k(float* x) { __shared__ float s; s = threadIdx.x; x[threadIdx.x] = s; }"
    assert Kernel(race, "k", grid=1, block=64).emulate(x, checked=True).findings


ENDINGS = {
    "a crash": "*(volatile int*)16 = 1;",
    "an endless loop": "while (true) x[0] += 1;",
    "a trap": "__builtin_trap();",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_kernel_that_crashes_or_hangs_is_a_fault_with_words(ending):
    source = f"__global__ void k(float* x) {{ {ENDINGS[ending]} }}"
    with pytest.raises(KernelFault) as caught:
        launch(source, seconds=2)
    assert str(caught.value)


def test_a_constructor_sees_nothing_and_a_file_outside_cannot_be_built_in(tmp_path):
    secret = tmp_path / "check.py"
    secret.write_text("SECRET")
    kernel = "__global__ void k(float* x) { x[threadIdx.x] = found; }"
    look = f'extern "C" int access(const char*, int);\nstatic int found = access("{secret}", 4) == 0;\n'
    with pytest.raises(BuildError, match="access, which no device code has"):
        launch(look + kernel)
    embed = f'asm(".incbin \\"{secret}\\"");\n'
    with pytest.raises(BuildError):
        launch(embed + kernel.replace("found", "1"))
