"""Reading a CUDA C++ source: a kernel's parameters, its lines, and the few rewrites that emulation needs."""

import re
from dataclasses import dataclass

from tilelab.cudacpp.errors import BuildError

#: C type -> dtype name, as numpy and torch write it. Vectors are stored as their elements.
DTYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "__half": "float16",
    "half_t": "float16",
    "bfloat16_t": "bfloat16",
    "nv_bfloat16": "bfloat16",
    "__nv_bfloat16": "bfloat16",
    "char": "int8",
    "signed char": "int8",
    "int8_t": "int8",
    "unsigned char": "uint8",
    "uint8_t": "uint8",
    "short": "int16",
    "int16_t": "int16",
    "unsigned short": "uint16",
    "uint16_t": "uint16",
    "int": "int32",
    "int32_t": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "uint32_t": "uint32",
    "long": "int64",
    "long long": "int64",
    "int64_t": "int64",
    "ptrdiff_t": "int64",
    "unsigned long": "uint64",
    "unsigned long long": "uint64",
    "uint64_t": "uint64",
    "size_t": "uint64",
    "bool": "bool",
    "half2": "float16",
    "__half2": "float16",
    "__nv_bfloat162": "bfloat16",
    "void": "",
}
DTYPES |= {
    f"{short}{n}": DTYPES[long]
    for short, long in (("float", "float"), ("double", "double"), ("int", "int"), ("uint", "unsigned"))
    for n in (2, 3, 4)
}

_BYTES = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "bool": 1,
    "int8": 1,
    "uint8": 1,
}
#: C type -> bytes of one value.
SIZES = {
    ctype: _BYTES.get(dtype, 2) * (int(ctype[-1]) if ctype[-1] in "234" else 1)
    for ctype, dtype in DTYPES.items()
    if dtype
}

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.S)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel. ``dtype`` is empty where the type is unknown, and then it is not checked."""

    name: str
    ctype: str
    dtype: str
    pointer: bool
    const: bool

    @property
    def written(self) -> bool:
        """Whether the kernel may write through it."""
        return self.pointer and not self.const

    def __str__(self) -> str:
        """As it stands in the source, more or less."""
        return f"{'const ' if self.const else ''}{self.ctype}{'*' if self.pointer else ''} {self.name}"


def without_comments(source: str) -> str:
    """Blank out comments and strings, so that every other character keeps its line and column."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def kernels_in(source: str) -> list[str]:
    """Names of the ``__global__`` functions of a source, in order."""
    return [
        match[1] for match in re.finditer(r"\b__global__\b[^;{(]*?(?:\([^)]*\)[^;{(]*?)?\b(\w+)\s*\(", _plain(source))
    ]


def _plain(source: str) -> str:
    text = without_comments(source)
    return re.sub(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)", lambda m: " " * len(m[0]), text)


def signature(source: str, name: str) -> tuple[Parameter, ...]:
    """Parameters of a kernel.

    Parameters
    ----------
    source
        CUDA C++.
    name
        A ``__global__`` function of it, with template arguments where it is a template: ``matmul<16>``.

    Raises
    ------
    BuildError
        No such kernel; the message names those there are.
    """
    base, _, given = name.partition("<")
    text = _plain(source)
    found = re.search(
        rf"(?:template\s*<([^>]*)>[^;{{}}]*?)?\b__global__\b[^;{{}}()]*\b{re.escape(base.strip())}\s*\(", text
    )
    if not found:
        there = ", ".join(kernels_in(source)) or "no __global__ function at all"
        raise BuildError(f"the source has no kernel {base!r}; it has {there}")
    depth, end = 1, found.end()
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    bound = {}
    if found[1]:
        names = [part.split("=")[0].split()[-1] for part in found[1].split(",")]
        bound = dict(zip(names, (part.strip() for part in given.rstrip("> ").split(",")), strict=False))
    inside = text[found.end() : end - 1].strip()
    if inside in ("", "void"):
        return ()
    return tuple(_parameter(part, bound) for part in _split(inside))


def _split(text: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for char in text:
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _parameter(text: str, bound: dict[str, str]) -> Parameter:
    text = re.sub(r"__restrict__|__restrict|__grid_constant__|\bvolatile\b|\bstruct\b", " ", text.split("=")[0])
    array = re.search(r"(\w+)\s*\[[^\]]*\]\s*$", text)
    pointer = "*" in text or array is not None
    # In "const float* const A" the const before the star is the one that protects the data.
    const = bool(re.search(r"\bconst\b", text.split("*")[0]))
    words = re.sub(r"\bconst\b|[*&]|\[[^\]]*\]", " ", text).split()
    name = words.pop() if len(words) > 1 else ""
    ctype = " ".join(bound.get(word, word) for word in words)
    return Parameter(name, ctype, DTYPES.get(ctype, ""), pointer, const)


_EXTERN = re.compile(
    r"extern\s+__shared__((?:\s+(?:__align__|alignas)\s*\([^)]*\))?)\s+([\w:\s]+?)\s+(\w+)\s*\[\s*\]", re.S
)


def for_emulation(source: str) -> str:
    """Rewrite what a header cannot stand in for: unsized ``extern __shared__`` arrays become pointers.

    Lines keep their numbers.
    """

    def pointer(match: re.Match[str]) -> str:
        kind, name = match[2], match[3]
        return f"static {kind}* const {name} = ({kind}*)tilelab_dynamic_shared" + "\n" * match[0].count("\n")

    return _EXTERN.sub(pointer, source)


def unset_arrays(source: str) -> list[tuple[int, str]]:
    """Local arrays that are declared without a first value: line and name of each.

    As far as text tells: members of a struct are among them too.
    """
    found = []
    text = without_comments(source)
    for statement in re.finditer(r"[^;{}]+;", text):
        declared = re.fullmatch(
            r"(?:\s|#[^\n]*\n)*((?:[\w:]+(?:<[^<>]*>)?\s+)+)(\w+\s*(?:\[|,).*);", statement[0], re.S
        )
        if not declared or re.search(r"\b(?:__shared__|extern|static|constexpr|return|__constant__)\b", declared[1]):
            continue
        line = text.count("\n", 0, statement.start() + declared.start(2)) + 1
        found += [
            (line, name[0])
            for part in _split(declared[2])
            if "[" in part and "=" not in part and "{" not in part and (name := re.match(r"\s*(\w+)", part))
        ]
    return found


def excerpt(source: str, line: int, around: int = 0) -> str:
    """The line itself, or with ``around`` lines on both sides, numbered and marked."""
    lines = source.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    if not around:
        return lines[line - 1].strip()
    first, last = max(1, line - around), min(len(lines), line + around)
    width = len(str(last))
    return "\n".join(f"{'→' if n == line else ' '} {n:{width}} │ {lines[n - 1]}" for n in range(first, last + 1))
