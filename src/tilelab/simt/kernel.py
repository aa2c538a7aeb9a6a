"""Kernels: decorated functions, launched with square brackets as Numba's are."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelab.hardware.limits import HardwareError, capability
from tilelab.simt import tree
from tilelab.simt.arguments import Arguments
from tilelab.simt.arithmetic import Marker
from tilelab.simt.errors import Dim3, LaunchError, SimtError, UnsupportedError
from tilelab.simt.lower import FunctionTyper, type_program
from tilelab.simt.signatures import Signature
from tilelab.simt.source import Source
from tilelab.simt.types import Type
from tilelab.simt.words import plural


@dataclass(frozen=True)
class Options:
    """How a launch is simulated."""

    checks: bool = True
    """Find races, divergence, unwritten reads and bad indices, and count. Without, only results are right: an index is
    not held against each axis, and only what leaves an array's memory, at either end, is an error."""
    engine: str = "auto"
    """``lanes``, ``threads``, or ``auto``: lanes where they can."""
    seed: int | None = None
    """Run threads and blocks in a random order that this number fixes (engine ``threads``)."""
    device: str = "H200"
    """Whose launch limits hold: a name from :mod:`tilelab.hardware.limits`, or ``sm_90`` and the like."""
    steps: int = 100_000
    """Rounds of loops after which a kernel is taken for endless: of up to 1024 lanes together in one chunk of blocks,
    or with the plain engine of one thread, and 16 times as many of a block's threads added up."""
    chunk: int = 8192
    """Lanes run together."""
    watch: Sequence[int] = (0, 0, 0)
    """Block whose shared memory a report records."""
    progress: bool = True
    """Show a progress bar for what takes over two seconds."""

    def __post_init__(self) -> None:
        if self.engine not in ("auto", "lanes", "threads"):
            raise LaunchError(f"engine={self.engine!r}: use auto, lanes or threads")
        for name in ("checks", "progress"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise LaunchError(f"{name}={getattr(self, name)!r}: use True or False")
        if self.seed is not None and self.engine == "lanes":
            raise LaunchError(
                f"seed={self.seed!r} with engine='lanes': lanes run in step, whatever the seed; leave engine out, or "
                "use engine='threads'"
            )
        for name, least in (("steps", 1), ("chunk", 1), ("seed", 0)):
            value = getattr(self, name)
            if (name != "seed" or value is not None) and not (_whole(value) and value >= least):
                raise LaunchError(f"{name}={value!r}: use a whole number from {least} on")
        if not isinstance(self.watch, Sequence) or not 1 <= len(self.watch) <= 3 or not all(map(_whole, self.watch)):
            raise LaunchError(f"watch={self.watch!r}: use the coordinates of a block, (0, 0, 0) for the first")
        try:
            capability(self.device)
        except (HardwareError, TypeError, AttributeError, IndexError) as fault:
            raise LaunchError(f"device={self.device!r}: {fault}") from None


class Kernel:
    """A function under ``@cuda.jit``. ``kernel[grid, block](...)`` launches it."""

    def __init__(self, function: Callable[..., Any], device: bool = False, signature: Signature | None = None) -> None:
        self.source = Source(function)
        self.signature = signature
        if signature is not None and len(signature.parameters) != len(self.source.params):
            raise UnsupportedError(
                f"{function.__name__} takes {plural(len(self.source.params), 'argument')}, its signature names "
                f"{len(signature.parameters)}"
            )
        self.device_source = self.source if device else None
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.py_func = function
        self._programs: dict[tuple[Type, ...], tree.Program] = {}
        self.compiled: dict[tuple[int, str], Any] = {}

    def __repr__(self) -> str:
        return f"<{'device function' if self.device_source else 'kernel'} {self.__name__}>"

    def __call__(self, *_: Any) -> Any:
        if self.device_source:
            raise SimtError(f"{self.__name__} is a device function: call it from a kernel")
        raise LaunchError(f"launch {self.__name__} with a grid and a block: {self.__name__}[grid, block](...)")

    def __getitem__(self, configuration: Any) -> "Configured":
        return Configured(self, configuration, Options())

    def forall(self, tasks: int, tpb: int = 128, stream: Any = 0, sharedmem: int = 0) -> "Configured":
        """A launch of at least ``tasks`` threads in blocks of ``tpb``."""
        block = tpb or 128
        return self[-(-tasks // block), block, stream, sharedmem]

    def configure(self, *_: Any) -> "Configured":
        """Numba's name for square brackets."""
        return self[_]

    def program(self, types: list[Type]) -> tree.Program:
        """The kernel typed for these arguments."""
        key = tuple(types)
        if key not in self._programs:
            program = type_program(self.source, types)
            Marker(program).mark()
            self._programs[key] = program
        return self._programs[key]

    def typed_for(
        self, program: tree.Program, types: list[Type], typer: type[FunctionTyper], node: ast.Call, caller: Source
    ) -> tree.Function:
        """The device function, typed for the arguments of one call."""
        key = (id(self), *types)
        if key in program.typed:
            known = program.typed[key]
            if known is None:
                raise caller.fault(node, f"{self.__name__} calls itself, which is not simulated; write a loop")
            return known
        program.typed[key] = None
        function = tree.Function(self.__name__, self.source.params, types)
        typer(program, self.source, types, function, is_device=True).build()
        program.typed[key] = function
        program.functions.append(function)
        return function


class Configured:
    """A kernel with its grid and block, ready for arguments."""

    def __init__(self, kernel: Kernel, configuration: Any, options: Options) -> None:
        if kernel.device_source is not None:
            raise LaunchError(f"{kernel.__name__} is a device function: call it from a kernel")
        parts = configuration if isinstance(configuration, tuple) else (configuration,)
        if not 2 <= len(parts) <= 4:
            raise LaunchError(
                f"{kernel.__name__}[grid, block, stream, dynamic_shared_bytes] takes two to four values, "
                f"not {len(parts)}"
            )
        self.kernel, self.options = kernel, options
        self.grid, self.block = (
            _three(kernel.__name__, what, part) for what, part in zip(("grid", "block"), parts, strict=False)
        )
        self.dynamic = parts[3] if len(parts) == 4 else 0
        if not _whole(self.dynamic) or self.dynamic < 0:
            raise LaunchError(
                f"{kernel.__name__}: {self.dynamic!r} bytes of dynamic shared memory; use a whole number from 0 on"
            )
        self.dynamic = int(self.dynamic)

    def arguments(self, given: tuple[Any, ...]) -> tuple[Arguments, tree.Program]:
        """Arguments typed, and the kernel typed for them."""
        arguments = Arguments(self.kernel.__name__, self.kernel.source.params, given, self.kernel.signature)
        arguments.name(self.kernel.source.params)
        program = self.kernel.program(arguments.types)
        arguments.mark_written(program.written)
        return arguments, program

    def __call__(self, *args: Any) -> None:
        """Launch; a finding is raised."""
        from tilelab.simt.launch import launch

        launch(self, args, collect=False)


class Simulated:
    """A kernel with options, waiting for its grid and block."""

    def __init__(self, kernel: Kernel, options: Options, inspect: bool) -> None:
        if not isinstance(kernel, Kernel):
            raise SimtError(f"{kernel!r} is no kernel; decorate a function with @cuda.jit")
        self.kernel, self.options, self.inspect = kernel, options, inspect

    def __getitem__(self, configuration: Any) -> Callable[..., Any]:
        configured = Configured(self.kernel, configuration, self.options)
        if not self.inspect:
            return configured

        def run(*args: Any) -> Any:
            from tilelab.simt.launch import inspect

            return inspect(configured, args)

        return run


def with_options(options: dict[str, Any]) -> Options:
    """Options by name.

    Raises
    ------
    SimtError
        A name that is not an option.
    """
    unknown = set(options) - set(Options.__dataclass_fields__)
    if unknown:
        raise SimtError(f"no option {', '.join(sorted(unknown))}; there are {', '.join(Options.__dataclass_fields__)}")
    return replace(Options(), **options)


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _three(kernel: str, what: str, extents: Any) -> Dim3:
    parts = tuple(extents) if isinstance(extents, tuple | list) else (extents,)
    try:
        numbers = [int(p) for p in parts]
    except (TypeError, ValueError):
        raise LaunchError(f"{kernel}: the {what} {extents!r} is no number or tuple of numbers") from None
    if not 1 <= len(numbers) <= 3 or any(a != b for a, b in zip(numbers, parts, strict=True)):
        raise LaunchError(f"{kernel}: the {what} {extents!r} must be one to three whole numbers")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z
