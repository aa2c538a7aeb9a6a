"""Tensors over numpy, torch and lists: shared memory, slices, tiles, partitions, printing."""

import re
from pathlib import Path

import pytest

import tilelab as tl
from tilelab import Layout, LayoutError, local_partition, local_tile, make_tensor

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

GOLDEN = Path(__file__).parents[1] / "data" / "print"
MAKERS = {
    "numpy": lambda n: np.arange(n, dtype=np.int32),
    "torch": lambda n: torch.arange(n, dtype=torch.int32),
    "list": lambda n: list(range(n)),
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def test_elements_slices_and_writes_share_the_storage(make):
    storage = make(24)
    tensor = make_tensor(storage, Layout((4, 6), (6, 1)))
    assert tensor[2, 3] == tensor(2, 3) == 15
    row, column = tensor[2, None], tensor[None, 3]
    assert [int(row[j]) for j in range(6)] == list(range(12, 18))
    assert [int(x) for x in column.gather()] == [3, 9, 15, 21]
    row[1] = -1
    assert storage[13] == -1
    column[None] = [100, 101, 102, 103]
    assert [int(storage[i]) for i in (3, 9, 15, 21)] == [100, 101, 102, 103]
    tensor[None, 0] = 7
    assert [int(tensor[i, 0]) for i in range(4)] == [7] * 4


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_views_share_memory_and_gathers_do_not(kind):
    storage = MAKERS[kind](24)
    tensor = make_tensor(storage, Layout((4, 6), (6, 1)))
    view, copy = tensor.view(), tensor.gather()
    assert view.shape == copy.shape == (4, 6)
    assert (view == copy).all()
    address = (lambda a: a.data_ptr()) if kind == "torch" else (lambda a: a.ctypes.data)
    assert address(view) == address(storage)
    view[2, 3] = 99
    assert storage[15] == 99
    assert copy[2, 3] == 15
    tile = local_tile(tensor, (2, 3), (1, 1))
    assert address(tile.view()) - address(storage) == 4 * 15
    tile.view()[0, 0] = 55
    assert storage[15] == 55


def test_a_nested_mode_without_one_stride_is_gathered():
    tensor = make_tensor(np.arange(24), Layout.parse("((2,2),6):((1,12),2)"))
    with pytest.raises(LayoutError, match=r"mode 0, .*no single stride; gather\(\) copies"):
        tensor.view()
    assert tensor.gather().tolist() == [[tensor[i, j] for j in range(6)] for i in range(4)]
    swizzled = make_tensor(np.arange(64), tl.composition(tl.Swizzle(2, 0, 3), Layout((8, 8), (8, 1))))
    with pytest.raises(LayoutError, match="gather"):
        swizzled.view()
    assert swizzled.gather()[1].tolist() == [9, 8, 11, 10, 13, 12, 15, 14]


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_arrays_of_several_axes_are_read_in_the_order_of_their_memory(kind):
    array = MAKERS[kind](24).reshape(4, 6)
    for storage in (array, array.T):
        tensor = make_tensor(storage, Layout((4, 6), (6, 1)))
        tensor[1, 1] = -5
        assert array[1, 1] == -5
        array[1, 1] = 7
    with pytest.raises(LayoutError, match="holes"):
        make_tensor(array[:, :3], Layout(12))
    with pytest.raises(LayoutError, match="holes"):
        make_tensor(MAKERS[kind](24)[::2], Layout(12))


def test_assigning_arrays_and_tensors():
    target, source = np.zeros(24, np.int64), np.arange(24).reshape(4, 6)
    tensor = make_tensor(target, Layout((4, 6), (6, 1)))
    tensor[None] = source
    assert (target.reshape(4, 6) == source).all()
    tensor[None, None] = make_tensor(np.arange(24), Layout((4, 6)))
    assert tensor.gather().T.ravel().tolist() == list(range(24))
    words = make_tensor([""] * 6, Layout((2, 3)))
    words[None, 1] = ["a", "b"]
    assert words.gather() == ["", "", "a", "b", "", ""]
    with pytest.raises(LayoutError, match="3 values"):
        words[None, 1] = ["a", "b", "c"]
    with pytest.raises(LayoutError, match="cannot be written"):
        make_tensor(0, Layout(4))[0] = 1


def test_storage_must_hold_the_layout():
    with pytest.raises(LayoutError, match="needs 1055 elements, the storage has 1024"):
        make_tensor(np.zeros(1024), Layout((32, 32), (33, 1)))
    with pytest.raises(LayoutError, match="reaches element -3"):
        make_tensor(np.zeros(24), Layout((4, 3), (-1, 4)))
    with pytest.raises(LayoutError, match=r"\(4,6\)"):
        make_tensor(np.zeros(24), Layout((4, 6)))[4, 5]


def test_walkthrough_b_neighbouring_threads_read_neighbouring_elements():
    """A tile of 128x32, threads 16x16 row-major, one tile along K at a time."""
    m, k = 256, 64
    a = make_tensor(np.arange(m * k), Layout((m, k), (k, 1)))
    tiles = local_tile(a, (128, 32), (1, None))
    assert tl.product_each(tiles.shape) == (128, 32, 2)
    threads = Layout((16, 16), (16, 1))
    for step in range(2):
        parts = [local_partition(tiles[None, None, step], threads, t) for t in range(256)]
        assert [parts[t][0, 0] - parts[0][0, 0] for t in range(16)] == list(range(16))
        seen = sorted(int(part[i]) for part in parts for i in range(part.size))
        rows = range(128, 256)
        assert seen == sorted(r * k + c for r in rows for c in range(32 * step, 32 * step + 32))


def test_predication_by_an_identity_tensor_cut_like_the_data():
    shape = (13, 7)
    coordinates, data = tl.make_identity_tensor(shape), make_tensor(np.arange(91), Layout(shape))
    found = []
    for tile in tl.coordinates((4, 3)):
        where, what = local_tile(coordinates, (4, 3), tile), local_tile(data, (4, 3), tile)
        for i in range(where.size):
            coordinate = where[i]
            if all(c < extent for c, extent in zip(coordinate, shape, strict=True)):
                found.append(int(what[i]))
    assert sorted(found) == list(range(91))
    assert local_tile(coordinates, (4, 3), (1, 2)).offset == (4, 6)


def test_partitions_of_every_thread_are_the_tile_once():
    tensor = make_tensor(0, Layout((8, 8), (8, 1)))
    for threads in (Layout((2, 4), (4, 1)), Layout((2, 4)), Layout(((2, 2), 2), ((1, 4), 2))):
        parts = [local_partition(tensor, threads, t) for t in range(8)]
        assert sorted(part[i] for part in parts for i in range(part.size)) == list(range(64))
    assert repr(tl.outer_partition(tensor, (2, 4), (1, 1))) == "9 o (4,2):(16,4)"
    assert repr(tl.inner_partition(tensor, (2, 4), (1, 1))) == "20 o (2,4):(8,1)"


def test_threads_of_stride_0_share_coordinate_0():
    tensor = make_tensor(0, Layout((8, 8)))
    assert repr(local_partition(tensor, Layout((4, 2), (1, 0)), 3)) == "3 o (2,4):(4,16)"


def test_iterating_gives_the_elements_by_index():
    assert list(make_tensor(0, Layout((2, 3), (3, 1)))) == [0, 3, 1, 4, 2, 5]
    assert list(make_tensor(list("wxyz"), Layout((2, 2)))) == list("wxyz")


def test_divisions_keep_the_storage():
    tensor = make_tensor(np.arange(24), Layout((4, 6), (6, 1)))
    tiled = tl.zipped_divide(tensor, (2, 3))
    assert tiled.storage is tensor.storage
    assert [int(tiled[(i, j), (1, 1)]) for i in range(2) for j in range(3)] == [15, 16, 17, 21, 22, 23]


@pytest.mark.parametrize(
    ("name", "layout"),
    [("pt_1", "(8,):(2,)"), ("pt_2", "(4,6):(6,1)"), ("pt_3", "(2,3,4):(1,2,6)"), ("pt_4", "(2,3,2,2):(1,2,6,12)")],
)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_print_tensor(name, layout, kind, capsys):
    tensor = make_tensor(MAKERS[kind](24), Layout.parse(layout))
    tl.print_tensor(tensor, static=True)
    out = re.sub(r"0x[0-9a-f]+", "0xADDR", capsys.readouterr().out)
    assert out.encode() == (GOLDEN / f"{name}.txt").read_bytes()


def test_print_tensor_of_other_types():
    def body(array):
        return tl.format_tensor(make_tensor(array, Layout((2,)))).partition(":\n")[2]

    assert body(np.array([0.5, 1], np.float32)) == "  5.00e-01\n  1.00e+00\n"
    assert body(np.array([0.5, 1])) == "  5.000e-01\n  1.000e+00\n"
    assert body(torch.tensor([0.5, 1], dtype=torch.float16)) == "    0.50\n    1.00\n"
    assert body(torch.tensor([0.5, 1], dtype=torch.bfloat16)) == "    0.50\n    1.00\n"
    assert body(np.array([True, False])) == "  1\n  0\n"
    assert body([3, 4]) == "    3\n    4\n"


def test_transposing_moves_no_byte():
    array = np.arange(24, dtype=np.float32)
    layout = Layout((4, 6), (6, 1))
    view, transposed = make_tensor(array, layout).view(), make_tensor(array, layout.T).view()
    assert (transposed == view.T).all()
    assert transposed.ctypes.data == view.ctypes.data
