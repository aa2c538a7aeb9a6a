"""Emulation: a CUDA C++ kernel compiled for the CPU and run there, in a process of its own.

The header in ``emulator/include`` stands in for CUDA's; ``emulator/*.cpp`` is the runtime, built once for a machine.
A checked build lets the compiler report every access to the runtime, which then finds races, unwritten shared memory
and indices out of bounds.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tilelab.cudacpp.arguments import Argument, Array, host_bytes, store
from tilelab.cudacpp.diagnostics import FILE, explain
from tilelab.cudacpp.errors import BuildError, KernelFault, LaunchError
from tilelab.cudacpp.findings import Finding, read_report
from tilelab.cudacpp.processes import Finished, Limits, Task, cache_folder, keep, run
from tilelab.cudacpp.source import Parameter, for_emulation, without_comments
from tilelab.hardware.limits import Capability, launch_problems

HERE = Path(__file__).parent / "emulator"
INCLUDE = HERE / "include"
RUNTIME_SOURCES = ("runtime.cpp", "report.cpp", "check.cpp", "runtime.h")
#: Bytes of poison on both sides of every array. Poison is 0xff: NaN as a float, -1 as an integer.
GUARD = 4096
POISON = b"\xff"
ORDERS = ("forward", "reverse", "shuffled")

_COMMON = ["-std=c++17", "-fPIC", "-fno-strict-aliasing", "-fno-math-errno", "-ftrivial-auto-var-init=pattern"]
# A fibre's stack has 128 KiB; what a frame takes is known when it is compiled.
_COMMON += ["-Werror=frame-larger-than=98304"]
_FAST = ["-O2", "-g1"]
# Each access has to stay the access that the source makes: no merging, no vectors.
_CHECKED = [
    "-O2",
    "-g",
    "-fsanitize=thread",
    "-fsanitize=bounds,alignment",
    "--param=tsan-instrument-func-entry-exit=0",
    "-Wuninitialized",
    "-Wmaybe-uninitialized",
    "-fno-tree-vectorize",
    "-fno-store-merging",
    "-fno-tree-slp-vectorize",
    "-fno-ipa-icf",
]
# Without the sanitizers' own libraries: the runtime answers in their place.
_LINK = ["-shared", "-nostdlib", "-lc", "-lm", "-lgcc"]


@dataclass(frozen=True)
class Library:
    """A kernel built for emulation.

    ``shared`` are its static shared arrays (name, offset, bytes), ``unset`` the local variables that a checked build
    saw read before they are set (line, name).
    """

    code: bytes
    shared: tuple[tuple[str, int, int], ...]
    unset: tuple[tuple[int, str], ...]
    checked: bool

    @property
    def static_shared(self) -> int:
        """Bytes of static shared memory in the source, all of its instantiated kernels together."""
        return sum(size for _, _, size in self.shared)


@dataclass(frozen=True)
class Emulation:
    """What a run left besides its arrays: what the kernel printed, and what the checker found."""

    printed: str
    findings: tuple[Finding, ...]


@lru_cache
def compiler() -> tuple[str, str]:
    """Path and identity of the host's C++ compiler.

    Raises
    ------
    BuildError
        There is none.
    """
    path = shutil.which("g++")
    if path is None:
        raise BuildError(
            "emulation compiles the kernel with g++, which is not installed: apt install g++ (or build-essential)"
        )
    real = Path(path).resolve()
    status = real.stat()
    return path, f"{real}:{status.st_size}:{status.st_mtime_ns}"


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


@lru_cache
def _our_sources() -> str:
    files = sorted(file for file in HERE.rglob("*") if file.is_file())
    return _digest(_COMMON, _FAST, _CHECKED, _LINK, *(part for file in files for part in (file.name, file.read_text())))


def runtime() -> bytes:
    """The program that runs kernels, from the cache or built: once for a machine."""
    path, identity = compiler()
    file = cache_folder() / "emulator" / f"runtime-{_digest(_our_sources(), identity)}"
    if file.exists():
        return file.read_bytes()
    sources = {name: (HERE / name).read_bytes() for name in RUNTIME_SOURCES}
    units = [name for name in RUNTIME_SOURCES if name.endswith(".cpp")]
    built = run(Task([path, "-O2", "-rdynamic", *units, "-o", "runtime", "-ldl"], sources, ["runtime"]))
    if built.code:
        raise BuildError(f"the emulator itself does not compile here: {built.stderr.strip()[:400]}", built.stderr)
    keep(file, built.files["runtime"])
    return built.files["runtime"]


def build(source: str, name: str, parameters: Sequence[Parameter], defines: Sequence[str], checked: bool) -> Library:
    """Compile a kernel for the CPU, or take it from the cache. Failed builds are not remembered.

    Parameters
    ----------
    source, name
        CUDA C++, and the kernel in it.
    parameters
        From :func:`tilelab.cudacpp.source.signature`; the number of them is checked by the compiler too.
    defines
        ``NAME=VALUE`` each.
    checked
        Whether every access reports to the checker.

    Raises
    ------
    BuildError
        With the first error's line.
    """
    path, identity = compiler()
    folder = cache_folder() / "emulator"
    key = _digest(source, name, *defines, checked, _our_sources(), identity)
    code, facts = folder / f"{key}.so", folder / f"{key}.json"
    if code.exists() and facts.exists():
        shared, unset = json.loads(facts.read_text())
        return Library(code.read_bytes(), tuple(map(tuple, shared)), tuple(map(tuple, unset)), checked)
    text = (
        f'{for_emulation(source)}\n#line 1 "launch"\n'
        'extern "C" __attribute__((weak)) char __start_tilelab_shared[], __stop_tilelab_shared[];\n'
        "char* tilelab_span[] __attribute__((used)) = {__start_tilelab_shared, __stop_tilelab_shared};\n"
        f'extern "C" void tilelab_entry(void** arguments) {{ tilelab_call(&{name}, arguments); }}\n'
    )
    flags = [*_COMMON, *(_CHECKED if checked else _FAST), *(f"-D{define}" for define in defines)]
    read = [f"-I{INCLUDE}", "-include", "tilelab_cuda.h", "-x", "c++", FILE, "-x", "none"]
    argv = [path, *flags, *read, "-o", "kernel.so", *_LINK]
    built = run(Task(argv, {FILE: text.encode()}, ["kernel.so"], readable=[INCLUDE]))
    if built.timed_out:
        raise BuildError("the compiler took more than a minute; is a loop unrolled too far?", built.stderr)
    if built.code:
        raise explain(built.stderr, source, "g++")
    library = Library(built.files["kernel.so"], _shared_arrays(built.files["kernel.so"]), _unset(built.stderr), checked)
    keep(facts, json.dumps([library.shared, library.unset]).encode())
    keep(code, library.code)
    return library


def _unset(log: str) -> tuple[tuple[int, str], ...]:
    """Local variables that g++ saw used before they are set, on some path at least."""
    used = re.findall(rf"^{FILE}:(\d+):.* warning: .(\w+).*(?:is|may be) used uninitialized", log, re.M)
    declared = {
        name: int(line) for line, name in re.findall(rf"^{FILE}:(\d+):.* note: .(\w+).* was declared here", log, re.M)
    }
    return tuple(dict.fromkeys((declared.get(name, int(line)), name) for line, name in used))


def _shared_arrays(code: bytes) -> tuple[tuple[str, int, int], ...]:
    """Static shared arrays of a library, from its symbols.

    They are the local variables with static storage; those outside functions lie in a section of their own. (g++
    drops a section attribute inside a template, so the section alone does not tell.)
    """
    listed = run(Task(["nm", "-S", "-C", "--defined-only", "kernel.so"], {"kernel.so": code})).stdout
    symbols = []
    bounds = {"__start_tilelab_shared": 0, "__stop_tilelab_shared": 0}
    for line in listed.splitlines():
        fields = line.split(maxsplit=3)
        if fields[-1] in bounds:
            bounds[fields[-1]] = int(fields[0], 16)
        if len(fields) == 4 and fields[2] in "bdu":
            symbols.append((fields[3], int(fields[0], 16), int(fields[1], 16)))
    low, high = bounds.values()
    return tuple(
        (symbol.rsplit("::", 1)[-1].split("[")[0], offset, size)
        for symbol, offset, size in symbols
        if "::" in symbol or low <= offset < high
    )


def launch(
    library: Library,
    source: str,
    arguments: Sequence[Argument],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_shared: int,
    chip: Capability,
    order: str = "forward",
    seed: int = 0,
    seconds: float = 60.0,
) -> Emulation:
    """Run a built kernel and write its arrays back.

    Parameters
    ----------
    library, source
        From :func:`build`, and what it was built from.
    arguments
        From :func:`tilelab.cudacpp.arguments.bind`.
    grid, block, dynamic_shared
        The launch.
    chip
        Whose limits hold.
    order, seed
        In which order the threads of a block take their turns: ``forward``, ``reverse`` or ``shuffled`` (by ``seed``).
        A right kernel does not notice.
    seconds
        After so long the process is ended.

    Raises
    ------
    LaunchError
        The launch is beyond the limits of ``chip``; nothing has run.
    KernelFault
        The kernel crashed, did not end, met a barrier that some thread does not reach, or wrote outside its arrays.
    """
    problems = launch_problems(chip, grid, block, library.static_shared, dynamic_shared)
    if problems:
        raise LaunchError("; ".join(problems))
    if order not in ORDERS:
        raise LaunchError(f"order {order!r} is none of {', '.join(ORDERS)}")
    arrays = [argument for argument in arguments if isinstance(argument, Array)]
    memory, offsets = _lay_out(arrays)
    lines = [
        "grid {} {} {}".format(*grid),
        "block {} {} {}".format(*block),
        f"dynamic {dynamic_shared}",
        f"order {ORDERS.index(order)} {seed}",
        *(f"shared {offset} {size} {name.replace(' ', '_')}" for name, offset, size in library.shared),
        *(f"array {at} {a.bytes} {a.itemsize} {a.name or '?'}" for a, at in zip(arrays, offsets, strict=True)),
    ]
    for argument in arguments:
        if isinstance(argument, Array):
            lines.append(f"pointer {arrays.index(argument)}")
        else:
            lines.append(f"value {int.from_bytes(argument.packed, 'little'):x}")
    files = {
        "runtime": runtime(),
        "kernel.so": library.code,
        "job": "\n".join(lines).encode(),
        "memory": bytes(memory),
    }
    done = run(Task(["./runtime"], files, ["memory", "report"], Limits(seconds=seconds)))
    findings = (
        *(Finding.unset(line, name, source) for line, name in library.unset),
        *read_report(done.files.get("report", b"").decode(), library.code, source, block, grid),
    )
    _stop_if_failed(done, findings, seconds)
    after = done.files["memory"]
    if not findings:
        _check_guards(after, arrays, offsets)
    for array, at in zip(arrays, offsets, strict=True):
        content = after[at : at + array.bytes]
        if content != memory[at : at + array.bytes]:
            store(array, content)
    return Emulation(done.stdout, findings)


def _lay_out(arrays: Sequence[Array]) -> tuple[bytearray, list[int]]:
    """All arrays in one memory with poison around each, and where each begins."""
    offsets, end = [], GUARD
    for array in arrays:
        offsets.append(end)
        end += -(-array.bytes // 256) * 256 + GUARD
    memory = bytearray(POISON) * end
    for array, at in zip(arrays, offsets, strict=True):
        memory[at : at + array.bytes] = host_bytes(array)
    return memory, offsets


def _check_guards(memory: bytes, arrays: Sequence[Array], offsets: Sequence[int]) -> None:
    """Look for writes into the poison between arrays."""
    starts = [0, *(at + array.bytes for array, at in zip(arrays, offsets, strict=True))]
    ends = [*offsets, len(memory)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        guard = memory[start:end]
        if guard.count(POISON) == len(guard):
            continue
        first = start + next(i for i, byte in enumerate(guard) if byte != POISON[0])
        before = arrays[number - 1] if number else None
        if before is not None and (number == len(arrays) or first - start < end - first):
            element, length = (first - offsets[number - 1]) // before.itemsize, before.bytes // before.itemsize
            text = f"the kernel wrote to {before.name}[{element}], past its end ({length} elements)"
        else:
            after = arrays[number]
            text = f"the kernel wrote to {after.name}[{(first - end) // after.itemsize}], before its start"
        raise KernelFault(f"{text}; kernel.check(…) names the line")


def _stop_if_failed(done: Finished, findings: tuple[Finding, ...], seconds: float) -> None:
    if done.timed_out:
        raise KernelFault(f"the kernel did not end within {seconds:g} s: look for a loop whose end is never reached")
    fatal = [finding for finding in findings if finding.fatal]
    if fatal:
        raise KernelFault(str(fatal[0]), tuple(findings))
    if done.code:
        raise KernelFault(f"the emulator ended with code {done.code}: {done.stderr.strip()[:400] or 'no word said'}")


def unsupported(source: str) -> str | None:
    """Why a source cannot be emulated at all, in one sentence; ``None`` if nothing speaks against trying."""
    text = without_comments(source)
    if "<<<" in text:
        return "host code with <<<…>>> cannot be emulated: keep the __global__ function alone and let Kernel launch it"
    return None
