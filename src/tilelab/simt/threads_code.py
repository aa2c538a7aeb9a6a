"""From the typed tree to Python for one thread.

A function that may wait (a barrier, a warp instruction) becomes a generator. Every access is told its place in the
source and the rounds of the loops around it, so that the accesses a warp makes together can be put together again.
"""

from collections.abc import Callable
from typing import Any

from tilelab.simt import masks, tree
from tilelab.simt.functions import FUNCTIONS
from tilelab.simt.types import Scalar, boolean
from tilelab.simt.walk import nodes_in


def compile_threads(program: tree.Program, checks: bool) -> tuple[Callable[..., Any], str]:
    """The kernel for one thread, and its Python text."""
    names: dict[str, Any] = {
        "_ws": masks.wrap_signed, "_wu": masks.wrap_unsigned, "_fdiv": masks.floor_divide, "_mod": masks.modulo,
        "_ipow": masks.integer_power, "_fpow": masks.float_power, "_shl": masks.shift_left, "_shr": masks.shift_right,
    }  # fmt: skip
    numbers = {id(function): i for i, function in enumerate(program.functions)}
    lines: list[str] = []
    for function in program.functions:
        lines += _Writer(program, function, names, numbers, function is program.kernel).write()
    text = "\n".join(lines)
    exec(compile(text, f"<threads of {program.kernel.name}>", "exec"), names)
    return names[f"_f{numbers[id(program.kernel)]}"], text


