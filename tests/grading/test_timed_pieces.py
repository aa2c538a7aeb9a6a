"""The pieces of timed judging that need no GPU: inputs, tolerances, thresholds, bundles, decisions, locks."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE

from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.processes import Finished, use_runner
from tilelab.grading.errors import GradingError
from tilelab.grading.python_kernels import form_fault
from tilelab.grading.timed import comparer, cubin
from tilelab.grading.timed.arrays import FILL, GUARD, POISON, STARTS, Arena, uniform
from tilelab.grading.timed.bundle import (
    bundle_key,
    kept_key_of,
    key_of,
    make_bundle,
    number_in,
    read_bundle,
    read_results,
    result_line,
    signature,
    unverified,
    write_bundle,
)
from tilelab.grading.timed.calibrate import spread
from tilelab.grading.timed.channel import Companion, Lost
from tilelab.grading.timed.comparer import Comparer
from tilelab.grading.timed.report import drawing, row_of
from tilelab.grading.timed.running import _go_to_the_end
from tilelab.grading.timed.thresholds import LINE, Mark, Thresholds, checked, read_thresholds, scaled, with_device
from tilelab.grading.timed.wanted import Candidate, Measured, Wanted, read_measured, read_wanted
from tilelab.grading.timed.watch import one_at_a_time
from tilelab.grading.timing import by_gain, by_nearness

THRESHOLDS = Path(__file__).parents[2] / "autograder" / "thresholds.toml"
PART = {"shape": [1, 2, 3], "own": "tiled_16", "against": "naive", "full": 1.3, "half": 1.1, "gain": 1.5}
DEVICE = {"name": "x", "date": "2026-11-30", "driver": "", "fp32_tflops": 10.0, "copy_tb_s": 1.0}
CEILINGS = {"flops": 65e12, "bandwidth": 4.2e12}


def measured(yours, theirs, outcome="timed", words="", rounds=15, **device):
    samples = {
        "yours": [[yours * (1 + 0.001 * (i % 3)), yours, yours] for i in range(rounds)],
        "the coalesced naive kernel": [[theirs * (1 + 0.001 * (i % 2)), theirs, theirs] for i in range(rounds)],
    }
    about = {"ceilings": CEILINGS, "seconds": 3.0, "clocks": [{"sm_mhz": 1980}]}
    device = {"name": "NVIDIA H200", "emulated": False, **device}
    return Measured(outcome, words, device, (1024, 1024, 1024), samples if outcome == "timed" else {}, about)


MARK = Mark(1.3, 1.1, 0.3, "calibrated on NVIDIA H200")


# ---- inputs


def test_the_same_numbers_come_from_the_kernel_and_from_the_cpu():
    made = np.empty(1000, np.float32)
    for seed in (0, 1, 2**64 - 1, 0xDEADBEEFCAFEF00D):
        FILL(made, 1000, seed)
        assert np.array_equal(made, uniform(1000, seed))


def test_inputs_are_spread_over_the_interval_and_seeds_differ():
    x = uniform(100_000, 7).astype(np.float64)
    assert -1 <= x.min() < -0.999
    assert 0.999 < x.max() < 1
    assert abs(x.mean()) < 0.01
    assert abs(x.var() - 1 / 3) < 0.01
    assert abs(np.corrcoef(x, uniform(100_000, 8))[0, 1]) < 0.02


@pytest.mark.parametrize("shape", [(1, 1, 1), (17, 19, 35), (64, 48, 80)])
@pytest.mark.parametrize("start", [0, 5, STARTS])
def test_an_arena_is_its_three_matrices_and_guards_around_them(shape, start):
    place = Arena(shape, start)
    arena = np.zeros(place.total, np.float32)
    for matrix in place.matrices(arena):
        assert matrix.base is not None
        matrix += 1
    for guard in place.guards(arena):
        assert guard.size >= GUARD
        guard += 1
    assert (arena == 1).all()
    assert all(position % 128 == 0 for position in place.places)


# ---- the comparer


def left_by(kernel, shape=(33, 17, 40), seeds=(5, 6)):
    """An arena as a kernel, a function of A, B, C and the whole arena, leaves it."""
    place = Arena(shape, 3)
    arena = np.full(place.total, POISON, np.uint32).view(np.float32)
    a, b, c = place.matrices(arena)
    a[...], b[...] = uniform(a.size, seeds[0]).reshape(a.shape), uniform(b.size, seeds[1]).reshape(b.shape)
    kernel(a, b, c, arena)
    return arena


def right(a, b, c, arena):
    c[...] = a @ b


def cut(x, bits):
    return (x.view(np.uint32) & np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)).view(np.float32)


def below(a, b, c, arena):
    right(a, b, c, arena)
    arena[Arena((33, 17, 40), 3).places[2] - 1] = 0


def behind(a, b, c, arena):
    right(a, b, c, arena)
    arena[-1] = 0


def not_a_number(a, b, c, arena):
    right(a, b, c, arena)
    c[3, 4] = np.nan


def one_off(a, b, c, arena):
    right(a, b, c, arena)
    c[3, 4] += 1e-3


def zeroed(a, b, c, arena):
    a[...] = c[...] = 0


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (right, ""),
        (lambda a, b, c, arena: None, r"C\[0,0\] is nan"),
        (not_a_number, r"C\[3,4\] is nan, .* 1 of 561 elements are wrong"),
        (one_off, r"C\[3,4\] is .* 1 of 561 elements are wrong"),
        (zeroed, "changed its input A"),
        (below, "wrote outside C"),
        (behind, "wrote outside C"),
        (lambda a, b, c, arena: right(cut(a, 10), cut(b, 10), c, arena), "elements are wrong"),
        (lambda a, b, c, arena: right(cut(a, 7), cut(b, 7), c, arena), "elements are wrong"),
    ],
    ids=["right", "nothing", "nan", "one off", "zeroed", "below", "behind", "TF32", "bfloat16"],
)
def test_what_a_worker_left_is_compared_whole(kernel, words, tmp_path):
    file = tmp_path / "arena"
    left_by(kernel).tofile(file)
    said = Comparer("emulated").fault(str(file), (33, 17, 40), 3, [5, 6])
    assert re.search(words, said) if words else said == ""


def one_by_one(a, b, ks, parts=1):
    """The product in float32, summed over the given steps of K; in so many parts, which are summed at the end."""
    sums = [np.zeros((len(a), b.shape[1]), np.float32) for _ in range(parts)]
    for place, k in enumerate(ks):
        sums[place % parts] += a[:, k : k + 1] * b[k]
    return sum(sums[1:], sums[0])


def fault_of(a, b, seeds, c, folder):
    """What the comparer says of a product."""
    shape = (len(a), b.shape[1], len(b))
    left_by(lambda a, b, given, arena: given.__setitem__(..., c), shape, seeds).tofile(folder / "arena")
    return Comparer("emulated").fault(str(folder / "arena"), shape, 3, seeds)


def inputs(K, seeds, side=48):
    return uniform(side * K, seeds[0]).reshape(side, K), uniform(K * side, seeds[1]).reshape(K, side)


@pytest.mark.parametrize("K", [20, 64, 300, 1024])
def test_a_sum_in_any_order_is_right_with_a_margin_of_three(K, tmp_path, monkeypatch):
    monkeypatch.setattr(comparer, "LENIENCE", comparer.LENIENCE / 3)
    seeds = [K, K + 1]
    a, b = inputs(K, seeds)
    for ks in (range(K), range(K)[::-1], np.random.default_rng(1).permutation(K)):
        assert fault_of(a, b, seeds, one_by_one(a, b, ks), tmp_path) == ""
    for parts in (4, 16, 64):
        assert fault_of(a, b, seeds, one_by_one(a, b, range(K), parts), tmp_path) == ""


@pytest.mark.parametrize("K", [20, 64, 300, 1024, 4096])
def test_lower_precision_and_a_step_left_out_are_wrong_with_a_margin_of_three(K, tmp_path, monkeypatch):
    monkeypatch.setattr(comparer, "LENIENCE", comparer.LENIENCE * 3)
    seeds = [K, K + 1]
    a, b = (x.astype(np.float64) for x in inputs(K, seeds))
    for bits in (10, 7):  # TF32 and bfloat16, of both inputs or of one
        low_a, low_b = (cut(x, bits).astype(np.float64) for x in inputs(K, seeds))
        for wrong in (low_a @ low_b, a @ low_b, low_a @ b):
            assert "elements are wrong" in fault_of(a, b, seeds, wrong, tmp_path)
    assert "elements are wrong" in fault_of(a, b, seeds, a[:, 1:] @ b[1:], tmp_path)


# ---- sources


@pytest.mark.parametrize(
    "source",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '#inc\\\nlude "/etc/passwd"',
        "%:include </etc/passwd>",
        "# /* */ include </etc/passwd>",
        "#define F </etc/passwd>\n#include F",
        "#if __has_include(</etc/passwd>)\n#endif",
        '#embed "/etc/passwd"',
        'asm(".include \\"/etc/passwd\\"");',
        "#include <../../etc/passwd>",
        "#inc\\ \nlude </etc/passwd>",
        "#inc??/\nlude </etc/passwd>",
        "#\vinclude </etc/passwd>",
        "//\r#include </etc/passwd>",
        'const char* s = R"(/*)";\n#include </etc/passwd>\n// */',
        "// /*\n#include </etc/passwd>\n// */",
        "// /*\n/**/ #include </etc/passwd>\n// */",
        "#/**/include/**/</etc/passwd>",
        "#include /*\n*/ </etc/passwd>",
        "/*\n*/ #include </etc/passwd>",
        '_Pragma("GCC dependency \\"/etc/passwd\\"")',
        '_Pragma("unroll") _Pragma("GCC system_header")',
        'asm(".inc" "lude \\"/etc/passwd\\"");',
        "// \ud800",
        "#" + "/**/" * 200_000 + "include <x>",
        "#define P(a, b) a##b\n#if P(__has_, include)(</etc/passwd>)\n#endif",
        '#define P(a, b) a%:%:b\nstatic_assert(P(__h, as_include)("/etc/passwd"));',
        "#define P(a, b) a#\\\n#b\nstatic_assert(P(P(__has, _emb), ed)(</etc/passwd>));",
        '#define P(a, b) a##b\nP(_Prag, ma)("GCC dependency \\"/etc/passwd\\"")',
        "// \0\n",
    ],
    ids=lambda source: ascii(source[:40]),
)
def test_a_source_cannot_ask_for_files_of_the_machine(source):
    assert cubin.files_fault(source)


def test_a_source_may_include_what_kernels_include():
    assert cubin.files_fault('#define UNROLLED _Pragma("unroll 4")\n#pragma unroll\n') == ""
    assert cubin.files_fault("#include <cuda_pipeline.h>  // copies\n  #  include <mma.h>\n#define X 1\n") == ""
    assert cubin.files_fault("#define SUM(n) acc##n += __shfl_xor_sync(~0u, acc##n, 1)\n#if TILE == 16\n#endif\n") == ""


@pytest.mark.parametrize(
    "source",
    [
        "import os\n",
        "import numpy as np\nnp.allclose = print\n",
        "x = [print()]\n",
        "class matmul: pass\n",
        "def f(x=print()): pass\n",
        "@print\ndef f(): pass\n",
        "@cuda.jit(print())\ndef f(): pass\n",
        "from numpyx import y\n",
        "def plain(): pass\n",
        "x: print()\ny: int = print()\n",
    ],
)
def test_a_python_source_is_a_kernel_and_nothing_else(source):
    assert "is not part of a kernel" in form_fault("from tilelab.simt import cuda\n" + source)


def test_a_python_kernel_may_have_imports_constants_and_functions():
    source = '"""Mine."""\nimport math\nfrom numba import cuda, float32\nTILE, T2 = 16, 2 ** 4\n'
    assert form_fault(source + "@cuda.jit\ndef f(x): pass\n@cuda.jit(device=True)\ndef g(x, n=TILE): pass\n") == ""


# ---- thresholds


def test_the_course_has_thresholds_for_its_timed_parts():
    said = read_thresholds(THRESHOLDS)
    assert set(said.parts) == {"practice_1_timed", "practice_1_explanation", "practice_7_timed"}
    assert said.mark("practice_1_timed", "a toaster") is None
    assert said.mark("practice_1_timed", "a toaster", accept_shipped=True).full == 1.3


def test_thresholds_come_nearer_to_1_where_the_course_gains_less():
    assert scaled(1.3, 1.44, 1.44) == 1.3
    assert scaled(1.3, 1.44, 1.443) == 1.3
    assert scaled(1.3, 1.44, 1.22) == 1.15
    assert scaled(1.1, 1.44, 2.0) == 1.25


def test_a_calibrated_device_is_written_below_the_line_and_read_again(tmp_path):
    file = tmp_path / "thresholds.toml"
    file.write_text(THRESHOLDS.read_text())
    head = file.read_text().partition(LINE)[0]
    entry = {"name": 'a "card"', "date": "2026-11-30", "driver": "1", "fp32_tflops": 10.0, "copy_tb_s": 1.0}
    for gain in (1.2, 1.44):  # a second time it takes the first one's place
        with_device(file, entry | {"practice_1_timed": {"gain": gain, "spread": 0.01, "full": gain, "half": 1.05}})
    said = read_thresholds(file)
    assert file.read_text().partition(LINE)[0] == head
    assert said.mark("practice_1_timed", 'a "card"') == Mark(1.44, 1.05, 0.0, 'calibrated on a "card"')
    assert said.mark("practice_7_timed", 'a "card"') is None
    assert said.ceilings('a "card"') == {"flops": 1e13, "bandwidth": 1e12}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (3, r"\[p_timed\] needs shape"),
        ({**PART, "shape": [1, 2]}, r"\[p_timed\] needs shape"),
        ({**PART, "shape": [0, 1, 2]}, r"\[p_timed\] needs shape"),
        ({**PART, "shape": [1 << 20, 1, 2]}, "whole numbers from 1 to 1,048,575"),
        ({**PART, "shape": [True, True, True]}, r"\[p_timed\] needs shape"),
        ({**PART, "against": "tiled_16"}, "compares 'tiled_16' with itself"),
        ({**PART, "own": 3}, r"\[p_timed\] needs shape"),
        ({**PART, "own": "fast"}, "names the kernel 'fast'; the course has naive_uncoalesced"),
        ({**PART, "full": 1.1, "half": 1.3}, "half < full"),
        ({**PART, "full": "1.3"}, "half < full"),
        ({**PART, "full": True}, "half < full"),
        ({**PART, "full": math.nan}, "half < full"),
        ({**PART, "gain": math.inf}, "half < full"),
        ({**PART, "half": 1.0}, "half < full"),
        ({**PART, "within": 0.3}, "either full, half and gain, or within"),
        ({name: PART[name] for name in ("shape", "own", "against")}, "either full, half and gain, or within"),
        ({"shape": [1, 2, 3], "own": "tiled_16", "against": "naive", "within": 2}, "0 < within < 1"),
    ],
)
def test_thresholds_that_cannot_be_meant_are_refused(part, words):
    checked({"p_timed": PART})
    with pytest.raises(GradingError, match=words):
        checked({"p_timed": part})


@pytest.mark.parametrize(
    "devices",
    [
        3,
        {"name": "x"},
        [3],
        [{"name": "x"}],
        [{**DEVICE, "fp32_tflops": "fast"}],
        [{**DEVICE, "fp32_tflops": 0}],
        [{**DEVICE, "copy_tb_s": math.inf}],
        [{**DEVICE, "name": 3}],
        [{**DEVICE, "p_timed": {"full": 1.3}}],
        [{**DEVICE, "p_timed": {"full": 1.1, "half": 1.3}}],
    ],
)
def test_a_device_that_cannot_be_is_refused(devices):
    checked({"device": [DEVICE, {**DEVICE, "p_timed": {"full": 1.3, "half": 1.1}}]})
    with pytest.raises(GradingError, match="calibrate again"):
        checked({"device": devices})


@pytest.mark.parametrize("text", ["[", "a = \n", "[[device]]\n", "\xff"])
def test_a_thresholds_file_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "thresholds.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(GradingError, match=r"thresholds\.toml"):
        read_thresholds(tmp_path / "thresholds.toml")


@pytest.mark.parametrize(
    "moved", ["[late]\nshape = [1, 2, 3]\nown = 'tiled_16'\nagainst = 'naive'\nwithin = 0.3\n", ""]
)
def test_calibrating_loses_nothing_that_stands_in_the_wrong_place(tmp_path, moved):
    file = tmp_path / "thresholds.toml"
    text = THRESHOLDS.read_text()
    file.write_text(text + moved if moved else text.replace(LINE, ""))
    before = file.read_text()
    with pytest.raises(GradingError, match="all else stands above it"):
        with_device(file, DEVICE)
    assert file.read_text() == before


def test_a_compared_number_waits_where_the_times_it_hangs_on_are_not_calibrated():
    told = {name: PART[name] for name in ("shape", "own", "against")} | {"within": 0.3}
    other = {**told, "shape": [3, 2, 1]}
    said = {"a_timed": PART, "a_told": told, "b_told": other}
    numbers = {"full": 1.3, "half": 1.1}
    for device, asked in (
        ([], set()),
        ([DEVICE], {"b_told"}),  # the gain of the pair varied too much for points, or nobody has measured it yet
        ([DEVICE | {"a_timed": numbers}], {"a_timed", "a_told", "b_told"}),
    ):
        read = checked(said | {"device": device})
        assert {cell for cell in said if read.mark(cell, "x")} == asked
        assert all(read.mark(cell, "x", accept_shipped=True) for cell in said)
        assert read.marks("a_told", "x") == ()
    with pytest.raises(GradingError, match="is not as `tilelab calibrate` writes it"):
        checked(said | {"device": [DEVICE | {"a_timed": 1.3}]})


def test_a_spread_is_between_the_5th_and_95th_percentile():
    assert spread([1.0] * 20) == 0
    assert spread([float(x) for x in range(1, 102)]) == pytest.approx(90 / 51)


# ---- decisions


@pytest.mark.parametrize(
    ("gain", "share"), [(1.0, 0.0), (1.09, 0.0), (1.11, 0.5), (1.29, 0.5), (1.31, 1.0), (4.0, 1.0)]
)
def test_points_follow_the_gain(gain, share):
    verdict = by_gain(measured(0.3, 0.3 * gain), MARK, "try A", "try B")
    assert verdict.share == share
    assert verdict.pending == 0
    said = " ".join(verdict.lines)
    assert "all points from 1.3, half from 1.1" in said
    assert ("try A" in said, "try B" in said) == (share == 0, share == 0.5)


def test_doubt_counts_for_the_learner():
    found = measured(0.3, 0.3 * 1.3003)
    assert found.gain("the coalesced naive kernel").high >= 1.3
    assert by_gain(found, MARK, "", "").share == 1


@pytest.mark.parametrize(
    ("found", "mark", "share", "pending", "words"),
    [
        (measured(1, 2, "refused", "for 1×1×1: C[0,0] is nan"), MARK, 0, 0, "is nan"),
        (measured(1, 2, "undecided", "the device is shared"), MARK, 0, 1, "pending: the device is shared"),
        (measured(1, 2), None, 0, 1, "not calibrated"),
        (measured(1, 2, emulated=True), MARK, 0, 1, "stood in for the GPU"),
        (measured(1, 2, "refused", "is nan", emulated=True), MARK, 0, 1, "stood in for the GPU"),
    ],
)
def test_what_is_not_timed_is_refused_or_waits(found, mark, share, pending, words):
    verdict = by_gain(found, mark, "", "")
    assert (verdict.share, verdict.pending) == (share, pending)
    assert words in " ".join(verdict.lines)


@pytest.mark.parametrize(("told", "share"), [(1.5, 1), (1.2, 1), (0.9, 0), (5.0, 0), (None, 0)])
def test_a_reported_ratio_is_compared_with_the_judges(told, share):
    assert by_nearness(told, measured(1.0, 1.45), MARK, "ratio").share == share


def test_the_report_draws_both_kernels_under_the_roof():
    svg = drawing(measured(0.3, 0.42))
    assert svg.count("TFLOP/s</text>") == 3
    assert "yours: 7.1" in svg
    assert drawing(measured(1, 2, "refused")) == ""
    row = row_of("abcdef0123", measured(0.3, 0.42))
    assert (row["samples"], row["SM MHz"], round(row["gain"], 2)) == (15, "1980–1980", 1.4)


# ---- bundles

WANTED = Wanted((64, 64, 64), (Candidate("yours", "", "source", {"grid": 1, "block": 1}), Candidate("it", "naive")))
OTHER = Wanted((32, 32, 32), WANTED.candidates)


@pytest.fixture
def bundle(tmp_path):
    said = read_thresholds(THRESHOLDS)
    return make_bundle(key_of(tmp_path / "jobs"), [("a_timed", WANTED), ("b_timed", WANTED), ("a_timed", OTHER)], said)


def test_a_bundle_travels_and_what_is_equal_is_measured_once(bundle, tmp_path):
    file = tmp_path / "bundle.json"
    write_bundle(bundle, file)
    assert file.stat().st_mode & 0o777 == 0o600
    read = read_bundle(file)
    assert read == bundle
    assert len(read.jobs) == 3
    assert len(read.wanted) == 2
    assert read.cells(WANTED.digest) == ["a_timed", "b_timed"]
    assert len({job.token for job in read.jobs}) == 3


def test_the_key_is_made_once_and_nobody_else_reads_it(tmp_path):
    key = key_of(tmp_path / "jobs")
    assert key_of(tmp_path / "jobs") == key
    assert (tmp_path / "jobs" / "key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "jobs" / "key").chmod(0o644)
    with pytest.raises(GradingError, match="others can read"):
        key_of(tmp_path / "jobs")


def test_two_exports_at_once_agree_on_one_key(tmp_path, monkeypatch):
    """The second has looked before the first one's key was there."""
    first = key_of(tmp_path / "jobs")
    whole, looks = Path.exists, iter([False])
    monkeypatch.setattr(Path, "exists", lambda file, **options: next(looks, None) is None and whole(file, **options))
    assert key_of(tmp_path / "jobs") == first
    assert [file.name for file in (tmp_path / "jobs").iterdir()] == ["key"]


