"""Exercise 5: one body for twelve variants."""

from kernels import changed

BODY = """\
def tiled_block(A, a, B, b, C, c, sA, sa, sB, sb, bi, bj):
    M, K = a.shape
    N = b.shape[1]
    rows, depth = sa.shape
    columns = sb.shape[1]
    row0, col0 = bi * rows, bj * columns
    sums = [[0.0] * columns for _ in range(rows)]
    for k0 in range(0, K, depth):
        for i in range(rows):
            for k in range(depth):
                inside = row0 + i < M and k0 + k < K
                sA[sa(i, k)] = A[a(row0 + i, k0 + k)] if inside else 0.0
        for k in range(depth):
            for j in range(columns):
                inside = k0 + k < K and col0 + j < N
                sB[sb(k, j)] = B[b(k0 + k, col0 + j)] if inside else 0.0
        for i in range(rows):
            for j in range(columns):
                for k in range(depth):
                    sums[i][j] += sA[sa(i, k)] * sB[sb(k, j)]
    for i in range(rows):
        for j in range(columns):
            if row0 + i < M and col0 + j < N:
                C[c(row0 + i, col0 + j)] = sums[i][j]
"""

RIGHT = {"body": BODY}

WRONG = {
    "A by hand, row-major": (
        {"body": changed(BODY, ("A[a(row0 + i, k0 + k)]", "A[(row0 + i) * K + k0 + k]"))},
        {"executable": 1.25},
    ),
    "the shared tile by hand": (
        {"body": changed(BODY, ("sA[sa(i, k)] =", "sA[i * depth + k] ="))},
        {"executable": 2.5},
    ),
    "no zeros at the edge": (
        {"body": changed(BODY, (" if inside else 0.0", " if inside else sA[0]"))},
        {"executable": 0},
    ),
    "no bounds": ({"body": changed(BODY, (" if inside else 0.0", ""))}, {"executable": 0}),
    "global memory in the inner loop": (
        {
            "body": """\
def tiled_block(A, a, B, b, C, c, sA, sa, sB, sb, bi, bj):
    (M, K), N = a.shape, b.shape[1]
    rows, columns = sa.shape[0], sb.shape[1]
    for i in range(bi * rows, min(M, (bi + 1) * rows)):
        for j in range(bj * columns, min(N, (bj + 1) * columns)):
            C[c(i, j)] = sum(A[a(i, k)] * B[b(k, j)] for k in range(K))
"""
        },
        {"executable": 2.5},
    ),
    "only the last tile of K": (
        {
            "body": changed(
                BODY,
                ("    for k0", "    for _ in (0,):\n        pass\n    for k0"),
                ("    sums[i][j] += sA", "    sums[i][j] = sA"),
            )
        },
        {"executable": 0},
    ),
    "the sum kept in C": (
        {
            "body": changed(
                BODY,
                (
                    "sums[i][j] += sA[sa(i, k)] * sB[sb(k, j)]",
                    "C[c(row0 + i, col0 + j)] += sA[sa(i, k)] * sB[sb(k, j)]",
                ),
            )
        },
        {"executable": 0},
    ),
    "a pair of coordinates as index": (
        {"body": changed(BODY, ("A[a(row0 + i, k0 + k)]", "A[row0 + i, k0 + k]"))},
        {"executable": 0},
    ),
    "a tile of 4 by heart": (
        {"body": changed(BODY, ("rows, depth = sa.shape", "rows = depth = 4"))},
        {"executable": 0},
    ),
    "a loop that never ends": (
        {"body": changed(BODY, ("    for k0 in range(0, K, depth):", "    k0 = 0\n    while k0 < K:"))},
        {"executable": 0},
    ),
    "B read with its coordinates exchanged": (
        {"body": changed(BODY, ("B[b(k0 + k, col0 + j)]", "B[b(col0 + j, k0 + k)]"))},
        {"executable": 0},
    ),
    "rows and columns of the block exchanged": (
        {"body": changed(BODY, ("bi * rows, bj * columns", "bj * rows, bi * columns"))},
        {"executable": 0},
    ),
    "the steps rounded down": (
        {"body": changed(BODY, ("range(0, K, depth)", "range(0, K // depth * depth, depth)"))},
        {"executable": 0},
    ),
    "the padded tile read by hand": (
        {"body": changed(BODY, ("sA[sa(i, k)] * sB", "sA[i * depth + k] * sB"))},
        {"executable": 2.5},
    ),
    "B by hand, its shape for its strides": (
        {"body": changed(BODY, ("B[b(k0 + k, col0 + j)]", "B[(k0 + k) * b.shape[1] + col0 + j]"))},
        {"executable": 1.25},
    ),
    "all of A kept aside, for each tile of columns anew": (
        {
            "body": changed(
                BODY,
                ("    sums =", "    kept = [[A[a(i, k)] for k in range(K)] for i in range(M)]\n    sums ="),
                ("A[a(row0 + i, k0 + k)]", "kept[row0 + i][k0 + k]"),
            )
        },
        {"executable": 2.5},
    ),
    "the sums returned, not stored": (
        {"body": changed(BODY, ("C[c(row0 + i, col0 + j)] = sums[i][j]", "pass")) + "    return sums\n"},
        {"executable": 0},
    ),
    "by another name": ({"body": changed(BODY, ("def tiled_block", "def block"))}, {"executable": 0}),
    "left as it was given": (
        {
            "body": "def tiled_block(A, a, B, b, C, c, sA, sa, sB, sb, bi, bj):\n    M, K = a.shape\n    N = b.shape[1]\n"
        },
        {"executable": 0},
    ),
}

