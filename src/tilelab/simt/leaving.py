"""Branches by which some threads go away: they return, or go on to another round, before what follows."""

import ast
from collections.abc import Iterator

from tilelab.simt import tree


class Leavers:
    """The branches passed so far, in what is being typed, from which threads may not come back to what follows."""

    def __init__(self) -> None:
        self.forks: list[tree.Fork] = []
        self._rounds: set[int] = set()
        """Numbers of those that only end a round or a loop."""

    def passed(self, node: ast.If, fork: tree.Fork) -> None:
        """Note a branch that has been typed, if threads leave by it."""
        ways = set(_ways([*node.body, *node.orelse], False))
        if ways and fork not in self.forks:
            self.forks.append(fork)
            if "return" not in ways:
                self._rounds.add(fork.number)

    def loop_ends(self, before: int) -> None:
        """After a loop those are back who left only its rounds; ``before`` counts the branches until it began."""
        self.forks[before:] = [fork for fork in self.forks[before:] if fork.number not in self._rounds]


def _ways(statements: list[ast.stmt], in_loop: bool) -> Iterator[str]:
    for node in statements:
        if isinstance(node, ast.Return):
            yield "return"
        elif isinstance(node, ast.Break | ast.Continue) and not in_loop:
            yield "round"
        elif isinstance(node, ast.If | ast.For | ast.While):
            yield from _ways([*node.body, *node.orelse], in_loop or not isinstance(node, ast.If))
