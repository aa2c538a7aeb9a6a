"""A CUDA C++ source as a value: built, and run on the GPU or emulated on the CPU."""

from importlib import import_module
from typing import Any

#: Public name -> the module it lives in, which is imported when the name is first asked for.
_HOMES = {
    "Kernel": "kernel",
    "ceil_div": "launch",
    "load_inline": "inline",
    "BuildError": "errors",
    "CudaError": "errors",
    "KernelFault": "errors",
    "LaunchError": "errors",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_HOMES)}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
