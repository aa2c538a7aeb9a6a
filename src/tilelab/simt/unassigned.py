"""Variables that may have no value yet: some way leads to a read that passes nothing which assigns to them.

Such a read may still be right, since two conditions may go together; so it is only marked here, and the engines look at
each thread.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilelab.simt import tree
from tilelab.simt.walk import nodes_in

#: Names that surely have a value; ``None`` where no thread gets.
_Names = frozenset[str] | None


@dataclass
class _Loop:
    breaks: list[_Names] = field(default_factory=list)
    continues: list[_Names] = field(default_factory=list)


def mark(function: tree.Function, assigned: Mapping[str, tuple[int, ...]]) -> None:
    """Mark the reads of one function.

    Parameters
    ----------
    function
        Typed; :attr:`~tilelab.simt.tree.Var.unsure` of its variables is set.
    assigned
        Name -> lines that assign to it.
    """
    _Reads(assigned).block(function.body, frozenset(function.params), _Loop())


class _Reads:
    def __init__(self, assigned: Mapping[str, tuple[int, ...]]) -> None:
        self.assigned = assigned

    def reads(self, node: object, names: frozenset[str]) -> None:
        for n in nodes_in(node):
            if isinstance(n, tree.Var) and n.name not in names:
                n.unsure = self.assigned[n.name]

    def block(self, statements: list[tree.Stmt], names: _Names, loop: _Loop) -> _Names:
        for statement in statements:
            if names is None:
                return None
            names = self.statement(statement, names, loop)
        return names

    def statement(self, node: tree.Stmt, names: frozenset[str], loop: _Loop) -> _Names:
        """The names that surely have a value after a statement."""
        match node:
            case tree.Assign(name=name, value=value):
                self.reads(value, names)
                return names | {name}
            case tree.If(test=test):
                self.reads(test, names)
                return _meet([self.block(node.then, names, loop), self.block(node.other, names, loop)])
            case tree.For():
                return self.for_loop(node, names)
            case tree.While():
                return self.while_loop(node, names)
            case tree.Return():
                self.reads(node, names)
                return None
            case tree.Break():
                loop.breaks.append(names)
                return None
            case tree.Continue():
                loop.continues.append(names)
                return None
        self.reads(node, names)
        return names

    def for_loop(self, node: tree.For, names: frozenset[str]) -> _Names:
        self.reads((node.start, node.stop, node.step), names)
        loop = _Loop()
        ends = [self.block(node.body, names | {node.name}, loop), *loop.continues]
        return _meet([*(ends if _comes_in(node) else [names]), *loop.breaks])

    def while_loop(self, node: tree.While, names: frozenset[str]) -> _Names:
        loop = _Loop()
        head = self.block(node.head, names, loop)
        assert head is not None
        self.reads(node.test, head)
        self.block(node.body, head, loop)
        forever = isinstance(node.test, tree.Const) and bool(node.test.value)
        return _meet([*([] if forever else [head]), *loop.breaks])


def _meet(ways: list[_Names]) -> _Names:
    open_ = [names for names in ways if names is not None]
    return frozenset.intersection(*open_) if open_ else None


def _comes_in(node: tree.For) -> bool:
    """Whether a loop makes one round at least, whatever comes."""
    ends = [e.value for e in (node.start, node.stop, node.step) if isinstance(e, tree.Const)]
    return len(ends) == 3 and len(range(*ends)) > 0
