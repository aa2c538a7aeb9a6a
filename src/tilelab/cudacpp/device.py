"""Running on a GPU, through CuPy: builds, limits checked before the launch, large shared memory opted in."""

import hashlib
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.arguments import Argument, Array
from tilelab.cudacpp.diagnostics import FILE, explain
from tilelab.cudacpp.errors import BuildError, LaunchError
from tilelab.cudacpp.launch import Launch
from tilelab.cudacpp.processes import cache_folder, keep
from tilelab.cudacpp.signature_check import checks
from tilelab.hardware.limits import Capability, HardwareError, capability, launch_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tilelab.cudacpp.kernel import Kernel


def gpu_missing() -> str | None:
    """Why no kernel can run on a GPU here, in one sentence with the remedy; ``None`` if one can."""
    try:
        import cupy
    except ImportError:
        return "running on a GPU needs CuPy: pip install 'cupy-cuda13x[ctk]' (cupy-cuda12x for a driver of CUDA 12)"
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no GPU answers ({str(error).split(':')[0]}); kernels run in emulation on the CPU instead"
    return None if count else "there is no NVIDIA GPU here; kernels run in emulation on the CPU instead"


def _cupy() -> Any:
    reason = gpu_missing()
    if reason:
        raise BuildError(reason)
    import cupy

    return cupy


@dataclass(frozen=True)
class Loaded:
    """A kernel on a device, ready to launch, with what it takes there."""

    function: Any
    chip: Capability
    registers: int
    static_shared: int
    local: int
    max_threads: int


_loaded: dict[tuple[str, int], Loaded] = {}
_lock = threading.Lock()


def load(kernel: "Kernel", ordinal: int = 0) -> Loaded:
    """Build a kernel for a device and load it, once.

    Raises
    ------
    BuildError
        No CuPy, no GPU, a compiler missing, an error in the source, or a toolkit newer than the driver.
    """
    with _lock:
        key = (kernel.digest, ordinal)
        if key not in _loaded:
            _loaded[key] = _load(kernel, ordinal)
        return _loaded[key]


def chip_of(ordinal: int = 0) -> Capability:
    """Limits of a device. Of a chip that :mod:`tilelab.hardware` does not know, the closest one below it."""
    cupy = _cupy()
    cc = str(cupy.cuda.Device(ordinal).compute_capability)
    try:
        return capability((int(cc[:-1]), int(cc[-1])))
    except HardwareError:
        return capability("sm_90" if int(cc) > 90 else "sm_70")


def _load(kernel: "Kernel", ordinal: int) -> Loaded:
    cupy = _cupy()
    chip = chip_of(ordinal)
    with cupy.cuda.Device(ordinal):
        try:
            function = _by_nvcc(cupy, kernel, chip) if kernel.backend == "nvcc" else _by_nvrtc(cupy, kernel)
            return Loaded(
                function,
                chip,
                registers=int(function.num_regs),
                static_shared=int(function.shared_size_bytes),
                local=int(function.local_size_bytes),
                max_threads=int(function.max_threads_per_block),
            )
        except cupy.cuda.compiler.CompileException as error:
            raise explain(str(error), kernel.source, "nvrtc") from None
        except cupy.cuda.driver.CUDADriverError as error:
            raise BuildError(_driver_trouble(cupy, str(error))) from None


def _by_nvrtc(cupy: Any, kernel: "Kernel") -> Any:
    options = ("-std=c++17", "-lineinfo", *(f"-D{macro}" for macro in kernel.macros), *kernel.options)
    code = f'#line 1 "{FILE}"\n{kernel.source}\n{checks(kernel.declared)}'
    module = cupy.RawModule(code=code, options=options, backend="nvrtc", name_expressions=[kernel.name])
    return module.get_function(kernel.name)


