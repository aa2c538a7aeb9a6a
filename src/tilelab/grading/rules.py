"""Launch rules as answers: a small arithmetic of M, N, K and TILE, read as data and never run as code.

A rule is a whole number or a text such as ``"(N + TILE - 1) / TILE"``. It knows whole numbers, the names it is given,
``+ - * / // % << >> **`` (a division rounds down, as C's does for what is not negative), parentheses, and
``ceil_div(a, b)``, ``min(…)`` and ``max(…)``. ``sizeof(float)`` is 4. What people write elsewhere is understood where
it can mean one thing alone: ``dim3(a, b)``, ``cdiv(a, b)``, ``ceil(a / b)``, ``16u``, ``16.0``.
"""

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from tilelab.grading.errors import GradingError

LONGEST = 300
LARGEST = 1 << 62
#: Exponent that a rule may have.
HIGHEST = 8
KNOWN = "+ - * / % ** and parentheses, ceil_div(a, b), min(…), max(…), sizeof(float)"


def _whole_division(a: int, b: int) -> int:
    if b == 0:
        raise GradingError("it divides by zero")
    return a // b


def _rest(a: int, b: int) -> int:
    if b == 0:
        raise GradingError("it divides by zero")
    return a % b


def _places(count: int) -> int:
    if not 0 <= count < LARGEST.bit_length():
        raise GradingError(f"it shifts by {count} places")
    return count


def _power(exponent: int) -> int:
    if not 0 <= exponent <= HIGHEST:
        raise GradingError(f"it raises to the power {exponent}; at most {HIGHEST} is read")
    return exponent


OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: _whole_division,
    ast.FloorDiv: _whole_division,
    ast.Mod: _rest,
    ast.LShift: lambda a, b: a << _places(b),
    ast.Pow: lambda a, b: int(a ** _power(b)),
    ast.RShift: lambda a, b: a >> _places(b),
}
FUNCTIONS: dict[str, Callable[..., int]] = {
    "ceil_div": lambda a, b: -_whole_division(-a, b),
    "min": min,
    "max": max,
}
FUNCTIONS["cdiv"] = FUNCTIONS["ceil_div"]
#: Of a number in C that it is unsigned or long, which says nothing here.
_SUFFIX = re.compile(r"\b(\d{1,20})(?:[uU][lL]{0,2}|[lL]{1,2}[uU]?)\b")


def number_of(rule: object, names: Mapping[str, int]) -> int:
    """Work out a rule that gives one number.

    Parameters
    ----------
    rule : int or str
        The rule as it was handed in.
    names : mapping
        What the names in it stand for.

    Raises
    ------
    GradingError
        It cannot be read or worked out, quoting it. The message is for the learner.
    """
    if isinstance(rule, float) and rule.is_integer():
        rule = int(rule)
    if isinstance(rule, int) and not isinstance(rule, bool):
        if abs(rule) > LARGEST:
            raise GradingError(f"a rule gives a number that is too large ({rule.bit_length():,} bits)")
        return rule
    found = _evaluate(_parsed(rule), names, str(rule))
    if isinstance(found, tuple):
        raise GradingError(f"{rule!r} gives {len(found)} numbers, one is asked for")
    return int(found)


def numbers_of(rule: object, names: Mapping[str, int]) -> tuple[int, ...]:
    """Work out a rule that gives one to three numbers: a number, a text with commas, a list of those, or x, y and z.

    Raises
    ------
    GradingError
        As for `number_of`.
    """
    if isinstance(rule, Mapping) and rule and set(rule) <= set("xyz"):
        rule = [rule.get(axis, 1) for axis in "xyz"]
    if isinstance(rule, list | tuple):
        found = tuple(number_of(part, names) for part in rule)
    elif isinstance(rule, str):
        value = _evaluate(_parsed(rule), names, rule)
        found = value if isinstance(value, tuple) else (value,)
    else:
        found = (number_of(rule, names),)
    if not 1 <= len(found) <= 3:
        raise GradingError(f"{rule!r:.80} gives {len(found)} numbers, one to three are asked for, x first")
    return found


def _parsed(rule: object) -> ast.expr:
    if not isinstance(rule, str):
        raise GradingError(f"a rule is a whole number or a text such as 'ceil_div(N, TILE)', not {rule!r:.60}")
    if len(rule) > LONGEST:
        raise GradingError(f"a rule has at most {LONGEST} characters, this one has {len(rule)}")
    text = _SUFFIX.sub(r"\1", re.sub(r"sizeof\s*\(\s*float\s*\)", "4", rule)).strip().rstrip(";")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise GradingError(f"cannot read the rule {rule!r}; it may use {KNOWN}") from None


def _evaluate(node: ast.expr, names: Mapping[str, int], rule: str) -> Any:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            result = value
        case ast.Constant(value=float(value)) if value.is_integer():
            result = int(value)
        case ast.Name(id=name):
            if name not in names:
                raise GradingError(f"the rule {rule!r} asks for {name!r}; it may ask for {', '.join(names)}")
            result = names[name]
        case (
            ast.Tuple(elts=elements)
            | ast.List(elts=elements)
            | ast.Call(func=ast.Name(id="dim3"), args=elements, keywords=[])
        ) if elements:
            return tuple(_one(_evaluate(element, names, rule), rule) for element in elements)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            result = -_one(_evaluate(operand, names, rule), rule)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            a, b = _one(_evaluate(left, names, rule), rule), _one(_evaluate(right, names, rule), rule)
            result = _worked_out(OPERATORS[type(operator)], (a, b), rule)
        case ast.Call(
            func=ast.Name(id="ceil") | ast.Attribute(value=ast.Name(id="math"), attr="ceil"),
            args=[ast.BinOp(left=left, op=ast.Div(), right=right)],
            keywords=[],
        ) if not any(isinstance(part, ast.Div | ast.FloorDiv) for part in (*ast.walk(left), *ast.walk(right))):
            a, b = _one(_evaluate(left, names, rule), rule), _one(_evaluate(right, names, rule), rule)
            result = _worked_out(FUNCTIONS["ceil_div"], (a, b), rule)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS and arguments:
            if FUNCTIONS[name] is FUNCTIONS["ceil_div"] and len(arguments) != 2:
                raise GradingError(f"{name} takes two numbers, in the rule {rule!r}")
            values = tuple(_one(_evaluate(argument, names, rule), rule) for argument in arguments)
            result = _worked_out(FUNCTIONS[name], values, rule) if len(values) > 1 else values[0]
        case _:
            raise GradingError(f"the rule {rule!r} uses what a rule does not know; it may use {KNOWN}")
    if abs(result) > LARGEST:
        raise GradingError(f"the rule {rule!r} gives a number that is too large")
    return result


def _worked_out(function: Callable[..., int], values: tuple[int, ...], rule: str) -> int:
    try:
        return function(*values)
    except GradingError as error:
        raise GradingError(f"the rule {rule!r}: {error}") from None


def _one(value: Any, rule: str) -> int:
    if isinstance(value, tuple):
        raise GradingError(f"the rule {rule!r} has a comma where one number is meant")
    return int(value)
