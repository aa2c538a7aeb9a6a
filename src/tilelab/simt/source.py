"""The source of a kernel: found, parsed, and refused at decoration where it uses Python that no GPU thread has."""

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from tilelab.simt.errors import UnsupportedError
from tilelab.simt.intrinsics import DIMS, Intrinsic, Namespace
from tilelab.simt.words import meant

MISSING = object()

#: What a kernel cannot use -> what to write instead.
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("try", "check the data before the launch, or write a flag into an array"),
    ast.Raise: ("raise", "write a flag into an array and raise on the host"),
    ast.Assert: ("assert", "write a flag into an array and check it on the host"),
    ast.With: ("with", "write the statements out"),
    ast.Yield: ("yield", "write results into an array"),
    ast.YieldFrom: ("yield from", "write results into an array"),
    ast.Await: ("await", "write results into an array"),
    ast.Lambda: ("lambda", "write a function under @cuda.jit(device=True)"),
    ast.ListComp: ("a list comprehension", "fill a cuda.local.array in a loop"),
    ast.SetComp: ("a set comprehension", "fill a cuda.local.array in a loop"),
    ast.DictComp: ("a dict comprehension", "fill a cuda.local.array in a loop"),
    ast.GeneratorExp: ("a generator expression", "write a for loop over range(...)"),
    ast.List: ("a list", "use cuda.local.array(shape, dtype), whose size is fixed"),
    ast.Dict: ("a dict", "use arrays"),
    ast.Set: ("a set", "use arrays"),
    ast.JoinedStr: ("a string", "kernels have numbers and arrays only"),
    ast.FunctionDef: ("a function inside a kernel", "move it out, under @cuda.jit(device=True)"),
    ast.AsyncFunctionDef: ("a coroutine", "move it out, under @cuda.jit(device=True)"),
    ast.ClassDef: ("a class", "use arrays and device functions"),
    ast.Import: ("import", "import at the top of the file"),
    ast.ImportFrom: ("import", "import at the top of the file"),
    ast.Global: ("global", "pass it as an argument"),
    ast.Nonlocal: ("nonlocal", "pass it as an argument"),
    ast.Delete: ("del", "leave the name alone"),
    ast.Match: ("match", "use if and elif"),
    ast.Starred: ("a starred expression", "write the items out"),
    ast.NamedExpr: (":=", "assign in a statement of its own"),
    ast.MatMult: ("@", "write the three loops"),
    ast.In: ("in", "compare with each value"),
    ast.NotIn: ("not in", "compare with each value"),
    ast.Is: ("is", "compare with =="),
    ast.IsNot: ("is not", "compare with !="),
}
_REFUSED_CALLS = {
    "print": "write values into an array and print them on the host",
    "list": "use cuda.local.array(shape, dtype)",
    "dict": "use arrays",
    "set": "use arrays",
    "sum": "write a loop",
    "sorted": "write a loop over a cuda.local.array",
    "enumerate": "write a for loop over range(...)",
    "zip": "write a for loop over range(...)",
    "map": "write a for loop over range(...)",
    "open": "read files on the host",
    "input": "pass values as arguments",
}
#: Methods of lists, and what to use instead; those of arrays take a loop.
_GROWS = ("append", "extend", "insert", "pop", "remove", "clear")


