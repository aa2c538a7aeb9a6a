"""Tensors over CuPy storage on a GPU: views share memory, writes go through, gathers and tables are right.

    python benchmarks/cupy_storage.py [--json]

Every line compares with numpy over the same numbers; the script exits with 1 when one differs.
"""

import argparse
import json
import sys

import cupy
import numpy as np

import tilelab as tl
from tilelab import Layout

LAYOUTS = [
    "(4,6):(1,4)",
    "(4,6):(6,1)",
    "(128,32):(33,1)",
    "((2,2),6):((1,12),2)",
    "(8,4):(0,1)",
    "((4,8),(2,16)):((32,4),(128,256))",
    "(64,48,5):(48,1,3072)",
]


def same(device, host):
    """Whether an array on the device has the values of one on the host."""
    return bool((cupy.asnumpy(device) == host).all()) and tuple(device.shape) == tuple(host.shape)


def checks():
    """Yield (what, whether it holds)."""
    for text in LAYOUTS:
        layout = Layout.parse(text)
        host = np.arange(layout.cosize, dtype=np.float32)
        device = cupy.asarray(host)
        ours, reference = tl.make_tensor(device, layout), tl.make_tensor(host, layout)
        yield f"{text}: gather", same(ours.gather(), reference.gather())
        table = cupy.asarray(tl.offset_table(layout))
        yield f"{text}: table", same(device[table], host[tl.offset_table(layout)])
        try:
            expected = reference.view()
        except tl.LayoutError:
            try:
                ours.view()
                yield f"{text}: refuses a strided view", False
            except tl.LayoutError:
                yield f"{text}: refuses a strided view", True
        else:
            view = ours.view()
            yield f"{text}: view", same(view, expected) and view.data.ptr == device.data.ptr
            if 0 not in layout.flat()[1]:
                view[...] += 1
                yield f"{text}: writing the view writes the storage", same(device, _added(host, layout))
        ours[(None,) * layout.rank] = -7
        written = np.zeros(layout.cosize, bool)
        written[tl.offset_table(layout)] = True
        yield f"{text}: filling writes its elements and no other", same(device == -7, written)
    square = Layout((128, 128), (128, 1))
    host = np.arange(square.size, dtype=np.int32)
    device = cupy.asarray(host)
    for coordinate in [(0, 0), (1, 3), (3, 2)]:
        tile = tl.local_tile(tl.make_tensor(device, square), (32, 32), coordinate)
        other = tl.local_tile(tl.make_tensor(host, square), (32, 32), coordinate)
        yield f"tile {coordinate}: view", same(tile.view(), other.view())
        tile.view()[0, 0] = -1
        yield f"tile {coordinate}: a write lands in the storage", int(device[tile.offset]) == -1
    for thread in (0, 17, 255):
        part = tl.local_partition(tl.make_tensor(device, square), Layout((16, 16), (16, 1)), thread)
        other = tl.local_partition(tl.make_tensor(cupy.asnumpy(device), square), Layout((16, 16), (16, 1)), thread)
        yield f"thread {thread}: partition", same(part.gather(), other.gather())
    swizzled = tl.composition(tl.Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
    storage = np.arange(512)
    ours = tl.make_tensor(cupy.asarray(storage), swizzled).gather()
    yield "swizzled: gather", same(ours, tl.make_tensor(storage, swizzled).gather())
    matrix = cupy.arange(24, dtype=cupy.float64).reshape(4, 6)
    tensor = tl.make_tensor(matrix, Layout((4, 6), (6, 1)))
    yield "print_tensor names the device's address", f"ptr[64b](0x{matrix.data.ptr:x})" in tl.format_tensor(tensor)
    tensor[1, 2] = 0.5
    yield "one element written", float(matrix[1, 2]) == 0.5 and float(tensor[1, 2]) == 0.5


def _added(host, layout):
    added = host.copy()
    added[np.unique(tl.offset_table(layout))] += 1
    return added


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    rows = [{"check": what, "ok": bool(ok)} for what, ok in checks()]
    failed = sum(not row["ok"] for row in rows)
    targets = [{"name": "checks that fail", "value": failed, "bound": 0, "sense": "<=", "ok": failed == 0}]
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    driver, runtime = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
    versions = {"cupy": cupy.__version__, "numpy": np.__version__, "cuda_driver": driver, "cuda_runtime": runtime}
    where = {"device": properties["name"].decode(), "versions": versions}
    if options.json:
        print(json.dumps({"rows": rows, "targets": targets, "where": where}, indent=1))
    else:
        for row in rows:
            print(f"{'ok' if row['ok'] else 'FAILED':8}{row['check']}")
        print(f"{len(rows) - failed} of {len(rows)} hold on {where['device']}, CuPy {cupy.__version__}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
