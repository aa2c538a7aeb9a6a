"""What decides the end of a ``while`` loop: its own rounds, another thread, or nothing at all.

A loop *waits* if its conditions ask for what an atomic swap found, as a lock's do, or for memory that threads share and
write, as a flag's do, and for nothing that *moves*: that depends on its own earlier value (``i += 1``). A loop that
neither waits nor moves is *steady*: after a few rounds every condition stays as it is, so a thread that is still inside
never leaves. Shared memory is no flag if the loop has a barrier in every round: those that could change it come along.
"""

from collections.abc import Iterator
from typing import Any

from tilelab.simt import tree
from tilelab.simt.types import Array
from tilelab.simt.walk import nodes_in

#: Rounds after which a steady loop, or a wait in which no thread changes anything, is said to be endless.
SETTLED = 100
_SWAPS = ("cas", "compare_and_swap", "exch")


def judge(program: tree.Program) -> None:
    """Set :attr:`~tilelab.simt.tree.While.fate` of every loop, and note the first that waits."""
    for function in program.functions:
        for loop in (n for n in nodes_in(function.body) if isinstance(n, tree.While)):
            loop.fate = _fate(loop, program.written)
            if loop.fate == "waits":
                program.spins = program.spins or loop.fork.line
                _suspend(function)


def _suspend(function: tree.Function) -> None:
    """A function that waits lets others run meanwhile, and so does whatever calls it."""
    function.suspends = True
    for use in function.uses:
        _suspend(use.caller)


def _fate(loop: tree.While, written: set[str]) -> str:
    inside = list(_with_calls([*loop.head, loop.test, *loop.body]))
    asked = _Asked(loop)
    if any(isinstance(n, tree.Atomic) and n.name in _SWAPS for n in _with_calls(asked.expressions)):
        return "waits"
    if asked.moves:
        return "moves"
    meets = any(isinstance(s, tree.Eval) and isinstance(s.value, tree.Barrier) for s in loop.body)
    own = {root for n in inside if isinstance(n, tree.Store) for root in n.site.roots}
    waits = False
    for n in _with_calls(asked.expressions):
        if isinstance(n, tree.Warp | tree.Barrier):
            return "moves"
        if isinstance(n, tree.Atomic):
            if not all(isinstance(v, tree.Const) and v.value == 0 for v in n.values):
                return "moves"
            waits = True
        elif isinstance(n, tree.Load) and isinstance(n.array.type, Array):
            roots, space = n.array.type.roots, n.array.type.space
            if (space == "local" and roots & own) or (space == "shared" and meets):
                return "moves"
            waits |= bool(roots & written) and space != "local"
    return "waits" if waits else "steady"


class _Asked:
    """What the conditions that end a loop depend on: by values, and by the branches under which those are set."""

    def __init__(self, loop: tree.While) -> None:
        self.sets: dict[str, list[tree.Expr]] = {}
        """Name -> expressions that it depends on where the loop sets it."""
        self.exits: list[tree.Expr] = [loop.test]
        self._walk([*loop.head, *loop.body], [], True)
        reached: dict[str, None] = {}
        self._follow(self.exits, reached)
        self.expressions = [*self.exits, *(e for name in reached for e in self.sets[name])]
        self.moves = any(self._returns(name) for name in reached)

    def _walk(self, statements: list[tree.Stmt], around: list[tree.Expr], breaks: bool) -> None:
        """Note what is set and what leaves; ``breaks`` tells whether a break here leaves the loop in question."""
        for node in statements:
            match node:
                case tree.Assign(name=name, value=value):
                    self.sets.setdefault(name, []).extend([value, *around])
                case tree.If(test=test):
                    self._walk(node.then, [*around, test], breaks)
                    self._walk(node.other, [*around, test], breaks)
                case tree.For():
                    ends = [node.start, node.stop, node.step]
                    self.sets.setdefault(node.name, []).extend([*ends, *around])
                    self._walk(node.body, [*around, *ends], False)
                case tree.While():
                    self._walk(node.head, around, False)
                    self._walk(node.body, [*around, node.test], False)
                case tree.Return():
                    self.exits += around
                case tree.Break() if breaks:
                    self.exits += around

    def _names(self, expressions: list[tree.Expr]) -> Iterator[str]:
        """Variables of the loop in some expressions."""
        return (n.name for n in nodes_in(expressions) if isinstance(n, tree.Var) and n.name in self.sets)

    def _follow(self, expressions: list[tree.Expr], reached: dict[str, None]) -> None:
        for name in self._names(expressions):
            if name not in reached:
                reached[name] = None
                self._follow(self.sets[name], reached)

    def _returns(self, name: str) -> bool:
        """Whether a variable depends on its own earlier value."""
        reached: dict[str, None] = {}
        self._follow(self.sets[name], reached)
        return name in reached


def _with_calls(node: Any) -> Iterator[Any]:
    """Every node under one, and under the functions that are called there."""
    for n in nodes_in(node):
        yield n
        if isinstance(n, tree.Call):
            yield from _with_calls(n.function.body)
