"""Emulation: a CUDA C++ kernel compiled for the CPU and run there, in a process of its own.

The header in ``emulator/include`` stands in for CUDA's; ``emulator/*.cpp`` is the runtime, built once for a machine.
A checked build lets the compiler report every access to the runtime, which then finds races, unwritten shared memory
and indices out of bounds.

What it does not find: writes past the end of a local array through a pointer, or from one ``__device__`` variable into
the next; a static shared array overrun by more than 16 KiB; a barrier inside a device function that two branches call;
a race that needs a path which this launch does not take; a missing ``__threadfence()`` between a write and the atomic
that announces it (threads here take turns, so nothing is ever reordered); blocks that meet at one atomic, where another
would be needed to order what they share (between blocks any two atomics count, within a block two of one address, as
locks need it). Where atomics alone kept accesses from racing, a second run goes through blocks and threads backwards.
It reports as a race threads that store the same value. Lanes of a warp operation's mask that have ended count as having
left, as CUDA allows; taking a value from one of them is found. A thread that has returned is missed at a
``__syncthreads()`` that others still reach: that is reported, though GPUs from sm_70 on mostly let it pass.

Where arithmetic is not a GPU's: casts such as ``(int)3e9f``, ``(int)NAN`` and ``(unsigned)-1.f`` do what the CPU does
(a GPU saturates, and makes 0 of a NaN; ``__float2int_rn`` and its kind do so here too); shifts by the width or more
(a GPU gives 0, or the sign); ``x * x - y`` is rounded twice (a GPU fuses it into one rounding, unless
``__fmul_rn`` or ``--fmad=false`` forbids it).
"""

import hashlib
import json
import re
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tilelab.cudacpp import guards
from tilelab.cudacpp.arguments import Argument, Array, store
from tilelab.cudacpp.diagnostics import FILE, explain, shortened
from tilelab.cudacpp.errors import READING, BuildError, KernelFault, LaunchError, brief
from tilelab.cudacpp.findings import Finding, read_report
from tilelab.cudacpp.processes import Limits, Task, cache_folder, keep, run
from tilelab.cudacpp.signature_check import checks
from tilelab.cudacpp.source import Declaration, excerpt, first_value_of_shared, for_emulation, unset_arrays
from tilelab.cudacpp.unemulated import explain_unemulated, why_unemulated
from tilelab.hardware.limits import Capability, launch_problems

HERE = Path(__file__).parent / "emulator"
INCLUDE = HERE / "include"
#: So many blocks may take a minute though each ends.
MANY = 100_000
#: The name of variables that the kernel's author knows nothing of, and that nobody watches.
OWN = "-"
#: An array as long as the first argument of the kernel's ``__launch_bounds__``.
_MOST_THREADS = "tilelab_most_threads"
RUNTIME_SOURCES = ("runtime.cpp", "report.cpp", "check.cpp", "confine.cpp", "runtime.h", "hooks.h")
#: Bytes of a built kernel: those of the course take some hundred thousand.
LARGEST = 32 * 1024**2
ORDERS = ("forward", "reverse", "shuffled")

