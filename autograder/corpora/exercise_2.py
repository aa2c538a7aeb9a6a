"""Exercise 2: the transpose of ``(3,4):(1,3)``."""

import numpy as np

from tilelab.layout import Layout

VIEW = {"starts": 0, "strides": [12, 4], "seen": True}

RIGHT = {"layout": "(4,3):(3,1)", "memory": VIEW, "bytes_moved": 0, "order": "row-major"}

WRONG = {
    "strides swapped, shape left": ({"layout": "(3,4):(3,1)"}, {"layout": 0.5}),
    "shape swapped, strides left": ({"layout": "(4,3):(1,3)"}, {"layout": 0.5}),
    "a fresh column-major matrix": (
        {"layout": "(4,3):(1,4)", "order": "column-major"},
        {"layout": 0.5, "statement": 0},
    ),
    "the original again": ({"layout": "(3,4):(1,3)"}, {"layout": 0}),
    "strides in bytes": ({"layout": "(4,3):(12,4)"}, {"layout": 0.5}),
    "not a layout": ({"layout": "4x3"}, {"layout": 0}),
    "the shape alone": ({"layout": "(4,3)"}, {"layout": 0}),
    "one mode of twelve": ({"layout": "12:1"}, {"layout": 0}),
    "three modes": ({"layout": "(2,2,3):(3,6,1)"}, {"layout": 0}),
    "a row too many": ({"layout": "(4,4):(3,1)"}, {"layout": 0}),
    "bytes in words": ({"bytes_moved": "none"}, {"same_memory": 0.5}),
    "a copy by ascontiguousarray": (
        {"memory": {"starts": 64, "strides": [12, 4], "seen": False}, "bytes_moved": 48},
        {"same_memory": 0},
    ),
    "a view, and all bytes said to move": ({"bytes_moved": 48}, {"same_memory": 0.5}),
    "the buffer reshaped instead of transposed": (
        {"memory": {"starts": 0, "strides": [4, 16], "seen": False}},
        {"same_memory": 0.5},
    ),
    "left blank": (
        {"layout": None, "memory": None, "bytes_moved": None, "order": None},
        {"layout": 0, "same_memory": 0, "statement": 0},
    ),
}

UNUSUAL = {
    "a Layout": {"layout": Layout((4, 3), (3, 1))},
    "a transposed Layout": {"layout": Layout.parse("(3,4):(1,3)").T},
    "nested: the same function": {"layout": "((2,2),3):((3,6),1)"},
    "a pair of tuples": {"layout": ((4, 3), (3, 1))},
    "as C++ makes it": {"layout": "make_layout(make_shape(4, 3), make_stride(3, 1))"},
    "shape and strides by name": {"layout": {"shape": [4, 3], "strides": [3, 1]}},
    "extents of 1 inside": {"layout": "(4,(1,3)):(3,(0,1))"},
    "static numbers": {"layout": "(_4,_3):(_3,_1)"},
    "an array of its offsets": {"layout": np.arange(12).reshape(4, 3)},
    "no byte, as a float": {"bytes_moved": 0.0, "order": "Row major"},
    "the table of its offsets": {"layout": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]},
}
