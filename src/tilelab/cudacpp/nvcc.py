"""Building with ``nvcc``: to machine code for one architecture, with the compiler's report on what it uses.

Needs no GPU and no CuPy. The CuTe headers come from the wheel ``nvidia-cutlass``.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from tilelab.cudacpp.diagnostics import FILE, explain
from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.processes import Limits, Task, cache_folder, keep, run

#: Compute capabilities whose own instructions (WGMMA, TMA, tcgen05) need the architecture-specific target.
SPECIFIC = ("sm_90", "sm_100", "sm_103", "sm_120")


@dataclass(frozen=True)
class Resources:
    """What one kernel takes, as the assembler reports it; ``None`` where it does not say."""

    registers: int
    static_shared: int
    spill_stores: int
    spill_loads: int
    stack: int


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture, and what each kernel in it takes."""

    code: bytes
    resources: dict[str, Resources]


@lru_cache
def find() -> str:
    """Path of ``nvcc``.

    Raises
    ------
    BuildError
        There is none on the PATH, nor under ``$CUDA_PATH`` or ``/usr/local/cuda``.
    """
    folders = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    for path in (shutil.which("nvcc"), *(f"{folder}/bin/nvcc" for folder in folders if folder)):
        if path and os.access(path, os.X_OK):
            return path
    raise BuildError(
        'backend="nvcc" needs the CUDA compiler, and there is none on the PATH or under $CUDA_PATH: install the CUDA '
        'toolkit, or use backend="nvrtc" for kernels that include no host or CuTe headers'
    )


def target(arch: str) -> str:
    """The full target of an architecture: ``sm_90`` becomes ``sm_90a``, so that its own instructions can be used."""
    return f"{arch}a" if arch in SPECIFIC else arch


def cutlass_include() -> tuple[Path, ...]:
    """Folder of the CuTe and CUTLASS headers, from the wheel ``nvidia-cutlass``; empty if it is not installed."""
    found = importlib.util.find_spec("cutlass_library")
    folders = () if found is None or found.submodule_search_locations is None else found.submodule_search_locations
    return tuple(path for folder in folders if (path := Path(folder) / "source" / "include").is_dir())


@lru_cache
def toolkit_include() -> tuple[Path, ...]:
    """Folders of the toolkit's own headers, libcu++ among them, as ``nvcc`` itself would search them."""
    told = run(Task([find(), "--dryrun", "-E", "-x", "cu", "nothing.cu"], {"nothing.cu": b""}))
    folders = re.findall(r'"(?:-I)?([^"\n]+/include(?:/cccl)?)"', told.stderr)
    return tuple(path for path in dict.fromkeys(Path(folder).resolve() for folder in folders) if path.is_dir())


def compile_cubin(source: str, arch: str = "sm_90", macros: Sequence[str] = (), options: Sequence[str] = ()) -> Cubin:
    """Compile device code to machine code, or take it from the cache. Failed builds are not remembered.

    Parameters
    ----------
    source
        CUDA C++.
    arch
        Such as ``sm_90``.
    macros
        ``NAME=VALUE`` each.
    options
        Further options of ``nvcc``.

    Raises
    ------
    BuildError
        No ``nvcc``, or the first error with its line.
    """
    path = find()
    includes = cutlass_include()
    key = hashlib.sha256("\0".join([source, arch, *macros, *options, path, *map(str, includes)]).encode()).hexdigest()[
        :32
    ]
    code, facts = (cache_folder() / "nvcc" / f"{key}.{end}" for end in ("cubin", "json"))
    if code.exists() and facts.exists():
        stored = json.loads(facts.read_text())
        return Cubin(code.read_bytes(), {name: Resources(**fields) for name, fields in stored.items()})
    full = target(arch)
    argv = [path, "-cubin", "-std=c++17", f"-gencode=arch={full.replace('sm_', 'compute_')},code={full}"]
    argv += ["-lineinfo", "-Xptxas", "-v", "--expt-relaxed-constexpr", *(f"-D{macro}" for macro in macros), *options]
    argv += [*(f"-I{folder}" for folder in includes), FILE, "-o", "kernel.cubin"]
    built = run(Task(argv, {FILE: source.encode()}, ["kernel.cubin"], Limits(seconds=300), includes))
    log = built.stderr + built.stdout
    if built.code or "kernel.cubin" not in built.files:
        raise explain(log, source, "nvcc")
    cubin = Cubin(built.files["kernel.cubin"], parse_resources(log))
    keep(facts, json.dumps({name: asdict(one) for name, one in cubin.resources.items()}).encode())
    keep(code, cubin.code)
    return cubin


def parse_resources(log: str) -> dict[str, Resources]:
    """Read what ``ptxas -v`` says of each kernel (its mangled name)."""
    found = {}
    for part in re.split(r"Compiling entry function '", log)[1:]:
        used = re.search(r"Used (\d+) registers", part)
        if used:
            found[part.split("'", 1)[0]] = Resources(
                int(used[1]),
                *(
                    int(match[1]) if (match := re.search(form, part)) else 0
                    for form in (
                        r"(\d+) bytes smem",
                        r"(\d+) bytes spill stores",
                        r"(\d+) bytes spill loads",
                        r"(\d+) bytes stack frame",
                    )
                ),
            )
    return found
