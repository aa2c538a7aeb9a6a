"""What typing one function needs to know and remember."""

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tilelab.simt import tree
from tilelab.simt.leaving import Leavers
from tilelab.simt.source import Source
from tilelab.simt.types import (
    Array,
    Scalar,
    Tuple,
    Type,
)
from tilelab.simt.words import one, plural

if TYPE_CHECKING:
    from tilelab.simt.expressions import Unclear


class Typer(ABC):
    """State of typing one function, and what its parts ask of each other."""

    def __init__(
        self, program: tree.Program, source: Source, types: list[Type], function: tree.Function, *, is_device: bool
    ) -> None:
        self.program, self.source, self.types, self.function = program, source, types, function
        self.is_device = is_device
        self.written: set[str] = program.written
        self.env: dict[str, Type | Unclear] = {}
        self.out: list[tree.Stmt] = []
        self.hint: str | None = None
        self.temporaries = 0
        self.around: list[tree.Fork] = []
        """Branches and loops around what is typed now, outermost first."""
        self.leavers = Leavers()
        self._sites: dict[tuple[int, str], tree.Site] = {}
        self._forks: dict[int, tree.Fork] = {}

    @abstractmethod
    def expression(self, node: ast.expr) -> tree.Expr:
        """Type an expression."""

    @abstractmethod
    def integer(self, node: ast.expr) -> tree.Expr:
        """Type an expression that must be an integer."""

    @abstractmethod
    def condition(self, node: ast.expr) -> tree.Expr:
        """Type an expression that is tested."""

    @abstractmethod
    def cast(self, value: tree.Expr, kind: Type) -> tree.Expr:
        """Convert."""

    @abstractmethod
    def binary(self, op: ast.operator, left: tree.Expr, right: tree.Expr, node: ast.AST) -> tree.Expr:
        """``left op right``."""

    @abstractmethod
    def pack(self, items: list[tree.Expr]) -> tree.Expr:
        """Make a tuple."""

    @abstractmethod
    def loop_line(self) -> int | None:
        """Line of the loop being typed."""

    @abstractmethod
    def loop_lines(self) -> tuple[int, ...]:
        """Lines of the loops being typed, outermost first."""

    @abstractmethod
    def item(self, value: tree.Expr, index: int) -> tree.Expr:
        """Take a component of a tuple."""

    def indices(self, node: ast.AST, array: Array, given: list[tree.Expr]) -> tuple[tree.Expr, ...]:
        """One integer for each dimension of an array, tuples taken apart."""
        found: list[tree.Expr] = []
        for index in given:
            parts = isinstance(index.type, Tuple) and [self.item(index, i) for i in range(len(index.type.items))]
            found += parts or [index]
        if len(found) != array.ndim:
            indices = "1 index" if len(found) == 1 else f"{len(found)} indices"
            raise self.source.fault(node, f"{indices} for an array of {plural(array.ndim, 'dimension')}")
        for index in found:
            if not isinstance(index.type, Scalar) or index.type.kind == "f":
                raise self.source.fault(node, f"an index is {one(index.type)}; write int(...) or use //")
        return tuple(found)

    def site(self, node: ast.Subscript | ast.Call, kind: str, array: tree.Expr) -> tree.Site:
        """The place of an access; typing a loop twice does not make it two."""
        key = (id(node), kind)
        if key not in self._sites:
            assert isinstance(array.type, Array)
            kind_name = array.name if isinstance(array, tree.Var | tree.Outer | tree.Alloc) else "array"
            text = ast.unparse(node)
            made = tree.Site(
                len(self.program.sites), node.lineno, node.col_offset, text, kind, array.type.space, kind_name,
                self.source.name, self.loop_lines(), array.type.element.dtype.itemsize, array.type.roots,
                forks=tuple(self.around), left=tuple(self.leavers.forks), home=self.function,
            )  # fmt: skip
            self.program.sites.append(made)
            self._sites[key] = made
        return self._sites[key]

    def fork(self, node: ast.If | ast.For | ast.While) -> tree.Fork:
        """The place of a branch or loop."""
        if id(node) not in self._forks:
            text = ast.unparse(node).partition("\n")[0]
            self._forks[id(node)] = tree.Fork(len(self.program.forks), node.lineno, text)
            self.program.forks.append(self._forks[id(node)])
        return self._forks[id(node)]

    def positional(self, node: ast.Call) -> list[ast.expr]:
        """The arguments of a call that takes no keywords."""
        if node.keywords:
            raise self.source.fault(node, f"{ast.unparse(node.func)} takes no keyword arguments in a kernel")
        return node.args

    def wanted(self, node: ast.Call, *names: str) -> list[ast.expr | None]:
        """Arguments of an intrinsic by position or name, ``None`` for one left out."""
        found: list[ast.expr | None] = [*node.args, *[None] * (len(names) - len(node.args))]
        for keyword in node.keywords:
            if keyword.arg not in names:
                raise self.source.fault(node, f"{ast.unparse(node.func)} takes {', '.join(names)}")
            found[names.index(keyword.arg)] = keyword.value
        if len(found) > len(names):
            raise self.source.fault(node, f"{ast.unparse(node.func)} takes {', '.join(names)}")
        return found

    def numbers(self, node: ast.Call, args: list[tree.Expr]) -> list[Scalar]:
        """The types of arguments that must be numbers."""
        kinds = [a.type for a in args]
        for kind in kinds:
            if not isinstance(kind, Scalar):
                instead = "; write a loop over the elements" * isinstance(kind, Array)
                raise self.source.fault(node, f"{one(kind)} is no number{instead}")
        return [k for k in kinds if isinstance(k, Scalar)]
