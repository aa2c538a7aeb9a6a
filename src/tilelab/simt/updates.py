"""Statements that change an element by its old value, and the atomic that would do the same in one step."""

import ast

from tilelab.simt.types import Scalar, Vector

_ATOMIC: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip


def atomic_of(statement: ast.Assign | ast.AugAssign, target: ast.Subscript, element: Scalar | Vector) -> str:
    """The atomic that does what a statement does to an element, written out; empty if there is none.

    Parameters
    ----------
    statement
        ``a[i] += x``, ``a[i] = a[i] + x``, ``a[i] = max(a[i], x)`` and the like.
    target
        The element that it assigns to.
    element
        What the array holds; a GPU has atomics for numbers of 32 and 64 bits.
    """
    if not isinstance(element, Scalar) or element.bits < 32:
        return ""
    if isinstance(statement, ast.AugAssign):
        name, operand = _ATOMIC.get(type(statement.op), ""), statement.value
    else:
        name, operand = _change(statement.value, ast.unparse(target))
    if not name or (name in ("and_", "or_", "xor") and element.kind == "f"):
        return ""
    array, index, value = (ast.unparse(part) for part in (target.value, target.slice, operand))
    return f"cuda.atomic.{name}({array}, {index}, {value})"


def _change(value: ast.expr, target: str) -> tuple[str, ast.expr]:
    """The atomic's name and operand, if a value is made from the element that it is assigned to."""
    match value:
        case ast.BinOp(left=left, op=op, right=right) if ast.unparse(left) == target:
            return _ATOMIC.get(type(op), ""), right
        case ast.BinOp(left=left, op=op, right=right) if ast.unparse(right) == target and not isinstance(op, ast.Sub):
            return _ATOMIC.get(type(op), ""), left
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=[first, second]):
            if ast.unparse(first) == target:
                return name, second
            if ast.unparse(second) == target:
                return name, first
    return "", value
