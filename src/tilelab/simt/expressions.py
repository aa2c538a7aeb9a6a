"""Expressions of a kernel: from Python's syntax tree to the typed tree."""

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.simt import masks, tree
from tilelab.simt.calls import CallTyper
from tilelab.simt.intrinsics import DIMS, Intrinsic
from tilelab.simt.source import MISSING
from tilelab.simt.types import (
    Array,
    Scalar,
    Tuple,
    TypingFault,
    Vector,
    binary,
    boolean,
    int32,
    int64,
    of_dtype,
    of_value,
    uint64,
    unary,
    unify,
)
from tilelab.simt.words import one, plural

if TYPE_CHECKING:
    from tilelab.simt.types import Type

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip


@dataclass(frozen=True)
class Unclear:
    """A variable whose type differs from one way to another; only using it is a fault."""

    why: str


class ExpressionTyper(CallTyper):
    """Types the expressions of one function."""

    def condition(self, node: ast.expr) -> tree.Expr:
        """An expression that is tested: any number will do."""
        if isinstance(node, ast.BoolOp):
            return self.conjunction("and" if isinstance(node.op, ast.And) else "or", node.values)
        typed = self.expression(node)
        if not isinstance(typed.type, Scalar):
            raise self.source.fault(node, f"{one(typed.type)} is neither true nor false")
        return self.cast(typed, boolean)

    def integer(self, node: ast.expr) -> tree.Expr:
        """An expression that must be an integer."""
        typed = self.expression(node)
        if not isinstance(typed.type, Scalar) or typed.type.kind == "f":
            raise self.source.fault(
                node, f"{ast.unparse(node)} is {one(typed.type)}, an integer is wanted; write int(...) or use //"
            )
        return self.cast(typed, int64) if typed.type == boolean else typed

    def effect(self, node: ast.expr) -> tree.Expr:
        """An expression that stands as a statement; what it gives is not used."""
        typed = self.expression(node)
        if isinstance(typed, tree.Atomic):
            typed.used = False
        return typed

    def expression(self, node: ast.expr) -> tree.Expr:
        """Type an expression."""
        try:
            return self._expression(node)
        except TypingFault as fault:
            raise self.source.fault(node, str(fault)) from None

    def _expression(self, node: ast.expr) -> tree.Expr:
        match node:
            case ast.Constant(value=value):
                return self.constant(value, node)
            case ast.Name():
                return self.variable(node)
            case ast.Tuple(elts=elts):
                return self.pack([self.expression(e) for e in elts])
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.expression(left), self.expression(right), node)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(op, operand)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self.compare(ops, [left, *comparators])
            case ast.BoolOp(op=op, values=values):
                return self.logic("and" if isinstance(op, ast.And) else "or", values)
            case ast.IfExp():
                return self.choice(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Call():
                return self.call(node)
        raise self.source.fault(node, f"a kernel cannot use {type(node).__name__.lower()} here")

    # ---- names and numbers
    def constant(self, value: Any, node: ast.AST) -> tree.Expr:
        """A number known when the kernel is compiled."""
        if value is None:
            raise self.source.fault(node, "a kernel cannot use None as a value")
        if isinstance(value, complex):
            raise self.source.fault(node, "complex numbers are not simulated")
        if value is ...:
            raise self.source.fault(node, "a kernel cannot use ... in an index; write an index or : for each axis")
        kind = of_value(value)
        return tree.Const(kind, value.item() if isinstance(value, np.generic) else value)

    def variable(self, node: ast.Name) -> tree.Expr:
        """A local variable, or a number, tuple or array of the kernel's globals."""
        kind = self.env.get(node.id)
        if isinstance(kind, Unclear):
            raise self.source.fault(node, f"{node.id} has no one type: {kind.why}")
        if kind is not None:
            return tree.Var(kind, node.id, node.lineno)
        if node.id in self.source.assigned:
            raise self.source.fault(node, f"{node.id} is read before anything is assigned to it; give it a value first")
        return self.outer(self.source.lookup(node.id), node.id, node)

    def outer(self, value: Any, name: str, node: ast.AST) -> tree.Expr:
        """A value from outside the kernel, frozen as Numba freezes it."""
        if value is MISSING:
            raise self.source.undefined(node, name)
        if isinstance(value, bool | int | float | np.generic):
            return self.constant(value, node)
        if isinstance(value, tuple):
            return self.pack([self.outer(v, f"{name}[{i}]", node) for i, v in enumerate(value)])
        if isinstance(value, np.ndarray):
            kind = Array(of_dtype(value.dtype), value.ndim, "const", frozenset([f"const {name}"]))
            return tree.Outer(kind, name, value)
        if isinstance(value, Intrinsic) and value.name == "warpsize":
            return tree.Const(int32, 32)
        if isinstance(value, Intrinsic) and value.name == "laneid":
            return tree.Special(int32, "laneid")
        if isinstance(value, Intrinsic) and value.name in DIMS:
            raise self.source.fault(
                node, f"cuda.{value.name} cannot be held in a variable; write cuda.{value.name}.x, .y or .z"
            )
        if isinstance(value, Intrinsic):
            raise self.source.fault(node, f"cuda.{value.name} is no value; call it where it is wanted")
        what = f"of type {type(value).__name__}"
        raise self.source.fault(node, f"{name} ({what}) is no number, tuple of numbers or array")

    def keep(self, value: tree.Expr) -> tree.Expr:
        """Hold a value in a variable of our own, so that it is computed once."""
        self.temporaries += 1
        name = f"{self.temporaries}t"  # no Python name starts with a digit
        self.env[name] = value.type
        self.out.append(tree.Assign(name, value))
        return tree.Var(value.type, name)

    def pack(self, items: list[tree.Expr]) -> tree.Expr:
        """A tuple."""
        return tree.Pack(Tuple(tuple(i.type for i in items)), tuple(items))

    def item(self, value: tree.Expr, index: int) -> tree.Expr:
        """A component of a tuple."""
        assert isinstance(value.type, Tuple)
        if isinstance(value, tree.Pack):
            return value.items[index]
        return tree.Item(value.type.items[index], value, index)

    def cast(self, value: tree.Expr, kind: "Type") -> tree.Expr:
        """The value in another type; numbers known when compiled are converted at once."""
        if value.type == kind:
            return value
        if isinstance(value.type, Tuple) and isinstance(kind, Tuple):
            return self.pack([self.cast(self.item(value, i), t) for i, t in enumerate(kind.items)])
        assert isinstance(kind, Scalar), kind
        if isinstance(value, tree.Const):
            assert isinstance(value.type, Scalar)
            with np.errstate(all="ignore"):
                number = np.asarray(value.value, value.type.dtype) if value.type.kind == "f" else value.value
                return tree.Const(kind, np.asarray(masks.caster(kind.name)(number), kind.dtype).item())
        return tree.Cast(kind, value)

    # ---- operators
    def binary(self, op: ast.operator, left: tree.Expr, right: tree.Expr, node: ast.AST) -> tree.Expr:
        """``left op right``."""
        sign = _OPERATORS[type(op)]
        if not isinstance(left.type, Scalar) or not isinstance(right.type, Scalar):
            raise self.source.fault(node, f"{left.type} {sign} {right.type} has no meaning in a kernel")
        try:
            result, a, b = binary(sign, left.type, right.type)
        except TypingFault as fault:
            raise self.source.fault(node, str(fault)) from None
        left, right = self.cast(left, a), self.cast(right, b)
        if isinstance(left, tree.Const) and isinstance(right, tree.Const):
            folded = _fold(sign, left.value, right.value)
            if folded is not None:
                return self.cast(tree.Const(of_value(folded), folded), result)
        return tree.Binary(result, sign, left, right, getattr(node, "lineno", 0))

    def unary(self, op: ast.unaryop, operand: ast.expr) -> tree.Expr:
        """``-x``, ``+x``, ``~x``, ``not x``."""
        sign = _OPERATORS[type(op)]
        typed = self.condition(operand) if sign == "not" else self.expression(operand)
        if not isinstance(typed.type, Scalar):
            raise self.source.fault(operand, f"{sign}{typed.type} has no meaning in a kernel")
        given, kind = typed.type, unary(sign, typed.type)
        if sign in "-~" and given.kind in "iu" and given.bits < 64:  # the bits of its own type are turned
            return self.cast(self.cast(self.turned(sign, self.cast(typed, kind), kind, operand), given), kind)
        return self.turned(sign, self.cast(typed, kind), kind, operand)

    def turned(self, sign: str, typed: tree.Expr, kind: Scalar, operand: ast.expr) -> tree.Expr:
        """An operand under a sign, in the type of the result."""
        if not isinstance(typed, tree.Const):
            return tree.Unary(kind, sign, typed, operand.lineno)
        value = typed.value
        folded = not value if sign == "not" else -value if sign == "-" else ~value if sign == "~" else value
        if isinstance(operand, ast.Constant):  # -9223372036854775808 is one number
            return tree.Const(of_value(folded), folded) if sign == "-" else self.cast(_known(folded), kind)
        return self.cast(_known(folded % (1 << 64) if kind == uint64 else folded), kind)

    def compare(self, ops: list[ast.cmpop], nodes: list[ast.expr]) -> tree.Expr:
        """``a < b <= c``: ``b`` is evaluated once, and ``c`` only where ``a < b``."""
        operands = [self.expression(n) for n in nodes]
        for node, operand in zip(nodes, operands, strict=True):
            if not isinstance(operand.type, Scalar):
                what = "a tuple" if isinstance(operand.type, Tuple) else f"{one(operand.type)}"
                instead = "; compare its items one by one" * isinstance(operand.type, Tuple)
                raise self.source.fault(node, f"{what} cannot be compared as a whole in a kernel{instead}")
        rights = list(operands)
        for i, operand in enumerate(operands[1:-1], 1):
            if not isinstance(operand, tree.Const | tree.Var | tree.Special):
                self.temporaries += 1
                rights[i] = tree.Named(operand.type, operand, f"{self.temporaries}n")
                operands[i] = tree.Again(operand.type, f"{self.temporaries}n")
        tests = [self.test(_OPERATORS[type(op)], operands[i], rights[i + 1]) for i, op in enumerate(ops)]
        typed = tests[-1]
        for test in reversed(tests[:-1]):
            typed = tree.Logic(boolean, "and", test, typed)
        return typed

    def test(self, sign: str, left: tree.Expr, right: tree.Expr) -> tree.Expr:
        """``left < right``, in the type that both have in common."""
        common = unify(left.type, right.type)
        left, right = self.cast(left, common), self.cast(right, common)
        if isinstance(left, tree.Const) and isinstance(right, tree.Const):
            return tree.Const(boolean, bool(_COMPARE[sign](left.value, right.value)))
        return tree.Compare(boolean, sign, left, right)

    def logic(self, op: str, nodes: list[ast.expr]) -> tree.Expr:
        """``a and b and c``: the operand that decides, in the type that all of them have in common."""
        operands = [self.expression(node) for node in nodes]
        kind = operands[0].type
        for node, operand in zip(nodes, operands, strict=True):
            if not isinstance(operand.type, Scalar):
                raise self.source.fault(
                    node, f"{op} gives one of its operands, and {one(operand.type)} is no number; write if and else"
                )
            kind = unify(kind, operand.type)
        typed = self.cast(operands[-1], kind)
        for operand in reversed(operands[:-1]):
            left = self.cast(operand, kind)
            if isinstance(left, tree.Const):
                typed = left if bool(left.value) == (op == "or") else typed
            else:
                typed = tree.Logic(kind, op, left, typed)
        return typed

    def conjunction(self, op: str, nodes: list[ast.expr]) -> tree.Expr:
        """``a and b and c``, taken as conditions."""
        typed = self.condition(nodes[0])
        for node in nodes[1:]:
            if isinstance(typed, tree.Const):
                if bool(typed.value) == (op == "or"):
                    return typed
                typed = self.condition(node)
                continue
            typed = tree.Logic(boolean, op, typed, self.condition(node))
        return typed

    def choice(self, node: ast.IfExp) -> tree.Expr:
        """``a if test else b``: one type, both ways."""
        test = self.condition(node.test)
        if isinstance(test, tree.Const):
            return self.expression(node.body if test.value else node.orelse)
        then, other = self.expression(node.body), self.expression(node.orelse)
        if isinstance(then.type, Array) or isinstance(other.type, Array):
            return tree.Choice(unify(then.type, other.type), test, then, other)
        kind = unify(then.type, other.type)
        return tree.Choice(kind, test, self.cast(then, kind), self.cast(other, kind))

    # ---- arrays
    def attribute(self, node: ast.Attribute) -> tree.Expr:
        """``cuda.threadIdx.x``, ``array.shape``, ``vector.x`` or a value of a module."""
        if isinstance(node.value, ast.Attribute | ast.Name):
            base = self.source.static(node.value)
            if isinstance(base, Intrinsic) and base.name in DIMS:
                if node.attr not in ("x", "y", "z"):
                    raise self.source.fault(node, f"cuda.{base.name} has x, y and z, not {node.attr}")
                return tree.Special(int32, f"{base.name}.{node.attr}")
            value = self.source.static(node)
            if value is not MISSING:
                return self.outer(value, ast.unparse(node), node)
            if base is not MISSING and not isinstance(base, np.ndarray):
                raise self.source.nonexistent(node)
        owner = self.expression(node.value)
        if isinstance(owner.type, Vector) and node.attr in owner.type.fields:
            return tree.Item(owner.type.base, owner, owner.type.fields.index(node.attr))
        if isinstance(owner.type, Array):
            if node.attr == "shape":
                return self.pack([tree.Extent(int64, owner, axis) for axis in range(owner.type.ndim)])
            if node.attr == "size":
                return tree.Extent(int64, owner, -1)
            if node.attr == "ndim":
                return tree.Const(int64, owner.type.ndim)
        raise self.source.fault(
            node, f"{one(owner.type)} has no {node.attr} in a kernel; arrays have shape, size and ndim"
        )

    def subscript(self, node: ast.Subscript) -> tree.Expr:
        """An element, a smaller view, or a component of a tuple."""
        owner = self.expression(node.value)
        if isinstance(owner.type, Tuple):
            index = self.expression(node.slice)
            if not isinstance(index, tree.Const) or not -len(owner.type.items) <= index.value < len(owner.type.items):
                raise self.source.fault(node, "the index of a tuple must be a number written out, and inside it")
            return self.item(owner, index.value % len(owner.type.items))
        if not isinstance(owner.type, Array):
            raise self.source.fault(node, f"{one(owner.type)} has no elements")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(p, ast.Slice) for p in parts) or len(parts) < owner.type.ndim:
            return self.view(node, owner, parts)
        array, indices = self.element(node, owner)
        return tree.Load(owner.type.element, array, indices, self.site(node, "read", array))

    def element(self, node: ast.Subscript, owner: tree.Expr | None = None) -> tuple[tree.Expr, tuple[tree.Expr, ...]]:
        """The array and the indices of ``array[i, j]``."""
        owner = owner or self.expression(node.value)
        if not isinstance(owner.type, Array):
            raise self.source.fault(node, f"{one(owner.type)} has no elements")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and p.value is ...) for p in parts):
            raise self.source.fault(
                node,
                "a kernel stores one element at a time; write a loop over range(...), or let each thread store one",
            )
        return owner, self.indices(node, owner.type, [self.expression(part) for part in parts])

    def view(self, node: ast.Subscript, owner: tree.Expr, parts: list[ast.expr]) -> tree.Expr:
        """``array[i]`` or ``array[a:b]``: a smaller array over the same memory."""
        assert isinstance(owner.type, Array)
        if len(parts) > owner.type.ndim:
            raise self.source.fault(
                node, f"{len(parts)} indices for an array of {plural(owner.type.ndim, 'dimension')}"
            )
        made: list[tree.Expr | tuple[tree.Expr | None, tree.Expr | None]] = []
        for part in parts:
            if isinstance(part, ast.Slice):
                if part.step is not None:
                    raise self.source.fault(node, "a slice in a kernel has no step; multiply the index instead")
                ends = [None if end is None else self.integer(end) for end in (part.lower, part.upper)]
                made.append((ends[0], ends[1]))
            else:
                made.append(self.integer(part))
        dropped = sum(not isinstance(p, tuple) for p in made)
        kind = Array(owner.type.element, owner.type.ndim - dropped, owner.type.space, owner.type.roots)
        return tree.Slice(kind, owner, tuple(made), node.lineno)


def _known(value: Any) -> tree.Const:
    """A number known when compiled."""
    return tree.Const(of_value(value), value)


_COMPARE: dict[str, Any] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _fold(sign: str, a: Any, b: Any) -> Any:
    """The value of an operator on two numbers known when compiled, or ``None`` where only a GPU would say."""
    if sign in ("**", "<<") and isinstance(a, int) and isinstance(b, int) and b > 64:
        return None  # more bits than any number here has
    try:
        value = {
            "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b, "//": lambda: a // b,
            "%": lambda: a % b, "**": lambda: a**b, "<<": lambda: a << b, ">>": lambda: a >> b, "&": lambda: a & b,
            "|": lambda: a | b, "^": lambda: a ^ b,
        }[sign]()  # fmt: skip
    except (ArithmeticError, ValueError):
        return None
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 64:
        return None
    return value
