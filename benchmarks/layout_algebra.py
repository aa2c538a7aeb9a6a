"""The layout algebra beside pycute and tensor-layouts: time of one call, each library in a process of its own.

The processes take turns, row by row and round by round, so that whatever else the machine does meets all of them.
A ratio is that of the two times of one round; the table shows its median and quartiles over the rounds.

    python benchmarks/layout_algebra.py [--json] [--rounds 9]

pycute comes from the ``nvidia-cutlass`` wheel, tensor-layouts from its own: ``pip install tilelab[oracle]``.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version

A4 = (((2, 2), (4, 2), (2, 4), (8, 2)), ((1, 2), (4, 16), (32, 64), (256, 2048)))
B4 = (((2, 4), (2, 2), 4, (2, 8)), ((1, 2), (8, 16), 32, (128, 256)))
HOLES = (((2, 2), (4, 2), (2, 4), (8, 2)), ((1, 4), (16, 80), (320, 640), (5120, 81920)))
NESTED = ((8, 16), (8, 16))
FLAT = (128, 128)
#: The operations of the algebra, over which the geometric mean is taken.
ALGEBRA = (
    "coalesce, rank 4 nested",
    "composition (6,2):(8,2) o (4,3):(3,1)",
    "composition, rank 4 o rank 4, nested",
    "composition, rank 4 with holes o rank 4",
    "complement (2,2):(1,6) in 24",
    "complement, rank 4",
    "right_inverse, rank 4",
    "left_inverse, rank 4",
    "logical_divide 24:1 by 4:2",
    "logical_divide (128,128) by modes",
    "zipped_divide (128,128) by modes",
    "logical_product (2,5):(5,1) x (3,4)",
)
TABLE, LISTS = "offset table 128x128, by index", "offset table 128x128, by index, without numpy"


def rows(library):
    """Return name -> call for one library; a row that a library does not have is left out."""
    if library == "tilelab":
        import tilelab as lib

        composition, swizzled = lib.composition, lib.composition
        table = lib.offset_table
    elif library == "pycute":
        import pycute as lib

        composition = lib.composition

        def swizzled(swizzle, layout):
            return lambda i: swizzle(layout(i))

    else:
        import tensor_layouts as lib

        composition, swizzled = lib.compose, lib.compose
    layout = lib.Layout
    a4, b4, holes = layout(*A4), layout(*B4), layout(*HOLES)
    flat, nested = layout(FLAT, (1, 128)), layout(NESTED, ((1, 8), (128, 1024)))
    a, b, line, tile = layout((6, 2), (8, 2)), layout((4, 3), (3, 1)), layout(24, 1), layout(4, 2)
    gap, block, tiler = layout((2, 2), (1, 6)), layout((2, 5), (5, 1)), layout((3, 4), (1, 3))
    tiles = (layout(32, 1), layout(32, 1))
    swizzle = lib.Swizzle(3, 3, 3)
    whole = swizzled(swizzle, layout(FLAT, (128, 1)))
    places = [(i, j) for j in range(128) for i in range(128)]
    size = 128 * 128
    found = {
        "Layout((4,6), (1,4))": lambda: layout((4, 6), (1, 4)),
        "Layout, nested, strides left out": lambda: layout(A4[0]),
        "str, rank 4 nested": lambda: str(a4),
        "L((i,j)), flat": lambda: flat((13, 57)),
        "L(index), flat": lambda: flat(7309),
        "L(index), nested": lambda: nested(7309),
        "coalesce, rank 4 nested": lambda: lib.coalesce(a4),
        "composition (6,2):(8,2) o (4,3):(3,1)": lambda: composition(a, b),
        "composition, rank 4 o rank 4, nested": lambda: composition(a4, b4),
        "composition, rank 4 with holes o rank 4": lambda: composition(holes, b4),
        "complement (2,2):(1,6) in 24": lambda: lib.complement(gap, 24),
        "complement, rank 4": lambda: lib.complement(holes, 200_000),
        "right_inverse, rank 4": lambda: lib.right_inverse(a4),
        "left_inverse, rank 4": lambda: lib.left_inverse(a4),
        "logical_divide 24:1 by 4:2": lambda: lib.logical_divide(line, tile),
        "logical_divide (128,128) by modes": lambda: lib.logical_divide(flat, tiles),
        "zipped_divide (128,128) by modes": lambda: lib.zipped_divide(flat, tiles),
        "logical_product (2,5):(5,1) x (3,4)": lambda: lib.logical_product(block, tiler),
        "Swizzle(3,3,3)(x)": lambda: swizzle(7309),
    }
    if library == "tilelab":
        found |= {
            TABLE: lambda: table(flat),
            LISTS: lambda: table(flat, numpy=False),
            "offset table 128x128, by (i,j)": lambda: table(flat),
            "offset table 128x128, nested": lambda: table(nested),
            "offset table 128x128, swizzled": lambda: table(whole),
        }
    else:
        found |= {
            TABLE: lambda: [flat(i) for i in range(size)],
            LISTS: lambda: [flat(i) for i in range(size)],
            "offset table 128x128, by (i,j)": lambda: [flat(c) for c in places],
            "offset table 128x128, nested": lambda: [nested(i) for i in range(size)],
            "offset table 128x128, swizzled": lambda: [whole(i) for i in range(size)],
        }
    return found


def serve(library):
    """Time the rows that are asked for on standard input, one a line; answer in microseconds a call."""
    calls = rows(library)
    counts = {}
    for line in sys.stdin:
        name = line.strip()
        call = calls[name]
        if name not in counts:  # so many calls take about 4 ms
            call()
            start = time.perf_counter()
            call()
            counts[name] = max(1, int(0.004 / max(time.perf_counter() - start, 1e-7)))
        count = counts[name]
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(count):
                call()
            best = min(best, time.perf_counter() - start)
        print(best / count * 1e6, flush=True)


def measure(rounds):
    """Return library -> row -> times, one a round, taken in turns."""
    libraries = ["tilelab", "pycute", "tensor-layouts"]
    workers = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in libraries
    }
    times = {name: {row: [] for row in rows("tilelab")} for name in libraries}
    try:
        for turn in range(rounds):
            for row in times["tilelab"]:
                for name in libraries[turn % 3 :] + libraries[: turn % 3]:
                    workers[name].stdin.write(row + "\n")
                    workers[name].stdin.flush()
                    times[name][row].append(float(workers[name].stdout.readline()))
    finally:
        for worker in workers.values():
            worker.stdin.close()
            worker.wait()
    return times


def quartiles(ours, theirs):
    low, middle, high = statistics.quantiles([a / b for a, b in zip(ours, theirs, strict=True)], n=4)
    return {"ratio": middle, "low": low, "high": high}


def summary(times):
    """Return rows and targets."""
    table, ratios = [], {}
    for row, ours in times["tilelab"].items():
        entry = {"row": row, "tilelab_us": statistics.median(ours)}
        for name in ("pycute", "tensor-layouts"):
            entry[f"{name}_us"] = statistics.median(times[name][row])
            entry[f"over_{name}"] = quartiles(ours, times[name][row])
        ratios[row] = entry["over_pycute"]["ratio"]
        table.append(entry)
    bounds = [
        ("geometric mean of the algebra over pycute", statistics.geometric_mean(ratios[r] for r in ALGEBRA), 0.5),
        ("composition, rank 4 o rank 4, over pycute", ratios["composition, rank 4 o rank 4, nested"], 0.45),
        ("offset table with numpy over pycute", ratios[TABLE], 1 / 500),
        ("offset table with lists over pycute", ratios[LISTS], 1 / 40),
        ("checked constructor over pycute's unchecked one", ratios["Layout((4,6), (1,4))"], 7),
    ]
    targets = [{"name": n, "value": v, "bound": b, "sense": "<=", "ok": v <= b} for n, v, b in bounds]
    return table, targets


def versions():
    found = {"python": platform.python_version()}
    for name in ("tilelab", "nvidia-cutlass", "tensor-layouts", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "from source"
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=9, help="how often each library has its turn (9)")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    table, targets = summary(measure(options.rounds))
    where = {"machine": platform.machine(), "processor": platform.processor(), "versions": versions()}
    if options.json:
        print(json.dumps({"rows": table, "targets": targets, "where": where}, indent=1))
        return
    print(f"{'':46} {'tilelab':>10} {'pycute':>10} {'tensor-l.':>10}   {'over pycute':>23}")
    for entry in table:
        r = entry["over_pycute"]
        times_us = " ".join(f"{entry[f'{name}_us']:8.2f}µs" for name in ("tilelab", "pycute", "tensor-layouts"))
        print(f"{entry['row']:46} {times_us}   {r['ratio']:.4f} [{r['low']:.4f}, {r['high']:.4f}]")
    print()
    for target in targets:
        verdict = "reached" if target["ok"] else "MISSED"
        print(f"{verdict:8} {target['name']}: {target['value']:.4f} <= {target['bound']:.4f}")
    print("versions:", ", ".join(f"{name} {number}" for name, number in where["versions"].items()))


if __name__ == "__main__":
    main()
