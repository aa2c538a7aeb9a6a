"""A CUDA C++ kernel as a value: one source that runs on a GPU and, emulated, on a CPU."""

import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tilelab.cudacpp import emulation, host_build
from tilelab.cudacpp.arguments import Argument, Array, bind
from tilelab.cudacpp.errors import BuildError, KernelFault, LaunchError, brief
from tilelab.cudacpp.launch import Launch, Shape, Size, extents, problem, shared_bytes
from tilelab.cudacpp.source import DTYPES, Declaration, Parameter, declaration, unset_arrays
from tilelab.hardware.limits import Capability, HardwareError, capability

BACKENDS = ("nvrtc", "nvcc")
#: Findings that an error tells: one fault may show at many pairs of lines.
SHOWN = 8


@dataclass(frozen=True)
class Kernel:
    """A ``__global__`` function with everything needed to launch it.

    Parameters
    ----------
    source
        CUDA C++ device code.
    name
        The kernel in it; a template with its arguments, ``matmul<16>``. Mark others ``extern "C"`` if you like: it
        makes no difference here.
    grid, block
        One to three extents, x first, or functions of the problem: ``lambda p: (ceil_div(p.N, 16), ceil_div(p.M, 16))``
        where ``p`` has every scalar argument by name, and every array's shape.
    shared
        Dynamic shared bytes a block, or a function of the problem. Above 48 KiB the launch opts in by itself.
    defines
        Macros, such as ``{"TILE": 16}``.
    options
        Further options for the GPU's compiler.
    backend
        ``nvrtc`` (in this process, well under a second) or ``nvcc`` (CuTe and host headers, seconds).
    device
        Whose limits hold in emulation, such as ``"H200"`` or ``"sm_86"``. On a GPU that GPU's own hold.
    alignment
        Bytes at whose multiples all arrays have to start; 16 for ``float4``. In
        emulation every array does.

    Examples
    --------
    >>> import numpy as np
    >>> double = Kernel("__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }",
    ...                 "twice", grid=1, block=lambda p: p.n)
    >>> x = np.arange(3, dtype=np.float32)
    >>> double(x, 3)
    >>> x
    array([0., 2., 4.], dtype=float32)
    """

    source: str
    name: str
    grid: Shape = 1
    block: Shape = 1
    shared: Size = 0
    defines: Mapping[str, object] = field(default_factory=dict)
    options: Sequence[str] = ()
    backend: str = "nvrtc"
    device: str = "sm_90"
    alignment: int = 1

    def __post_init__(self) -> None:
        """Check what can be checked without a compiler."""
        for what in ("source", "name"):
            given: object = getattr(self, what)
            if not isinstance(given, str):
                raise BuildError(
                    f"the {what} is {brief(given)}; Kernel takes the text of a CUDA C++ source and the name of a "
                    "__global__ function in it (of a file: Path(…).read_text())"
                )
        if self.source.startswith("\ufeff") or any("\ud800" <= char <= "\udfff" for char in self.source):
            raise BuildError(
                "the source holds a byte order mark, or characters that no UTF-8 text has: read its file with "
                'Path(…).read_text(encoding="utf-8-sig")'
            )
        if self.backend not in BACKENDS:
            raise BuildError(f"backend {self.backend!r} is none of {', '.join(BACKENDS)}")
        self._check_macros()
        if isinstance(self.options, str) or not all(isinstance(option, str) for option in self.options):
            raise BuildError(
                f"options is {brief(self.options)}; a list of texts is needed, such as ['--use_fast_math']"
            )
        if isinstance(self.alignment, bool) or not isinstance(self.alignment, int) or self.alignment < 1:
            raise LaunchError(f"alignment is {brief(self.alignment)}; a whole number of bytes from 1 on is needed")
        try:
            _ = self.chip
        except HardwareError as error:
            raise BuildError(f"device={self.device!r}: {error}") from None
        _ = self.parameters

    def _check_macros(self) -> None:
        """Refuse what no ``#define`` can hold."""
        if not isinstance(self.defines, Mapping):
            raise BuildError(f"defines is {brief(self.defines)}; a dict is needed, such as {{'TILE': 16}}")
        for name, value in self.defines.items():
            word = name.partition("(")[0] if isinstance(name, str) else ""
            if not (word.isascii() and word.isidentifier()) or word in DTYPES:
                raise BuildError(f"defines has {brief(name)}, which cannot be the name of a macro")
            if "\n" in str(value):
                raise BuildError(f"defines gives {name} the value {brief(value)}; a macro has one line")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters, read from the source."""
        return self.declared.parameters

    @cached_property
    def declared(self) -> Declaration:
        """How the source declares the kernel."""
        return declaration(self.source, self.name, self.macros)

    @cached_property
    def macros(self) -> tuple[str, ...]:
        """``NAME=VALUE`` for each of ``defines``; true is 1."""
        return tuple(f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in self.defines.items())

    @property
    def standard(self) -> str:
        """The C++ that ``options`` ask for, such as ``c++20``; C++17 without."""
        asked = re.findall(r"-std[= ](c\+\+\d\w)(?:\s|$)", " ".join(self.options))
        return asked[-1] if asked else "c++17"

    @cached_property
    def chip(self) -> Capability:
        """Limits that hold in emulation."""
        return capability(self.device)

    @cached_property
    def digest(self) -> str:
        """A name for this source with its options, for caches and records."""
        text = "\0".join([self.source, self.name, *self.macros, *self.options, self.backend])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def plan(self, *values: Any) -> tuple[tuple[Argument, ...], Launch]:
        """Check the arguments and fill in the launch; nothing runs.

        Raises
        ------
        LaunchError
            The arguments do not fit the kernel or one another, or a rule gives no numbers.
        """
        arguments = bind(self.parameters, values, self.name)
        for argument in arguments:
            if isinstance(argument, Array) and argument.device == "gpu" and argument.pointer % self.alignment:
                raise LaunchError(
                    f"{argument.name} starts {argument.pointer % self.alignment} bytes past a multiple of "
                    f"{self.alignment}, where {self.name} needs one: pass a copy"
                )
        asked = problem(self.parameters, arguments)
        grid, block = extents("grid", self.grid, asked), extents("block", self.block, asked)
        return arguments, Launch(grid, block, shared_bytes(self.shared, asked))

    def __call__(self, *values: Any) -> None:
        """Run on the GPU if the arrays live there, emulated if they live on the CPU; outputs change in place.

        Raises
        ------
        BuildError
            The source does not compile, or a compiler is missing.
        LaunchError
            The launch is beyond the device's limits, or the arguments do not fit.
        KernelFault
            In emulation: the kernel crashed, hung, diverged at a barrier or wrote outside its arrays.
        """
        arguments, launch = self.plan(*values)
        if any(isinstance(a, Array) and a.device == "gpu" for a in arguments):
            from tilelab.cudacpp import device

            device.prepare(self, arguments, launch)()
            return
        printed = self._emulate(arguments, launch, checked=False).printed
        if printed:
            sys.stdout.write(printed)

    def prepared(self, *values: Any) -> Callable[[], None]:
        """Everything but the launch, done now, on a GPU: what it returns launches and costs some microseconds.

        Raises
        ------
        BuildError, LaunchError
            As for a call.
        """
        from tilelab.cudacpp import device

        arguments, launch = self.plan(*values)
        return device.prepare(self, arguments, launch)

    def emulate(
        self, *values: Any, checked: bool = False, order: str = "forward", seed: int = 0, seconds: float = 60.0
    ) -> emulation.Emulation:
        """Run on the CPU, with a choice.

        Parameters
        ----------
        *values
            The kernel's arguments.
        checked
            Watch every access (some ten times slower): races, shared memory nobody wrote, indices out of bounds, local
            arrays nobody set. What it does not find: :mod:`tilelab.cudacpp.emulation`.
        order, seed
            In which order the threads of a block take their turns: ``forward``, ``reverse`` (and so do the blocks)
            or ``shuffled``.
        seconds
            After so long the kernel counts as endless.
        """
        arguments, launch = self.plan(*values)
        return self._emulate(arguments, launch, checked, order, seed, seconds)

    def check(self, *values: Any, seconds: float = 60.0) -> None:
        """Run on the CPU under the checker, and raise if it finds anything.

        Raises
        ------
        KernelFault
            Its text lists the first findings, each with its line; ``findings`` holds them all.
        """
        findings = self.emulate(*values, checked=True, seconds=seconds).findings
        if findings:
            rest = len(findings) - SHOWN
            more = [f"({rest} more; .findings of this error holds them all)"] if rest > 0 else []
            raise KernelFault("\n\n".join([*map(str, findings[:SHOWN]), *more]), findings)

    def build(self, checked: bool = False) -> host_build.Library:
        """Compile for emulation now instead of at the first call."""
        host_build.runtime()
        return host_build.build(self.source, self.declared, self.macros, checked, standard=self.standard)

    def _emulate(
        self,
        arguments: Sequence[Argument],
        launch: Launch,
        checked: bool,
        order: str = "forward",
        seed: int = 0,
        seconds: float = 60.0,
    ) -> emulation.Emulation:
        library, twin = self.build(checked), None
        if checked and unset_arrays(self.source):
            twin = host_build.build(self.source, self.declared, self.macros, False, True, self.standard)
        return emulation.launch(
            library,
            self.source,
            arguments,
            launch.grid,
            launch.block,
            launch.shared,
            self.chip,
            order,
            seed,
            seconds,
            twin,
        )
