"""From the typed tree to Python over lanes.

Each function becomes a Python function with a mask as second parameter. Statements run under the mask named by the
branch or loop they stand in; a thread that returns, breaks or continues leaves the mask. A variable assigned under a
mask keeps its old value in the other lanes, unless nobody can see the difference: the lanes have returned, or the
variable lives only inside this branch.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from tilelab.simt import masks, tree
from tilelab.simt.functions import FUNCTIONS
from tilelab.simt.lanes import Range
from tilelab.simt.lanes_memory import Place
from tilelab.simt.types import Scalar, boolean
from tilelab.simt.walk import nodes_in

_PURE = (tree.Const, tree.Var, tree.Special, tree.Compare, tree.Unary, tree.Cast, tree.Logic, tree.Extent, tree.Item)


def compile_lanes(program: tree.Program, checks: bool) -> tuple[Callable[..., Any], list[Place], str]:
    """The kernel over lanes, the places it touches memory at, and its Python text."""
    names: dict[str, Any] = {
        "_merge": masks.merge, "_union": masks.union, "_minus": masks.minus, "_part": masks.part,
        "_ws": masks.wrap_signed, "_wu": masks.wrap_unsigned, "_fdiv": masks.floor_divide, "_mod": masks.modulo,
        "_ipow": masks.integer_power, "_fpow": masks.float_power, "_shl": masks.shift_left, "_shr": masks.shift_right,
        "_both": masks.both, "_either": masks.either, "_not": masks.negation, "_Range": Range,
    }  # fmt: skip
    places = [Place(site, False) for site in program.sites]
    lines: list[str] = []
    numbers = {id(function): i for i, function in enumerate(program.functions)}
    for function in program.functions:
        lines += _Writer(program, function, checks, names, places, numbers).write()
    text = "\n".join(lines)
    exec(compile(text, f"<lanes of {program.kernel.name}>", "exec"), names)
    return names[f"_f{numbers[id(program.kernel)]}"], places, text


class _Writer:
    def __init__(
        self,
        program: tree.Program,
        function: tree.Function,
        checks: bool,
        names: dict[str, Any],
        places: list[Place],
        numbers: dict[int, int],
    ) -> None:
        self.program, self.function, self.checks, self.names = program, function, checks, names
        self.places, self.numbers = places, numbers
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.specials: dict[str, str] = {}
        self.homes: dict[str, str] = {}
        self.total = Counter(name for s in function.body for name in _mentions(s))
        self.unsure = {n.name for n in nodes_in(function.body) if isinstance(n, tree.Var) and n.unsure}
        """Variables for which the lanes that have assigned to them are noted."""

    def write(self) -> list[str]:
        """The function's text."""
        body = self.function.body
        self.block(body, "_m", None)
        body_lines = self.lines
        self.lines, self.depth = [], 1
        params = "".join(f",v_{p}" for p in self.function.params)
        self.line("_locals={}; _returned=False; _value=None; _split=_rt.split; _run=_rt.passed; _tick=_rt.tick")
        if self.unsure:
            self.line("=".join(f"_has_{v}" for v in sorted(self.unsure)) + "=False")
        variables = sorted(set(self.total) - set(self.function.params))
        if variables:
            self.line("=".join(f"v_{v}" for v in variables) + "=None")
        for name, variable in self.specials.items():
            self.line(f"{variable}=_rt.special[{name!r}]")
        head = f"def _f{self.numbers[id(self.function)]}(_rt,_m{params}):"
        return [head, *self.lines, *body_lines, "    return _value"]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"_{prefix}{self.count}"

    def constant(self, value: Any, prefix: str) -> str:
        """A name for an object in the function's globals."""
        name = f"_{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    # ---- statements
    def block(self, statements: list[tree.Stmt], mask: str, loop: tuple[str, str] | None) -> None:
        """Statements under a mask; ``loop`` names the masks of those who broke or continued."""
        depth = self.depth
        private = self._private(statements)
        outer = {name: self.homes.get(name) for name in private}
        self.homes.update(dict.fromkeys(private, mask))
        for statement in statements:
            self.statement(statement, mask, loop)
        self.line("pass")
        for name, home in outer.items():
            if home is None:
                del self.homes[name]
            else:
                self.homes[name] = home
        self.depth = depth

    def _private(self, statements: list[tree.Stmt]) -> list[str]:
        """Variables that live only in these statements: set there before they are read, and not known outside."""
        here: Counter[str] = Counter()
        first: dict[str, int] = {}
        per_statement = [Counter(_mentions(s)) for s in statements]
        for i, mentions in enumerate(per_statement):
            here.update(mentions)
            for name in mentions:
                first.setdefault(name, i)
        found = []
        for name, i in first.items():
            if here[name] != self.total[name] or name in self.function.params:
                continue
            opening = statements[i]
            sets_it = isinstance(opening, tree.Assign) and opening.name == name and per_statement[i][name] == 1
            loops_it = isinstance(opening, tree.For) and opening.name == name and here[name] == per_statement[i][name]
            if loops_it and isinstance(opening, tree.For):
                ends = (opening.start, opening.stop, opening.step)
                loops_it = not any(name in _mentions(e) for e in ends) and not (
                    opening.body and isinstance(opening.body[0], tree.Retype) and name in _mentions(opening.body[0])
                )
            if sets_it or loops_it:
                found.append(name)
        return found

    def assign(self, name: str, value: str, mask: str) -> None:
        home = self.homes.get(name, "_m")
        variable = f"v_{name}"
        if mask == home:
            self.line(f"{variable}={value}")
        else:
            self.line(
                f"{variable}={value} if {mask} is None or {mask} is {home} else _merge({mask},{value},{variable})"
            )
        if name in self.unsure:
            self.line(f"_has_{name}=_union(_has_{name},{mask})")

    def statement(self, node: tree.Stmt, m: str, loop: tuple[str, str] | None) -> None:
        match node:
            case tree.Run(number=number):
                if self.checks and self.program.runs[number]:
                    self.line(f"_run({number},{m})")
            case tree.Assign(name=name, value=value):
                self.assign(name, self.e(value, m), m)
            case tree.Retype(name=name, type=kind):
                self.line(f"if v_{name} is not None: v_{name}={self.retyped(f'v_{name}', kind)}")
            case tree.Store():
                index = self.index(node.index, m)
                place = self.place(node.site, node.index)
                self.line(f"{self.e(node.array, m)}.st({index},{self.e(node.value, m)},{m},{place})")
            case tree.Eval(value=value):
                if not isinstance(value, tree.Const):
                    self.line(self.e(value, m))
            case tree.If():
                self.branch(node, m, loop)
            case tree.For() | tree.While():
                self.loop(node, m)
            case tree.Return(value=result):
                if result is not None:
                    self.line(f"_value=_merge({m},{self.e(result, m)},_value)")
                self.line(f"_returned=_union(_returned,{m})")
            case tree.Break():
                assert loop is not None
                self.line(f"{loop[0]}=_union({loop[0]},{m})")
            case tree.Continue():
                assert loop is not None
                self.line(f"{loop[1]}=_union({loop[1]},{m})")

    def retyped(self, variable: str, kind: Any) -> str:
        if isinstance(kind, Scalar):
            return f"{self.caster(kind)}({variable})"
        parts = ",".join(self.retyped(f"{variable}[{i}]", t) for i, t in enumerate(kind.items))
        return f"({parts},)"

    def branch(self, node: tree.If, m: str, loop: tuple[str, str] | None) -> None:
        then, other = self.new("m"), self.new("m")
        test = self.e(node.test, m)
        if self.checks:
            self.line(f"{then},{other}=_split({m},{test},{self.constant(node.fork, 'k')})")
        else:
            self.line(f"{then},{other}=_part({m},{test})")
        for mask, body in ((then, node.then), (other, node.other)):
            if body:
                self.line(f"if {mask} is not False:")
                self.depth += 1
                self.block(body, mask, loop)
                self.depth -= 1
        if any(isinstance(n, tree.Return | tree.Break | tree.Continue) for n in nodes_in(node)):
            gone = f",{loop[0]},{loop[1]}" if loop else ""
            self.narrow(m, f"_returned{gone}")

    def narrow(self, m: str, gone: str) -> None:
        """What follows is for those who are still here."""
        self.line(f"{m}=_minus({m},{gone})")
        self.line(f"if {m} is not False:")
        self.depth += 1

    def loop(self, node: tree.For | tree.While, m: str) -> None:
        broke, cont, inside, here = self.new("b"), self.new("c"), self.new("m"), self.new("m")
        found = list(nodes_in(node.body))
        leaves = any(isinstance(n, tree.Break | tree.Return) for n in found)
        fork = self.constant(node.fork, "k")
        steady = isinstance(node, tree.While) and node.fate == "steady"
        turns = self.new("n")
        self.line(f"{broke}=False; {here}={m}" + f"; {turns}=0" * steady)
        if isinstance(node, tree.For):
            rounds = self.new("r")
            ends = ",".join(self.e(x, m) for x in (node.start, node.stop, node.step))
            self.line(f"{rounds}=_Range(_rt,{ends},{fork},{node.outer})")
        self.line("while True:")
        self.depth += 1
        if isinstance(node, tree.For):
            self.line(f"{inside}={rounds}.next({here})")
        else:
            for statement in node.head:
                self.statement(statement, here, None)
            test = self.e(node.test, here)
            split = f"_split({here},{test},{fork})" if self.checks else f"_part({here},{test})"
            self.line(f"{inside}={split}[0]")
        self.line(f"if {inside} is False: break")
        if isinstance(node, tree.While):
            self.line(f"_tick({fork},{node.outer},{inside})")
            if steady:
                self.line(f"{turns}+=1; _rt.steady({fork},{node.outer},{turns},{inside})")
        self.line(f"{here}={inside}; {cont}=False")
        if isinstance(node, tree.For):
            home = self.homes.get(node.name, "_m")
            private = node.name in self._private([node])
            if private or inside == home:
                self.line(f"v_{node.name}={rounds}.value")
            else:
                self.assign(node.name, f"{rounds}.value", inside)
        self.block(node.body, inside, (broke, cont))
        if leaves:
            self.line(f"{here}=_minus({here},_returned,{broke})")
            self.line(f"if {here} is False: break")
        self.depth -= 1
        if any(isinstance(n, tree.Return) for n in found):
            self.narrow(m, "_returned")

    # ---- expressions
    def place(self, site: tree.Site, index: tuple[tree.Expr, ...]) -> str:
        """A name for a place; its addresses may recur if its indices are held in variables or numbers."""
        place = self.places[site.number]
        place.recurs = all(isinstance(i, tree.Var | tree.Const | tree.Special) for i in index)
        name = f"_p{site.number}"
        self.names[name] = place
        return name

    def index(self, index: tuple[tree.Expr, ...], m: str) -> str:
        return "(" + "".join(self.e(i, m) + "," for i in index) + ")"

    def caster(self, kind: Scalar) -> str:
        name = f"_to_{kind}"
        if name not in self.names:
            self.names[name] = masks.caster(kind.name)
        return name

    def e(self, node: tree.Expr, m: str) -> str:
        """The text of an expression under a mask."""
        match node:
            case tree.Const(type=kind, value=value):
                return self.number(kind, value)
            case tree.Var(name=name, line=line, unsure=unsure):
                return f"_rt.given(v_{name},_has_{name},{m},{name!r},{line},{unsure})" if unsure else f"v_{name}"
            case tree.Special(name=name):
                return self.specials.setdefault(name, f"_s{len(self.specials)}")
            case tree.Outer():
                return f"_rt.outer({node.name!r},{self.constant(node.value, 'k')},{self.constant(node.type, 'k')})"
            case tree.Binary():
                return self.binary(node, m)
            case tree.Unary():
                return self.unary(node, m)
            case tree.Compare():
                return f"({self.e(node.left, m)}{node.op}{self.e(node.right, m)})"
            case tree.Named(operand=operand, name=name):
                return f"(_v{name}:={self.e(operand, m)})"
            case tree.Again(name=name):
                return f"_v{name}"
            case tree.Logic():
                return self.logic(node, m)
            case tree.Choice():
                return self.choice(node, m)
            case tree.Cast():
                return self.cast(node, m)
            case tree.Pack(items=items):
                return self.index(items, m)
            case tree.Item(operand=operand, index=i):
                return f"{self.e(operand, m)}[{i}]"
            case tree.Extent(array=array, axis=axis):
                return f"{self.e(array, m)}.size" if axis < 0 else f"{self.e(array, m)}.shape[{axis}]"
            case tree.Load():
                return (
                    f"{self.e(node.array, m)}.ld({self.index(node.index, m)},{m},{self.place(node.site, node.index)})"
                )
            case tree.Slice():
                parts_ = []
                for part in node.parts:
                    if isinstance(part, tuple):
                        parts_.append("(" + "".join(("None" if p is None else self.e(p, m)) + "," for p in part) + ")")
                    else:
                        parts_.append(self.e(part, m))
                return f"{self.e(node.array, m)}.view(({','.join(parts_)},),{m},{node.line})"
            case tree.Alloc():
                held = ",_locals" if node.array.space == "local" else ""
                return f"_rt.{node.array.space}({self.constant(node, 'k')}{held})"
            case tree.Math(name=name, args=args):
                return self.math(node, name, args, m)
            case tree.Atomic():
                place = self.place(node.site, node.index)
                return (
                    f"{self.e(node.array, m)}.atomic({node.name!r},{self.index(node.index, m)},"
                    f"{self.index(node.values, m)},{m},{place},{node.used})"
                )
            case tree.Barrier(op=op, predicate=predicate, line=line):
                true = "None" if predicate is None else self.e(predicate, m)
                return f"_rt.barrier({m},_returned,{line},{op!r},{true})"
            case tree.Warp():
                return f"_rt.warp_operation({node.name!r},{m},{self.index(node.args, m)},{node.line})"
            case tree.Call(function=function, args=args):
                passed = "".join("," + self.e(a, m) for a in args)
                return f"_f{self.numbers[id(function)]}(_rt,{m}{passed})"
            case tree.Counted(run=run, operand=operand):
                text = self.e(operand, m)
                return f"(_run({run},{m}),{text})[1]" if self.checks else text
        raise AssertionError(node)

    def number(self, kind: Any, value: Any) -> str:
        if isinstance(kind, Scalar) and kind.kind == "f":
            return self.constant(kind.dtype.type(value), "n")
        return repr(value)

    def binary(self, node: tree.Binary, m: str) -> str:
        a, b = self.e(node.left, m), self.e(node.right, m)
        kind = node.type
        assert isinstance(kind, Scalar)
        if node.op in ("//", "%"):
            return f"{'_fdiv' if node.op == '//' else '_mod'}({a},{b})"
        if node.op in ("<<", ">>"):
            text = f"{'_shl' if node.op == '<<' else '_shr'}({a},{b})"
        elif node.op == "**":
            if kind.kind == "f":
                return f"_fpow({a},{b})"
            text = f"_ipow({a},{b})"
        else:
            text = f"({a}{node.op}{b})"
        if kind.kind == "f" or kind == boolean or node.op in "&|^":
            return text
        return f"{'_ws' if kind.kind == 'i' else '_wu'}({text})"

    def unary(self, node: tree.Unary, m: str) -> str:
        a = self.e(node.operand, m)
        kind = node.type
        assert isinstance(kind, Scalar)
        if kind == boolean:
            return f"_not({a})"
        if kind.kind == "f":
            return f"({node.op}{a})"
        return f"{'_ws' if kind.kind == 'i' else '_wu'}({node.op}{a})"

    def logic(self, node: tree.Logic, m: str) -> str:
        join = "_both" if node.op == "and" else "_either"
        left = self.e(node.left, m)
        if node.type != boolean:
            self.names["_operand"] = _operand
            return f"_operand({m},{left},lambda {m}:{self.e(node.right, m)},{node.op == 'and'})"
        if all(isinstance(n, _PURE) and not getattr(n, "unsure", ()) for n in nodes_in(node.right)):
            return f"{join}({left},{self.e(node.right, m)})"
        self.names["_decide"] = _decide
        return f"_decide({m},{left},lambda {m}:{self.e(node.right, m)},{node.op == 'and'})"

    def choice(self, node: tree.Choice, m: str) -> str:
        self.names["_choose"] = _choose
        arms = (self.e(node.then, m), self.e(node.other, m))
        return f"_choose({m},{self.e(node.test, m)},lambda {m}:{arms[0]},lambda {m}:{arms[1]})"

    def cast(self, node: tree.Cast, m: str) -> str:
        a, source, kind = self.e(node.operand, m), node.operand.type, node.type
        assert isinstance(source, Scalar)
        assert isinstance(kind, Scalar)
        if source.kind == kind.kind and kind.kind in "iu" and source.bits <= kind.bits:
            return a  # held alike
        return f"{self.caster(kind)}({a})"

    def math(self, node: tree.Math, name: str, args: tuple[tree.Expr, ...], m: str) -> str:
        self.names[f"_fn_{name}"] = FUNCTIONS[name]
        return f"_fn_{name}({','.join(self.e(a, m) for a in args)})"


