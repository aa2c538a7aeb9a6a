"""Walking through the typed tree."""

from collections.abc import Iterator
from typing import Any

from tilelab.simt import tree


def nodes_in(node: Any) -> Iterator[Any]:
    """Every statement and expression under a node of the tree, itself first; not those of called functions."""
    if isinstance(node, tree.Expr | tree.Stmt):
        yield node
        for name in node.__slots__ if isinstance(node, tree.Stmt) else _fields(node):
            yield from nodes_in(getattr(node, name))
    elif isinstance(node, list | tuple):
        for part in node:
            yield from nodes_in(part)


def _fields(node: tree.Expr) -> tuple[str, ...]:
    return tuple(name for kind in type(node).__mro__ for name in getattr(kind, "__slots__", ()))


def expressions_in(node: tree.Expr) -> Iterator[tree.Expr]:
    """Every expression under one, itself first."""
    return (n for n in nodes_in(node) if isinstance(n, tree.Expr))
