"""Arguments of a launch: numbers get Numba's types, arrays become views into memory that may be shared among them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.simt.errors import LaunchError
from tilelab.simt.runtime import Argument, Memory, strides_of
from tilelab.simt.signatures import Signature
from tilelab.simt.types import Array, Scalar, Tuple, Type, TypingFault, of_dtype, of_value
from tilelab.simt.words import plural


class Arguments:
    """The arguments of one launch.

    Attributes
    ----------
    types
        One for each parameter.
    values
        Numbers, tuples of numbers, or :class:`~tilelab.simt.runtime.Argument`.
    """

    def __init__(
        self, kernel: str, names: list[str], given: tuple[Any, ...], signature: Signature | None = None
    ) -> None:
        if len(names) != len(given):
            raise LaunchError(f"{kernel} takes {plural(len(names), 'argument')} ({', '.join(names)}), not {len(given)}")
        self.kernel = kernel
        self.types: list[Type] = []
        self.values: list[Any] = []
        self.memories: list[Memory] = []
        if signature is not None:
            given = tuple(map(self._as_signed, names, given, signature.parameters))
        arrays = [(i, self._array(name, value)) for i, (name, value) in enumerate(zip(names, given, strict=True))]
        grouped = self._share([(i, a) for i, a in arrays if a is not None])
        for i, (name, value) in enumerate(zip(names, given, strict=True)):
            if i in grouped:
                argument = grouped[i]
                self.types.append(argument.kind)
                self.values.append(argument)
            else:
                kind, plain = self._number(name, value)
                self.types.append(kind)
                self.values.append(plain)

    def _as_signed(self, name: str, value: Any, wanted: Scalar | None) -> Any:
        """An argument in the type that the signature names; arrays must have it already."""
        if wanted is None or isinstance(value, tuple):
            return value
        if getattr(value, "ndim", 0):
            if value.dtype != wanted.dtype:
                raise LaunchError(f"argument {name} of {self.kernel} holds {value.dtype}, its signature says {wanted}")
            return value
        try:
            return wanted(value)
        except (TypeError, ValueError, OverflowError) as fault:
            raise LaunchError(f"argument {name} of {self.kernel}: {value!r} is no {wanted} ({fault})") from None

    def _array(self, name: str, value: Any) -> NDArray[Any] | None:
        if isinstance(value, np.ndarray) and value.ndim:
            array = value.view(np.ndarray)
        elif hasattr(value, "__array__") and not isinstance(value, np.generic) and bool(getattr(value, "ndim", False)):
            array = np.asarray(value)
            if not np.shares_memory(array, np.asarray(value)):
                raise LaunchError(
                    f"argument {name} of {self.kernel} lies where the simulator cannot write: pass an array"
                )
        elif isinstance(value, list | dict | set | str):
            raise LaunchError(f"argument {name} of {self.kernel} is a {type(value).__name__}; pass a NumPy array")
        else:
            return None
        try:
            of_dtype(array.dtype)
        except TypingFault as fault:
            raise LaunchError(f"argument {name} of {self.kernel}: {fault}") from None
        return array

    def _number(self, name: str, value: Any) -> tuple[Type, Any]:
        if isinstance(value, tuple):
            parts = [self._number(name, v) for v in value]
            return Tuple(tuple(kind for kind, _ in parts)), tuple(v for _, v in parts)
        if isinstance(value, np.ndarray):  # of no dimension
            value = value[()]
        try:
            kind = of_value(value)
        except TypingFault as fault:
            if isinstance(value, int):
                raise LaunchError(f"argument {name} of {self.kernel}: {fault}") from None
            raise LaunchError(
                f"argument {name} of {self.kernel} is a {type(value).__name__}; pass numbers and arrays"
            ) from None
        return kind, kind.dtype.type(value) if kind.kind == "f" else value.item() if hasattr(value, "item") else value

    def _share(self, arrays: list[tuple[int, NDArray[Any]]]) -> dict[int, Argument]:
        """Put arrays that overlap into one memory, so that a race through two names is seen."""
        spans = [(i, a, *_byte_bounds(a)) for i, a in arrays]
        groups: list[list[tuple[int, NDArray[Any], int, int]]] = []
        for span in sorted(spans, key=lambda s: s[2]):
            if groups and span[2] < max(s[3] for s in groups[-1]) and span[1].size:
                groups[-1].append(span)
            else:
                groups.append([span])
        made: dict[int, Argument] = {}
        for group in sorted(groups, key=lambda g: min(i for i, *_ in g)):
            made |= self._memory(group)
        return made

    def _memory(self, group: list[tuple[int, NDArray[Any], int, int]]) -> dict[int, Argument]:
        first, low = group[0][1], min(s[2] for s in group)
        high = max(s[3] for s in group)
        item = first.dtype.itemsize
        if any(a.dtype != first.dtype for _, a, _, _ in group):
            raise LaunchError(f"{self.kernel}: arguments of different types overlap in memory; pass copies")
        if any((a.ctypes.data - low) % item or any(s % item for s in a.strides) for _, a, _, _ in group):
            raise LaunchError(f"{self.kernel}: an argument's strides are no multiple of its element size; pass a copy")
        contiguous = len(group) == 1 and first.flags.c_contiguous
        if contiguous:
            flat = first.reshape(-1)
        else:
            lowest = next(a for _, a, start, _ in group if start == low)
            corner = lowest[tuple(slice(-1, None) if s < 0 else slice(0, 1) for s in lowest.strides)]
            flat = np.lib.stride_tricks.as_strided(corner.reshape(-1), ((high - low) // item,), (item,))
        base: Any = first
        while isinstance(base.base, np.ndarray):
            base = base.base
        memory = Memory(f"memory {len(self.memories)}", flat, False, (low - base.ctypes.data) % 256)
        self.memories.append(memory)
        out = {}
        for i, array, _, _ in group:
            offset = (array.ctypes.data - low) // item
            kind = Array(of_dtype(array.dtype), array.ndim, "global", frozenset([memory.name]))
            strides = tuple(s // item for s in array.strides)
            if array.flags.c_contiguous:  # NumPy's strides of an axis of extent 1 mean nothing
                strides = strides_of(array.shape)
            out[i] = Argument(kind, memory, offset, array.shape, strides, "")
        return out

    def name(self, names: list[str]) -> None:
        """Call arrays by the names of the parameters."""
        for name, value in zip(names, self.values, strict=True):
            if isinstance(value, Argument):
                value.name = name

    def mark_written(self, roots: set[str]) -> None:
        """Note which memory the kernel stores to, and refuse arrays that cannot be written."""
        for memory in self.memories:
            memory.written = memory.name in roots
            if memory.written and not memory.data.flags.writeable:
                named = next(v.name for v in self.values if isinstance(v, Argument) and v.memory is memory)
                raise LaunchError(f"{self.kernel} stores to {named}, which is a read-only array")


def _byte_bounds(array: NDArray[Any]) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)
