"""What layouts, swizzled layouts and tensors have in common: a shape, and that they never change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from tilelab.layout.display import RichDisplay
from tilelab.layout.inttuple import coordinates, depth, product


class Shaped(RichDisplay):
    """What everything with a shape can tell about it."""

    __slots__ = ()

    @property
    def shape(self) -> Any:
        """Extents, as an integer or nested tuple."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """How many modes there are; 1 for an integer shape."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def depth(self) -> int:
        """How deep the modes are nested; 0 for an integer shape."""
        return depth(self.shape)

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return product(self.shape)

    def coordinates(self) -> Iterator[Any]:
        """Yield every coordinate of the shape, first mode fastest."""
        return coordinates(self.shape)


class Frozen:
    """A value: made once, never changed, equal to and hashed as its parts, which are its slots in order."""

    __slots__: tuple[str, ...] = ()

    def _parts(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return bool(self._parts() == other._parts())

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts()

    def __setattr__(self, name: str, value: object = None) -> NoReturn:
        raise AttributeError(f"{self} never changes; make a new one instead of changing {name!r}")

    __delattr__ = __setattr__
