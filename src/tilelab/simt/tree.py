"""A kernel after typing: the tree that both engines are written from.

Every expression knows its type. Conversions are explicit (:class:`Cast`), so an engine only has to compute in the type
that it is told.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from tilelab.simt.types import Array, Scalar, Type, none

#: Shared arrays start at multiples of this many bytes.
ALIGNMENT = 16


@dataclass(slots=True, eq=False)
class Site:
    """A place in the source where memory is touched: one line of the report."""

    number: int
    line: int
    column: int
    text: str
    kind: str
    """``read``, ``write`` or ``atomic``."""
    space: str
    array: str
    kernel: str
    loops: tuple[int, ...]
    """Lines of the loops around it."""
    width: int
    """Bytes a thread moves."""
    roots: frozenset[str] = frozenset()
    """What the array may look into."""
    atomic: str = ""
    """The atomic that would do what the statement does, if it changes an element by its old value."""
    forks: tuple["Fork", ...] = ()
    """The branches and loops of its function around it, outermost first."""
    left: tuple["Fork", ...] = ()
    """The branches of its function before it, by which threads may have left."""
    home: "Function | None" = None
    """The function in which it stands."""

    def around(self) -> list["Fork"]:
        """Branches and loops around it and around the calls that lead to it, outermost first."""
        return [*(self.home.around() if self.home is not None else ()), *self.forks]

    def without(self) -> list["Fork"]:
        """Branches before it, and before the calls that lead to it, by which threads may have left."""
        return [*(self.home.without() if self.home is not None else ()), *self.left]

    def ways(self) -> list[list["Site"]]:
        """The ways from the kernel to it: it itself at the end, and before it the calls, as if they were the access."""
        if self.home is None or not self.home.uses:
            return [[self]]
        calls = [
            replace(self, line=use.line, loops=use.loops, forks=use.forks, left=use.left, home=use.caller)
            for use in self.home.uses
        ]
        return [[*way, self] for call in calls for way in call.ways()]


@dataclass(slots=True, eq=False)
class Fork:
    """A place where a warp may split."""

    number: int
    line: int
    text: str
    varies: bool = True
    """Whether the threads of a block may go different ways."""

    @property
    def loops(self) -> bool:
        """Whether it is a loop's."""
        return self.text.startswith(("for ", "while "))


@dataclass(slots=True)
class Expr:
    """Anything with a value."""

    type: Type


@dataclass(slots=True)
class Const(Expr):
    """A number known when the kernel is compiled."""

    value: Any


@dataclass(slots=True)
class Var(Expr):
    """A local variable or parameter."""

    name: str
    line: int = 0
    unsure: tuple[int, ...] = ()
    """Lines that assign to it, if some way leads here that passes none of them."""


@dataclass(slots=True)
class Outer(Expr):
    """An array of the kernel's globals, read-only: constant memory."""

    name: str
    value: Any


@dataclass(slots=True)
class Special(Expr):
    """A register of the hardware: ``threadIdx.x``, ``laneid``, ``grid.x``."""

    name: str


@dataclass(slots=True)
class Binary(Expr):
    """An operator on two operands already cast to the type it is computed in."""

    op: str
    left: Expr
    right: Expr
    line: int


@dataclass(slots=True)
class Unary(Expr):
    """``-``, ``+``, ``~`` or ``not``."""

    op: str
    operand: Expr
    line: int


@dataclass(slots=True)
class Compare(Expr):
    """``a < b``, of two operands of one type."""

    op: str
    left: Expr
    right: Expr


@dataclass(slots=True)
class Named(Expr):
    """A value that the same expression uses again."""

    operand: Expr
    name: str


@dataclass(slots=True)
class Again(Expr):
    """A value that was named further left in the same expression."""

    name: str


@dataclass(slots=True)
class Logic(Expr):
    """``and`` or ``or`` of two; the right side is evaluated only where the left does not decide."""

    op: str
    left: Expr
    right: Expr


@dataclass(slots=True)
class Choice(Expr):
    """``a if test else b``."""

    test: Expr
    then: Expr
    other: Expr


@dataclass(slots=True)
class Cast(Expr):
    """A conversion."""

    operand: Expr


@dataclass(slots=True)
class Pack(Expr):
    """A tuple, or the components of a vector."""

    items: tuple[Expr, ...]


@dataclass(slots=True)
class Item(Expr):
    """A component of a tuple or vector."""

    operand: Expr
    index: int


@dataclass(slots=True)
class Extent(Expr):
    """``array.shape[axis]``; axis -1 is the number of elements."""

    array: Expr
    axis: int


@dataclass(slots=True)
class Load(Expr):
    """An element of an array."""

    array: Expr
    index: tuple[Expr, ...]
    site: Site


@dataclass(slots=True)
class Slice(Expr):
    """A smaller view: an index or a (start, stop) for each leading axis."""

    array: Expr
    parts: tuple["Expr | tuple[Expr | None, Expr | None]", ...]
    line: int


