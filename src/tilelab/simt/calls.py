"""Calls in a kernel: conversions, functions of numbers, and everything of ``cuda``."""

import ast
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.simt import tree
from tilelab.simt.intrinsics import ATOMICS, HALF, MATCHES, SHUFFLES, VOTES, Intrinsic
from tilelab.simt.source import MISSING, Source
from tilelab.simt.types import (
    Array,
    Scalar,
    Tuple,
    Type,
    TypingFault,
    Vector,
    boolean,
    float16,
    float32,
    float64,
    int32,
    int64,
    none,
    of_dtype,
    of_math,
    uint32,
    unify,
)

if TYPE_CHECKING:
    from tilelab.simt.expressions import Unclear

#: Functions of one number that give a number of the same float type.
_MATH1 = (
    "sqrt exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "fabs floor ceil trunc erf erfc gamma lgamma degrees radians exp2 cbrt"
).split()
_MATH2 = ("pow", "atan2", "fmod", "hypot", "copysign")
_TESTS = ("isnan", "isinf", "isfinite")
_FUNCTIONS: dict[int, str] = {}
for _name in (*_MATH1, *_MATH2, *_TESTS):
    for _module in (math, np):
        if hasattr(_module, _name):
            _FUNCTIONS[id(getattr(_module, _name))] = _name
_NUMPY_NAMES = {"abs": "abs", "absolute": "abs", "minimum": "min", "maximum": "max"}
_NUMPY_NAMES |= {f"arc{name[1:]}": name for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}
_NUMPY_NAMES |= {"arctan2": "atan2", "power": "pow"}
for _numpy, _name in _NUMPY_NAMES.items():
    _FUNCTIONS[id(getattr(np, _numpy))] = _name


