"""Exercise 3: a 32 × 32 tile without bank conflicts."""

from tilelab.layout import Layout, Swizzle, composition

RIGHT = {"prediction": 1, "degree": 32, "layout": Layout((32, 32), (1, 33)), "size": 1024, "cosize": 1055}

WRONG = {
    "cosize as rows × pitch": ({"cosize": 1056}, {"size_and_cosize": 1}),
    "size counts the padding": ({"size": 1056}, {"size_and_cosize": 1}),
    "turned to row-major": ({"layout": "(32,32):(32,1)", "cosize": 1024}, {"layout": 1}),
    "padded by two": ({"layout": "(32,32):(1,34)", "cosize": 1086}, {"layout": 0}),
    "the conflict left in": ({"layout": "(32,32):(1,32)", "cosize": 1024}, {"layout": 0}),
    "columns that overlap": ({"layout": "(32,32):(1,31)", "cosize": 993}, {"layout": 0, "size_and_cosize": 0}),
    "the shape padded, not the stride": ({"layout": "(32,33):(1,32)"}, {"layout": 0, "size_and_cosize": 0}),
    "both shapes padded": ({"layout": "(33,33):(1,33)", "cosize": 1089}, {"layout": 0, "size_and_cosize": 0}),
    "a stride of 33 rows": ({"layout": "(32,32):(33,33)"}, {"layout": 0, "size_and_cosize": 0}),
    "more than a block has": (
        {"layout": "(32,32):(31,993)", "cosize": 31745},
        {"layout": 0, "size_and_cosize": 0},
    ),
    "the largest offset for the cosize": ({"cosize": 1054}, {"size_and_cosize": 1}),
    "numbers as text": ({"size": "1024", "cosize": "1055"}, {"size_and_cosize": 0}),
    "32-way, in words": ({"degree": "32-way"}, {"degree": 0}),
    "degree by 16, as on cards of long ago": ({"degree": 16}, {"degree": 0}),
    "32 banks are wanted, so no conflict": ({"prediction": 32, "degree": 1}, {"prediction": 0.5, "degree": 0}),
    "left blank": (
        dict.fromkeys(RIGHT),
        {"prediction": 0, "degree": 0, "layout": 0, "size_and_cosize": 0},
    ),
}

UNUSUAL = {
    "padded by rows": {"layout": "(32,32):(33,1)"},
    "a large odd stride": {"layout": "(32,32):(1,45)", "cosize": 31 + 31 * 45 + 1},
    "a swizzle as a table": {"layout": [[32 * j + (i ^ j) for j in range(32)] for i in range(32)], "cosize": 1024},
    "a swizzle of the package": {
        "layout": composition(Swizzle(5, 0, 5), Layout((32, 32), (1, 32))),
        "cosize": 1024,
    },
    "as Python writes a pair": {"layout": "((32, 32), (1, 33))"},
    "both strides odd": {"layout": "(32,32):(3,97)", "cosize": 31 * 3 + 31 * 97 + 1},
    "padded by rows, with 35": {"layout": "(32,32):(35,1)", "cosize": 31 * 35 + 31 + 1},
    "rows turned round, as a table": {
        "layout": [[32 * i + (i + j) % 32 for j in range(32)] for i in range(32)],
        "cosize": 1024,
    },
    "the second mode nested": {"layout": "(32,(8,4)):(1,(33,264))"},
    "as C++ makes it": {"layout": "make_layout(make_shape(32, 32), make_stride(1, 33))"},
    "nested modes": {"layout": "((4,8),32):((1,4),33)"},
    "numbers as floats": {"degree": 32.0, "size": 1024.0},
}