@pytest.mark.parametrize("kept", ["", "00" * 16, "00" * 33, "no key", "\xff"])
def test_a_key_that_is_none_is_refused(tmp_path, kept):
    key_of(tmp_path / "jobs")
    (tmp_path / "jobs" / "key").write_bytes(kept.encode("latin-1"))
    with pytest.raises(GradingError, match="is no key: delete it"):
        key_of(tmp_path / "jobs")


def test_a_key_that_is_gone_is_not_made_anew_for_what_was_signed_before(tmp_path):
    key_of(tmp_path / "jobs")
    (tmp_path / "jobs" / "key").unlink()
    with pytest.raises(GradingError, match="is gone"):
        kept_key_of(tmp_path / "jobs")
    assert not (tmp_path / "jobs" / "key").exists()


def test_a_folder_for_keys_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "jobs").write_text("")
    with pytest.raises(GradingError, match="cannot make the folder"):
        key_of(tmp_path / "jobs")


def test_a_file_that_cannot_be_written_is_said(bundle, tmp_path):
    with pytest.raises(GradingError, match="cannot write"):
        write_bundle(bundle, tmp_path / "no" / "bundle.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(GradingError, match="cannot write"):
        write_bundle(bundle, tmp_path / "folder")
    assert not list(tmp_path.glob(".*"))


def test_a_bundle_is_a_file_of_a_size_that_can_be(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    for file, words in ((tmp_path / "pipe", "is no file"), (tmp_path, "is no file"), (tmp_path / "no", "No such file")):
        for read in (read_bundle, number_in, unverified):
            with pytest.raises(GradingError, match=words):
                read(file)
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(GradingError, match="1099511627776 bytes"):
        read_bundle(tmp_path / "huge")


@pytest.mark.parametrize("change", ["thresholds", "wanted", "jobs", "number", "key", "signature", "more"])
def test_a_changed_bundle_is_refused(bundle, tmp_path, change):
    file = tmp_path / "bundle.json"
    write_bundle(bundle, file)
    body = json.loads(file.read_text())
    body[change] = {"number": "0" * 32, "jobs": [], "wanted": {}, "thresholds": {}, "signature": None}.get(change, "00")
    file.write_text(json.dumps(body))
    with pytest.raises(GradingError, match="was changed since it was exported"):
        read_bundle(file)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"form": "else"}', "\x00", "[" * 100_000], ids=lambda text: text[:9])
def test_what_is_no_bundle_is_refused(tmp_path, text):
    (tmp_path / "x").write_text(text)
    with pytest.raises(GradingError, match=r"bundle|JSON"):
        read_bundle(tmp_path / "x")


def set_to(*path, value):
    def change(body):
        for name in path[:-1]:
            body = body[name]
        body[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(set_to("jobs", 0, name, value=value) for name in ("token", "cell", "wanted") for value in (3, None, [], {})),
        *(set_to(name, value=value) for name in ("number", "wanted", "thresholds", "jobs") for value in (3, None, "x")),
        set_to("jobs", 0, value=[]),
        set_to("jobs", 0, value="token"),
        set_to("jobs", 0, "wanted", value="0" * 64),
        set_to("number", value="../key"),
        set_to("wanted", "x", value=[]),
        set_to("thresholds", "a_timed", value=3),
        set_to("thresholds", "device", value=3),
        lambda body: body.pop("jobs"),
        lambda body: body["jobs"][0].pop("cell"),
    ],
)
def test_a_signed_bundle_of_another_form_is_refused_in_one_sentence(bundle, tmp_path, change):
    """Whoever has a bundle has its key: a signature says nothing of what is signed."""
    file = tmp_path / "bundle.json"
    write_bundle(bundle, file)
    body = json.loads(file.read_text())
    del body["signature"]
    change(body)
    file.write_text(json.dumps(body | {"signature": signature(bundle.key, body)}))
    with pytest.raises(GradingError) as error:
        read_bundle(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        *(set_to(name, value=value) for name in ("wanted", "measured") for value in (3, None, [])),
        lambda body: body.pop("wanted"),
        lambda body: body.pop("measured"),
    ],
)
def test_signed_results_of_another_form_are_refused_in_one_sentence(bundle, tmp_path, change):
    body = json.loads(result_line(bundle, WANTED.digest, measured(0.3, 0.42)))
    del body["signature"]
    change(body)
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps(body | {"signature": signature(bundle.key, body)}) + "\n[]\n")
    assert unverified(file) == {}
    file.write_text(json.dumps(body | {"signature": signature(bundle.key, body)}) + "\n")
    with pytest.raises(GradingError, match="no measurement's outcome"):
        read_results(file, bundle.key, bundle.number)


