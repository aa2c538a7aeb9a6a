"""Compiling a kernel for the CPU, with the host's C++ compiler, and what its library says of the kernel.

The header in ``emulator/include`` stands in for CUDA's; ``emulator/*.cpp`` is the runtime, built once for a machine.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tilelab.cudacpp.diagnostics import FILE, explain, shortened
from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.preprocess import active, defined_by, without_comments
from tilelab.cudacpp.processes import Limits, Task, cache_folder, keep, run
from tilelab.cudacpp.shared import first_value_of_shared, for_emulation, plain_statics
from tilelab.cudacpp.signature_check import checks
from tilelab.cudacpp.source import Declaration, excerpt
from tilelab.cudacpp.unemulated import explain_unemulated, why_unemulated

HERE = Path(__file__).parent / "emulator"
INCLUDE = HERE / "include"
#: The name of variables that the kernel's author knows nothing of, and that nobody watches.
OWN = "-"
#: An array as long as the first argument of the kernel's ``__launch_bounds__``.
_MOST_THREADS = "tilelab_most_threads"
RUNTIME_SOURCES = (
    "runtime.cpp",
    "job.cpp",
    "report.cpp",
    "check.cpp",
    "confine.cpp",
    "runtime.h",
    "hooks.h",
    "exports",
)
_EMULATED = "tilelab_emulated_here"
_CONTAINERS = re.compile(
    r"\bstd::(?:vector|string|list|deque|queue|stack|(?:unordered_)?(?:map|set)|function|(?:unique|shared)_ptr)\b"
)
#: Bytes of a built kernel: those of the course take some hundred thousand.
LARGEST = 32 * 1024**2

_COMMON = [
    "-fPIC",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-threadsafe-statics",
    "-fno-finite-loops",  # one that never ends is to be seen
    "-Werror=vla",
    "-Werror=return-type",  # what runs on past its end crashes anywhere
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
# What the source defines is its own, whatever else in the process has that name.
_LINK = ["-shared", "-Wl,-Bsymbolic", "-nostdlib", "-lc", "-lm", "-lgcc"]
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
    # What rewrites a source, and reads what was built, is part of it too.
    files = [*sorted(file for file in HERE.rglob("*") if file.is_file()), Path(__file__), HERE.with_name("shared.py")]
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
    built = run(
        Task([path, "-O3", "-Wl,--dynamic-list=exports", *units, "-o", "runtime", "-ldl"], sources, ["runtime"])
    )
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
    standard: str = "c++17",
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
    standard
        Of C++.

    Raises
    ------
    BuildError
        With the first error's line.
    """
    path, identity = compiler()
    folder = cache_folder() / "emulator"
    name = declared.name
    key = _digest(source, name, checks(declared), *defines, checked, zeros, standard, _our_sources(), identity)
    code, facts = folder / f"{key}.so", folder / f"{key}.json"
    if code.exists() and facts.exists():
        *lists, most = json.loads(facts.read_text())
        shared, variables, constants, unset = (tuple(map(tuple, part)) for part in lists)
        return Library(code.read_bytes(), shared, variables, constants, unset, most, checked)
    # Macros come after our header, so that they mean nothing in it.
    macros = '#line 1 "macros"\n' + "".join("#define {} {}\n".format(*define.partition("=")[::2]) for define in defines)
    bounds = f'extern "C" {{ char {_MOST_THREADS}[{declared.most_threads}] __attribute__((used)); }}\n'
    given = first_value_of_shared(source, defines)
    if given:
        raise BuildError(
            f"line {given}: {excerpt(source, given)}\na __shared__ variable cannot have a first value: let one thread "
            f"store it, then __syncthreads()\n\n{excerpt(source, given, 1)}"
        )
    host_only = host_containers(source, defines)
    if host_only:
        line, what = host_only
        raise BuildError(
            f"line {line}: {excerpt(source, line)}\n{what} is host code, which no kernel can call: use a local array "
            f"of constant length, or give the kernel an array\n\n{excerpt(source, line, 1)}"
        )
    text = (
        f'{macros}#line 1 "{FILE}"\n{for_emulation(source, defines)}\n{checks(declared)}'
        f'{bounds if declared.most_threads else ""}#line 1 "launch"\n'
        f'extern "C" void tilelab_entry(void** tilelab_given) {{ tilelab_call(&{name}, tilelab_given); }}\n'
    )
    flags = [
        f"-std={standard}",
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
    shared, variables, constants, most = _variables([symbol for symbol in symbols if symbol[1]], source)
    library = Library(built.files["kernel.so"], shared, variables, constants, _unset(built.stderr), most, checked)
    lists = [library.shared, library.device, library.constants, library.unset]
    keep(facts, json.dumps([*lists, library.most_threads]).encode())
    keep(code, library.code)
    return library


def host_containers(source: str, defines: Sequence[str]) -> tuple[int, str] | None:
    """Line and name of the first container of the host's library, which a host's compiler takes in a kernel too."""
    # What the emulation leaves out is not read.
    plain = without_comments(source).replace("TILELAB_EMULATION", _EMULATED)
    text, _ = active(plain, {_EMULATED: "1", **defined_by(defines)})
    found = _CONTAINERS.search(text)
    return (text.count("\n", 0, found.start()) + 1, found[0]) if found else None


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


def _variables(symbols: Sequence[Sequence[str]], source: str) -> tuple[Variables, Variables, Variables, int]:
    """Static shared arrays, other variables, constants, and the most threads of a block, from a library's symbols.

    Shared variables lie in sections of their own. Only inside a template g++ drops the attribute: there all local
    variables with static storage count as shared, but those that the source declares ``static`` without ``__shared__``.

    Parameters
    ----------
    symbols
        Name, value, class, type, size, line and section of each, as ``nm -f sysv`` lists them.
    source
        What they were built from.
    """
    most, statics = 0, plain_statics(source)
    shared: list[tuple[str, int, int]] = []
    device: list[tuple[str, int, int]] = []
    constants: list[tuple[str, int, int]] = []
    for name, value, letter, _, size, _, section in symbols:
        if name == _MOST_THREADS:
            most = int(size, 16)
        if not size or letter not in "bBdDuV" or name.startswith("tilelab_") or section.startswith(".data.rel.ro"):
            continue
        of_template = name.startswith("_ZZ") and letter in "uV" and _plain(name) not in statics
        local = section.startswith("tilelab_shared") or of_template
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
