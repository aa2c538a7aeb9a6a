"""Shapes that find bugs: sides around the tiles' widths, primes, one, and a thousand."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product

#: One, less than a warp, around 16 and 32, and lengths that no tile divides.
SIDES = (1, 3, 15, 16, 17, 33, 35, 79, 100, 129, 431, 1000)

Shape3 = tuple[int, int, int]


def all_shapes(sides: Sequence[int] = SIDES) -> Iterator[Shape3]:
    """Every (M, N, K) from the sides: 1,728 for the twelve."""
    return product(sides, sides, sides)


def pairwise(sides: Sequence[int]) -> list[Shape3]:
    """Few shapes among which every pair of sides meets in every pair of dimensions.

    A Latin square: row i, column j holds (i + j) mod n, so n² shapes cover all 3·n² pairs, the least there can be.
    """
    n = len(sides)
    return [(sides[i], sides[j], sides[(i + j) % n]) for i in range(n) for j in range(n)]


def uncovered(shapes: Sequence[Shape3], sides: Sequence[int]) -> set[tuple[int, int, int, int]]:
    """Pairs (dimension, side, dimension, side) that no shape has."""
    due = {(p, a, q, b) for p, q in combinations(range(3), 2) for a in sides for b in sides}
    return due - {(p, shape[p], q, shape[q]) for shape in shapes for p, q in combinations(range(3), 2)}