def test_results_come_back_as_they_were_measured(bundle, tmp_path):
    found = measured(0.3, 0.42)
    file = tmp_path / "results.jsonl"
    file.write_text(result_line(bundle, WANTED.digest, found) + result_line(bundle, OTHER.digest, found)[:-9])
    assert number_in(file) == bundle.number
    key = bundle_key(key_of(tmp_path / "jobs"), bundle.number)
    assert read_results(file, key, bundle.number) == {WANTED.digest: found}  # the half line does not count
    assert list(read_results(file, key, bundle.number)[WANTED.digest].samples) == list(found.samples)


def test_what_decides_is_not_hidden_by_what_does_not(bundle, tmp_path):
    """Results of several runs in one file: on a GPU, on one that was busy, and on a CPU."""
    good, new = measured(0.3, 0.42), measured(0.3, 0.5)
    busy, cpu = measured(1, 2, "undecided", "the device is shared"), measured(1, 2, emulated=True)
    file = tmp_path / "results.jsonl"
    for lines, kept in (
        ([busy, good], good),
        ([good, busy, cpu], good),
        ([cpu, busy], busy),
        ([good, new], new),
        ([measured(1, 2, "refused", "is nan"), cpu], measured(1, 2, "refused", "is nan")),
    ):
        file.write_text("\n".join(result_line(bundle, WANTED.digest, one) for one in lines))
        assert read_results(file, bundle.key, bundle.number) == {WANTED.digest: kept}
        assert unverified(file) == {WANTED.digest: kept}


