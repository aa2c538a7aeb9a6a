"""What a CUDA source may ask of the machine that compiles it: no files but CUDA's headers and a standard library's.

A learner hears it from the judge on the CPU, from the instant check and from the timed run, in the same words. What is
checked is the text that NVRTC compiles, without its comments (:func:`device_text`), never the text as it was handed in:
so a comment that is none, or a line end that is none, gains nothing by being misread here.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

#: What g++ gives a kernel and NVRTC does not, as a text that NVRTC reads before each source.
STANDARD_TEXT = (Path(__file__).parent / "timed" / "standard.h").read_text(encoding="utf-8")
_C = ["assert.h", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"]
_CPP = ["cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring"]
_CPP_ALONE = ["algorithm", "initializer_list", "limits", "type_traits", "utility"]
#: Headers of the standard library, all of whose names that a kernel can use stand in that text: NVRTC gets each of them
#: as good as empty. ``assert`` may change from one include to the next, as C has it.
STANDARD = dict.fromkeys([*_C, *_CPP, *_CPP_ALONE], "\n")
STANDARD |= dict.fromkeys(
    ["assert.h", "cassert"], "#ifdef NDEBUG\n#undef assert\n#define assert(condition) ((void)0)\n#endif\n"
)
#: Headers that a source may include. Any other name would be a file of the judge's machine.
HEADERS = frozenset(
    {"cooperative_groups.h", "cooperative_groups/memcpy_async.h", "cuda.h", "cuda_bf16.h", "cuda_fp16.h"}
    | {"cuda_pipeline.h", "cuda_pipeline_primitives.h", "cuda_runtime.h", "device_launch_parameters.h", "mma.h"}
    | {"cuda/barrier", "cuda/pipeline", "math_constants.h", "vector_types.h", *STANDARD}
)
#: Words, numbers, texts and characters, of which a comment is no part, and comments. What is never closed goes on to
#: the end, and is no comment.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*+|/\*.*?\*/)|/\*.*"
    r"|(?:u8|[uUL])?R\"(?P<end>[^()\\\s\"]{0,16})\((?:.*?\)(?P=end)\"|.*)"
    r"|[A-Za-z_]\w*+|\.?[0-9](?:'\w|[eEpP][+-]|[\w.])*+"
    r"|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?",
    re.S,
)
#: Pragmas of other compilers that bring nothing in: without the compiler's name NVRTC follows them, or leaves them.
_HARMLESS = re.compile(
    r"(#[ \t]*pragma[ \t]+|_Pragma[ \t]*\([ \t]*\")(GCC|clang)"
    r"(?=[ \t]+(?:unroll|ivdep|loop|diagnostic|optimize|push_options|pop_options)\b)"
)
#: What brings other files in, spliced lines and digraphs undone. It counts wherever it stands, in a text too: what is
#: one can be disguised. ``.include`` and the like are the assembler's.
_DIRECTIVE = re.compile(
    r"#(?:\s|/\*(?:[^*]|\*(?!/))*+\*/)*+(include_next|include|embed|import)\b((?:/\*(?:[^*]|\*(?!/))*+\*/|[^\n])*+)"
)
_HEADER = re.compile(r"""(?:\s|/\*(?:[^*]|\*(?!/))*+\*/)*+(?:<([\w./+-]+)>|"([\w./+-]+)")\s*(?:/[/*].*)?""", re.S)
_OTHER_WAYS = re.compile(
    r"__has_include|__has_embed|_Pragma|#\s*pragma\s+(?:GCC|clang)|\.include\b|\.file\b|\.incbin\b"
)
_UNROLL = re.compile(r"_Pragma\s*\(\s*\"\s*unroll\b[^\"]*\"\s*\)")
_NAMES = ("__has_include", "__has_include_next", "__has_embed", "_Pragma")
_STD = re.compile(r"(?<!\w)(?:(\w+)\s*::\s*)?std\s*::\s*(\w+)")


@lru_cache(64)
def device_text(source: str) -> str:
    """Return a source as NVRTC gets it: comments blank, all else in its line and column.

    Line ends are those that g++ sees, for by g++ it was judged: a backslash with blanks behind it splices too.
    """
    text = re.sub(r"[\v\f\x85\u2028\u2029]", " ", re.sub(r"\r\n?", "\n", source))
    text = re.sub(r"\\[ \t]+\n", "\\\n", text)
    # Comments are looked for where the lines are spliced; `places` leads back.
    splices = [found.start() for found in re.finditer(r"\\\n", text)]
    starts = [0, *(at + 2 for at in splices)]
    pieces = [text[start:end] for start, end in zip(starts, [*splices, len(text)], strict=True)]
    spliced = "".join(pieces)
    places = [at for start, piece in zip(starts, pieces, strict=True) for at in range(start, start + len(piece))]
    parts, done = [], 0
    for found in _TOKEN.finditer(spliced):
        if found["comment"] is None:
            continue
        first, last = places[found.start()], places[found.end() - 1] + 1
        parts += [text[done:first], _blank(text[first:last], spliced, found.start())]
        done = last
    return _HARMLESS.sub(lambda found: found[1] + " " * len(found[2]), "".join([*parts, text[done:]]))


def _blank(comment: str, text: str, at: int) -> str:
    """A comment of a text as blanks; in a directive its lines stay one."""
    blank = re.sub(r"[^\n]", " ", comment)
    if "\n" not in blank:
        return blank
    begun = text[text.rfind("\n", 0, at) + 1 : at].lstrip()
    return blank.replace("\n", "\\\n") if begun.startswith(("#", "%:")) else blank


@lru_cache(64)
def files_fault(source: str) -> str:
    """Say which file of the judge's machine a source asks for, or that it is no text, or ``""``."""
    try:
        source.encode()
    except UnicodeEncodeError:
        return "the source is no text: it has half a character in it"
    if "\0" in source:  # a compiler would read no further
        return "the source is no text: it has a character with the number 0 in it"
    text = device_text(source)
    spliced = re.sub(r"\\[ \t]*\n", "", text.replace("??/", "\\").replace("??=", "#")).replace("%:", "#")
    elsewhere = _UNROLL.sub(" ", re.sub(r'"\s*"', "", spliced))  # texts beside each other are one
    if found := _OTHER_WAYS.search(elsewhere):
        return f"{found[0]!r} asks for files of the judge's machine"
    if pasted := _pasted(re.findall(r"\w+", elsewhere)):
        return f"{pasted!r}, which ## may put together here, asks for files of the judge's machine"
    for found in _DIRECTIVE.finditer(spliced):
        name = _HEADER.fullmatch(found[2])
        header = (name[1] or name[2]) if name else ""
        if found[1] != "include" or header not in HEADERS:
            return _refused(source, f"#{found[1]} {found[2].strip()[:60]}", header)
    return ""


def _pasted(words: Iterable[str]) -> str:
    """The name that asks for files which some of these words make, one behind the other; else ``""``.

    ``##`` joins whole words of the source, so a name that it makes consists of such words, all of them. It need not
    stand in the source itself: headers have macros that paste.
    """
    there = set(words)
    for name in _NAMES:
        ends = {0}
        for end in range(1, len(name) + 1):
            if any(name[start:end] in there for start in ends):
                ends.add(end)
        if len(name) in ends:
            return name
    return ""


def _refused(source: str, directive: str, header: str) -> str:
    from tilelab.cudacpp.unemulated import why_unemulated

    lines = enumerate(device_text(source).split("\n"), 1)
    line = next((n for n, text in lines if header and header in text and "#" in text), 0)
    place = f"line {line}: " if line else ""
    if why := why_unemulated(directive):
        return f"{place}{directive} — {why}"
    own, standard = ", ".join(sorted(HEADERS - set(STANDARD))), ", ".join(sorted([*_CPP, *_CPP_ALONE]))
    return f"{place}{directive} — a kernel may include {own}, and of the standard library {standard}"


@lru_cache
def _in_std() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", STANDARD_TEXT.partition("namespace std {")[2]))


def library_fault(source: str) -> str:
    """Say what a source uses of the C++ standard library that no kernel has on the judge's GPU, or ``""``.

    Containers and streams are left to the emulator, which says more of them.
    """
    from tilelab.cudacpp.host_build import host_containers
    from tilelab.cudacpp.preprocess import active, without_comments
    from tilelab.cudacpp.source import excerpt
    from tilelab.cudacpp.unemulated import why_unemulated

    text = active(without_comments(source), {})[0]
    for found in _STD.finditer(text):
        space, name = found.groups()
        used = f"std::{name}"
        known = name in _in_std() or re.sub(r"(?:_v|_t|f)\Z", "", name) in _in_std()
        if space == "cuda" or known or host_containers(used, ()) or why_unemulated(used):
            continue
        line = text.count("\n", 0, found.start()) + 1
        return (
            f"line {line}: {excerpt(source, line)[:120]} — {used} is not there on the judge's GPU: of the standard "
            "library a kernel has mathematics, min, max, clamp, swap, pair, numeric_limits, the usual type traits and "
            "fixed-width integers"
        )
    return ""
