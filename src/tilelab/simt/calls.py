"""Calls in a kernel: conversions, functions of numbers, device functions."""

import ast
import math
from typing import Any

import numpy as np

from tilelab.simt import tree
from tilelab.simt.cuda_calls import CudaCallTyper
from tilelab.simt.intrinsics import Intrinsic
from tilelab.simt.source import MISSING, Source
from tilelab.simt.types import (
    Array,
    Scalar,
    Tuple,
    TypingFault,
    Vector,
    boolean,
    float64,
    int64,
    of_dtype,
    of_math,
    unify,
)
from tilelab.simt.words import plural

#: Functions of one number that give a number of the same float type.
_MATH1 = (
    "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "fabs", "floor", "ceil", "trunc", "erf", "erfc", "gamma", "lgamma",
    "degrees", "radians", "exp2", "cbrt",
)  # fmt: skip
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


class CallTyper(CudaCallTyper):
    """Types the calls of one function."""

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
        instead = (
            "write a loop over the elements"
            if any(isinstance(a.type, Array) for a in args)
            else ("numbers have +, -, *, /, //, %, **, abs, min, max, round and the functions of math")
        )
        raise self.source.fault(node, f"a kernel cannot call {ast.unparse(node.func)}; {instead}")

    def convert(self, node: ast.Call, args: list[tree.Expr], kind: Scalar) -> tree.Expr:
        """``float32(x)``."""
        if len(args) != 1 or not isinstance(args[0].type, Scalar):
            raise self.source.fault(node, f"{kind} converts one number")
        return self.cast(args[0], kind)

    def function_of_numbers(self, target: Any, args: list[tree.Expr], node: ast.Call) -> tree.Expr | None:
        """A built-in, or a function of math or NumPy, if the target is one."""
        if target is len and len(args) == 1 and isinstance(args[0].type, Array):
            return tree.Extent(int64, args[0], 0)
        if target is len and len(args) == 1 and isinstance(args[0].type, Tuple):
            return tree.Const(int64, len(args[0].type.items))
        if target is pow and len(args) == 2:
            return self.binary(ast.Pow(), args[0], args[1], node)
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
            raise self.source.fault(
                node, f"{source.name} takes {plural(len(source.params), 'argument')}, not {len(args)}"
            )
        function = target.typed_for(self.program, [a.type for a in args], type(self), node, self.source)
        self.function.suspends |= function.suspends
        function.calls.append((self.function, tuple(self.around)))
        function.call_lines.add(node.lineno)
        return tree.Call(function.returns, function, tuple(args))
