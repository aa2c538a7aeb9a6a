"""Declarations of shared memory in a source, in whatever order their words stand, and other ones in their place.

nvcc takes ``static __shared__``, ``float __shared__ volatile``, ``__shared__ alignas(16) float`` and their kind. A
host's compiler, to which ``__shared__`` is a macro, does not; and it has no array whose size the launch decides.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilelab.cudacpp.preprocess import defined_by, without_comments


class Unsized(NamedTuple):
    """A shared array whose size the launch decides: ``extern __shared__ kind name[]rest``."""

    kind: str
    name: str
    rest: str


class Sized(NamedTuple):
    """Any other shared variable: ``__shared__ kind name``; ``initialised`` where it is given a first value."""

    kind: str
    name: str
    initialised: bool


@dataclass(frozen=True)
class Statement:
    """One declaration of shared memory: where it stands in the text, and what it declares.

    ``attributes`` are its words of alignment and their kind, ``declarators`` the text behind its type for what has a
    size; ``end`` is where its semicolon stands.
    """

    start: int
    end: int
    attributes: str
    kind: str
    variables: tuple[Unsized | Sized, ...]
    declarators: str


#: Words that say where a variable lies; what replaces the declaration says it again.
_STORAGE = ("static", "extern", "inline", "register", "__shared__", "__device__")
_OF_WORDS = re.compile(
    r"(?:\s|static\b|extern\b|inline\b|volatile\b|const\b|__shared__\b|__device__\b"
    r"|(?:alignas|__align__|__attribute__)\s*+\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\))++"
)
_NAME = re.compile(r"\w++(?:\s*+##\s*+\w++)*+")
_DEFINED = re.compile(r"^[ \t]*+#[ \t]*+define[ \t]++(\w++)(\([^)\n]*+\))?((?:\\\n|[^\n])*+)", re.M)
_DIRECTIVE = re.compile(r"^[ \t]*+#(?:\\\n|[^\n])*+", re.M)
#: Characters of a declaration, and names of names that are followed.
_LONGEST, _DEEPEST = 2000, 8


def shared_statements(source: str, macros: Sequence[str] = ()) -> list[Statement]:
    """Every declaration of shared memory that can be read, also those in macros.

    Parameters
    ----------
    source
        CUDA C++.
    macros
        ``NAME=VALUE`` of each macro that the build defines.
    """
    text = without_comments(source)
    words = _words(text, macros)
    wanted = re.compile(r"\b(?:" + "|".join(["__shared__", *(w for w in words if "__shared__" in words[w])]) + r")\b")
    found, read = [], 0
    for start, word, limit in _places(text, wanted):
        if start < read:  # behind the braces of a struct that a declaration holds
            continue
        statement = _read(text, start, word, limit, words)
        if statement:
            found.append(statement)
            read = statement.end
    return found


def unsized_shared(source: str) -> list[Unsized]:
    """Return a source's shared arrays whose size the launch decides."""
    return [one for statement in shared_statements(source) for one in statement.variables if isinstance(one, Unsized)]


def dynamic_names(source: str) -> set[str]:
    """Names under which a source takes dynamic shared memory; each of them starts at its first byte."""
    return {one.name for one in unsized_shared(source)}


def rewrite_shared(source: str, storage: str, write: Callable[[Unsized], str], macros: Sequence[str] = ()) -> str:
    """Put other declarations in the place of those of shared memory; lines keep their numbers.

    Parameters
    ----------
    source
        CUDA C++.
    storage
        What declares the variables that have a size, such as ``__shared__``; empty makes them each thread's own.
    write
        Gives the declaration of an array without one, in one line and without its semicolon.
    macros
        ``NAME=VALUE`` of each macro that the build defines.
    """
    parts, at = [], 0
    for statement in shared_statements(source, macros):
        old = source[statement.start : statement.end]
        unsized = [one for one in statement.variables if isinstance(one, Unsized)]
        new = [write(one) for one in unsized]
        if statement.declarators:
            words = (statement.attributes, storage, statement.kind, statement.declarators)
            new.append(" ".join(" ".join(words).split()))
        if new != [" ".join(old.split())]:
            parts += [source[at : statement.start], "; ".join(new), *re.findall(r"\\?\n", old)]
            at = statement.end
    return "".join([*parts, source[at:]])


def for_emulation(source: str, macros: Sequence[str] = ()) -> str:
    """Rewrite what a header cannot stand in for: declarations of shared memory, so that the host's compiler takes them.

    Lines keep their numbers.
    """

    def dynamic(array: Unsized) -> str:
        kind, name, rest = array
        return f"static {kind} (&{name})[]{rest} = (decltype({name}))tilelab_dynamic_shared"

    return rewrite_shared(source, "__shared__", dynamic, macros)