def _decide(mask: Any, left: Any, right: Callable[[Any], Any], conjunction: bool) -> Any:
    """``left and right`` or ``left or right``; the right side only where it decides."""
    true, false = masks.part(mask, left)
    open_ = true if conjunction else false
    if open_ is False:
        return left
    return masks.both(left, right(open_)) if conjunction else masks.either(left, right(open_))


def _operand(mask: Any, left: Any, right: Callable[[Any], Any], conjunction: bool) -> Any:
    """The operand that decides ``left and right`` or ``left or right``; the right one only where the left does not."""
    true, false = masks.part(mask, left != 0)
    open_ = true if conjunction else false
    return left if open_ is False else masks.merge(open_, right(open_), left)


def _choose(mask: Any, test: Any, then: Callable[[Any], Any], other: Callable[[Any], Any]) -> Any:
    """``then if test else other``, each side for its own lanes."""
    true, false = masks.part(mask, test)
    if false is False:
        return then(true)
    if true is False:
        return other(false)
    return masks.merge(test, then(true), other(false))


def _mentions(node: Any) -> list[str]:
    """Names that a statement or expression reads or sets, once for each time."""
    found = []
    for n in nodes_in(node):
        if isinstance(n, tree.Var | tree.Assign | tree.Retype | tree.For):
            found.append(n.name)
    return found
