"""A submitted source as machine code for one architecture, by NVRTC: device code only, and no part of any host program.

The compiler runs through the one runner for learner-written code, so in the sandbox where there is one. Without the
device runtime a kernel can start no other kernel.
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import tilelab
from tilelab.cudacpp.diagnostics import FILE, explain
from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.processes import Limits, Task, run
from tilelab.grading.device_sources import HEADERS, STANDARD, STANDARD_TEXT, device_text, files_fault
from tilelab.grading.errors import GradingError

#: The name under which NVRTC reads our text before a source.
STANDARD_NAME = "tilelab_standard.h"
#: Headers of CUDA that hold nothing but what NVRTC has built in: as good as empty where they are not installed.
BUILT_IN = dict.fromkeys(["cuda_runtime.h", "device_launch_parameters.h", "vector_types.h"], "\n")
#: Includes that bring libcu++ in.
_LIBCUXX = re.compile(r"include[^\n]*(?:cuda/|cooperative_groups|cuda_pipeline)")
_NOT_HERE = re.compile(rf"the header ({'|'.join(map(re.escape, sorted(HEADERS)))}) was not found: ")
LIMITS = Limits(seconds=20.0, memory=8 * 1024**3, file_size=64 * 1024**2)


@dataclass(frozen=True)
class Code:
    """Machine code, and the symbol of the kernel in it."""

    cubin: bytes
    symbol: str


@lru_cache
def nvrtc() -> tuple[str, tuple[str, ...]]:
    """Return NVRTC's library and the folders of CUDA's headers.

    Raises
    ------
    GradingError
        There is none.
    """
    try:
        from cuda.pathfinder import find_nvidia_header_directory, load_nvidia_dynamic_lib

        library = load_nvidia_dynamic_lib("nvrtc").abs_path
    except Exception as error:  # the loader has its own exceptions, and may be missing itself
        raise GradingError(f"no NVRTC to compile with ({error!s:.120}): pip install 'cupy-cuda13x[ctk]'") from None
    headers = []
    for package in ("cudart", "cccl"):
        with contextlib.suppress(Exception):  # not every installation has headers, and most kernels include none
            headers.append(find_nvidia_header_directory(package))
    toolkit = [Path(folder) / "include" for folder in (os.environ.get("CUDA_PATH"), "/usr/local/cuda") if folder]
    folders = [Path(folder) for folder in headers if folder] + [*toolkit, *(folder / "cccl" for folder in toolkit)]
    return str(library), tuple(dict.fromkeys(str(folder) for folder in folders if folder.is_dir()))


def compile_cubin(source: str, name: str, architecture: str, defines: Mapping[str, object]) -> Code:
    """Compile device code.

    Parameters
    ----------
    source : str
        CUDA C++.
    name : str
        The kernel in it.
    architecture : str
        Such as ``sm_90``.
    defines : mapping
        Macros.

    Raises
    ------
    BuildError
        The source does not compile, or asks for files. The message is for the learner.
    GradingError
        There is no compiler, it does not start, or a header is not installed.
    """
    if fault := files_fault(source):
        raise BuildError(fault)
    library, headers = nvrtc()
    options = [f"--gpu-architecture={architecture}", "-std=c++17", "-lineinfo", f"--pre-include={STANDARD_NAME}"]
    if _LIBCUXX.search(source):
        options += ["-DTILELAB_LIBCUXX"]
    options += ["--device-as-default-execution-space"]  # a helper without __device__ is one, as in emulation
    options += [f"-D{key}={value}" for key, value in defines.items()] + [f"-I{folder}" for folder in headers]
    given = {STANDARD_NAME: STANDARD_TEXT, **STANDARD, **({} if headers else BUILT_IN)}
    job = {"library": library, "name": name, "options": options, "file": FILE, "headers": given}
    root = Path(tilelab.__file__).resolve().parents[1]
    program = Path(__file__).with_name("nvrtc_inside.py").read_bytes()
    files = {"start.py": program, FILE: device_text(source).encode(), "job.json": json.dumps(job).encode()}
    shown = [root, Path(library).parent, *map(Path, headers)]
    done = run(Task([sys.executable, "-I", "-B", "start.py"], files, ["kernel.cubin", "result.json"], LIMITS, shown))
    if done.timed_out:
        raise BuildError(f"the source does not compile within {LIMITS.seconds:g} s")
    if "result.json" not in done.files and done.code > 0:  # not ended by a limit: it came to no source
        raise GradingError(f"NVRTC does not start (exit code {done.code}): {done.stderr.strip()[-300:]}")
    try:
        told = json.loads(done.files["result.json"])
        log, symbol = str(told["log"]), str(told["symbol"])
    except (KeyError, ValueError, TypeError):
        raise BuildError(
            f"the compiler ended without a result (exit code {done.code}): is the source endless?"
        ) from None
    if "kernel.cubin" not in done.files:
        error = explain(log, source, "nvrtc")
        if _NOT_HERE.search(str(error)):  # a header that a kernel may include, and this machine has not
            raise GradingError(str(error))
        raise error
    return Code(done.files["kernel.cubin"], symbol)