class _Writer:
    def __init__(
        self, program: tree.Program, function: tree.Function, names: dict[str, Any], numbers: dict[int, int], top: bool
    ) -> None:
        self.program, self.function, self.names, self.numbers, self.top = program, function, names, numbers, top
        self.lines: list[str] = []
        self.depth = 1
        self.position = 0
        self.path = "_P"
        self.unsure = sorted({n.name for n in nodes_in(function.body) if isinstance(n, tree.Var) and n.unsure})

    def write(self) -> list[str]:
        """The function's text."""
        params = "".join(f",v_{p}" for p in self.function.params)
        self.line("if 0: yield" if self.top or self.function.suspends else "pass")
        self.line("_locals={}")
        if self.unsure:
            self.line("=".join(f"v_{v}" for v in self.unsure) + "=None")
        self.block(self.function.body)
        return [f"def _f{self.numbers[id(self.function)]}(_t,_P{params}):", *self.lines]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def constant(self, value: Any, prefix: str = "k") -> str:
        """A name for an object in the function's globals."""
        name = f"_{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def next(self) -> int:
        """The position of what is written now, in the order of the source."""
        self.position += 1
        return self.position

    def block(self, statements: list[tree.Stmt]) -> None:
        for statement in statements:
            self.statement(statement)
        self.line("pass")

    def inside(self, statements: list[tree.Stmt]) -> None:
        self.depth += 1
        self.block(statements)
        self.depth -= 1

    def statement(self, node: tree.Stmt) -> None:
        match node:
            case tree.Run(number=number):
                if self.program.runs[number]:
                    self.line(f"_t.passed({number})")
            case tree.Assign(name=name, value=value):
                self.line(f"v_{name}={self.e(value)}")
            case tree.Retype(name=name, type=kind):
                if name in self.unsure:
                    self.line(f"if v_{name} is not None: v_{name}={self.retyped(f'v_{name}', kind)}")
                else:
                    self.line(f"try: v_{name}={self.retyped(f'v_{name}', kind)}")
                    self.line("except UnboundLocalError: pass")
            case tree.Store():
                array, index, value_ = self.e(node.array), self.index(node.index), self.e(node.value)
                self.line(f"{array}.st(_t,{index},{value_},{self.place(node.site)})")
            case tree.Eval(value=value):
                if not isinstance(value, tree.Const):
                    self.line(self.e(value))
            case tree.If():
                self.line(f"if _t.fork({self.constant(node.fork)},{self.here()},{self.e(node.test)}):")
                self.inside(node.then)
                if node.other:
                    self.line("else:")
                    self.inside(node.other)
            case tree.For() | tree.While():
                self.loop(node)
            case tree.Return(value=result, line=line):
                if self.top:
                    self.line(f"_t.left={line}")
                self.line("return" if result is None else f"return {self.e(result)}")
            case tree.Break():
                self.line("break")
            case tree.Continue():
                self.line("continue")

    def retyped(self, variable: str, kind: Any) -> str:
        if isinstance(kind, Scalar):
            return f"{self.caster(kind)}({variable})"
        return "(" + "".join(self.retyped(f"{variable}[{i}]", t) + "," for i, t in enumerate(kind.items)) + ")"

    def loop(self, node: tree.For | tree.While) -> None:
        fork = self.constant(node.fork)
        outer, number = self.path, self.next()
        count, path = f"_n{number}", f"_P{number}"
        if isinstance(node, tree.For):
            ends = ",".join(self.e(x) for x in (node.start, node.stop, node.step))
            self.line(f"{count}=-1")
            self.line(f"for v_{node.name} in _t.range({ends},{fork}):")
            self.depth += 1
            self.line(f"{count}+=1; {path}={outer}+({number},{count})")
            self.line(f"_t.fork({fork},{path},True); _t.tick({fork},{node.outer})")
        else:
            self.line(f"{count}=-1")
            self.line("while True:")
            self.depth += 1
            self.line(f"{count}+=1; {path}={outer}+({number},{count})")
            self.path = path
            for statement in node.head:
                self.statement(statement)
            self.line(f"if not _t.fork({fork},{path},{self.e(node.test)}): break")
            self.line(f"_t.tick({fork},{node.outer})")
            if node.fate == "steady":
                self.line(f"_t.steady({fork},{node.outer},{count})")
            if self.program.spins is not None and (self.top or self.function.suspends):
                waits = f"{fork},{node.outer}" if node.fate == "waits" else "None,None"
                self.line(f"yield ('turn',{waits})")
        self.path = path
        self.block(node.body)
        self.depth -= 1
        self.path = outer
        if isinstance(node, tree.For):
            self.line("else:")
            self.line(f"    _t.fork({fork},{outer}+({number},{count}+1),False)")

    def here(self) -> str:
        """The path at this position."""
        return f"{self.path}+({self.next()},)"

    def place(self, site: tree.Site) -> str:
        return f"{self.constant(site, 's')},{self.here()}"

    def index(self, index: tuple[tree.Expr, ...]) -> str:
        return "(" + "".join(self.e(i) + "," for i in index) + ")"

    def caster(self, kind: Scalar) -> str:
        name = f"_to_{kind}"
        if name not in self.names:
            self.names[name] = masks.caster(kind.name)
        return name

    def e(self, node: tree.Expr) -> str:
        """The text of an expression."""
        match node:
            case tree.Const(type=kind, value=value):
                is_float = isinstance(kind, Scalar) and kind.kind == "f"
                return self.constant(kind.dtype.type(value)) if is_float and isinstance(kind, Scalar) else repr(value)
            case tree.Var(name=name, line=line, unsure=unsure):
                return f"_t.given(v_{name},{name!r},{line},{unsure})" if unsure else f"v_{name}"
            case tree.Special(name=name):
                return f"_t.special[{name!r}]"
            case tree.Outer():
                return f"_t.outer({node.name!r},{self.constant(node.value)},{self.constant(node.type)})"
            case tree.Binary():
                return self.binary(node)
            case tree.Unary(op=op, operand=operand, type=kind):
                if kind == boolean:
                    return f"(not {self.e(operand)})"
                assert isinstance(kind, Scalar)
                text = f"({op}{self.e(operand)})"
                return text if kind.kind == "f" else f"{'_ws' if kind.kind == 'i' else '_wu'}({text})"
            case tree.Compare():
                return f"bool({self.e(node.left)}{node.op}{self.e(node.right)})"
            case tree.Named(operand=operand, name=name):
                return f"(_v{name}:={self.e(operand)})"
            case tree.Again(name=name):
                return f"_v{name}"
            case tree.Logic(op=op, left=left, right=right):
                return f"({self.e(left)} {op} {self.e(right)})"
            case tree.Choice(test=test, then=then, other=other):
                condition = self.e(test)
                return f"({self.e(then)} if {condition} else {self.e(other)})"
            case tree.Cast(type=kind, operand=operand):
                assert isinstance(kind, Scalar)
                return f"{self.caster(kind)}({self.e(operand)})"
            case tree.Pack(items=items):
                return self.index(items)
            case tree.Item(operand=operand, index=i):
                return f"{self.e(operand)}[{i}]"
            case tree.Extent(array=array, axis=axis):
                return f"{self.e(array)}.size" if axis < 0 else f"{self.e(array)}.shape[{axis}]"
            case tree.Load():
                array_, index = self.e(node.array), self.index(node.index)
                return f"{array_}.ld(_t,{index},{self.place(node.site)})"
            case tree.Slice():
                parts = []
                for part in node.parts:
                    if isinstance(part, tuple):
                        parts.append("(" + "".join(("None" if p is None else self.e(p)) + "," for p in part) + ")")
                    else:
                        parts.append(self.e(part))
                return f"{self.e(node.array)}.view(_t,({','.join(parts)},),{node.line})"
            case tree.Alloc():
                held = ",_locals" if node.array.space == "local" else ""
                return f"_t.{node.array.space}({self.constant(node)}{held})"
            case tree.Math(name=name, args=args):
                self.names[f"_fn_{name}"] = FUNCTIONS[name]
                return f"_fn_{name}({','.join(self.e(a) for a in args)})"
            case tree.Atomic():
                array_, index, values = self.e(node.array), self.index(node.index), self.index(node.values)
                return f"{array_}.atomic(_t,{node.name!r},{index},{values},{self.place(node.site)})"
            case tree.Barrier(op=op, predicate=predicate, line=line, forks=forks, left=left):
                true = "True" if predicate is None else self.e(predicate)
                around = self.constant((*self.function.around(), *forks))
                without = self.constant((*self.function.without(), *left))
                return f"(yield ('barrier',{line},{op!r},{true},{around},{without},{self.here()}))"
            case tree.Warp():
                args_ = self.index(node.args)
                return f"(yield ('warp',{node.line},{node.name!r},{args_},{self.here()}))"
            case tree.Call(function=function, args=args):
                passed = "".join("," + self.e(a) for a in args)
                call = f"_f{self.numbers[id(function)]}(_t,{self.here()}{passed})"
                return f"(yield from {call})" if function.suspends else call
            case tree.Counted(run=run, operand=operand):
                return f"(_t.passed({run}),{self.e(operand)})[1]"
        raise AssertionError(node)

    def binary(self, node: tree.Binary) -> str:
        a, b, kind = self.e(node.left), self.e(node.right), node.type
        assert isinstance(kind, Scalar)
        named = {"//": "_fdiv", "%": "_mod", "<<": "_shl", ">>": "_shr", "**": "_fpow" if kind.kind == "f" else "_ipow"}
        text = f"{named[node.op]}({a},{b})" if node.op in named else f"({a}{node.op}{b})"
        if kind.kind == "f" or kind == boolean or node.op in "&|^":
            return text
        return f"{'_ws' if kind.kind == 'i' else '_wu'}({text})"
