"""Exercise 1: the offsets of ``(3,4):(1,3)``."""

import numpy as np

TABLE = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]

RIGHT = {"table": TABLE, "order": "column-major", "contiguous": True}

WRONG = {
    "filled along the rows, as in C": (
        {"table": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], "order": "row-major"},
        {"table": 0.33, "order": 0},
    ),
    "counted from one": ({"table": [[v + 1 for v in row] for row in TABLE]}, {"table": 0}),
    "two slips in the last row": ({"table": [*TABLE[:2], [2, 5, 9, 13]]}, {"table": 1.67}),
    "only the first row": ({"table": [TABLE[0], [None] * 4, [None] * 4]}, {"table": 0.67}),
    "byte offsets of float32": ({"table": [[4 * v for v in row] for row in TABLE]}, {"table": 0.17}),
    "transposed shape": ({"table": [list(column) for column in zip(*TABLE, strict=True)]}, {"table": 0}),
    "rows are contiguous or nothing is": ({"contiguous": False}, {"contiguous": 0}),
    "a flat list": ({"table": [v for row in TABLE for v in row]}, {"table": 0}),
    "coordinates instead of offsets": (
        {"table": [[(i, j) for j in range(4)] for i in range(3)]},
        {"table": 0},
    ),
    "the strides exchanged": ({"table": [[3 * i + j for j in range(4)] for i in range(3)]}, {"table": 0.5}),
    "a row too many": ({"table": [*TABLE, [3, 6, 9, 12]]}, {"table": 0}),
    "the name of the other line": ({"order": "rows"}, {"order": 0}),
    "a statement in quotes": ({"contiguous": "True"}, {"contiguous": 0}),
    "both orders, to be safe": ({"order": "row-major, column-major"}, {"order": 0}),
    "left blank": (
        {"table": [[None] * 4 for _ in range(3)], "order": None, "contiguous": None},
        {"table": 0, "order": 0, "contiguous": 0},
    ),
}

UNUSUAL = {
    "an array of floats": {"table": [[float(v) for v in row] for row in TABLE]},
    "tuples": {"table": tuple(map(tuple, TABLE))},
    "the order in words": {"order": "Column major"},
    "the order shortened": {"order": "col_major"},
    "the order as a noun": {"order": "Column-Major order."},
    "the line alone": {"order": "columns"},
    "the order in one word": {"order": "columnmajor"},
    "an array of NumPy": {"table": np.array(TABLE), "contiguous": np.bool_(True)},
    "ranges": {"table": [range(i, 12, 3) for i in range(3)]},
}