class Source:
    """A function's syntax tree, with line numbers of its file and the values its names stand for."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not hasattr(function, "__code__"):
            raise UnsupportedError(f"{function!r} is no function of Python; put @cuda.jit above one written with def")
        self.function = function
        self.name = function.__name__
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as fault:
            raise UnsupportedError(
                f"the source of {self.name} cannot be found ({fault}); define kernels in a file or a notebook cell"
            ) from None
        try:
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except SyntaxError:  # a lambda's line is part of some statement
            raise UnsupportedError(f"{self.name} is no plain function; kernels are written with def") from None
        found = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None)
        if found is None:
            raise UnsupportedError(f"{self.name} is no plain function; kernels are written with def")
        ast.increment_lineno(tree, first - 1)
        self.tree: ast.FunctionDef = found
        self.file = inspect.getsourcefile(function) or "<unknown>"
        self.first = first
        self.lines = [line.rstrip("\n") for line in lines]
        indent = len(self.lines[0]) - len(self.lines[0].lstrip())
        self.lines = [line[indent:] for line in self.lines]
        self.params = [a.arg for a in found.args.args]
        self.assigned: dict[str, tuple[int, ...]] = {}
        """Name -> lines that assign to it."""
        for n in (n for statement in found.body for n in ast.walk(statement)):
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
                self.assigned[n.id] = tuple(sorted({*self.assigned.get(n.id, ()), n.lineno}))
        self._check()

    def where(self, node: ast.AST) -> str:
        """``file name:line`` and the line's text, to open a message."""
        line = getattr(node, "lineno", self.first)
        text = self.lines[line - self.first].strip() if 0 <= line - self.first < len(self.lines) else ""
        return f"{self.name}, line {line}: `{text}`"

    def fault(self, node: ast.AST, message: str) -> UnsupportedError:
        """An error that quotes the line of a node."""
        return UnsupportedError(f"{self.where(node)}: {message}")

    def lookup(self, name: str) -> Any:
        """What a name stands for outside the function, or ``MISSING``."""
        code = self.function.__code__
        if name in code.co_freevars and self.function.__closure__ is not None:
            cell = self.function.__closure__[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING
        return self.function.__globals__.get(name, getattr(builtins, name, MISSING))

    def static(self, node: ast.AST) -> Any:
        """The object that a name or dotted name outside the kernel stands for, or ``MISSING``."""
        if isinstance(node, ast.Name):
            return MISSING if node.id in self.assigned or node.id in self.params else self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            base = self.static(node.value)
            return MISSING if base is MISSING else getattr(base, node.attr, MISSING)
        return MISSING

    def undefined(self, node: ast.AST, name: str) -> UnsupportedError:
        """The error for a name that stands for nothing; one of ``cuda``'s may lack its module."""
        for short, value in self.function.__globals__.items():
            if getattr(value, "__name__", "") == "tilelab.simt.cuda" and hasattr(value, name):
                return self.fault(node, f"the name {name} is not defined; write {short}.{name}")
        near = meant(name, (*self.params, *self.assigned, *self.function.__globals__))
        return self.fault(node, f"the name {name} is not defined{near}")

    def nonexistent(self, node: ast.Attribute) -> UnsupportedError:
        """The error for a dotted name of which something is missing."""
        while isinstance(node.value, ast.Attribute) and self.static(node.value) is MISSING:
            node = node.value
        base, text = self.static(node.value), ast.unparse(node.value)
        if isinstance(base, Intrinsic) and base.name in DIMS and node.attr in "xyz":
            return self.fault(node, f"{ast.unparse(node)} is a number and is not called; leave out the parentheses")
        near = meant(node.attr, getattr(base, "__all__", dir(base)), f"{text}.")
        if not isinstance(base, Intrinsic | Namespace) and not getattr(base, "__name__", "").startswith("tilelab."):
            return self.fault(node, f"{text} has no {node.attr}{near}")
        instead = "; end the kernel where all blocks should wait" if node.attr == "cg" else near
        return self.fault(node, f"{ast.unparse(node)} does not exist in tilelab.simt{instead}")

    def _check(self) -> None:
        arguments = self.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or arguments.defaults:
            raise self.fault(self.tree, "kernels take plain positional parameters without defaults")
        for node in (n for statement in self.tree.body for n in ast.walk(statement)):
            refused = _REFUSED.get(type(node))
            if refused:
                what, instead = refused
                raise self.fault(self._with_line(node), f"a kernel cannot use {what}; {instead}")
            if isinstance(node, ast.For | ast.While) and node.orelse:
                raise self.fault(node, "a loop in a kernel cannot have else; set a variable before break and test it")
            if isinstance(node, ast.For):
                self._check_for(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and not self._docstring(node):
                raise self.fault(node, "a kernel cannot use a string; kernels have numbers and arrays only")
            if isinstance(node, ast.Call):
                self._check_call(node)

    def _with_line(self, node: ast.AST) -> ast.AST:
        """The node itself, or the one around it that has a line (operators have none)."""
        if hasattr(node, "lineno"):
            return node
        return next(n for n in ast.walk(self.tree) if any(child is node for child in ast.iter_child_nodes(n)))

    def _docstring(self, node: ast.Constant) -> bool:
        return any(isinstance(n, ast.Expr) and n.value is node for n in ast.walk(self.tree))

    def _check_for(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.fault(node, "a loop in a kernel has one loop variable")
        loops = isinstance(node.iter, ast.Call) and self.static(node.iter.func) is range
        if not loops and not isinstance(node.iter, ast.Tuple):
            raise self.fault(node, "a kernel loops over range(...) or over a tuple written out")

    def _check_call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _REFUSED_CALLS:
            what = self.static(node.func)
            if what is getattr(builtins, node.func.id, None):
                raise self.fault(node, f"a kernel cannot call {node.func.id}; {_REFUSED_CALLS[node.func.id]}")
        if self.static(node.func) is MISSING:
            if isinstance(node.func, ast.Attribute):
                base = self.static(node.func.value)
                root = node.func.value
                while isinstance(root, ast.Attribute):
                    root = root.value
                own = {*self.assigned, *self.params}
                if isinstance(root, ast.Name) and root.id not in own and self.lookup(root.id) is MISSING:
                    raise self.fault(
                        node, f"the name {root.id} is not defined; import it or define it before the kernel"
                    )
                if isinstance(root, ast.Name) and root.id not in own and inspect.ismodule(self.lookup(root.id)):
                    raise self.nonexistent(node.func)
                if base is MISSING:
                    grows = "arrays have a fixed size: use cuda.local.array and an index"
                    instead = grows if node.func.attr in _GROWS else "write a loop over the elements"
                    raise self.fault(node, f"a kernel cannot call the method {node.func.attr}; {instead}")
                raise self.nonexistent(node.func)
            if isinstance(node.func, ast.Name) and node.func.id in {*self.assigned, *self.params}:
                raise self.fault(node, f"{node.func.id} is a local value and cannot be called")
