"""Compilers' messages, cut down to what a learner needs: the first error, at the learner's own line."""

import math
import re
import unicodedata

from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.preprocess import without_comments
from tilelab.cudacpp.source import excerpt

#: The name under which every compiler sees the learner's source.
FILE = "kernel.cu"
#: Characters of a line, and of a log, that are read.
WIDEST, LONGEST_LOG = 2000, 200_000
#: Characters of one error that are shown.
LONGEST = 400

_FORMS = (
    re.compile(  # nvcc, nvrtc
        r"^(?P<file>[^\s(:][^(:\n]*)\((?P<line>\d{1,9})\)\s*: (?:catastrophic |fatal )?error(?: #[\d-]+\w*)?:? "
        r"(?P<what>.*)$",
        re.M,
    ),
    re.compile(
        r"^(?P<file>[^\s(:][^:\n]*):(?P<line>\d{1,9})(?::\d+)?: (?:fatal )?[eE]rror: (?P<what>.*)$", re.M
    ),  # g++, and as
)
_MISSING_HEADER = re.compile(
    r"[\"'‘]?([\w./+-]{1,200}+)[\"'’]?: No such file|(?:cannot|could not) open source file \"([^\"]+)\""
)
_SHARED = re.compile(r"uses too much shared data \((0x[0-9a-f]{1,16}) bytes, (0x[0-9a-f]{1,16}) max\)")

#: Header -> what brings it. The first match of the start of the name counts.
_PACKAGES = (
    ("cute/", 'pip install nvidia-cutlass (the CuTe headers), and build with backend="nvcc"'),
    ("cutlass/", 'pip install nvidia-cutlass (the CUTLASS headers), and build with backend="nvcc"'),
    ("cuda/std/", "pip install nvidia-cuda-cccl (libcu++), or take the header of the CUDA toolkit"),
    ("cuda/", "pip install nvidia-cuda-cccl (libcu++), or take the header of the CUDA toolkit"),
    ("cub/", "pip install nvidia-cuda-cccl"),
    ("thrust/", "pip install nvidia-cuda-cccl"),
    ("cuda_", "pip install nvidia-cuda-runtime, or set CUDA_PATH to a CUDA toolkit"),
    ("torch/", "use load_inline, which builds host code against PyTorch; Kernel takes device code alone"),
)
_STANDARD = (
    'NVRTC brings no C++ standard library: use <cuda/std/…> instead (pip install nvidia-cuda-cccl), or backend="nvcc"'
)
_OWN = "a kernel is one text, so put what that header holds into the source"
_PTXAS = re.compile(r"^ptxas [^\n]{0,400}?line \d{1,9}; error\s*: ([^\n]*)", re.M)
_UNRESOLVED = re.compile(r"Unresolved extern (?:function|variable) '(?:_Z(\d{1,4}))?(\w{1,1000})")


def shortened(log: str) -> str:
    """A log without what no compiler says of itself: lines of thousands of characters, and thousands of lines."""
    return "\n".join(line[:WIDEST] for line in log[:LONGEST_LOG].split("\n"))


def errors(log: str) -> list[tuple[str, int, str]]:
    """All errors of a log as (file, line, message), in the order of the log."""
    found = [(m.start(), m["file"], int(m["line"]), m["what"]) for form in _FORMS for m in form.finditer(log)]
    return [(file, line, what) for _, file, line, what in sorted(found)]


def explain(log: str, source: str, compiler: str) -> BuildError:
    """A compiler's log as one error: the learner's line first, then what is wrong with it.

    Parameters
    ----------
    log
        Everything the compiler printed.
    source
        The learner's source, which the compiler saw under the name :data:`FILE`.
    compiler
        What to call it: ``nvrtc``, ``nvcc``, ``g++``.
    """
    whole, log = log, shortened(log)
    all_errors = errors(log)
    own = [(line, what) for file, line, what in all_errors if file.rsplit("/", 1)[-1] == FILE]
    named = re.search(rf"(?:^|/|\"|from ){FILE}[:(](\d{{1,9}})|\"[^\"\n]*{FILE}\" at line (\d{{1,9}})", log, re.M)
    if not own and all_errors and named:  # an error inside a header: some note says where the learner caused it
        own = [(int(named[1] or named[2]), all_errors[0][2])]
    if own:
        # A parameter of an unknown type: compilers first say something else of it.
        unclear = len(own) > 1 and re.search(r"declared void|incomplete type \"?void", own[0][1])
        line, what = own[1 if unclear else 0]
        line = _where_a_semicolon_is_missing(source, line, what)
        brace = _where_a_brace_is_missing(source) if re.search(_BRACES, log) else None
        if brace:
            line, what = brace
        if re.search(r"unterminated comment|comment unclosed", log):  # whatever it swallowed is missed, too
            line, what = (
                source.count("\n", 0, _unclosed_comment(source)) + 1,
                "this /* is never closed: a */ is missing",
            )
        what = _plainer(what, excerpt(source, line))
        wanted = _MISSING_HEADER.search(what)
        if wanted:
            what = _remedy(next(name for name in wanted.groups() if name))
        if "tilelab_read" in what:  # which takes nothing else
            what = "a __global__ function returns nothing: declare it void"
        frame = re.search(r"frame size of (\d+) bytes is larger than (\d+)", what)
        if frame:
            line = _where_the_largest_array_is(source, line)
            what = f"local arrays of {frame[1]} bytes a thread; emulation has room for {frame[2]}"
        if len(what) > LONGEST:  # templates: the types alone can fill pages
            what = what[:LONGEST] + " … (.log holds the rest)"
        more = len({number for number, _ in own}) - 1
        rest = f"\n({more} more line{'s' if more > 1 else ''} with errors; .log holds the whole output)" if more else ""
        return BuildError(
            f"line {line}: {excerpt(source, line)}\n{what.strip()} [{compiler}]\n\n{excerpt(source, line, 1)}{rest}",
            whole,
        )
    too_much = _SHARED.search(log)
    if too_much:
        asked, most = (int(number, 16) for number in too_much.groups())
        return BuildError(
            f"{asked} bytes of static shared memory, but {most} is the most a kernel may declare; use dynamic shared "
            "memory (extern __shared__ float buffer[]; and shared=bytes), which can opt in to more",
            whole,
        )
    wanted = _MISSING_HEADER.search(log)
    if wanted:
        return BuildError(_remedy(next(name for name in wanted.groups() if name)), whole)
    assembly = _PTXAS.search(log)
    if assembly:
        line = _where_the_assembly_is(source, assembly[1])
        place = f"line {line}: {excerpt(source, line)}\n" if line else ""
        return BuildError(f"{place}{assembly[1]} [ptxas, in inline PTX]", whole)
    lacking = _UNRESOLVED.search(log)
    if lacking:
        name = lacking[2][: int(lacking[1])] if lacking[1] else lacking[2]
        return BuildError(f"the source uses {name}, which is declared and defined nowhere [{compiler}]", whole)
    if all_errors:
        file, line, what = all_errors[0]
        return BuildError(f"{what.strip()} [{compiler}, in {file.rsplit('/', 1)[-1]} line {line}]", whole)
    first = next(
        (text for text in log.splitlines() if "error" in text.lower() or "undefined" in text), log.strip()[:400]
    )
    return BuildError(f"{first.strip() or 'the compiler failed without a word'} [{compiler}]", whole)


