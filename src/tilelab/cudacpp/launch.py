"""Launch rules: grid, block and dynamic shared bytes, as values or as functions of the problem."""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tilelab.cudacpp.arguments import Argument, Array
from tilelab.cudacpp.errors import LaunchError, brief
from tilelab.cudacpp.source import Parameter

Extents = tuple[int, int, int]
#: A grid or block: one to three extents, x first, or a function of the problem that gives them.
Shape = int | Sequence[int] | Callable[[Any], int | Sequence[int]]
#: Bytes, or a function of the problem that gives them.
Size = int | Callable[[Any], int]


@dataclass(frozen=True)
class Launch:
    """A launch with every number filled in."""

    grid: Extents
    block: Extents
    shared: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]


def ceil_div(a: int, b: int) -> int:
    """The quotient, rounded up: how many tiles of ``b`` cover ``a``."""
    return -(-a // b)


def problem(parameters: Sequence[Parameter], arguments: Sequence[Argument]) -> SimpleNamespace:
    """What a launch rule may ask for: every scalar by its parameter's name, every array as its shape."""
    return SimpleNamespace(
        **{
            parameter.name: argument.shape if isinstance(argument, Array) else argument.value
            for parameter, argument in zip(parameters, arguments, strict=True)
            if parameter.name
        }
    )


def extents(what: str, rule: Shape, asked: SimpleNamespace) -> Extents:
    """Three extents from a rule; missing ones are 1.

    Raises
    ------
    LaunchError
        The rule gives something else than one to three whole numbers, or asks for an argument the kernel has not.
    """
    value = _apply(what, rule, asked)
    given = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    whole = tuple(map(_whole, given))
    if not 1 <= len(whole) <= 3 or None in whole:
        divide = (
            "; / gives fractions, so divide with ceil_div(a, b) or //"
            if any(isinstance(n, float) for n in given)
            else ""
        )
        raise LaunchError(f"{what} is {brief(value)}; one to three whole numbers are needed, x first{divide}")
    x, y, z = (n or 0 for n in (*whole, 1, 1)[:3])
    return x, y, z


def shared_bytes(rule: Size, asked: SimpleNamespace) -> int:
    """Dynamic shared bytes from a rule.

    Raises
    ------
    LaunchError
        The rule gives something else than a whole number from 0 on.
    """
    value = _apply("shared", rule, asked)
    size = _whole(value)
    if size is None or size < 0:
        raise LaunchError(f"shared is {brief(value)}; a whole number of bytes from 0 on is needed")
    return size


def _whole(value: Any) -> int | None:
    """A whole number of any library as an int; ``None`` for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _apply(what: str, rule: Any, asked: SimpleNamespace) -> Any:
    if not callable(rule):
        return rule
    try:
        return rule(asked)
    except AttributeError as error:
        names = ", ".join(vars(asked))
        raise LaunchError(f"the rule for {what} asks for {error.name!r}; the kernel's arguments are {names}") from None
    except LaunchError:
        raise
    except Exception as error:  # it is the learner's own code, and may fail in any way
        raise LaunchError(f"the rule for {what} fails: {type(error).__name__}: {error}") from None
