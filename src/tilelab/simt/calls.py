"""Calls in a kernel: conversions, functions of numbers, device functions."""

import ast
import math
from types import FunctionType
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
    Vector,
    boolean,
    float16,
    float32,
    float64,
    int8,
    int64,
    of_dtype,
    of_math,
    of_numpy,
    unify,
)
from tilelab.simt.words import plural

#: Functions of one number that give a number of the same float type.
_MATH1 = (
    "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "fabs", "floor", "ceil", "trunc", "erf", "erfc", "gamma", "lgamma",
    "degrees", "radians", "exp2",
)  # fmt: skip
_MATH2 = ("pow", "atan2", "fmod", "hypot", "copysign")
_TESTS = ("isnan", "isinf", "isfinite")
_LEAST = ("min", "max", "minimum", "maximum")
_BUILTIN = {id(min): "min", id(max): "max", id(abs): "abs", id(divmod): "divmod"}
_MATH = {id(getattr(math, name)): name for name in (*_MATH1, *_MATH2, *_TESTS) if hasattr(math, name)}
#: Functions of NumPy that Numba has in a kernel, and what they are called here.
_NUMPY = {
    id(getattr(np, name)): name.replace("arc", "a")
    for name in (
        "log", "log2", "log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh",
        "arccosh", "arctanh", "degrees", "radians", "isnan", "arctan2", "hypot", "minimum", "maximum",
    )
} | {id(np.rad2deg): "degrees", id(np.deg2rad): "radians", id(np.fmin): "min", id(np.fmax): "max"}  # fmt: skip
#: Functions that Numba does not have in a kernel, and what does the same.
_INSTEAD = {
    id(getattr(np, name)): f"math.{name}"
    for name in (
        "sqrt", "exp", "expm1", "log1p", "exp2", "floor", "ceil", "trunc", "fabs", "isinf", "isfinite", "fmod",
        "copysign",
    )
} | {
    id(np.abs): "abs", id(np.power): "**", id(np.square): "x * x", id(np.cbrt): "cuda.cbrt", id(np.sign): "if and else",
    id(np.rint): "round", id(np.negative): "-", id(np.round): "round", id(math.cbrt): "cuda.cbrt",
}  # fmt: skip


class CallTyper(CudaCallTyper):
    """Types the calls of one function."""

    def call(self, node: ast.Call) -> tree.Expr:
        """Type a call."""
        target = self.source.static(node.func)
        if target is MISSING:
            raise self.source.undefined(node, ast.unparse(node.func))
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
        if getattr(target, "__module__", "") == "tilelab.simt.cuda":
            raise self.source.fault(node, f"{ast.unparse(node.func)} works on the host, before a launch or after it")
        if isinstance(target, FunctionType):
            raise self.source.fault(node, f"{target.__name__} is a host function; put @cuda.jit(device=True) above it")
        instead = (
            "write a loop over the elements"
            if any(isinstance(a.type, Array) for a in args)
            else "use cuda.local.array(shape, dtype), or cuda.shared.array for all threads of a block"
            if target in (np.zeros, np.ones, np.empty, np.full, np.array)
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
        if id(target) in _INSTEAD:
            raise self.source.fault(
                node, f"Numba has no {ast.unparse(node.func)} in a kernel; write {_INSTEAD[id(target)]}"
            )
        name = _BUILTIN.get(id(target)) or _MATH.get(id(target)) or _NUMPY.get(id(target))
        if name is None and target not in (int, float, bool, round):
            return None
        kinds = self.numbers(node, args)
        if target in (int, float, bool, round):
            return self.python_conversion(target, args, kinds, node)
        assert name is not None
        return self.named(name, args, kinds, node, numpy=id(target) in _NUMPY)

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

    def named(self, name: str, args: list[tree.Expr], kinds: list[Scalar], node: ast.Call, *, numpy: bool) -> tree.Expr:
        """A function of numbers by its name here; NumPy's have types of their own."""
        least = name in _LEAST and not numpy
        wanted = 2 if name in _MATH2 or name == "divmod" or name in _LEAST else 1
        if len(args) < 2 if least else len(args) != wanted:
            raise self.source.fault(node, f"{name} takes {'two or more' if least else wanted} numbers, not {len(args)}")
        if name in _LEAST:
            made = args[0]
            for arg in args[1:]:
                kind = of_numpy(*kinds) if numpy and any(k.kind == "f" for k in kinds) else unify(made.type, arg.type)
                made = tree.Math(kind, name, (self.cast(made, kind), self.cast(arg, kind)), node.lineno)
            return made
        if name == "abs":
            return self.magnitude(args[0], kinds[0], node)
        if name == "divmod":
            kind = unify(*kinds)
            assert isinstance(kind, Scalar)
            kind = float32 if kind == float16 else kind if kind.kind == "f" else kind.wide
            pair = (self.cast(args[0], kind), self.cast(args[1], kind))
            return tree.Math(Tuple((kind, kind)), name, pair, node.lineno)
        kind = of_numpy(*kinds) if numpy else of_math(name, *kinds)
        casts = tuple(self.cast(a, kind) for a in args)
        return tree.Math(boolean if name in _TESTS else kind, name, casts, node.lineno)

    def magnitude(self, arg: tree.Expr, kind: Scalar, node: ast.Call) -> tree.Expr:
        """``abs`` of one number, in its own type: of the lowest signed integer it is that integer."""
        if kind.kind == "f":
            return tree.Math(kind, "abs", (arg,), node.lineno)
        if kind.kind == "u":
            return arg
        kind = int8 if kind == boolean else kind
        return self.cast(tree.Math(int64, "abs", (self.cast(arg, int64),), node.lineno), kind)

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
        signature = target.signature
        if signature is not None:
            args = [
                arg if wanted is None or not isinstance(arg.type, Scalar) else self.cast(arg, wanted)
                for arg, wanted in zip(args, signature.parameters, strict=True)
            ]
        function = target.typed_for(self.program, [a.type for a in args], type(self), node, self.source)
        self.function.suspends |= function.suspends
        forks, left = tuple(self.around), tuple(self.leavers.forks)
        function.called(tree.Use(self.function, node.lineno, self.loop_lines(), forks, left))
        call = tree.Call(function.returns, function, tuple(args))
        if signature is None or signature.result is None or not isinstance(call.type, Scalar):
            return call
        return self.cast(call, signature.result)