@pytest.mark.parametrize("end", ["", "\r\n", "\n", "\n\n", "\r\n\r\n"])
def test_a_whole_line_counts_however_it_ends(bundle, tmp_path, end):
    file, found = tmp_path / "results.jsonl", measured(0.3, 0.42)
    lines = [result_line(bundle, one.digest, found).rstrip() for one in (WANTED, OTHER)]
    file.write_bytes((end or "\n").join(lines).encode() + end.encode())
    assert read_results(file, bundle.key, bundle.number) == {WANTED.digest: found, OTHER.digest: found}
    assert set(unverified(file)) == {WANTED.digest, OTHER.digest}
    with file.open("r+b", buffering=0) as out:  # and a run that goes on there keeps it
        _go_to_the_end(out)
        out.write(lines[0].encode() + b"\n")
    assert len(file.read_text().split()) == len(" ".join([*lines, lines[0]]).split())
    assert set(read_results(file, bundle.key, bundle.number)) == {WANTED.digest, OTHER.digest}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body["measured"]["samples"][0][1][0].__setitem__(0, 1e-6), "was changed since it was signed"),
        (lambda body: body.__setitem__("wanted", OTHER.digest), "was changed since it was signed"),
        (lambda body: body.__setitem__("bundle", "0" * 32), "belongs to another bundle"),
        (lambda body: body.__setitem__("signature", "00"), "was changed since it was signed"),
        (lambda body: body.pop("wanted"), "was changed since it was signed"),
    ],
)
def test_changed_results_are_refused_whole(bundle, tmp_path, change, words):
    file = tmp_path / "results.jsonl"
    body = json.loads(result_line(bundle, WANTED.digest, measured(0.3, 0.42)))
    change(body)
    file.write_text(result_line(bundle, OTHER.digest, measured(0.3, 0.4)) + json.dumps(body) + "\n")
    with pytest.raises(GradingError, match=words):
        read_results(file, bundle.key, bundle.number)


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "3",
        '{"bundle": 3}',
        '{"bundle": "../key"}',
        '{"bundle": "' + "0" * 5000 + '"}',
        "[" * 100_000,
        "\xff",
    ],
    ids=lambda line: line[:20],
)
def test_what_holds_no_results_is_refused(tmp_path, line):
    file = tmp_path / "r.jsonl"
    file.write_bytes(line.encode("latin-1") + b"\n")
    for read in (number_in, unverified, lambda file: read_results(file, b"k", "0" * 32)):
        with pytest.raises(GradingError):
            read(file)


