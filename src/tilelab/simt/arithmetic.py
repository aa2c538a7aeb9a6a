"""Where arithmetic happens: marks what is executed together, and notes the operations in it.

A :class:`~tilelab.simt.tree.Run` opens statements that the same threads execute; a
:class:`~tilelab.simt.tree.Counted` is a part of an expression that only some of them evaluate. An engine adds the
threads that pass one; the table made here says what each thread did there.
"""

from collections import Counter

from tilelab.simt import tree
from tilelab.simt.types import Scalar, boolean

Operations = Counter[tuple[int, str]]


class Marker:
    """Marks the functions of one program."""

    def __init__(self, program: tree.Program) -> None:
        self.program = program

    def mark(self) -> None:
        """Mark every function."""
        for function in self.program.functions:
            function.body = self.block(function.body)

    def begin(self) -> tuple[int, Operations]:
        """A new run and its table."""
        operations: Operations = Counter()
        self.program.runs.append(operations)
        return len(self.program.runs) - 1, operations

    def block(self, statements: list[tree.Stmt]) -> list[tree.Stmt]:
        """Statements with their runs marked; a new run opens after anything that threads may leave by."""
        out: list[tree.Stmt] = []
        operations: Operations | None = None
        for statement in statements:
            if operations is None:
                number, operations = self.begin()
                out.append(tree.Run(number))
            self.statement(statement, operations)
            out.append(statement)
            if isinstance(statement, tree.If | tree.For | tree.While):
                operations = None
        return out

    def statement(self, statement: tree.Stmt, operations: Operations) -> None:
        """Note what a statement computes, and mark what is inside it."""
        match statement:
            case tree.Assign():
                statement.value = self.expression(statement.value, operations)
            case tree.Store():
                statement.index = self.many(statement.index, operations)
                statement.value = self.expression(statement.value, operations)
            case tree.Eval():
                statement.value = self.expression(statement.value, operations)
            case tree.Return() if statement.value is not None:
                statement.value = self.expression(statement.value, operations)
            case tree.If():
                statement.test = self.expression(statement.test, operations)
                statement.then, statement.other = self.block(statement.then), self.block(statement.other)
            case tree.For():
                statement.body = self.block(statement.body)
            case tree.While():
                statement.test = self.part(statement.test)
                statement.body = self.block(statement.body)

    def part(self, expression: tree.Expr) -> tree.Expr:
        """An expression that is evaluated on its own, counted if it computes anything."""
        number, operations = self.begin()
        marked = self.expression(expression, operations)
        if operations:
            return tree.Counted(expression.type, number, marked)
        self.program.runs.pop() if number == len(self.program.runs) - 1 else None
        return marked

    def many(self, expressions: tuple[tree.Expr, ...], operations: Operations) -> tuple[tree.Expr, ...]:
        """Each of several expressions."""
        return tuple(self.expression(e, operations) for e in expressions)

    def expression(self, e: tree.Expr, operations: Operations) -> tree.Expr:
        """Note what an expression computes; parts that not every thread evaluates become runs of their own."""
        match e:
            case tree.Binary():
                e.left, e.right = self.many((e.left, e.right), operations)
                operations[e.line, f"{e.left.type} {e.op}"] += 1
            case tree.Unary() if e.type != boolean:
                e.operand = self.expression(e.operand, operations)
                operations[e.line, f"{e.type} {e.op}"] += 1
            case tree.Unary() | tree.Cast() | tree.Item() | tree.Named():
                e.operand = self.expression(e.operand, operations)
            case tree.Math():
                e.args = self.many(e.args, operations)
                kind = e.args[0].type
                operations[e.line, f"{kind if isinstance(kind, Scalar) else e.type} {e.name}"] += 1
            case tree.Compare():
                e.left, e.right = self.many((e.left, e.right), operations)
            case tree.Logic():
                e.left, e.right = self.expression(e.left, operations), self.part(e.right)
            case tree.Choice():
                e.test = self.expression(e.test, operations)
                e.then, e.other = self.part(e.then), self.part(e.other)
            case tree.Pack():
                e.items = self.many(e.items, operations)
            case tree.Load():
                e.index = self.many(e.index, operations)
            case tree.Atomic():
                e.index, e.values = self.many(e.index, operations), self.many(e.values, operations)
            case tree.Warp() | tree.Call():
                e.args = self.many(e.args, operations)
            case tree.Barrier() if e.predicate is not None:
                e.predicate = self.expression(e.predicate, operations)
        return e
