"""The tiled matrix product: right ones are silent, each wrong one is told for what it is."""

import importlib.util
import inspect as python_inspect
from pathlib import Path

import numpy as np
import pytest

from tilelab.simt import BoundsError, DivergenceError, RaceError, SimtError, cuda


def load(path):
    """A module from its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: The product whose speed the benchmark states.
matmul, TILE = (
    getattr(load(Path(__file__).parents[2] / "benchmarks" / "simulator_matmul.py"), name) for name in ("tiled", "TILE")
)
SOURCE = python_inspect.getsource(matmul.py_func)


def number(part):
    """Line of the file in which the product has a piece of text."""
    lines, first = python_inspect.getsourcelines(matmul.py_func)
    return first + next(i for i, line in enumerate(lines) if part in line)


@pytest.fixture
def mutant(tmp_path):
    """Make the product with parts of its text replaced."""

    def make(*changes):
        text = SOURCE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "mutant_kernel.py"
        path.write_text("from tilelab.simt import cuda, float32\nTILE = 16\n" + text)
        return load(path).tiled

    return make


def run(kernel, m=32, k=32, n=32, **options):
    rng = np.random.default_rng(0)
    A, B = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    C = np.full((m, n), np.nan, np.float32)
    report = cuda.inspect(kernel, **options)[(-(-n // TILE), -(-m // TILE)), (TILE, TILE)](A, B, C)
    return report, float(np.abs(C - A @ B).max())


FIRST, SECOND = "        cuda.syncthreads()\n        for k", "        cuda.syncthreads()\n    if y"


ODD = [(32, 32, 32), (33, 47, 17), (1, 1, 1), (15, 100, 31), (63, 5, 65), (16, 1000, 16)]


@pytest.mark.parametrize(
    ("engine", "shape"), [*(("lanes", shape) for shape in ODD), ("threads", (1, 1, 1)), ("threads", (17, 20, 15))]
)
def test_right_kernels_are_silent(shape, engine):
    report, error = run(matmul, *shape, engine=engine)
    assert report.ok, str(report)
    assert not report.findings
    assert error < 1e-4 * shape[1]


def lines_of(report):
    return {(f.kind, f.array, *sorted(f.accesses)) for f in report.findings}


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_missing_first_barrier(mutant, engine):
    kernel = mutant((FIRST, "        for k"))
    report, _ = run(kernel, engine=engine)
    assert not report.ok
    assert lines_of(report) == {("race", "sA", "read", "write"), ("race", "sB", "read", "write")}
    race = report.races[0]
    source = dict(report.source)
    assert "sA[ty, tx] = A" in source[race.lines[0]]
    assert "acc += sA" in source[race.lines[1]]
    assert "Put cuda.syncthreads() between" in race.hint
    with pytest.raises(RaceError, match=r"sA\[0, \d+\] in shared memory .* no barrier in between"):
        run_plain(kernel)


def run_plain(kernel, m=32, k=32, n=32):
    A, B, C = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.zeros((m, n), np.float32)
    kernel[(-(-n // TILE), -(-m // TILE)), (TILE, TILE)](A, B, C)


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_missing_second_barrier(mutant, engine):
    kernel = mutant((SECOND, "    if y"))
    report, error = run(kernel, engine=engine)
    assert lines_of(report) == {("race", "sA", "read", "write"), ("race", "sB", "read", "write")}
    race = report.races[0]
    assert race.lines[0] > race.lines[1], "the read comes first, the next round's write second"
    assert "at the end of the loop" in race.hint
    assert error < 1e-4 or engine == "threads"


def test_missing_second_barrier_is_right_and_silent_with_one_tile(mutant):
    report, error = run(mutant((SECOND, "    if y")), k=16)
    assert report.ok
    assert error < 1e-4


def test_missing_both_barriers(mutant):
    report, _ = run(mutant((FIRST, "        for k"), (SECOND, "    if y")))
    pairs = {f.lines for f in report.races}
    assert len(report.races) == len(pairs) == 4
    assert {a < b for a, b in pairs} == {True, False}


def test_a_missing_second_barrier_is_found_although_the_result_is_right(mutant):
    report, error = run(mutant((SECOND, "    if y")), k=48, engine="lanes")
    assert error < 1e-4
    assert report.races


def test_guarded_barrier(mutant):
    kernel = mutant((FIRST, "        if tx < 8:\n            cuda.syncthreads()\n        for k"))
    with pytest.raises(DivergenceError, match=r"reached by 128 of 256 threads .* does not come there|waits at"):
        run_plain(kernel)


def test_early_return_before_a_barrier(mutant):
    kernel = mutant(("    acc = float32(0.0)\n", "    acc = float32(0.0)\n    if y >= M or x >= N:\n        return\n"))
    report, _ = run(kernel, 32, 32, 32)
    assert report.ok
    with pytest.raises(DivergenceError, match="has returned"):
        run_plain(kernel, 20, 32, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("if (y < M and t * TILE + tx < K) else 0", ""), r"A\[y, t \* TILE \+ tx\] .* index 40 of axis 1 of A"),
        (("t * TILE + tx < K", "t * TILE + tx <= K"), "index 40 of axis 1 of A"),
        (("t * TILE + ty < K", "t * TILE + ty <= K"), "index 40 of axis 0 of B"),
        (("if y < M and x < N:", "if y <= M and x < N:"), "index 20 of axis 0 of C"),
    ],
)
def test_wrong_edges(mutant, change, message):
    with pytest.raises(BoundsError, match=message):
        run_plain(mutant(change), 20, 40, 20)


def test_transposed_index_is_wrong_and_conflicts(mutant):
    report, error = run(mutant(("sA[ty, k]", "sA[k, ty]")))
    assert report.ok
    assert error > 0.1
    report, error = run(mutant(("sA[ty, k] * sB[k, tx]", "sA[tx, k] * sB[k, tx]")))
    assert error > 0.1
    assert report.conflicts[0].ways == 8
    assert report.conflicts[0].text == "sA[tx, k]"


def test_off_by_one_tile(mutant):
    report, error = run(mutant(("(K + TILE - 1) // TILE", "K // TILE")), k=40)
    assert report.ok
    assert error > 0.1


def test_counts_of_the_right_kernel():
    report, _ = run(matmul, 64, 64, 64)
    by_text = {(a.text, a.kind): a for a in report.accesses}
    for text in ("sA[ty, k]", "sB[k, tx]"):
        access = by_text[text, "read"]
        assert (access.requests, access.wavefronts, access.ways, access.replays) == (8192, 8192, 1, 0)
    load = by_text["A[y, t * TILE + tx]", "read"]
    assert (load.requests, load.sectors, load.efficiency) == (512, 2048, 1.0)
    assert report.arithmetic[number("acc +=")] == {"float32 *": 64**3, "float32 +": 64**3}
    assert report.flops == 2 * 64**3
    assert {t.array: (t.loaded, t.stored, t.minimum) for t in report.traffic} == {
        "A": (4 * 64**3 // 16, 0, 4 * 64**2), "B": (4 * 64**3 // 16, 0, 4 * 64**2), "C": (0, 4 * 64**2, 4 * 64**2),
    }  # fmt: skip


@pytest.mark.parametrize("engine", ["lanes", "threads"])
def test_engines_give_one_result_and_one_report(engine):
    report, _ = run(matmul, 33, 20, 18, engine=engine)
    other, _ = run(matmul, 33, 20, 18, engine="lanes")
    ours, theirs = report.to_dict(), other.to_dict()
    for record in (ours, theirs):
        for access in record["accesses"]:
            del access["example"]
        record["seconds"] = record["engine"] = None
    assert ours == theirs


def test_every_error_is_a_simt_error():
    assert issubclass(RaceError, SimtError)
    assert issubclass(BoundsError, SimtError)