def first_value_of_shared(source: str, macros: Sequence[str] = ()) -> int:
    """The line of a ``__shared__`` variable that is declared with a first value, which CUDA refuses; 0 without."""
    for statement in shared_statements(source, macros):
        if any(isinstance(one, Sized) and one.initialised for one in statement.variables):
            return source.count("\n", 0, statement.end) + 1
    return 0


def plain_statics(source: str) -> set[str]:
    """Names that may be those of ``static`` variables which are not shared, which a kernel may have too."""
    found: set[str] = set()
    for piece in re.finditer(r"[^;{}]++", without_comments(source)):
        head = piece[0].partition("=")[0]
        if re.search(r"\bstatic\b", head) and "(" not in head and "__shared__" not in head:
            found.update(re.findall(r"\w+", head))
    return found - {one.name for statement in shared_statements(source) for one in statement.variables}


def _words(text: str, macros: Sequence[str]) -> dict[str, str]:
    """Macros that stand for words before a declaration's type alone (``SMEM`` for ``static __shared__``), followed."""
    bodies: dict[str, set[str]] = {}
    for found in _DEFINED.finditer(text):
        if not found[2]:
            bodies.setdefault(found[1], set()).add(" ".join(found[3].replace("\\\n", " ").split()))
    for name, value in defined_by(macros).items():
        bodies.setdefault(name, set()).add(value)
    # A name that stands for two things, here and there, tells nothing.
    known = {name: body for name, (body, *others) in bodies.items() if not others and len(body) < 200}
    for _ in range(_DEEPEST):
        known = {name: _expanded(body, known) for name, body in known.items()}
    return {name: body for name, body in known.items() if body and len(body) < 400 and _OF_WORDS.fullmatch(body)}


def _expanded(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda word: words.get(word[0], word[0]), text) if len(text) < _LONGEST else text