def _by_nvcc(cupy: Any, kernel: "Kernel", chip: Capability) -> Any:
    source = f"{kernel.source}\n{checks(kernel.declared)}"
    built = nvcc.compile_cubin(source, chip.name, kernel.macros, kernel.options)
    folder = cache_folder() / "loaded"
    file = folder / f"{hashlib.sha256(built.code).hexdigest()[:32]}.cubin"
    keep(file, built.code)
    return cupy.RawModule(path=str(file)).get_function(symbol(kernel.name, list(built.resources)))


def symbol(name: str, symbols: "Sequence[str]") -> str:
    """The symbol of a kernel among those of its machine code: ``extern "C"``, or the one mangled name that fits.

    Raises
    ------
    BuildError
        None fits, or more than one.
    """
    base = name.partition("<")[0].strip()
    fitting = [s for s in symbols if s == base] or [s for s in symbols if re.match(rf"_Z(N\w*?)?{len(base)}{base}", s)]
    if len(fitting) != 1:
        raise BuildError(
            f'{name!r} names {len(fitting)} of the kernels built ({", ".join(symbols)}); mark it extern "C"'
        )
    return fitting[0]


def _driver_trouble(cupy: Any, text: str) -> str:
    driver = cupy.cuda.runtime.driverGetVersion()
    toolkit = cupy.cuda.runtime.runtimeGetVersion()
    if "PTX" in text or "NO_BINARY" in text:
        return (
            f"the compiler (CUDA {toolkit // 1000}.{toolkit % 1000 // 10}) is newer than the driver (CUDA "
            f"{driver // 1000}.{driver % 1000 // 10}) can load: install a CuPy for the driver (pip install "
            f"cupy-cuda{driver // 1000}x), or update the driver"
        )
    return f"the driver refuses the kernel: {text}"


def problems(loaded: Loaded, launch: Launch) -> list[str]:
    """Why a launch would fail on the device, one sentence each."""
    found = launch_problems(loaded.chip, launch.grid, launch.block, loaded.static_shared, launch.shared)
    if not found and launch.threads > loaded.max_threads:
        found.append(
            f"{launch.threads} threads a block with {loaded.registers} registers each; this kernel can have "
            f"{loaded.max_threads} (__launch_bounds__({launch.threads}) makes the compiler use fewer registers)"
        )
    return found


def prepare(kernel: "Kernel", arguments: "tuple[Argument, ...]", launch: Launch) -> "Callable[[], None]":
    """A launch on the device where the arrays live, on the current stream of the library they come from.

    Raises
    ------
    BuildError
        The kernel cannot be built here.
    LaunchError
        The launch is beyond the device's limits; nothing has run.
    """
    arrays = [argument for argument in arguments if isinstance(argument, Array)]
    if not arrays or arrays[0].device != "gpu":
        raise LaunchError("a launch on a GPU needs arrays that live there (CuPy arrays, or torch tensors on cuda)")
    ordinal = arrays[0].ordinal
    loaded = load(kernel, ordinal)
    found = problems(loaded, launch)
    if found:
        raise LaunchError("; ".join(found))
    import cupy
    import numpy

    function = loaded.function
    if loaded.static_shared + launch.shared > loaded.chip.shared_static:
        function.max_dynamic_shared_size_bytes = launch.shared
    values = tuple(
        numpy.uint64(a.pointer) if isinstance(a, Array) else numpy.frombuffer(a.packed, a.dtype)[0] for a in arguments
    )

    def go() -> None:
        with cupy.cuda.Device(ordinal), _stream(cupy, arrays):
            function(launch.grid, launch.block, values, shared_mem=launch.shared)

    return go


def _stream(cupy: Any, arrays: "list[Array]") -> Any:
    """The stream that the arrays' own library is using, so that what was enqueued before is done before."""
    for array in arrays:
        if hasattr(array.value, "data_ptr"):
            import torch

            return cupy.cuda.ExternalStream(torch.cuda.current_stream(array.ordinal).cuda_stream)
    return cupy.cuda.get_current_stream()
