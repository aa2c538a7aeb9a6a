"""The lecture's way: C++ with CUDA inside, bound to Python by PyTorch's ``load_inline``.

PyTorch's own function has traps that this one takes away: a name used twice quietly gives the first build, a failed
build stays failed until its folder is deleted, missing tools end in a page of log. It takes most of a minute, for it
compiles PyTorch's headers; :class:`~tilelab.cudacpp.kernel.Kernel` takes under a second.
"""

import hashlib
import re
import shutil
from collections.abc import Sequence
from typing import Any

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.diagnostics import FILE, explain
from tilelab.cudacpp.errors import BuildError, brief
from tilelab.cudacpp.processes import cache_folder


def module_name(cpp_source: str, cuda_source: str, flags: Sequence[str], arch: str) -> str:
    """A name that changes whenever anything that goes into the build does."""
    text = "\0".join([cpp_source, cuda_source, arch, *flags])
    return f"tilelab_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _no_toolkit(version: str, cuda: str | None) -> str:
    """Why PyTorch finds no CUDA toolkit though there is an ``nvcc``."""
    if cuda is None:  # then it does not look for one, whatever CUDA_HOME says
        return (
            f"load_inline needs a PyTorch that is built for CUDA, and this one ({version}) is not: install one from "
            "https://pytorch.org (setting CUDA_HOME does not help); Kernel needs none"
        )
    return "PyTorch finds no CUDA toolkit: set CUDA_HOME to the folder that holds bin/nvcc"


def load_inline(
    cpp_source: str,
    cuda_source: str,
    functions: Sequence[str],
    flags: Sequence[str] = (),
    arch: str | None = None,
    force: bool = False,
) -> Any:
    """Build host and device code as a PyTorch extension and import it.

    Parameters
    ----------
    cpp_source
        Declarations of the functions, such as ``torch::Tensor matmul(torch::Tensor a, torch::Tensor b);``.
    cuda_source
        Kernels, and the functions that launch them.
    functions
        Names to bind.
    flags
        For ``nvcc``. ``-O2`` here reaches the host compiler; device code is at its highest level already.
    arch
        ``sm_90`` and the like; of the first GPU where not given.
    force
        Build again although nothing has changed.

    Raises
    ------
    BuildError
        PyTorch, ninja or nvcc is missing, or the sources do not compile (with the line).
    """
    try:
        import torch
        from torch.utils import cpp_extension
    except ImportError:
        raise BuildError("load_inline is PyTorch's: pip install torch") from None
    if isinstance(functions, str) or not functions or not all(isinstance(name, str) for name in functions):
        raise BuildError(f"functions is {brief(functions)}; a list of names to bind is needed, such as ['matmul']")
    if arch is not None and not re.fullmatch(r"sm_\d{2,3}[a-z]?", str(arch)):
        raise BuildError(f'arch is {brief(arch)}; name one as nvcc does, such as "sm_90"')
    nvcc.find()
    if shutil.which("ninja") is None:
        raise BuildError("load_inline builds with ninja, which is not installed: pip install ninja")
    if arch is None:
        if not torch.cuda.is_available():
            raise BuildError('load_inline builds for the GPU at hand and there is none; name one, such as arch="sm_90"')
        arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    full = nvcc.target(arch)
    name = module_name(cpp_source, cuda_source, [*flags, *functions], full)
    folder = cache_folder() / "load_inline" / name

    def forget() -> None:
        """Let the next call build afresh: PyTorch also notes which text it saw last under a name, built or not."""
        shutil.rmtree(folder, ignore_errors=True)
        cpp_extension.JIT_EXTENSION_VERSIONER.entries.pop(name, None)

    if force:
        forget()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return cpp_extension.load_inline(
            name=name,
            cpp_sources=cpp_source,
            # PyTorch puts lines of its own in front; errors are to count the learner's.
            cuda_sources=f'#line 1 "{FILE}"\n{cuda_source}',
            functions=list(functions),
            # With a target among the flags PyTorch adds none of its own list, which knows no sm_90a.
            extra_cuda_cflags=[f"-gencode=arch={full.replace('sm_', 'compute_')},code={full}", *flags],
            build_directory=str(folder),
        )
    except (RuntimeError, ImportError, OSError) as error:
        forget()
        if "CUDA_HOME" in str(error):
            raise BuildError(_no_toolkit(torch.__version__, torch.version.cuda)) from None
        raise explain(str(error), cuda_source, "nvcc") from None