def test_results_signed_for_another_bundle_do_not_fit(bundle, tmp_path):
    other = make_bundle(key_of(tmp_path / "jobs"), [("a_timed", WANTED)], Thresholds({}))
    file = tmp_path / "results.jsonl"
    file.write_text(result_line(other, WANTED.digest, measured(0.3, 0.42)).replace(other.number, bundle.number))
    with pytest.raises(GradingError, match="was changed since it was signed"):
        read_results(file, bundle.key, bundle.number)


TWICE = {"name": "yours", "rung": "naive"}


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"shape": [1, 2, 3], "candidates": []},
        {"shape": "x", "candidates": [1]},
        {"shape": [10**400, 2, 3], "candidates": [TWICE]},
        {"shape": [1, -2, 3], "candidates": [TWICE]},
        {"shape": [True, 2, 3], "candidates": [TWICE]},
        {"shape": [1, 2, 3], "candidates": [TWICE, TWICE]},
    ],
    ids=lambda data: str(data)[:20],
)
def test_what_is_no_measurement_is_refused(data):
    with pytest.raises(GradingError):
        read_wanted(data)
    with pytest.raises(GradingError):
        read_measured(data)


@pytest.mark.parametrize(
    "change",
    [
        {"device": {}},
        {"samples": []},
        {"samples": [["yours", [[1, 1, 1]]]]},
        {"samples": [["yours", [[1, 1, 1]]], ["it", []]]},
        {"samples": [["yours", [[1, 1, 1]]], ["it", [[1, 1, 1], [1, 1, 1]]]]},
        {"samples": [["yours", [[1, 1, 1]]], ["it", [[1, 1]]]]},
        {"samples": [["yours", [[1, 1, 1]]], ["it", [[1, "1", 1]]]]},
        {"samples": [["yours", [[1, 1, 1]]], [3, [[1, 1, 1]]]]},
        {"samples": [3, 4]},
        {"about": {"clocks": 3}},
        {"about": {"clocks": [3]}},
        {"about": {"clocks": [{"sm_mhz": "1980"}]}},
        {"about": {"disagreements": 3}},
        {"about": {"ceilings": {"flops": 1e12}}},
        {"about": {"ceilings": {"flops": "fast", "bandwidth": 1}}},
        {"about": {"ceilings": {"flops": 0, "bandwidth": 1}}},
        {"about": {"ceilings": {"flops": 10**400, "bandwidth": 1}}},
        {"about": {"ceilings": [1]}},
        {"samples": [["yours", [[1, 1, 10**400]]], ["it", [[1, 1, 1]]]]},
        {"samples": [["yours", [[1, 1, True]]], ["it", [[1, 1, 1]]]]},
        {"samples": [["yours", [[1, 1, 1]]], ["yours", [[1, 1, 1]]]]},
        {"shape": [0, 1, 1]},
        {"shape": [10**400, 1, 1]},
    ],
)
def test_an_outcome_that_no_run_gives_is_shown_to_nobody(bundle, tmp_path, change):
    said = measured(0.3, 0.42).as_dict()
    assert read_measured(json.loads(json.dumps(said))) == measured(0.3, 0.42)
    with pytest.raises(GradingError):
        read_measured(said | change)
    body = json.loads(result_line(bundle, WANTED.digest, measured(0.3, 0.42)))
    (tmp_path / "r").write_text(json.dumps({**body, "measured": said | change}) + "\n")
    assert unverified(tmp_path / "r") == {}


