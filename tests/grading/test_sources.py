"""Learner-written sources: only text crosses, and it runs through one runner, never in the judge's own process."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from tilelab.cudacpp.processes import run_here, use_runner
from tilelab.grading import cuda_answers
from tilelab.grading.answers import record
from tilelab.grading.cuda_answers import distinct, judge_kernel, read_cuda, report
from tilelab.grading.errors import GradingError
from tilelab.grading.problems import exercise_5
from tilelab.grading.python_answers import read_python, run_python

pytestmark = pytest.mark.slow

COPY = """
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    int i = blockIdx.x, j = threadIdx.x;
    float sum = %s;
    for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
    C[i * N + j] = sum;
}
"""
LAUNCH = {"grid": "M", "block": "N"}


def kernel_of(source):
    return lambda: read_cuda(source, LAUNCH)


def test_the_inputs_differ_in_every_element():
    a, b = (distinct(np.random.default_rng(seed), 37, 23) for seed in (1, 2))
    for matrix in (a, b):
        assert len(np.unique(matrix)) == matrix.size
        assert np.abs(matrix).min() > 0
        assert np.abs(matrix).max() < 1
    assert not np.array_equal(a, b)


def test_a_kernel_is_judged_by_shape():
    found = judge_kernel(kernel_of(COPY % "0.0f"), [(3, 4, 5), (1, 1, 1), (2, 7, 1)])
    assert found.share == 1
    assert found.lines == ("right for 3 of 3 shapes",)
    # 1025 threads are more than a block may have: that shape fails with the launch's own words
    found = judge_kernel(kernel_of(COPY % "0.0f"), [(2, 3, 4), (2, 1025, 4)])
    assert found.share == 0.5
    assert "1025 threads a block" in found.lines[1]


@pytest.mark.parametrize("start", ["0.0f / 0.0f", "1.0f / 0.0f", "0.0001f", "C[i * N + j]"])
def test_what_is_not_the_product_fails(start):
    found = judge_kernel(kernel_of(COPY % start.replace("0.0f / 0.0f", 'nanf("")')), [(3, 4, 5)])
    assert found.share == 0


def test_a_kernel_that_changes_its_inputs_fails():
    source = (COPY % "0.0f").replace("const float* A", "float* A").replace("float sum", "A[0] = 1; float sum")
    found = judge_kernel(lambda: read_cuda(source, {"grid": 1, "block": 1}), [(1, 1, 1)])
    assert found.share == 0
    assert any("inputs" in line or "wrong" in line for line in found.lines)


def test_the_tolerance_is_that_of_float32_sums():
    half = COPY.replace("A[i * K + k] * B[k * N + j]", "__half2float(__float2half(A[i * K + k])) * B[k * N + j]")
    found = judge_kernel(kernel_of("#include <cuda_fp16.h>\n" + half % "0.0f"), [(5, 6, 19)])
    assert found.share == 0, "half precision is not float32"


def test_no_compiler_is_no_learners_fault(monkeypatch):
    monkeypatch.setattr(cuda_answers, "can_emulate", lambda: False)
    with pytest.raises(RuntimeError, match="no C\\+\\+ compiler"):
        judge_kernel(kernel_of(COPY % "0.25f"), [(3, 4, 5)])
    found = cuda_answers.look_at_kernel(kernel_of(COPY % "0.25f"), [(3, 4, 5)])
    assert found.mark == "○"
    assert "the judge will" in found.text


def test_a_kernel_that_never_ends_is_not_tried_for_every_shape(monkeypatch):
    monkeypatch.setattr(cuda_answers, "PATIENCE", 0.5)
    endless = (COPY % "0.0f").replace("++k", "k += 0")
    tried = []
    once = cuda_answers.try_shape

    def another_thread_each_time(*what):
        tried.append(what)
        trial = once(*what)
        return replace(trial, words=trial.words.replace("thread (0,0,0)", f"thread ({len(tried)},0,0)"))

    monkeypatch.setattr(cuda_answers, "try_shape", another_thread_each_time)
    found = judge_kernel(kernel_of(endless), [(1, 1, 1), (1, 2, 1), (2, 1, 1), (3, 3, 3)], seed=77)
    assert found.share == 0
    assert len(found.trials) == 4
    assert len(tried) == 2
    assert re.match("M=1 N=1 K=1, M=1 N=2 K=1, M=2 N=1 K=1, M=3 N=3 K=3: .*the kernel did not end", found.lines[1])


def test_kernels_and_functions_go_through_the_one_runner(tmp_path, monkeypatch):
    monkeypatch.setenv("TILELAB_CACHE", str(tmp_path))  # nothing is built yet
    tasks = []

    def watch(task):
        tasks.append(task.argv[0])
        return run_here(task)

    body = "def tiled_block(A, a, B, b, C, c, sA, sa, sB, sb, bi, bj):\n    'through the runner'\n"
    with use_runner(watch):
        judge_kernel(kernel_of(COPY % "0.125f"), [(3, 4, 5)])
        count = len(tasks)
        assert count >= 2, "a compiler and what it made"
        exercise_5.outcomes(body, *exercise_5.PUBLIC, seed=3, variants=exercise_5.VARIANTS[:1])
    assert tasks[count:] == [sys.executable]


def test_a_report_groups_what_failed_alike():
    trials = [cuda_answers.Trial(f"s{n}", n > 2, "boom" if n < 3 else "right") for n in range(5)]
    assert report(trials) == ("right for 2 of 5 shapes", "s0, s1, s2: boom")


# ---- Python

QUIET = "def tiled_block(*everything):\n    pass\n"


def outcomes(source):
    return exercise_5.outcomes(source, *exercise_5.PUBLIC, seed=1, variants=exercise_5.VARIANTS[:2])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os\nos._exit(0)\n" + QUIET, "ended the process"),
        ("import os\nopen('result.json', 'w').write('[1')\nos._exit(0)\n" + QUIET, "ended the process"),
        ("import os\nopen('result.json', 'w').write('[]')\nos._exit(0)\n" + QUIET, "disturbed"),
    ],
)
def test_a_process_that_ends_early_is_no_result(source, words):
    with pytest.raises(GradingError, match=words):
        outcomes(source)


def test_claiming_to_be_right_does_not_help():
    result = "[{'C': [0.0] * 35, 'reads': {'A': 0, 'B': 0}}] * 2"
    forged = f"import json, os\nwith open('result.json', 'w') as f:\n    json.dump({result}, f)\nos._exit(0)\n"
    assert not any(found.right for found in outcomes(forged + QUIET))


@pytest.mark.parametrize("value", ["10 ** 400", "float('nan')", "'x'", "[1]", "True", "-1e308"])
def test_a_forged_result_is_compared_like_any_other(value):
    """It must neither pass nor make the judge stumble, which would leave the points to a person."""

    def forged(size, count):
        result = f"[{{'C': [{value}] * {size}}}] * {count}"
        return f"import json, os\nwith open('result.json', 'w') as f:\n    json.dump({result}, f)\nos._exit(0)\n"

    assert not any(found.right for found in outcomes(forged(35, 2) + QUIET))
    kernel = "# cuda.jit\n" + forged(12, 1) + "def matmul():\n    pass\n"
    found = judge_kernel(kernel_of(kernel), [(3, 4, 5)])
    assert (found.share, len(found.trials)) == (0, 1)


@pytest.mark.parametrize(
    "source", ["-" * 40_000 + "1", "(" * 20_000, "f(" * 20_000 + ")" * 20_000, "x." * 20_000 + "y"]
)
def test_a_source_that_is_hard_to_read_is_refused(source):
    with pytest.raises(GradingError):
        read_python(source, "f")


def test_an_error_names_the_line_of_the_answer():
    (first, _) = outcomes("def tiled_block(A, a, *rest):\n    A[a(99, 0)]\n")
    assert "in line 2 of your function" in first.words


def test_a_source_is_read_before_it_runs():
    assert read_python("def f():\n    pass\n", "f")
    for source, words in [
        ("def g(): pass", "does not define"),
        ("def f(:", "cannot be read"),
        (None, "no function"),
        (7, "not 7"),
    ]:
        with pytest.raises(GradingError, match=words):
            read_python(source, "f")
    with pytest.raises(GradingError, match="limit"):
        read_python("#" * 60_000, "f")


def test_the_job_sees_no_answers_of_the_judge():
    """What runs beside a learner's code gets inputs alone, so there is nothing to read off."""
    seen = run_python(
        "tiled_block",
        "import json\njob = json.load(open('job.json'))\nraise ValueError(sorted(job['variants'][0]))\n",
        {"function": "f", "variants": [{"layouts": {}, "values": {}, "kind": "fp32"}]},
    )
    assert "['kind', 'layouts', 'values']" in seen[0]["error"]


def test_a_function_is_handed_in_as_its_text():
    text = record("exercise_5", {"body": outcomes})["answers"]["body"]
    assert text.startswith("def outcomes(source):")
    with pytest.raises(GradingError, match="cannot be read"):
        record("exercise_5", {"body": lambda: 1})