def _unclosed_comment(source: str) -> int:
    """Where the comment begins that the end of the source cuts off."""
    closed = source.rfind("*/")
    return source.find("/*", closed + 2 if closed >= 0 else 0)


def _plainer(what: str, line: str) -> str:
    """What a compiler says in its own terms, in a learner's."""
    if "__shared__" in line and re.search(r"variable length array|must have a constant value", what):
        return (
            "the length of a __shared__ array has to be a constant (a number, macro, constexpr or template argument); "
            "for one that the launch decides write extern __shared__ float s[]; and Kernel(…, shared=bytes)"
        )
    odd = re.search(r"[^\x00-\x7f]", line)
    if odd and re.search(r"extended character|unrecognized token|\bstray\b", what):
        name = unicodedata.name(odd[0], "no name")
        return f"the character U+{ord(odd[0]):04X} ({name.lower()}) has no place in C++: type it anew, as plain text"
    if "no matches converting function" in what:  # only our own line takes the kernel's address
        return "the arguments given in Kernel's name do not fit this template"
    return what


def _where_the_largest_array_is(source: str, end: int) -> int:
    """The line of the largest local array up to a line, as far as numbers in the text tell; else that line."""
    most, at = 0, end
    for number, text in enumerate(without_comments(source).splitlines()[:end], 1):
        for declared in re.finditer(r"\w\s+\w+\s*((?:\[[^\]]{1,80}\]){1,4})\s*[;,=]", text):
            extents = [int(digits) for digits in re.findall(r"\d{1,9}", declared[1])]
            if "__shared__" not in text and math.prod(extents) > most:
                most, at = math.prod(extents), number
    return at


def _where_a_semicolon_is_missing(source: str, line: int, what: str) -> int:
    """Compilers notice a missing semicolon at the next line's first word; the learner left it out a line earlier."""
    if not re.search(r"expected.*[\"'‘];[\"'’]", what):
        return line
    lines = without_comments(source).splitlines()
    before = next((n for n in range(line - 1, 0, -1) if lines[n - 1].strip()), 0)
    return before if before and not re.search(r"[;{}:,>+\-*/=&|(]\s*$", lines[before - 1]) else line


#: What compilers say where braces do not match; some say it of a line that is right.
_BRACES = (
    r"expected.{0,12}\}|at end of (?:input|file)|expected declaration before|expected a declaration|reached end of file"
)


def _where_a_brace_is_missing(source: str) -> tuple[int, str] | None:
    """The line of a brace that has no partner, and what to say of it; ``None`` where all have one.

    Indentation tells which of several open braces was forgotten: the one whose partner stands further left than it.
    """
    open_lines: list[tuple[int, int]] = []
    suspect = 0
    for number, text in enumerate(without_comments(source).splitlines(), 1):
        indent = len(text) - len(text.lstrip())
        for place, char in enumerate(text):
            if char == "{":
                open_lines.append((number, indent))
            elif char == "}":
                if not open_lines:
                    return number, "this } closes nothing: one { is missing before it, or it is one too many"
                opened, column = open_lines.pop()
                if place == indent and column > indent and not suspect:
                    suspect = opened
    if not open_lines:
        return None
    return suspect or open_lines[-1][0], "the { of this line is never closed: a } is missing"


def _where_the_assembly_is(source: str, what: str) -> int:
    """The line of the one ``asm``, or of the one that holds a word the assembler quotes; 0 where none stands out."""
    lines = [(n, text) for n, text in enumerate(source.splitlines(), 1) if re.search(r"\basm\b|__asm", text)]
    quoted = re.findall(r"'([^'\n]{2,80})'", what)
    named = [n for n, text in lines if any(word in text for word in quoted)]
    for found in (named, [n for n, _ in lines]):
        if len(found) == 1:
            return found[0]
    return 0


def _remedy(header: str) -> str:
    for start, remedy in _PACKAGES:
        if header.startswith(start):
            return f"the header {header} was not found: {remedy}"
    remedy = _OWN if "." in header else _STANDARD  # those of C++ have no ending
    return f"the header {header} was not found: {remedy}"
