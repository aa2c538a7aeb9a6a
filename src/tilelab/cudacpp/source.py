"""Reading a CUDA C++ source: a kernel's parameters, and its lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.preprocess import active, aliases, defined_by, without_comments

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
#: Characters of a name.
LONGEST_NAME = 1000
#: C type -> bytes of one value.
SIZES = {
    ctype: _BYTES.get(dtype, 2) * (int(ctype[-1]) if ctype[-1] in "234" else 1)
    for ctype, dtype in DTYPES.items()
    if dtype
}


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


@dataclass(frozen=True)
class Declaration:
    """How a kernel is declared.

    ``line`` is where; ``most_threads`` the first argument of its ``__launch_bounds__``, an expression; empty without.
    """

    name: str
    parameters: tuple[Parameter, ...]
    line: int
    most_threads: str


def kernels_in(source: str) -> list[str]:
    """Names of the ``__global__`` functions of a source, in order."""
    return list(dict.fromkeys(name for name, _, _ in _global(_without_bounds(active(without_comments(source), {})[0]))))


def _global(text: str) -> Iterator[tuple[str, int, int]]:
    """Each ``__global__`` function: its name, where the word stands, and the end of the opening parenthesis.

    Every piece of the text is looked at once: a learner's source must not decide how long reading it takes.
    """
    for word in re.finditer(r"\b__global__\b((?:(?!\b__global__\b)[^;{}()])*+)\(", text):
        named = re.search(r"\w+\Z", word[1].rstrip()[-LONGEST_NAME:])
        if named:
            yield named[0], word.start(), word.end()


_BOUNDS = re.compile(r"__launch_bounds__\s*\(((?:[^()]|\([^()]*\))*)\)")


def _without_bounds(text: str) -> str:
    return _BOUNDS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def signature(source: str, name: str, macros: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """Parameters of a kernel. Parameters, errors: see :func:`declaration`."""
    return declaration(source, name, macros).parameters


def declaration(source: str, name: str, macros: Sequence[str] = ()) -> Declaration:
    """Read how a kernel is declared.

    Parameters
    ----------
    source
        CUDA C++.
    name
        A ``__global__`` function of it, with template arguments where it is a template: ``matmul<16>``.
    macros
        ``NAME=VALUE`` of each macro that the build defines.

    Raises
    ------
    BuildError
        No such kernel; the message names those there are. A template without arguments, two kernels of one name, or a
        parameter that no launch can give.
    """
    base, given = name.partition("<")[0].strip().rpartition("::")[2], name.partition("<")[2].strip()
    whole, known = active(without_comments(source), defined_by(macros))
    text = _without_bounds(whole)
    found = [(start, end) for kernel, start, end in _global(text) if kernel == base]
    if not found:
        there = ", ".join(kernels_in(source)) or "no __global__ function at all"
        raise BuildError(f"the source has no kernel {base!r}; it has {there}")
    word, opened = found[0]
    end = _closed(text, opened)
    stands_for = aliases(text, known)
    start = max(text.rfind(mark, 0, word) for mark in ";{}") + 1
    template = re.search(r"\btemplate\s*+<([^>]*)>", text[start:word])
    if template:
        stands_for |= _template_arguments(template[1], given, name)
    inside = text[opened : end - 1].strip()
    parts = [] if inside in ("", "void") else _split(inside)
    line = text.count("\n", 0, opened) + 1
    for part in parts:
        if part.count("*") > 1 or "&" in part:
            what = "by reference" if "&" in part else "as a pointer to pointers"
            mend = "a number is given by value, what changes as an array" if "&" in part else "give it one flat array"
            raise BuildError(f"line {line}: {excerpt(source, line)}\n{base} takes {part.strip()} {what}: {mend}")
    bounds = _BOUNDS.search(whole, word, opened)
    most = re.sub(r"\w+", lambda word: stands_for.get(word[0], word[0]), _split(bounds[1])[0]) if bounds else ""
    parameters = tuple(_parameter(part, stands_for) for part in parts)
    branches = re.search(r"^\s*#\s*(?:if|el)", source, re.M)  # of which only one may be read
    for _, other in () if template or branches else found[1:]:
        again = text[other : _closed(text, other) - 1].strip()
        types = [_parameter(part, stands_for).ctype for part in _split(again)] if again not in ("", "void") else []
        if types != [parameter.ctype for parameter in parameters]:
            second = text.count("\n", 0, other) + 1
            raise BuildError(f"two kernels are called {base}, in line {line} and line {second}: give each its own name")
    return Declaration(name, parameters, line, most.strip())


def _closed(text: str, opened: int) -> int:
    """Where a parenthesis closes that was opened just before; the end of the text where it never does."""
    depth = 1
    for end in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if not depth:
            return end + 1
    return len(text)


def _template_arguments(declared: str, given: str, name: str) -> dict[str, str]:
    """What the names of a template stand for: what is given, else their defaults."""
    parameters = [part.partition("=") for part in _split(declared)]
    names = [head.replace("...", " ").split()[-1] for head, _, _ in parameters]
    if "<" not in name:
        example = ", ".join(default.strip() or names[i] for i, (_, _, default) in enumerate(parameters))
        raise BuildError(f"{name} is a template: name it with its arguments, such as {name}<{example}>")
    values = [part.strip() for part in _split(given.removesuffix(">"))] if given.strip("> ") else []
    defaults = {n: default.strip() for n, (_, _, default) in zip(names, parameters, strict=True) if default}
    return defaults | dict(zip(names, values, strict=False))


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


def _canonical(ctype: str) -> str:
    """A type as :data:`DTYPES` spells it: without ``std::``, and without an ``int`` or ``signed`` that says nothing."""
    plain = re.sub(r"(?:::)?(?:cuda::)?\bstd::", "", ctype)
    if plain not in DTYPES and re.fullmatch(r"(?:(?:unsigned|signed|short|long|int)\s*)+", plain):
        kept = [word for word in plain.split() if word not in ("int", "signed")]
        kept.sort(key=lambda word: word != "unsigned")
        return " ".join(kept) or "int"
    return plain


def _parameter(text: str, bound: Mapping[str, str]) -> Parameter:
    text = re.sub(r"__restrict__|__restrict|__grid_constant__|\bvolatile\b|\bstruct\b", " ", text.split("=")[0])
    array = re.search(r"(\w+)\s*\[[^\]]*\]\s*$", text)
    pointer = "*" in text or array is not None
    # In "const float* const A" the const before the star is the one that protects the data.
    const = bool(re.search(r"\bconst\b", text.split("*")[0]))
    words = re.sub(r"\bconst\b|[*&]|\[[^\]]*\]", " ", text).split()
    name = words.pop() if len(words) > 1 and words[-1] not in DTYPES else ""
    ctype = _canonical(" ".join(bound.get(word, word) for word in words))
    return Parameter(name, ctype, DTYPES.get(ctype, ""), pointer, const)


def unset_arrays(source: str) -> list[tuple[int, str]]:
    """Local arrays that are declared without a first value: line and name of each.

    As far as text tells: members of a struct are among them too.
    """
    found = []
    text = without_comments(source)
    for statement in re.finditer(r"[^;{}]++;?", text):
        declared = re.fullmatch(
            r"(?:\s|#[^\n]*\n)*+((?:[\w:]++(?:<[^<>]*>)?\s++)+)(\w++\s*+(?:\[|,).*);", statement[0], re.S
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