@pytest.mark.parametrize("time", [0.0, -1.0, 1e-320, 1e30])
def test_times_that_no_device_gives_end_no_import(time):
    found = measured(time, 0.42)
    assert drawing(found).startswith("<div") or time <= 0
    by_nearness(1.4, found, MARK, "the ratio")
    assert row_of("x", found)["outcome"] == "timed"


# ---- processes

HOLD = """
import sys, time
from tilelab.grading.timed.watch import one_at_a_time
with one_at_a_time(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_free_again_when_its_holder_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    device = "test"
    with subprocess.Popen([sys.executable, "-c", HOLD, device], stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        waited = []

        def waiting():
            waited.append(True)
            holder.kill()

        with one_at_a_time(device, waiting) as descriptor:
            assert waited
            assert not os.get_inheritable(descriptor)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "tilelab-x.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(GradingError, match="cannot be used"), one_at_a_time("x"):
        pass
    assert not (tmp_path / "victim").exists()


def test_a_process_that_does_not_answer_is_ended(tmp_path, monkeypatch):
    (tmp_path / "sleeper.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    companion = Companion("sleeper")
    with pytest.raises(Lost, match="did not end") as lost:
        companion.ask({"do": "anything"}, 0.3)
    assert lost.value.late
    assert not Path("/proc", str(companion.pid)).exists()


@pytest.mark.parametrize("body", ["import os; os._exit(3)", "print('{', flush=True)", "print('x' * 2000000)"])
def test_a_process_that_answers_nonsense_is_lost(tmp_path, monkeypatch, body):
    (tmp_path / "liar.py").write_text(body + "\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    liar = Companion("liar")
    for _ in range(2):  # whoever asks a process that was lost hears it again
        with pytest.raises(Lost, match="its process ended"):
            liar.ask({"do": "anything"}, PATIENCE)


def test_a_build_error_is_told_for_a_file_of_the_machine():
    with pytest.raises(BuildError, match="a kernel may include"):
        cubin.compile_cubin('#include "/etc/passwd"', "matmul", "sm_90", {})


@pytest.mark.parametrize(
    ("done", "error", "words"),
    [
        (Finished(1, "", "OSError: libnvrtc.so: cannot open", {}), GradingError, "NVRTC does not start .* cannot open"),
        (Finished(-9, "", "it used more memory than is allowed", {}), BuildError, "ended without a result"),
        (Finished(-9, "", "", {}, timed_out=True), BuildError, "does not compile within 20 s"),
        (Finished(-6, "", "", {"result.json": b"{}"}), BuildError, "ended without a result"),
        (Finished(0, "", "", {"result.json": b'{"log": "kernel.cu(1): error: x", "symbol": ""}'}), BuildError, "x"),
    ],
)
def test_a_compiler_that_does_not_start_is_no_learners_fault(monkeypatch, done, error, words):
    monkeypatch.setattr(cubin, "nvrtc", lambda: ("/nowhere/libnvrtc.so", ()))
    with use_runner(lambda task: done), pytest.raises(error, match=words):
        cubin.compile_cubin("__global__ void matmul() {}", "matmul", "sm_90", {})


@pytest.mark.parametrize("problem", ["practice_1", "practice_7"])
def test_what_learners_are_told_is_what_the_thresholds_say(problem):
    text = (THRESHOLDS.parents[1] / "solutions" / f"{problem}.md").read_text()
    part = read_thresholds(THRESHOLDS).part(f"{problem}_timed")
    assert f"{part['full']:g}×" in text
    assert f"{part['half']:g}×" in text


def test_the_recorded_run_holds_what_is_claimed():
    from tilelab.measure.records import read_record

    record = read_record(THRESHOLDS.parents[1] / "benchmarks" / "records" / "timed_h200.json")
    assert record["targets"]
    assert all(one["ok"] for one in record["targets"])
    assert {trick["row"] for trick in record["where"]["evidence"]["tricks"]} == set(range(35))
    assert {row["runs"] for row in record["rows"]} == {20}
    assert all(len(row["marks"]) == 1 for row in record["rows"])
