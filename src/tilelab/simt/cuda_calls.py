"""Calls of ``cuda`` in a kernel."""

import ast

from tilelab.simt import tree
from tilelab.simt.intrinsics import ATOMICS, HALF, MATCHES, SHUFFLES, VOTES
from tilelab.simt.source import MISSING
from tilelab.simt.typer import Typer
from tilelab.simt.types import (
    SINGLE,
    Array,
    Scalar,
    Tuple,
    Type,
    Vector,
    boolean,
    float16,
    float32,
    float64,
    int32,
    int64,
    none,
    of_dtype,
    uint32,
    uint64,
)
from tilelab.simt.words import one, plural

#: The mask that names every lane of a warp.
_ALL = 0xFFFFFFFF


class CudaCallTyper(Typer):
    """Types the calls of what exists on a GPU only."""

    def intrinsic(self, name: str, node: ast.Call) -> tree.Expr:
        """A call of something in ``cuda``."""
        family, _, member = name.rpartition(".")
        if name in ("grid", "gridsize"):
            return self.grid(name, node)
        if name in ("shared.array", "local.array"):
            return self.allocate(family, node)
        if name == "const.array_like":
            typed = self.expression(node.args[0]) if len(self.positional(node)) == 1 else None
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
            true = self.condition(args[0]) if op else None
            kind, left = int32 if op else none, tuple(self.leavers.forks)
            return tree.Barrier(kind, op, true, node.lineno, tuple(self.around), left)
        if name in (*SHUFFLES, *VOTES, *MATCHES, "syncwarp", "activemask"):
            return self.warp(name, node)
        if name == "lanemask_lt":
            return tree.Special(uint32, "lanemask_lt")
        if name.startswith("threadfence") or name == "nanosleep":
            self.program.fences |= name in ("threadfence", "threadfence_system")
            return tree.Const(none, None)
        operands = [self.expression(a) for a in self.positional(node)]
        return self.bits(name, operands, self.numbers(node, operands), node)

    def grid(self, name: str, node: ast.Call) -> tree.Expr:
        """``cuda.grid(n)`` and ``cuda.gridsize(n)``."""
        args = self.positional(node)
        if len(args) != 1 or (dims := self.constant_of(args[0], "the number of dimensions")) not in (1, 2, 3):
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
        kinds = ", ".join(map(str, self.types))  # for other types a device function is another one, with other memory
        key = (f"{self.source.file}:{self.source.name}({kinds})", node.lineno, node.col_offset)
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
        index = self.indices(node, array.type, [args[1]])
        element = array.type.element
        integral = name in ("and_", "or_", "xor", "inc", "dec", "exch", "cas", "compare_and_swap")
        if isinstance(element, Vector) or (integral and element.kind == "f"):
            raise self.source.fault(node, f"cuda.atomic.{name} does not work on {element}")
        if element.bits < 32:
            raise self.source.fault(
                node, f"cuda.atomic.{name} does not work on {element}; a GPU has atomics for 32 and 64 bits"
            )
        self.written.update(array.type.roots)
        self.numbers(node, args[2:])
        values = tuple(self.cast(v, element) for v in args[2:])
        return tree.Atomic(element, name, array, index, values, self.site(node, "atomic", array))

    def warp(self, name: str, node: ast.Call) -> tree.Expr:
        """Shuffles, votes, ``syncwarp`` and ``activemask``."""
        self.function.suspends = True
        args = [self.expression(a) for a in self.positional(node)]
        kinds = self.numbers(node, args)
        for arg, what in zip(args, ("mask", "", "lane"), strict=False):
            if what and isinstance(arg.type, Scalar) and arg.type.kind not in "iu":
                raise self.source.fault(node, f"the {what} of cuda.{name} is {one(arg.type)}; an integer is wanted")
        counts = 0 if name == "activemask" else 3 if name in SHUFFLES else 2
        if name == "syncwarp":
            args = args or [tree.Const(int64, _ALL)]
            self.program.syncs_warps = True
            self.program.syncs_parts |= not isinstance(args[0], tree.Const) or args[0].value & _ALL != _ALL
            counts = 1
        if len(args) != counts:
            raise self.source.fault(node, f"cuda.{name} takes {plural(counts, 'argument')}, not {len(args)}")
        if name == "activemask":
            return tree.Warp(uint32, name, (), node.lineno)
        args = [self.cast(args[0], uint32), *args[1:]]
        if name == "syncwarp":
            return tree.Warp(none, name, tuple(args), node.lineno)
        if name in VOTES:
            return tree.Warp(
                int32 if name == "ballot_sync" else boolean, name, (args[0], self.cast(args[1], boolean)), node.lineno
            )  # fmt: skip
        if kinds[1] == float16:
            raise self.source.fault(node, f"cuda.{name} does not work on float16; write float32(...) around it")
        value = self.cast(args[1], int32) if kinds[1].bits < 32 else args[1]
        if name in MATCHES:
            kind: Type = int32 if name == "match_any_sync" else Tuple((int32, boolean))
            return tree.Warp(kind, name, (args[0], value), node.lineno)
        return tree.Warp(value.type, name, (args[0], value, self.cast(args[2], int64)), node.lineno)

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
            raise self.source.fault(node, f"cuda.{name} takes {plural(counts, 'argument')}")
        if name == "selp":
            if args[1].type != args[2].type:
                raise self.source.fault(
                    node, f"cuda.selp takes two of one type, not {args[1].type} and {args[2].type}; convert one of them"
                )
            return tree.Choice(args[1].type, self.cast(args[0], boolean), args[1], args[2])
        if name in ("fma", "cbrt"):
            wide = float32 if all(k in SINGLE for k in kinds) else float64
            return tree.Math(wide, name, tuple(self.cast(a, wide) for a in args), node.lineno)
        if kinds[0].kind not in "iu":
            raise self.source.fault(node, f"cuda.{name} takes an integer")
        kind = kinds[0]
        if name == "brev" and kind != uint64:  # Numba has it for 32 and 64 bits without a sign, and takes the first
            args, kind = [self.cast(args[0], uint32)], uint32
        if name == "ffs" and kind.bits < 32:
            args, kind = [self.cast(args[0], int32)], int32
        return tree.Math(uint32 if name == "ffs" else kind, f"{name}{kind.bits}", (args[0],), node.lineno)
