"""Which branches and loops may part the threads of a block: a barrier inside one of those is not reached by all."""

from typing import Any

from tilelab.simt import tree
from tilelab.simt.walk import nodes_in

#: What every thread of a block sees alike.
_ALIKE = ("blockIdx", "blockDim", "gridDim", "gridsize")


def mark(program: tree.Program) -> None:
    """Set :attr:`~tilelab.simt.tree.Fork.varies` of every branch and loop."""
    for function in program.functions:
        _Function(function, function is program.kernel).mark()


class _Function:
    """Variables of one function that may differ between the threads of a block."""

    def __init__(self, function: tree.Function, top: bool) -> None:
        self.body = function.body
        self.varying: set[str] = set() if top else set(function.params)  # who calls may pass anything

    def mark(self) -> None:
        """Go round until nothing new is found to vary."""
        before = -1
        while before != len(self.varying):
            before = len(self.varying)
            self.statements(self.body, False)

    def statements(self, statements: list[tree.Stmt], parted: bool) -> None:
        """Note what varies; ``parted`` tells whether only some threads may come here."""
        for node in statements:
            match node:
                case tree.Assign(name=name, value=value):
                    self.sets(name, parted or self.varies(value))
                case tree.If():
                    node.fork.varies = self.varies(node.test)
                    for way in (node.then, node.other):
                        self.statements(way, parted or node.fork.varies)
                case tree.For():
                    apart = self.varies([node.start, node.stop, node.step]) or self.left_by_some(node.body)
                    node.fork.varies = apart
                    self.sets(node.name, parted or apart)
                    self.statements(node.body, parted or apart)
                case tree.While():
                    apart = self.varies(node.test) or self.left_by_some(node.body)
                    node.fork.varies = apart
                    self.statements([*node.head, *node.body], parted or apart)

    def sets(self, name: str, varies: bool) -> None:
        """Note that a variable is set."""
        if varies:
            self.varying.add(name)

    def left_by_some(self, body: list[tree.Stmt]) -> bool:
        """Whether a loop's rounds may end early for some threads only."""
        return any(
            isinstance(n, tree.If)
            and self.varies(n.test)
            and any(isinstance(m, tree.Break | tree.Return) for m in nodes_in([*n.then, *n.other]))
            for n in nodes_in(body)
        )

    def varies(self, expression: Any) -> bool:
        """Whether an expression may differ between threads of a block."""
        return any(
            (isinstance(n, tree.Special) and n.name.partition(".")[0] not in _ALIKE)
            or (isinstance(n, tree.Var) and n.name in self.varying)
            or (isinstance(n, tree.Load) and n.site.space == "local")
            or isinstance(n, tree.Atomic | tree.Warp | tree.Call)
            for n in nodes_in(expression)
        )