def _places(text: str, wanted: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """Where something that declares shared memory may begin, where its first wanted word is, and where it has to end.

    It begins behind a semicolon or a brace; what a macro stands for is a text of its own.
    """
    plain = _DIRECTIVE.sub(lambda line: re.sub(r"[^\n]", ";", line[0]), text)
    regions = [(plain, 0, len(text))]
    for define in _DEFINED.finditer(text):
        if define[2] is not None or not _OF_WORDS.fullmatch(define[3].replace("\\", " ")):
            regions.append((text, define.start(3), define.end()))
    places = []
    for whole, begin, end in regions:
        for piece in re.compile(r"[^;{}]++").finditer(whole, begin, end):
            word = wanted.search(piece[0])
            if word:
                places.append((piece.start(), piece.start() + word.start(), end))
    yield from sorted(places)


_LABEL = re.compile(r"(?:.*[^:]:(?!:))?+(?:\s|\\\n)*+(?:(?:else|do)\b)?+(?:\s|\\\n)*+", re.S)


def _read(text: str, start: int, word: int, limit: int, words: Mapping[str, str]) -> Statement | None:
    """The declaration that begins in a piece; ``None`` where that is none, or none that can be read."""
    if word - start > _LONGEST:
        start = word
    label = _LABEL.match(text, start, word)
    start = label.end() if label else start
    end = _semicolon(text, start, limit)
    declared = text[start:end].replace("\\\n", " ")
    if end - start > _LONGEST or re.search(r"^[ \t]*#", declared, re.M):
        return None
    reader = _Reader(_expanded(declared, words))
    try:
        attributes, kind, external = reader.specifiers()
        variables, declarators = reader.declarators(kind, external)
    except _UnreadError:
        return None
    return Statement(start, end, attributes, kind, variables, declarators)


def _semicolon(text: str, start: int, limit: int) -> int:
    """Where a declaration ends: at its semicolon, or with the macro that leaves the semicolon out."""
    depth = 0
    for mark in re.compile(r"[{};]").finditer(text, start, min(limit, start + 2 * _LONGEST)):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth < 0 or (mark[0] == ";" and depth == 0):
            return mark.start()
    return limit


class _UnreadError(Exception):
    """A text that is no declaration we know how to read."""


_ATTRIBUTES = ("alignas", "__align__", "__attribute__")
_OF_A_TYPE = ("decltype", "typeof", "__typeof__")
_POINTER = re.compile(r"\(\s*+\*\s*+(?P<name>\w++)\s*+\)")
_PLAIN = re.compile(
    rf"(?P<stars>(?:\*\s*+|(?:const|volatile|__restrict__)\b\s*+)*+)\(?+\s*+(?P<name>{_NAME.pattern})\s*+\)?+"
)


class _Reader:
    """Reads one declaration, from its first word on."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def specifiers(self) -> tuple[str, str, bool]:
        """Attributes, the type, and whether it is declared ``extern``; the first declarator follows."""
        first: list[str] = []  # those of C++ itself have to stand before all others
        others: list[str] = []
        units: list[tuple[int, str]] = []
        storage = set()
        while self._peek() not in ("", "*", "(", ",", "=", "{") and (self._peek() != "[" or self._peek(2) == "[["):
            begin = self.at
            if self._peek(2) == "[[":
                self._bracket()
                first.append(self.text[begin : self.at])
                continue
            word = self._word()
            if word in _STORAGE:
                storage.add(word)
            elif word in _ATTRIBUTES or (not units and word not in _OF_A_TYPE and self._is_attribute_of_a_macro()):
                self._bracket()
                (others if word.startswith("__") else first).append(self.text[begin : self.at])
            else:
                self._end_of_type(word)
                units.append((begin, self.text[begin : self.at].strip()))
        if len(units) > 1 and self._peek() != "*" and (self._peek() != "(" or self._behind_bracket()[:1] in ("", ",")):
            self.at, _ = units.pop()  # this was the name
        if "__shared__" not in storage or not units:
            raise _UnreadError
        return " ".join([*first, *others]), " ".join(unit for _, unit in units), "extern" in storage

    def declarators(self, kind: str, external: bool) -> tuple[tuple[Unsized | Sized, ...], str]:
        """What is declared, and the text that declares those that have a size."""
        variables: list[Unsized | Sized] = []
        sized: list[str] = []
        while True:
            self._peek()
            begin = self.at
            named = _POINTER.match(self.text, begin) or _PLAIN.match(self.text, begin)
            if not named:
                raise _UnreadError
            self.at = named.end()
            name, stars = named["name"], named.groupdict().get("stars", "")
            extents = self._extents()
            unsized = external and extents and not extents[0][1:-1].strip()
            initialised = self._pass_over_first_value()
            if unsized:
                variables.append(
                    Unsized(*(" ".join(part.split()) for part in (kind + stars, name, "".join(extents[1:]))))
                )
            else:
                variables.append(Sized(kind, name, initialised))
                sized.append(self.text[begin : self.at].strip())
            if not self._peek():
                return tuple(variables), ", ".join(sized)
            self.at += 1

    def _extents(self) -> list[str]:
        """The brackets behind a name; attributes may stand among them."""
        found = []
        while self._peek():
            begin, word = self.at, _NAME.match(self.text, self.at)
            if word and word[0] in _ATTRIBUTES:
                self.at = word.end()
                self._peek()
                self._bracket()
            elif self._peek() == "[":
                self._bracket()
                found.append(self.text[begin : self.at])
            else:
                break
        return found

    def _pass_over_first_value(self) -> bool:
        """Go to the comma or the end behind a declarator; whether a first value stands there."""
        given = self._peek() in ("=", "{", "(")
        while self._peek() not in ("", ","):
            if not given:
                raise _UnreadError
            if self._peek() in ("(", "[", "{"):
                self._bracket()
            else:
                self.at += 1
        return given

    def _is_attribute_of_a_macro(self) -> bool:
        """``ALIGNED(16)`` before a type: unlike behind a type, more words follow its parentheses."""
        return self._peek() == "(" and bool(re.match(r"\w", self._behind_bracket()))

    def _end_of_type(self, word: str) -> None:
        """Go to the end of what belongs to a word of a type: arguments of a template, braces of a struct."""
        if word in _OF_A_TYPE:
            self._bracket()
        elif self._peek() == "<":
            self._angles()
        elif self._peek() == "{" and re.search(r"\b(?:struct|union|enum)\b", self.text[: self.at]):
            self._bracket()

    def _word(self) -> str:
        found = _NAME.match(self.text, self.at) or re.compile("::").match(self.text, self.at)
        if not found:
            raise _UnreadError
        self.at = found.end()
        self._peek()
        return found[0]

    def _peek(self, many: int = 1) -> str:
        """What comes next, behind spaces."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + many]

    def _behind_bracket(self) -> str:
        before = self.at
        self._bracket()
        behind, self.at = self.text[self.at :].lstrip(), before
        return behind

    def _bracket(self) -> None:
        """Go behind the bracket that opens here and all it holds."""
        depth = 0
        for place in range(self.at, len(self.text)):
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self.text[place], 0)
            if not depth:
                self.at = place + 1
                return
        raise _UnreadError

    def _angles(self) -> None:
        """Go behind a template's arguments; what compares stands in parentheses there."""
        depth = 0
        while self.at < len(self.text):
            if self.text[self.at] in "([{":
                self._bracket()
                continue
            depth += {"<": 1, ">": -1}.get(self.text[self.at], 0)
            self.at += 1
            if not depth:
                return
        raise _UnreadError
