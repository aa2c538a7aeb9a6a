"""What of a source a compiler reads, as far as text tells: conditions that are known, and what names stand for.

No preprocessor runs here. What this reads wrongly, the compiler finds: :mod:`tilelab.cudacpp.signature_check`.
"""

import re
from collections.abc import Mapping, Sequence

# What is never closed ends with the line, or the text: nothing is looked at twice, whatever the source.
_COMMENT = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+(?:\"|(?=\n)|\\?\Z)|(?<!\w)'(?:\\[^\n']{1,9}|\\'|[^'\\\n])'", re.S
)
#: Characters of what a name stands for.
LONGEST = 1000
#: Names whose being defined differs between a GPU and the emulation; what depends on them is read both ways.
_EITHER = re.compile(r"TILELAB_|__CUDA|__NVCC__|_MSC_VER|__GNUC__|__cplusplus")


def without_comments(source: str) -> str:
    """Blank out comments, strings and characters, so that all else keeps its line and column."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def defined_by(macros: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` strings as a mapping."""
    return {name: value for name, _, value in (macro.partition("=") for macro in macros)}


def active(text: str, macros: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Blank out the lines of branches that are surely not taken; lines keep their numbers.

    Parameters
    ----------
    text
        A source without comments.
    macros
        What the build defines.

    Returns
    -------
    tuple
        The text, and the macros without parameters that stand at its end.
    """
    known = dict(macros)
    # Of each open #if: whether this branch is read, whether one of its branches surely was, and whether it is within
    # what is read.
    open_ifs: list[tuple[bool, bool, bool]] = []
    lines = []
    for line in text.split("\n"):
        reading = not open_ifs or (open_ifs[-1][0] and open_ifs[-1][2])
        directive = re.match(r"\s*+#\s*+(\w++)(.*)", line)
        word, rest = (directive[1], " ".join(directive[2].split())) if directive else ("", "")
        if word in ("if", "ifdef", "ifndef"):
            holds = _holds(word, rest, known) if reading else False
            open_ifs.append((holds is not False, holds is True, reading))
        elif word in ("elif", "else") and open_ifs:
            _, done, reading = open_ifs.pop()
            holds = False if done else True if word == "else" else _holds("if", rest, known)
            open_ifs.append((holds is not False, done or holds is True, reading))
        elif word == "endif" and open_ifs:
            open_ifs.pop()
        elif word == "define" and reading:
            name = re.match(r"(\w+)(\(?)", rest)
            if name and not name[2]:
                known[name[1]] = rest[name.end() :].strip()
        elif word == "undef" and reading:
            known.pop(rest, None)
        lines.append(line if reading and not directive else re.sub(r".", " ", line))
    return "\n".join(lines), known


def _holds(word: str, condition: str, known: Mapping[str, str]) -> bool | None:
    """Whether a condition holds; ``None`` where that is not known here."""
    if word != "if":
        found = None if _EITHER.match(condition) else condition in known
        return found if found is None or word == "ifdef" else not found
    if _EITHER.search(condition):
        return None
    asked = re.fullmatch(r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?", condition)
    if asked:
        return (asked[2] in known) != bool(asked[1])
    for _ in range(8):
        if re.fullmatch(r"\w+", condition) and condition in known:
            condition = known[condition]
    return bool(condition.strip("0")) if re.fullmatch(r"[0-9]+", condition) else None


def aliases(text: str, macros: Mapping[str, str]) -> dict[str, str]:
    """What names of types stand for: macros, ``typedef A B;`` and ``using B = A;``, each followed to its end."""
    found = {name: value for name, value in macros.items() if re.fullmatch(r"[A-Za-z_][\w ]*", value)}
    short = re.sub(r"\s+", " ", text)
    named = [(m[2], m[1]) for m in re.finditer(r"\btypedef ([\w: ]{1,200}) (\w{1,200}+) ?;", short)]
    named += [(m[1], m[2].strip()) for m in re.finditer(r"\busing (\w{1,200}+) ?= ?([\w: ]{1,200}+);", short)]
    targets: dict[str, set[str]] = {}
    for name, target in named:
        targets.setdefault(name, set()).add(target)
    # A name that stands for two things, here and there, tells nothing.
    found |= {name: target for name, (target, *others) in targets.items() if not others}
    for name in found:
        for _ in range(8):
            longer = " ".join(found.get(word, word) for word in found[name].split())
            if len(longer) > LONGEST:  # names of names of names: no type is as long
                break
            found[name] = longer
    return found