UNUSUAL = {
    "layouts composed instead of coordinates added": {
        "body": """\
from itertools import product


def load(tile, place, source, where, inside):
    tile[place] = source[where()] if inside else 0.0


def tiled_block(A, a, B, b, C, c, sA, sa, sB, sb, bi, bj):
    (M, N), K = c.shape, a.shape[1]
    sums = {}
    for step in range(-(-K // sa.shape[1])):
        k0 = step * sa.shape[1]
        for i, k in product(*map(range, sa.shape)):
            row = bi * sa.shape[0] + i
            load(sA, sa(i, k), A, lambda: a(row, k0 + k), row < M and k0 + k < K)
        for k, j in product(*map(range, sb.shape)):
            col = bj * sb.shape[1] + j
            load(sB, sb(k, j), B, lambda: b(k0 + k, col), k0 + k < K and col < N)
        for i, k, j in product(range(sa.shape[0]), range(sa.shape[1]), range(sb.shape[1])):
            sums[i, j] = sums.get((i, j), 0.0) + sA[sa(i, k)] * sB[sb(k, j)]
    for (i, j), value in sums.items():
        if bi * sa.shape[0] + i < M and bj * sb.shape[1] + j < N:
            C[c(bi * sa.shape[0] + i, bj * sb.shape[1] + j)] = value
"""
    },
    "ragged tiles instead of zeros": {
        "body": changed(
            BODY,
            (
                "        for i in range(rows):\n            for k in range(depth):\n                inside",
                "        deep = min(depth, K - k0)\n        for i in range(rows):\n            for k in range(deep):\n                inside",
            ),
            ("for k in range(depth):\n                    sums", "for k in range(deep):\n                    sums"),
        )
    },
    "strides that are asked of the layout": {
        "body": changed(BODY, ("A[a(row0 + i, k0 + k)]", "A[(row0 + i) * a.stride[0] + (k0 + k) * a.stride[1]]"))
    },
    "coordinates as pairs": {
        "body": changed(BODY, ("A[a(row0 + i, k0 + k)]", "A[a((row0 + i, k0 + k))]"), ("sb(k, j)] =", "sb((k, j))] ="))
    },
    "sums in an array of NumPy": {
        "body": "import numpy as np\n"
        + changed(
            BODY,
            ("[[0.0] * columns for _ in range(rows)]", "np.zeros((rows, columns))"),
            ("sums[i][j]", "sums[i, j]"),
        )
    },
    "a class for a buffer with its layout": {
        "body": """\
class Tensor:
    def __init__(self, data, layout):
        self.data, self.layout = data, layout

    def __getitem__(self, place):
        return self.data[self.layout(*place)]

    def __setitem__(self, place, value):
        self.data[self.layout(*place)] = value


def tiled_block(A, a, B, b, C, c, sA, sa, sB, sb, bi, bj):
    A, B, C = Tensor(A, a), Tensor(B, b), Tensor(C, c)
    tA, tB = Tensor(sA, sa), Tensor(sB, sb)
    (M, N), K, (rows, depth), columns = c.shape, a.shape[1], sa.shape, sb.shape[1]
    sums = {(i, j): 0.0 for i in range(rows) for j in range(columns)}
    for k0 in range(0, K, depth):
        for e in range(rows * depth):
            i, k = divmod(e, depth)
            tA[i, k] = A[bi * rows + i, k0 + k] if bi * rows + i < M and k0 + k < K else 0
        for e in range(depth * columns):
            k, j = divmod(e, columns)
            tB[k, j] = B[k0 + k, bj * columns + j] if k0 + k < K and bj * columns + j < N else 0
        for k in range(depth):
            for i, j in sums:
                sums[i, j] += tA[i, k] * tB[k, j]
    for (i, j), value in sums.items():
        if bi * rows + i < M and bj * columns + j < N:
            C[bi * rows + i, bj * columns + j] = value
"""
    },
    "summed from behind": {"body": changed(BODY, ("range(0, K, depth)", "reversed(range(0, K, depth))"))},
    "the store read back, rounded to fp32 each step": {
        "body": changed(
            BODY,
            ("    sums = [[0.0] * columns for _ in range(rows)]\n", ""),
            (
                "                for k in range(depth):\n                    sums[i][j] += sA[sa(i, k)] * sB[sb(k, j)]\n",
                "                if row0 + i < M and col0 + j < N:\n"
                "                    place = c(row0 + i, col0 + j)\n"
                "                    step = sum(sA[sa(i, k)] * sB[sb(k, j)] for k in range(depth))\n"
                "                    C[place] = step + (C[place] if k0 else 0.0)\n",
            ),
            (
                "    for i in range(rows):\n        for j in range(columns):\n            if row0 + i < M and col0 + j < N:\n"
                "                C[c(row0 + i, col0 + j)] = sums[i][j]\n",
                "",
            ),
        )
    },
}