_COMMON = [
    "-std=c++17",
    "-fPIC",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-threadsafe-statics",
]
# A fibre's stack has 128 KiB; what a frame takes is known when it is compiled.
_COMMON += ["-Werror=frame-larger-than=98304", "-fstack-clash-protection"]
# Local variables that nobody sets hold nonsense, or zeros in the build that shows whether that makes a difference.
_NONSENSE, _ZEROS = "-ftrivial-auto-var-init=pattern", "-ftrivial-auto-var-init=zero"
_FAST = ["-O2", "-g1"]
# Each access has to stay the access that the source makes: no merging, no vectors.
_CHECKED = [
    "-DTILELAB_CHECKED",
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
#: Exit code that says the source holds inline assembly.
_ASSEMBLY = 77
_STEPS = f"""
assembly=$1; shift
"$0" "$@" -S -o kernel.s || exit 1
if grep -m1 -A1 '^#APP' kernel.s >&2; then exit $assembly; fi
exec "$0" kernel.s -o kernel.so {" ".join(_LINK)}
"""
#: What a kernel may have from outside: the emulator's own, mathematics, memory and printing.
_DEVICE = re.compile(
    r"tilelab_(?!switch)\w+|__tsan_\w+|__ubsan_handle_\w+|_GLOBAL_OFFSET_TABLE_"
    r"|_ITM_\w+|__gmon_start__|__cxa_\w+|__gxx_\w+|_Unwind_\w+|_Z(?:TV|TI|TS|nw|na|dl|da)\w*|__stack_chk_fail"
    r"|mem(?:cpy|set|move|cmp)|str(?:len|n?cmp)|(?:__)?v?printf(?:_chk)?|puts|putchar|malloc|free|clock|l?l?abs"
    r"|(?:__)?(?:a?(?:sin|cos|tan)h?|atan2|sincos|sqrt|cbrt|hypot|expm1|exp(?:2|10)?|log(?:2|10|1p|b)?|pow(?:10)?|fma"
    r"|fmod|fmax|fmin|fdim|fabs|floor|ceil|l?l?(?:round|rint)|trunc|nearbyint|remainder|remquo|copysign|nan|nextafter"
    r"|ldexp|scalbl?n|frexp|modf|ilogb|erfc?|[tl]gamma|[jy][01n]|finite|isinf|isnan|signbit|fpclassify)[fl]?(?:_r)?"
)


@dataclass(frozen=True)
class Library:
    """A kernel built for emulation.

    ``shared`` are its static shared arrays, ``device`` its ``__device__`` variables and ``constants`` its
    ``__constant__`` ones (name, offset, bytes), ``unset`` the local variables that a checked build saw read before they
    are set (line, name). ``most_threads`` is what its ``__launch_bounds__`` allows a block; 0 without.
    """

    code: bytes
    shared: tuple[tuple[str, int, int], ...]
    device: tuple[tuple[str, int, int], ...]
    constants: tuple[tuple[str, int, int], ...]
    unset: tuple[tuple[int, str], ...]
    most_threads: int
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


@dataclass(frozen=True)
class _Run(Emulation):
    """One process: also its memory at the end, and whether atomics alone kept some of its accesses from racing."""

    memory: bytes
    leaned: bool


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
    return _digest(
        _COMMON,
        _NONSENSE,
        _ZEROS,
        _FAST,
        _CHECKED,
        _LINK,
        *(part for file in files for part in (file.name, file.read_text())),
    )


def runtime() -> bytes:
    """The program that runs kernels, from the cache or built: once for a machine."""
    path, identity = compiler()
    file = cache_folder() / "emulator" / f"runtime-{_digest(_our_sources(), identity)}"
    if file.exists():
        return file.read_bytes()
    sources = {name: (HERE / name).read_bytes() for name in RUNTIME_SOURCES}
    units = [name for name in RUNTIME_SOURCES if name.endswith(".cpp")]
    built = run(Task([path, "-O3", "-rdynamic", *units, "-o", "runtime", "-ldl"], sources, ["runtime"]))
    if built.code:
        raise BuildError(f"the emulator itself does not compile here: {built.stderr.strip()[:400]}", built.stderr)
    keep(file, built.files["runtime"])
    return built.files["runtime"]


def build(
    source: str,
    declared: Declaration,
    defines: Sequence[str],
    checked: bool,
    zeros: bool = False,
) -> Library:
    """Compile a kernel for the CPU, or take it from the cache. Failed builds are not remembered.

    Parameters
    ----------
    source, declared
        CUDA C++, and how the kernel in it is declared (:func:`tilelab.cudacpp.source.declaration`): the compiler checks
        that it reads the same.
    defines
        ``NAME=VALUE`` each.
    checked
        Whether every access reports to the checker.
    zeros
        Whether local variables that nobody sets are 0 instead of nonsense.

    Raises
    ------
    BuildError
        With the first error's line.
    """
    path, identity = compiler()
    folder = cache_folder() / "emulator"
    name = declared.name
    key = _digest(source, name, checks(declared), *defines, checked, zeros, _our_sources(), identity)
    code, facts = folder / f"{key}.so", folder / f"{key}.json"
    if code.exists() and facts.exists():
        *lists, most = json.loads(facts.read_text())
        shared, variables, constants, unset = (tuple(map(tuple, part)) for part in lists)
        return Library(code.read_bytes(), shared, variables, constants, unset, most, checked)
    # Macros come after our header, so that they mean nothing in it.
    macros = "".join("#define {} {}\n".format(*define.partition("=")[::2]) for define in defines)
    bounds = f'extern "C" {{ char {_MOST_THREADS}[{declared.most_threads}] __attribute__((used)); }}\n'
    given = first_value_of_shared(source)
    if given:
        raise BuildError(
            f"line {given}: {excerpt(source, given)}\na __shared__ variable cannot have a first value: let one thread "
            f"store it, then __syncthreads()\n\n{excerpt(source, given, 1)}"
        )
    text = (
        f'{macros}#line 1 "{FILE}"\n{for_emulation(source)}\n{checks(declared)}'
        f'{bounds if declared.most_threads else ""}#line 1 "launch"\n'
        f'extern "C" void tilelab_entry(void** tilelab_given) {{ tilelab_call(&{name}, tilelab_given); }}\n'
    )
    flags = [
        *_COMMON,
        _ZEROS if zeros else _NONSENSE,
        *(_CHECKED if checked else _FAST),
        # This one our header reads too.
        *(f"-D{define}" for define in defines if define.startswith("NDEBUG=")),
    ]
    read = [f"-I{INCLUDE}", "-include", "tilelab_cuda.h", "-x", "c++", FILE, "-x", "none"]
    # In two steps, for in between the compiler's own marks tell of inline assembly, however it was written.
    argv = ["sh", "-c", _STEPS, path, str(_ASSEMBLY), *flags, *read]
    built = run(Task(argv, {FILE: text.encode()}, ["kernel.so"], Limits(file_size=LARGEST), [INCLUDE]))
    if built.timed_out:
        raise BuildError("the compiler took more than a minute; is a loop unrolled too far?", built.stderr)
    if built.code == _ASSEMBLY:
        marked = re.search(rf'^# (\d{{1,9}}) "{FILE}"', built.stderr, re.M)
        place = f"line {marked[1]}: {excerpt(source, int(marked[1]))}\n" if marked else ""
        raise BuildError(place + why_unemulated("asm"), built.stderr)
    if built.code and re.search(r"File too large|file size limit|SIGXFSZ", built.stderr, re.I):
        raise BuildError(f"the kernel takes more than {LARGEST >> 20} MiB once it is built: make its variables smaller")
    if built.code:
        raise explain_unemulated(explain(built.stderr, source, "g++"), source)
    if "kernel.so" not in built.files:
        raise BuildError(f"the kernel takes more than {LARGEST >> 20} MiB once it is built: make its variables smaller")
    listed = run(Task(["nm", "-f", "sysv", "kernel.so"], {"kernel.so": built.files["kernel.so"]})).stdout
    if len(listed) >= Limits().output // 2:  # of a longer list only the beginning would be seen
        raise BuildError("the source makes more functions and variables than a kernel can need")
    symbols = [[field.strip() for field in line.split("|")] for line in listed.splitlines() if line.count("|") == 6]
    _only_device_code([name for name, value, *_ in symbols if not value])
    shared, variables, constants, most = _variables([symbol for symbol in symbols if symbol[1]])
    library = Library(built.files["kernel.so"], shared, variables, constants, _unset(built.stderr), most, checked)
    lists = [library.shared, library.device, library.constants, library.unset]
    keep(facts, json.dumps([*lists, library.most_threads]).encode())
    keep(code, library.code)
    return library


def _only_device_code(wanted: Sequence[str]) -> None:
    """Refuse a library that asks for what no device code has, such as a file or the end of the process."""
    for symbol in (versioned.partition("@")[0] for versioned in wanted):
        if not _DEVICE.fullmatch(symbol):
            name = run(Task(["c++filt", symbol])).stdout.strip()[:200] or symbol
            raise BuildError(
                f"the source uses {name}, which no device code has: it is host code, or declared and defined nowhere"
            )


def _unset(log: str) -> tuple[tuple[int, str], ...]:
    """Local variables that g++ saw used before they are set, on some path at least."""
    log = shortened(log)
    used = re.findall(rf"^{FILE}:(\d{{1,9}}):.* warning: .(\w+).*(?:is|may be) used uninitialized", log, re.M)
    declared = {
        name: int(line)
        for line, name in re.findall(rf"^{FILE}:(\d{{1,9}}):.* note: .(\w+).* was declared here", log, re.M)
    }
    return tuple(dict.fromkeys((declared.get(name, int(line)), name) for line, name in used))


Variables = tuple[tuple[str, int, int], ...]


def _variables(symbols: Sequence[Sequence[str]]) -> tuple[Variables, Variables, Variables, int]:
    """Static shared arrays, other variables, constants, and the most threads of a block, from a library's symbols.

    Shared are the local variables with static storage; those outside functions lie in a section of their own. (g++
    drops a section attribute inside a template, so the section alone does not tell.)

    Parameters
    ----------
    symbols
        Name, value, class, type, size, line and section of each, as ``nm -f sysv`` lists them.
    """
    most = 0
    shared: list[tuple[str, int, int]] = []
    device: list[tuple[str, int, int]] = []
    constants: list[tuple[str, int, int]] = []
    for name, value, letter, _, size, _, section in symbols:
        if name == _MOST_THREADS:
            most = int(size, 16)
        if not size or letter not in "bBdDuV" or name.startswith("tilelab_"):
            continue
        local = name.startswith("_ZZ") or section == "tilelab_shared"
        kind = constants if section.startswith("tilelab_constant") else shared if local else device
        kind.append((_plain(name), int(value, 16), int(size, 16)))
    return tuple(shared), tuple(device), tuple(constants), most


def _plain(symbol: str) -> str:
    """The name that a variable has in the source: mangled, it is the last of the names, each behind its length."""
    if symbol.startswith("_ZGV"):  # the compiler's own note that a static variable is initialised
        return OWN
    if symbol.startswith("_ZZ"):  # of a function, and behind the function
        for found in re.finditer(r"E(\d+)(?=\D)", symbol):
            name, rest = symbol[found.end() :][: int(found[1])], symbol[found.end() + int(found[1]) :]
            if re.fullmatch(r"(_\d*_?)?", rest):
                return name[:63]
    name, rest = symbol, re.sub(r"^_Z[NL]*", "", symbol)
    while head := re.match(r"L?(\d+)", rest):
        end = head.end() + int(head[1])
        name, rest = rest[head.end() : end], rest[end:]
    return name[:63]


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
    twin: Library | None = None,
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
        In which order the threads of a block take their turns: ``forward``, ``reverse`` (and so do the blocks) or
        ``shuffled`` (by ``seed``). A right kernel does not notice.
    seconds
        After so long the process is ended.
    twin
        The same kernel built with zeros in local variables that nobody sets: where its results differ, the kernel
        reads such variables.

    Raises
    ------
    LaunchError
        The launch is beyond the limits of ``chip``; nothing has run.
    KernelFault
        The kernel crashed, did not end, met a barrier that some thread does not reach, or wrote outside its arrays.
    """
    problems = launch_problems(chip, grid, block, library.static_shared, dynamic_shared)
    threads = block[0] * block[1] * block[2]
    if not problems and 0 < library.most_threads < threads:
        problems = [
            f"{threads} threads a block, but the kernel is declared with __launch_bounds__({library.most_threads})"
        ]
    if problems:
        raise LaunchError("; ".join(problems))
    if order not in ORDERS:
        raise LaunchError(f"order {order!r} is none of {', '.join(ORDERS)}")
    if not isinstance(seed, int):
        raise LaunchError(f"seed is {brief(seed)}; a whole number is needed")
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise LaunchError(f"seconds is {brief(seconds)}; a number above 0 is needed")
    arrays = [argument for argument in arguments if isinstance(argument, Array)]
    memory, offsets = guards.lay_out(arrays)
    job = [
        "grid {} {} {}".format(*grid),
        "block {} {} {}".format(*block),
        f"dynamic {dynamic_shared}",
        *(f"array {at} {a.bytes} {a.itemsize} {(a.name or '?')[:63]}" for a, at in zip(arrays, offsets, strict=True)),
    ]
    for argument in arguments:
        if isinstance(argument, Array):
            job.append(f"pointer {arrays.index(argument)}")
        else:
            job.append(f"value {int.from_bytes(argument.packed, 'little'):x}")

    def go(library: Library, order: str, seconds: float) -> _Run:
        ordered = [f"order {ORDERS.index(order)} {seed % 2**32}", *job]
        return _run(library, source, ordered, memory, grid, block, seconds)

    start = time.monotonic()
    done = go(library, order, seconds)
    findings, after = done.findings, done.memory
    if not findings:
        guards.look(memory, after, arrays, offsets)
    if twin and not findings:
        findings = _unset_arrays(source, after, go(twin, order, seconds).memory)
    if done.leaned and not findings:
        # What one order of turns put behind an atomic, another may not.
        taken = time.monotonic() - start
        findings = _races(go, library, "forward" if order == "reverse" else "reverse", min(seconds, 2 * taken + 2))
    for array, at in zip(arrays, offsets, strict=True):
        content = after[at : at + array.bytes]
        if content != memory[at : at + array.bytes]:
            store(array, content)
    return Emulation(done.printed, findings)


def _races(
    go: Callable[[Library, str, float], _Run], library: Library, order: str, seconds: float
) -> tuple[Finding, ...]:
    """The races that show with another order of turns; what else goes wrong there may be the order's own fault."""
    try:
        findings: Sequence[object] = go(library, order, seconds).findings
    except KernelFault as fault:
        findings = fault.findings
    return tuple(one for one in findings if isinstance(one, Finding) and one.kind == "race")


def _run(
    library: Library,
    source: str,
    job: Sequence[str],
    memory: bytes,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    seconds: float,
) -> _Run:
    """One process, to its end. Raises what stopped it."""
    token = secrets.token_hex(16)
    lines = [
        f"checked {int(library.checked)}",
        f"token {token}",
        *(f"shared {offset} {size} {name}" for name, offset, size in library.shared),
        *(f"device {offset} {size} {name}" for name, offset, size in library.device),
        *(f"constant {offset} {size} {name}" for name, offset, size in library.constants),
        *job,
    ]
    files = {"runtime": runtime(), "kernel.so": library.code, "job": "\n".join(lines).encode(), "memory": bytes(memory)}
    done = run(Task(["./runtime"], files, ["memory", "report"], Limits(seconds=seconds)))
    report = done.files.get("report", b"").decode(errors="replace")
    try:
        findings = (
            *(Finding.unset(line, name, source) for line, name in library.unset),
            *read_report(report, library.code, source, block, grid),
        )
    except READING:  # only a kernel that writes into what is not its own leaves a report that cannot be read
        raise KernelFault("the kernel disturbed the emulator's own record of what it did") from None
    if done.timed_out:
        blocks = grid[0] * grid[1] * grid[2]
        many = f", or launch fewer than {blocks} blocks, which run one after another here" if blocks > MANY else ""
        raise KernelFault(
            f"the kernel did not end within {seconds:g} s: look for a loop whose end is never reached{many}"
        )
    if any(finding.fatal for finding in findings) or (findings and not library.checked):
        # What came before says why it stopped, where both happened at one line.
        stopped = next((finding.line for finding in findings if finding.fatal), 0)
        before = [finding for finding in findings if not finding.fatal and finding.line == stopped]
        shown = before[:1] or [finding for finding in findings if finding.fatal] or findings
        raise KernelFault(str(shown[0]), findings)
    if done.code:
        raise KernelFault(f"the emulator ended with code {done.code}: {done.stderr.strip()[:400] or 'no word said'}")
    if f"finished\ttoken={token}\n" not in report:
        raise KernelFault(
            "the kernel ended the whole process before all its threads were done: a kernel cannot call exit() or its "
            "kind; a thread ends with return"
        )
    if len(done.files.get("memory", b"")) != len(memory):
        raise KernelFault("the kernel took away the memory that its arrays lie in")
    return _Run(done.stdout, findings, done.files["memory"], "\nleaned\n" in report)


def _unset_arrays(source: str, nonsense: bytes, zeros: bytes) -> tuple[Finding, ...]:
    """What it means that the results are not the same with nonsense and with zeros in local variables."""
    if nonsense == zeros:
        return ()
    return tuple(Finding.unset(line, name, source) for line, name in unset_arrays(source))