class CallTyper(ABC):
    """Types the calls of one function, and holds what typing one function needs."""

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
        self._sites: dict[tuple[int, str], tree.Site] = {}
        self._forks: dict[int, tree.Fork] = {}
        self._calls: dict[int, int] = {}

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
    def pack(self, items: list[tree.Expr]) -> tree.Expr:
        """Make a tuple."""

    @abstractmethod
    def loop_line(self) -> int | None:
        """Line of the loop being typed."""

    @abstractmethod
    def loop_lines(self) -> tuple[int, ...]:
        """Lines of the loops being typed, outermost first."""

    # ---- places
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

    def call_number(self, node: ast.Call) -> int:
        """A number for a call, the same however often it is typed."""
        return self._calls.setdefault(id(node), node.lineno * 1000 + node.col_offset)

    # ---- calls
    def call(self, node: ast.Call) -> tree.Expr:
        """Type a call."""
        target = self.source.static(node.func)
        if target is MISSING:
            raise self.source.fault(node, f"the name {ast.unparse(node.func)} is not defined")
        if isinstance(target, Intrinsic):
            return self.intrinsic(target.name, node)
        if isinstance(target, Vector):
            return self.vector(target, node)
        if hasattr(target, "device_source"):
            return self.device(target, node)
        args = [self.expression(a) for a in self.positional(node)]
        if isinstance(target, Scalar):
            return self.convert(node, args, target)
        if isinstance(target, type) and issubclass(target, np.generic):
            return self.convert(node, args, of_dtype(target))
        made = self.function_of_numbers(target, args, node)
        if made is not None:
            return made
        if callable(target) and hasattr(target, "__code__"):
            raise self.source.fault(node, f"{target.__name__} is a host function; put @cuda.jit(device=True) above it")
        raise self.source.fault(node, f"a kernel cannot call {ast.unparse(node.func)}")

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

    def convert(self, node: ast.Call, args: list[tree.Expr], kind: Scalar) -> tree.Expr:
        """``float32(x)``."""
        if len(args) != 1 or not isinstance(args[0].type, Scalar):
            raise self.source.fault(node, f"{kind} converts one number")
        return self.cast(args[0], kind)

    def numbers(self, node: ast.Call, args: list[tree.Expr]) -> list[Scalar]:
        """The types of arguments that must be numbers."""
        kinds = [a.type for a in args]
        for kind in kinds:
            if not isinstance(kind, Scalar):
                raise self.source.fault(node, f"a {kind} is no number")
        return [k for k in kinds if isinstance(k, Scalar)]

    def function_of_numbers(self, target: Any, args: list[tree.Expr], node: ast.Call) -> tree.Expr | None:
        """A built-in, or a function of math or NumPy, if the target is one."""
        if target is len and len(args) == 1 and isinstance(args[0].type, Array):
            return tree.Extent(int64, args[0], 0)
        if target is len and len(args) == 1 and isinstance(args[0].type, Tuple):
            return tree.Const(int64, len(args[0].type.items))
        name = _FUNCTIONS.get(id(target))
        for function, known in ((min, "min"), (max, "max"), (abs, "abs")):
            name = known if target is function else name
        if name is None and target not in (int, float, bool, round):
            return None
        kinds = self.numbers(node, args)
        if target in (int, float, bool, round):
            return self.python_conversion(target, args, kinds, node)
        assert name is not None
        return self.named(name, args, kinds, node)

    def python_conversion(self, target: Any, args: list[tree.Expr], kinds: list[Scalar], node: ast.Call) -> tree.Expr:
        """``int``, ``float``, ``bool`` and ``round`` of one number."""
        if len(args) != 1:
            raise self.source.fault(node, f"{target.__name__} takes one number in a kernel")
        kind = kinds[0]
        if target is int:
            return self.cast(args[0], int64 if kind.kind in "bf" else kind)
        if target is float:
            return self.cast(args[0], kind if kind.kind == "f" else float64)
        if target is bool:
            return self.cast(args[0], boolean)
        whole = tree.Math(kind, "rint", (args[0],), node.lineno) if kind.kind == "f" else args[0]
        return self.cast(whole, int64)

    def named(self, name: str, args: list[tree.Expr], kinds: list[Scalar], node: ast.Call) -> tree.Expr:
        """A function of numbers by its name here."""
        wanted = 2 if name in _MATH2 else None if name in ("min", "max") else 1
        if (wanted is None and len(args) < 2) or (wanted is not None and len(args) != wanted):
            raise self.source.fault(node, f"{name} takes {wanted or 'two or more'} numbers, not {len(args)}")
        if name in ("min", "max"):
            made = args[0]
            for arg in args[1:]:
                try:
                    kind = unify(made.type, arg.type)
                except TypingFault as fault:
                    raise self.source.fault(node, str(fault)) from None
                made = tree.Math(kind, name, (self.cast(made, kind), self.cast(arg, kind)), node.lineno)
            return made
        if name == "abs":
            return tree.Math(kinds[0], name, (args[0],), node.lineno)
        kind = of_math(*kinds)
        casts = tuple(self.cast(a, kind) for a in args)
        return tree.Math(boolean if name in _TESTS else kind, name, casts, node.lineno)

    def vector(self, kind: Vector, node: ast.Call) -> tree.Expr:
        """``float32x4(a, b, c, d)``; a vector among the arguments stands for its components."""
        parts: list[tree.Expr] = []
        for arg in (self.expression(a) for a in self.positional(node)):
            if isinstance(arg.type, Vector):
                parts += [tree.Item(arg.type.base, arg, i) for i in range(arg.type.count)]
            else:
                parts.append(arg)
        if len(parts) != kind.count:
            raise self.source.fault(node, f"{kind} has {kind.count} components, not {len(parts)}")
        self.numbers(node, parts)
        return tree.Pack(kind, tuple(self.cast(p, kind.base) for p in parts))

    def device(self, target: Any, node: ast.Call) -> tree.Expr:
        """A call of a device function, typed for these arguments."""
        source: Source | None = target.device_source
        if source is None:
            raise self.source.fault(node, f"{target.__name__} is a kernel; a function called from one is device=True")
        args = [self.expression(a) for a in self.positional(node)]
        if len(args) != len(source.params):
            raise self.source.fault(node, f"{source.name} takes {len(source.params)} arguments, not {len(args)}")
        function = target.typed_for(self.program, [a.type for a in args], type(self), node, self.source)
        self.function.suspends |= function.suspends
        return tree.Call(function.returns, function, tuple(args), self.call_number(node))

    # ---- cuda
    def intrinsic(self, name: str, node: ast.Call) -> tree.Expr:
        """A call of something in ``cuda``."""
        family, _, member = name.rpartition(".")
        if name in ("grid", "gridsize"):
            return self.grid(name, node)
        if name in ("shared.array", "local.array"):
            return self.allocate(family, node)
        if name == "const.array_like":
            typed = self.expression(self.positional(node)[0])
            if not isinstance(typed, tree.Outer):
                raise self.source.fault(node, "const.array_like takes a NumPy array from outside the kernel")
            return typed
        if family == "atomic":
            return self.atomic(member, node)
        if family == "fp16":
            return self.half(member, node)
        if name.startswith("syncthreads"):
            op = name.removeprefix("syncthreads").lstrip("_")
            self.function.suspends = True
            args = self.positional(node)
            if len(args) != bool(op):
                raise self.source.fault(node, f"cuda.{name} takes {'one predicate' if op else 'no argument'}")
            return tree.Barrier(int32 if op else none, op, self.condition(args[0]) if op else None, node.lineno)
        if name in (*SHUFFLES, *VOTES, *MATCHES, "syncwarp", "activemask"):
            return self.warp(name, node)
        if name == "lanemask_lt":
            return tree.Special(uint32, "lanemask_lt")
        if name.startswith("threadfence") or name == "nanosleep":
            return tree.Const(none, None)
        operands = [self.expression(a) for a in self.positional(node)]
        return self.bits(name, operands, self.numbers(node, operands), node)

    def grid(self, name: str, node: ast.Call) -> tree.Expr:
        """``cuda.grid(n)`` and ``cuda.gridsize(n)``."""
        dims = self.constant_of(self.positional(node)[0] if node.args else node, "the number of dimensions")
        if dims not in (1, 2, 3):
            raise self.source.fault(node, f"cuda.{name} takes 1, 2 or 3")
        parts: list[tree.Expr] = [tree.Special(int64, f"{name}.{axis}") for axis in "xyz"[:dims]]
        return parts[0] if dims == 1 else self.pack(parts)

    def constant_of(self, node: ast.expr, what: str) -> int:
        """A number that must be known when the kernel is compiled."""
        typed = self.expression(node)
        if not isinstance(typed, tree.Const) or not isinstance(typed.value, int):
            raise self.source.fault(
                node, f"{what} must be a number known when the kernel is compiled: written out or a global name"
            )
        return typed.value

    def element_type(self, node: ast.expr | None, call: ast.Call) -> Scalar | Vector:
        """The type that an expression like ``float32``, ``np.int32`` or ``a.dtype`` names."""
        if node is None:
            raise self.source.fault(call, "an array needs a dtype")
        if isinstance(node, ast.Attribute) and node.attr == "dtype" and self.source.static(node) is MISSING:
            typed = self.expression(node.value)
            if isinstance(typed.type, Array):
                return typed.type.element
        named = self.source.static(node)
        if isinstance(named, Scalar | Vector):
            return named
        try:
            return of_dtype(named)
        except TypeError:
            raise self.source.fault(call, f"{ast.unparse(node)} is no type; use float32, int32 and the like") from None

    def allocate(self, space: str, node: ast.Call) -> tree.Expr:
        """``cuda.shared.array(shape, dtype)``; shape 0 is the launch's dynamic shared memory."""
        hint = self.hint or "array"
        shape_node, dtype_node, _ = self.wanted(node, "shape", "dtype", "alignment")
        element = self.element_type(dtype_node, node)
        if shape_node is None:
            raise self.source.fault(node, "an array needs a shape")
        extents = shape_node.elts if isinstance(shape_node, ast.Tuple) else [shape_node]
        typed = self.expression(shape_node)
        if isinstance(typed, tree.Pack) and not isinstance(shape_node, ast.Tuple):
            shape = tuple(int(i.value) if isinstance(i, tree.Const) else -1 for i in typed.items)
            if -1 in shape:
                raise self.source.fault(node, "the shape must be known when the kernel is compiled")
        else:
            shape = tuple(self.constant_of(e, "the shape of an array") for e in extents)
        key = (f"{self.source.file}:{self.source.name}", node.lineno, node.col_offset)
        dynamic = space == "shared" and shape == (0,)
        if not dynamic and any(e < 1 for e in shape):
            raise self.source.fault(node, f"shape {shape}: every extent must be at least 1")
        roots = frozenset(["shared *"] if dynamic else [f"{space} {hint} {node.lineno}:{node.col_offset}"])
        kind = Array(element, len(shape), space, roots)
        made = tree.Alloc(kind, key, hint, () if dynamic else shape, node.lineno)
        return self.program.allocations.setdefault(key, made) if space == "shared" else made

    def atomic(self, name: str, node: ast.Call) -> tree.Expr:
        """``cuda.atomic.add(array, index, value)`` and its kin."""
        args = [self.expression(a) for a in self.positional(node)]
        whole = name == "compare_and_swap"
        if len(args) != (3 if whole else 2 + ATOMICS[name]):
            raise self.source.fault(node, f"cuda.atomic.{name} takes an array, an index and {ATOMICS[name]} value(s)")
        array = args[0]
        if not isinstance(array.type, Array) or array.type.space not in ("global", "shared"):
            raise self.source.fault(node, "an atomic works on an element of global or shared memory")
        if whole:
            args.insert(1, tree.Const(int64, 0))
        index = args[1].items if isinstance(args[1], tree.Pack) else (args[1],)
        element = array.type.element
        integral = name in ("and_", "or_", "xor", "inc", "dec", "exch", "cas", "compare_and_swap")
        if isinstance(element, Vector) or (integral and element.kind == "f"):
            raise self.source.fault(node, f"cuda.atomic.{name} does not work on {element}")
        if len(index) != array.type.ndim:
            raise self.source.fault(node, f"{len(index)} indices for an array of {array.type.ndim} dimensions")
        self.written.update(array.type.roots)
        self.numbers(node, args[2:])
        values = tuple(self.cast(v, element) for v in args[2:])
        return tree.Atomic(element, name, array, index, values, self.site(node, "atomic", array))

    def warp(self, name: str, node: ast.Call) -> tree.Expr:
        """Shuffles, votes, ``syncwarp`` and ``activemask``."""
        self.function.suspends = True
        number = self.call_number(node)
        args = [self.expression(a) for a in self.positional(node)]
        kinds = self.numbers(node, args)
        if name == "activemask":
            return tree.Warp(uint32, name, (), node.lineno, number)
        counts = 3 if name in SHUFFLES else 2
        if name == "syncwarp":
            args = args or [tree.Const(int64, 0xFFFFFFFF)]
            self.program.syncs_warps = True
            counts = 1
        if len(args) != counts:
            raise self.source.fault(node, f"cuda.{name} takes {counts} arguments")
        args = [self.cast(args[0], uint32), *args[1:]]
        if name == "syncwarp":
            return tree.Warp(none, name, tuple(args), node.lineno, number)
        if name in VOTES:
            return tree.Warp(
                int32 if name == "ballot_sync" else boolean, name, (args[0], self.cast(args[1], boolean)),
                node.lineno, number,
            )  # fmt: skip
        value = self.cast(args[1], int32) if kinds[1] == boolean or kinds[1].bits < 32 else args[1]
        if name in MATCHES:
            kind: Type = int32 if name == "match_any_sync" else Tuple((int32, boolean))
            return tree.Warp(kind, name, (args[0], value), node.lineno, number)
        return tree.Warp(value.type, name, (args[0], value, self.cast(args[2], int64)), node.lineno, number)

    def half(self, name: str, node: ast.Call) -> tree.Expr:
        """Arithmetic of ``cuda.fp16``."""
        args = [self.expression(a) for a in self.positional(node)]
        self.numbers(node, args)
        if len(args) != HALF[name]:
            raise self.source.fault(node, f"cuda.fp16.{name} takes {HALF[name]} numbers")
        kind = boolean if name in ("heq", "hne", "hlt", "hle", "hgt", "hge") else float16
        return tree.Math(kind, name, tuple(self.cast(a, float16) for a in args), node.lineno)

    def bits(self, name: str, args: list[tree.Expr], kinds: list[Scalar], node: ast.Call) -> tree.Expr:
        """``fma``, ``selp``, ``cbrt`` and functions of bits."""
        counts = {"fma": 3, "selp": 3}.get(name, 1)
        if len(args) != counts:
            raise self.source.fault(node, f"cuda.{name} takes {counts} argument{'s' * (counts > 1)}")
        if name == "selp":
            kind = unify(args[1].type, args[2].type)
            return tree.Choice(kind, self.cast(args[0], boolean), self.cast(args[1], kind), self.cast(args[2], kind))
        if name in ("fma", "cbrt"):
            wide = float32 if all(k.kind == "f" and k.bits <= 32 for k in kinds) else float64
            return tree.Math(wide, name, tuple(self.cast(a, wide) for a in args), node.lineno)
        if kinds[0].kind not in "iu":
            raise self.source.fault(node, f"cuda.{name} takes an integer")
        result = uint32 if name in ("clz", "ffs") else kinds[0]
        return tree.Math(result, f"{name}{kinds[0].bits}", (args[0],), node.lineno)