@dataclass(slots=True)
class Alloc(Expr):
    """A shared or local array. ``key`` is its place in the source; an empty shape means dynamic shared memory."""

    key: tuple[str, int, int]
    name: str
    shape: tuple[int, ...]
    line: int

    @property
    def bytes(self) -> int:
        """Bytes that a static array takes, rounded up so that the next one is aligned; 0 for dynamic memory."""
        if not self.shape:
            return 0
        return -(-math.prod(self.shape) * self.array.element.dtype.itemsize // ALIGNMENT) * ALIGNMENT

    @property
    def array(self) -> Array:
        """Its type."""
        assert isinstance(self.type, Array)
        return self.type


@dataclass(slots=True)
class Math(Expr):
    """A pure function of numbers, by name."""

    name: str
    args: tuple[Expr, ...]
    line: int


@dataclass(slots=True)
class Atomic(Expr):
    """A read-modify-write that no other thread can split; its value is what was there."""

    name: str
    array: Expr
    index: tuple[Expr, ...]
    values: tuple[Expr, ...]
    site: Site
    used: bool = True


@dataclass(slots=True)
class Barrier(Expr):
    """``syncthreads`` and its counting forms (``op`` is ``""``, ``count``, ``and`` or ``or``)."""

    op: str
    predicate: Expr | None
    line: int
    forks: tuple[Fork, ...] = ()
    """The branches and loops around it, outermost first."""
    left: tuple[Fork, ...] = ()
    """The branches of its function before it, by which threads may have left."""


@dataclass(slots=True)
class Warp(Expr):
    """An instruction that the lanes of a warp execute together."""

    name: str
    args: tuple[Expr, ...]
    line: int


@dataclass(slots=True)
class Call(Expr):
    """A call of a device function."""

    function: "Function"
    args: tuple[Expr, ...]


@dataclass(slots=True)
class Counted(Expr):
    """An expression that only part of the threads evaluates, with arithmetic in it."""

    run: int
    operand: Expr


class Stmt:
    """Anything that is executed."""

    __slots__ = ()


@dataclass(slots=True)
class Run(Stmt):
    """Start of statements executed together; ``number`` counts how often."""

    number: int


@dataclass(slots=True)
class Assign(Stmt):
    """``name = value``."""

    name: str
    value: Expr


@dataclass(slots=True)
class Retype(Stmt):
    """From here on the variable has this type, whichever way led here."""

    name: str
    type: Type


@dataclass(slots=True)
class Store(Stmt):
    """``array[index] = value``."""

    array: Expr
    index: tuple[Expr, ...]
    value: Expr
    site: Site


@dataclass(slots=True)
class Eval(Stmt):
    """An expression for its effect."""

    value: Expr


@dataclass(slots=True)
class If(Stmt):
    """A branch."""

    test: Expr
    then: list[Stmt]
    other: list[Stmt]
    fork: Fork


@dataclass(slots=True)
class For(Stmt):
    """A loop over a range; ``start``, ``stop`` and ``step`` are evaluated once."""

    name: str
    start: Expr
    stop: Expr
    step: Expr
    body: list[Stmt]
    fork: Fork
    outer: int | None
    """Line of the loop around it."""


@dataclass(slots=True)
class While(Stmt):
    """A loop."""

    head: list[Stmt]
    test: Expr
    body: list[Stmt]
    fork: Fork
    outer: int | None
    fate: str = "moves"
    """What decides its end: see :mod:`tilelab.simt.endless`."""


@dataclass(slots=True)
class Return(Stmt):
    """The thread leaves the function."""

    value: Expr | None
    line: int


@dataclass(slots=True)
class Break(Stmt):
    """The thread leaves the loop."""


@dataclass(slots=True)
class Continue(Stmt):
    """The thread goes on to the next round."""


@dataclass(slots=True, eq=False)
class Function:
    """A kernel or device function for one list of argument types."""

    name: str
    params: list[str]
    types: list[Type]
    body: list[Stmt] = field(default_factory=list)
    returns: Type = none
    suspends: bool = False
    """Contains a barrier, a warp instruction or a wait, itself or in what it calls."""
    uses: list["Use"] = field(default_factory=list)
    """Where it is called."""

    def called(self, use: "Use") -> None:
        """Note a call, once for each line: a loop is typed several times."""
        if all(known.caller is not use.caller or known.line != use.line for known in self.uses):
            self.uses.append(use)

    def around(self) -> list[Fork]:
        """Branches and loops around its calls, outermost first."""
        return [fork for use in self.uses for fork in (*use.caller.around(), *use.forks)]

    def without(self) -> list[Fork]:
        """Branches before its calls by which threads may have left."""
        return [fork for use in self.uses for fork in (*use.caller.without(), *use.left)]


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a function is called."""

    caller: Function
    line: int
    loops: tuple[int, ...]
    """Lines of the caller's loops around it."""
    forks: tuple[Fork, ...]
    """Branches and loops of the caller around it."""
    left: tuple[Fork, ...]
    """Branches of the caller before it, by which threads may have left."""


@dataclass(slots=True, eq=False)
class Program:
    """A kernel with everything it calls, typed for one list of arguments."""

    kernel: Function
    file: str
    functions: list[Function] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    forks: list[Fork] = field(default_factory=list)
    runs: list[dict[tuple[int, str], int]] = field(default_factory=list)
    """For each run, (line, kind of arithmetic) -> how often a thread does it."""
    allocations: dict[tuple[str, int, int], Alloc] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    """Roots that are stored to."""
    spins: int | None = None
    """Line of a loop that waits for another thread."""
    fences: bool = False
    """Whether some thread may wait until its writes are seen by all blocks."""
    syncs_warps: bool = False
    syncs_parts: bool = False
    """Whether some ``syncwarp`` may order part of a warp only."""
    typed: dict[tuple[object, ...], "Function | None"] = field(default_factory=dict)
    """Device functions by the types of a call; ``None`` while one is being typed."""

    def address(self, alloc: Alloc) -> int:
        """Byte address of a shared array in its block: static arrays one after another, then dynamic memory."""
        address = 0
        for other in self.allocations.values():
            if other.key == alloc.key:
                break
            address += other.bytes
        return address

    def dynamic_cell(self) -> int:
        """Bytes of the smallest number that dynamic shared memory is viewed as."""
        elements = [a.array.element for a in self.allocations.values() if not a.shape]
        return min((e if isinstance(e, Scalar) else e.base).dtype.itemsize for e in elements)
