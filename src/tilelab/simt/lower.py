"""Statements of a kernel: from Python's syntax tree to the typed tree.

Types flow with the statements. A variable may hold an int here and a float later; where ways meet (after ``if``,
round a loop) its type is the unification of what comes in, and a :class:`~tilelab.simt.tree.Retype` makes the value
follow. Loops are typed until nothing changes.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tilelab.simt import endless, tree, unassigned, uniform
from tilelab.simt.expressions import ExpressionTyper, Unclear
from tilelab.simt.source import Source
from tilelab.simt.types import Array, Scalar, Tuple, Type, TypingFault, Vector, int32, int64, none, uint64, unify
from tilelab.simt.updates import atomic_of
from tilelab.simt.walk import expressions_in, nodes_in
from tilelab.simt.words import one

Env = dict[str, Type | Unclear]


@dataclass
class _Loop:
    line: int
    breaks: list[Env]
    continues: list[Env]


class FunctionTyper(ExpressionTyper):
    """Types one function for one list of argument types."""

    def build(self) -> tree.Function:
        """Type the body and return the function."""
        self.loops: list[_Loop] = []
        self.returned: list[Type] = []
        env: Env = dict(zip(self.source.params, self.types, strict=True))
        body, end = self.block(self.source.tree.body, env)
        self.function.body = body
        unassigned.mark(self.function, self.source.assigned)
        self.function.returns = self._return_type(end is not None)
        return self.function

    def _return_type(self, falls_off: bool) -> Type:
        if not self.is_device:
            return none
        kinds = self.returned + ([none] if falls_off and self.returned and none not in self.returned else [])
        if not kinds:
            return none
        if falls_off and any(k != none for k in kinds):
            raise self.source.fault(self.source.tree, "it returns a value on one way and nothing on another")
        result = kinds[0]
        for kind in kinds[1:]:
            try:
                result = unify(result, kind)
            except TypingFault as fault:
                raise self.source.fault(self.source.tree, f"its result has no one type: {fault}") from None
        return result

    # ---- ways that meet
    def join(self, envs: list[Env]) -> Env:
        """What is known of each variable where several ways meet."""
        met: Env = {}
        for env in envs:
            for name, kind in env.items():
                if name[0].isdigit():  # ours, used only in the statement that made it
                    continue
                met[name] = self._meet(met[name], kind) if name in met else kind
        return met

    def _meet(self, a: "Type | Unclear", b: "Type | Unclear") -> "Type | Unclear":
        if isinstance(a, Unclear) or isinstance(b, Unclear):
            return a if isinstance(a, Unclear) else b
        try:
            return unify(a, b)
        except TypingFault as fault:
            return Unclear(str(fault))

    def retypes(self, met: Env, envs: list[Env]) -> list[tree.Stmt]:
        """Statements that bring each variable to its type where ways met, if some way had another."""
        out: list[tree.Stmt] = []
        for name, kind in met.items():
            if isinstance(kind, Scalar | Tuple) and any(name in env and env[name] != kind for env in envs):
                out.append(tree.Retype(name, kind))
        return out

    # ---- statements
    def block(self, nodes: list[ast.stmt], env: Env) -> tuple[list[tree.Stmt], Env | None]:
        """Type statements in order; the environment afterwards is ``None`` where no thread gets."""
        out: list[tree.Stmt] = []
        live: Env | None = env
        for node in nodes:
            if live is None:
                break
            live = self.statement(node, live, out)
        return out, live

    def statement(self, node: ast.stmt, env: Env, out: list[tree.Stmt]) -> Env | None:
        """Type one statement, append what it becomes, and return the environment after it."""
        self.env, self.out = env, out
        match node:
            case ast.Assign(targets=targets, value=value):
                self.assign(targets, value, node)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign([target], value, node)
            case ast.AugAssign():
                self.augmented(node)
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign():
                pass
            case ast.Expr(value=value):
                out.append(tree.Eval(self.effect(value)))
            case ast.If():
                return self.branch(node, env, out)
            case ast.For():
                return self.for_loop(node, env, out)
            case ast.While():
                return self.while_loop(node, env, out)
            case ast.Return(value=value):
                self.leave(value, node)
                return None
            case ast.Break():
                self.loops[-1].breaks.append(dict(env))
                out.append(tree.Break())
                return None
            case ast.Continue():
                self.loops[-1].continues.append(dict(env))
                out.append(tree.Continue())
                return None
            case _:
                raise self.source.fault(node, f"a kernel cannot use {type(node).__name__.lower()}")
        return env

    def leave(self, value: ast.expr | None, node: ast.stmt) -> None:
        """Type ``return``."""
        result = None if value is None or (isinstance(value, ast.Constant) and value.value is None) else value
        if result is None:
            self.returned.append(none)
            self.out.append(tree.Return(None, node.lineno))
            return
        if not self.is_device:
            raise self.source.fault(node, "a kernel returns nothing; store the result in an array")
        typed = self.expression(result)
        self.returned.append(typed.type)
        self.out.append(tree.Return(typed, node.lineno))

    def assign(self, targets: list[ast.expr], value: ast.expr, node: ast.Assign | ast.AnnAssign) -> None:
        """Type ``target = value``, or ``a = b = value``: the value is taken once."""
        typed = self.named_value(targets[0], value)
        if len(targets) > 1 and not isinstance(typed, tree.Const):
            typed = self.keep(typed)
        for target in targets:
            self.put(target, typed, node)
            if isinstance(target, ast.Subscript):
                self.note_update(node, target)

    def named_value(self, target: ast.expr, value: ast.expr) -> tree.Expr:
        """A value whose arrays, if it makes some, are called by the names that they are given to."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            return self.pack([self.named_value(t, v) for t, v in zip(target.elts, value.elts, strict=True)])
        self.hint = target.id if isinstance(target, ast.Name) else None
        typed = self.expression(value)
        self.hint = None
        return typed

    def put(self, target: ast.expr, value: tree.Expr, node: ast.stmt) -> None:
        """Give a value to a name, an element, or a tuple of them."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, node)
        elif isinstance(target, ast.Tuple):
            self.unpack(target, value, node)
        elif isinstance(target, ast.Subscript):
            self.store(target, value, node)
        else:
            raise self.source.fault(node, f"a kernel cannot assign to {ast.unparse(target)}")

    def bind(self, name: str, value: tree.Expr, node: ast.AST) -> None:
        """``name = value``, and the variable's type from here on."""
        if value.type == none:
            raise self.source.fault(node, f"{name} would be None, for nothing is given to it here")
        self.env[name] = value.type
        self.out.append(tree.Assign(name, value))

    def unpack(self, target: ast.Tuple, value: tree.Expr, node: ast.stmt) -> None:
        """``a, b = value``; every part of the value is taken before a name changes."""
        if not isinstance(value.type, Tuple) or len(value.type.items) != len(target.elts):
            raise self.source.fault(node, f"{value.type} cannot be unpacked into {len(target.elts)} names")
        if not isinstance(value, tree.Pack):
            value = self.keep(value)
        parts = [self.item(value, i) for i in range(len(target.elts))]
        given = [n for n in ast.walk(target) if not isinstance(getattr(n, "ctx", ast.Load()), ast.Load)]
        names = {n.id for n in given if isinstance(n, ast.Name)}
        read = {n.name for part in parts for n in expressions_in(part) if isinstance(n, tree.Var)}
        if names & read or any(isinstance(n, ast.Subscript) for n in given):
            parts = [part if isinstance(part, tree.Const) else self.keep(part) for part in parts]
        for name, part in zip(target.elts, parts, strict=True):
            self.put(name, part, node)

    def store(self, target: ast.Subscript, value: tree.Expr, node: ast.stmt) -> None:
        """``array[index] = value``."""
        array, index = self.element(target)
        assert isinstance(array.type, Array)
        if array.type.space == "const":
            raise self.source.fault(node, f"{ast.unparse(target.value)} is constant memory and cannot be written")
        if any(_meddles(value, place) for place in (array, *index)):
            value = self.keep(value)  # Python takes the value first
        self.written.update(array.type.roots)
        site = self.site(target, "write", array)
        self.out.append(tree.Store(array, index, self.fit(value, array.type.element, node), site))

    def fit(self, value: tree.Expr, element: Scalar | Vector, node: ast.AST) -> tree.Expr:
        """The value as an element of an array."""
        if isinstance(element, Vector):
            if value.type != element:
                raise self.source.fault(node, f"{one(value.type)} does not fit an array of {element}")
            return value
        if not isinstance(value.type, Scalar):
            raise self.source.fault(node, f"{one(value.type)} does not fit an array of {element}")
        return self.cast(value, element)

    def augmented(self, node: ast.AugAssign) -> None:
        """``target op= value``: the index is evaluated once, the element read and then written."""
        if isinstance(node.target, ast.Name):
            left: tree.Expr = self.variable(node.target)
            self.bind(node.target.id, self.binary(node.op, left, self.expression(node.value), node), node)
        elif isinstance(node.target, ast.Subscript):
            array, index = self.element(node.target)
            assert isinstance(array.type, Array)
            index = tuple(i if isinstance(i, tree.Const | tree.Var | tree.Special) else self.keep(i) for i in index)
            self.written.update(array.type.roots)
            read = tree.Load(array.type.element, array, index, self.site(node.target, "read", array))
            value = self.binary(node.op, read, self.expression(node.value), node)
            site = self.site(node.target, "write", array)
            self.out.append(tree.Store(array, index, self.fit(value, array.type.element, node), site))
            read.site.atomic = site.atomic = atomic_of(node, node.target, array.type.element)
        else:
            raise self.source.fault(node, f"a kernel cannot assign to {ast.unparse(node.target)}")

    def note_update(self, node: ast.Assign | ast.AnnAssign, target: ast.Subscript) -> None:
        """Note at the places of ``a[i] = a[i] + x`` the atomic that would do it."""
        written = self.out[-1]
        if not isinstance(node, ast.Assign) or not isinstance(written, tree.Store):
            return
        assert isinstance(written.array.type, Array)
        atomic = atomic_of(node, target, written.array.type.element)
        for n in nodes_in(written):
            if atomic and isinstance(n, tree.Load) and n.site.text == written.site.text:
                n.site.atomic = written.site.atomic = atomic

    def branch(self, node: ast.If, env: Env, out: list[tree.Stmt]) -> Env | None:
        """Type ``if``."""
        test = self.condition(node.test)
        if isinstance(test, tree.Const):  # known when compiled, as `if TILE == 16`
            body, end = self.block(node.body if test.value else node.orelse, env)
            out.extend(body)
            return end
        fork = self.fork(node)
        self.around.append(fork)
        then, after_then = self.block(node.body, dict(env))
        other, after_other = self.block(node.orelse, dict(env))
        self.around.pop()
        self.leavers.passed(node, fork)
        out.append(tree.If(test, then, other, fork))
        ends = [e for e in (after_then, after_other) if e is not None]
        if not ends:
            return None
        met = self.join(ends)
        out.extend(self.retypes(met, ends))
        return met

    def rounds(self, node: ast.For | ast.While, env: Env) -> Iterator[tuple[Env, _Loop]]:
        """Give the environment at a loop's head again and again, until typing the body no longer changes it."""
        head = self.join([env])
        self.around.append(self.fork(node))
        passed = len(self.leavers.forks)
        while True:
            loop = _Loop(node.lineno, [], [])
            self.loops.append(loop)
            before = len(self.returned)
            self.at_end: Env | None = None
            yield dict(head), loop
            self.loops.pop()
            met = self.join([head, *([self.at_end] if self.at_end is not None else []), *loop.continues])
            if met == head:
                self.around.pop()
                self.leavers.loop_ends(passed)
                return
            del self.returned[before:]
            head = met

    def for_loop(self, node: ast.For, env: Env, out: list[tree.Stmt]) -> Env | None:
        """Type ``for name in range(...)`` or over a tuple written out."""
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        if isinstance(node.iter, ast.Tuple):
            return self.unrolled(node, name, node.iter, env, out)
        assert isinstance(node.iter, ast.Call)
        args = [self.integer(a) for a in node.iter.args]
        if not 1 <= len(args) <= 3 or node.iter.keywords:
            raise self.source.fault(node, "range takes one to three integers")
        kind = _of_range([a.type for a in args])
        zero, one = tree.Const(int64, 0), tree.Const(int64, 1)
        start, stop, step = (zero, args[0], one) if len(args) == 1 else (*args, one)[:3]
        if isinstance(step, tree.Const) and step.value == 0:
            raise self.source.fault(node, "range with a step of 0 never ends")
        # what range was given is fixed, also if the body assigns to the names
        ends = [self.cast(a, kind) for a in (start, stop, step)]
        start, stop, step = (a if isinstance(a, tree.Const) else self.keep(a) for a in ends)
        for head, loop in self.rounds(node, self.env):
            inside = dict(head)
            inside[name] = kind
            body, self.at_end = self.block(node.body, inside)
            last, ended = loop, head
        made = tree.For(name, start, stop, step, body, self.fork(node), self.loop_line())
        others = {other: kind for other, kind in ended.items() if other != name}  # it has a new value in each round
        made.body[:0] = self.retypes(others, [env, *last.continues, *([self.at_end] if self.at_end else [])])
        out.append(made)
        return self.after_loop(ended, last, out)

    def unrolled(self, node: ast.For, name: str, items: ast.Tuple, env: Env, out: list[tree.Stmt]) -> Env | None:
        """A loop over a tuple: its body once for each item."""
        if any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(node)):
            raise self.source.fault(node, "a loop over a tuple cannot break or continue; loop over range(...)")
        live: Env | None = env
        for item in items.elts:
            if live is None:
                break
            self.env, self.out = live, out
            self.bind(name, self.expression(item), node)
            body, live = self.block(node.body, self.env)
            out.extend(body)
        return live

    def while_loop(self, node: ast.While, env: Env, out: list[tree.Stmt]) -> Env | None:
        """Type ``while``."""
        head_out: list[tree.Stmt] = []
        for head, loop in self.rounds(node, env):
            head_out = []
            self.env, self.out = dict(head), head_out
            test = self.condition(node.test)
            body, self.at_end = self.block(node.body, self.env)
            last, ended = loop, head
        head_out[:0] = self.retypes(ended, [env, *last.continues, *([self.at_end] if self.at_end else [])])
        made = tree.While(head_out, test, body, self.fork(node), self.loop_line())
        out.append(made)
        if isinstance(test, tree.Const) and test.value and not last.breaks:
            return None
        return self.after_loop(ended, last, out)

    def after_loop(self, head: Env, loop: _Loop, out: list[tree.Stmt]) -> Env:
        """The environment after a loop: from its head, or from a break."""
        ends = [head, *loop.breaks]
        met = self.join(ends)
        out.extend(self.retypes(met, ends))
        self.out = out
        return met

    def loop_line(self) -> int | None:
        """Line of the loop that is being typed, if any."""
        return self.loops[-1].line if self.loops else None

    def loop_lines(self) -> tuple[int, ...]:
        """Lines of the loops being typed, outermost first."""
        return tuple(loop.line for loop in self.loops)


def _meddles(a: tree.Expr, b: tree.Expr) -> bool:
    """Whether it matters which of two expressions is evaluated first."""
    acts = tree.Atomic, tree.Call, tree.Warp, tree.Barrier
    return any(
        any(isinstance(n, acts) for n in nodes_in(x)) and any(isinstance(n, (*acts, tree.Load)) for n in nodes_in(y))
        for x, y in ((a, b), (b, a))
    )


def _of_range(given: list[Type]) -> Scalar:
    """The type of a loop variable, by those that ``range`` was given."""
    kinds = [kind for kind in given if isinstance(kind, Scalar)]
    if all(kind.kind == "u" for kind in kinds):
        return uint64
    return int32 if all(kind.kind == "i" and kind.bits <= 32 for kind in kinds) else int64


def type_program(source: Source, types: list[Type]) -> tree.Program:
    """Type a kernel and all it calls for one list of argument types.

    Raises
    ------
    UnsupportedError
        With the line, what is wrong with it, and what to write instead.
    """
    program = tree.Program(tree.Function(source.name, source.params, types), source.file)
    FunctionTyper(program, source, types, program.kernel, is_device=False).build()
    program.functions.append(program.kernel)
    endless.judge(program)
    uniform.mark(program)
    return program
