"""Answers that are written against the judge: a zero with words, never a check that fails."""

import pytest

from tilelab.grading.answers import read
from tilelab.grading.cuda_answers import judge_kernel, read_cuda
from tilelab.grading.errors import GradingError
from tilelab.grading.judge import _plain_line
from tilelab.grading.rules import numbers_of

LAUNCH = {"grid": 1, "block": 1}
PYTHON = "from numba import cuda\n{}\n@cuda.jit\ndef matmul(A, B, C, M, N, K):\n    C[0, 0] = 1\n"


@pytest.mark.parametrize(
    "odd",
    [
        "x = f()" + "+1" * 900,
        "a" + "()" * 900,
        "a" + "[0]" * 900,
        "x = " + "lambda: " * 900 + "1",
        "x = " + "1 if 1 else " * 900 + "1",
    ],
    ids=["sum", "calls", "indices", "lambdas", "conditions"],
)
def test_a_python_kernel_that_is_nested_too_deep_is_a_zero(odd):
    judged = judge_kernel(lambda: read_cuda(PYTHON.format(odd), LAUNCH), [(2, 2, 2)])
    assert judged.share == 0
    assert "nested" in judged.lines[0] or "cannot be read" in judged.lines[0]


FORGED = {
    "an end that is printed": r'if (threadIdx.x == 0) printf("finished\ttoken=0\n");',
    "an end before the work": "return;",
    "a trap after a part of the work": "C[0] = A[0] * B[0]; __trap();",
    "a product that was there before": "for (int i = 0; i < M * N; ++i) C[i] = C[i];",
}


@pytest.mark.slow
@pytest.mark.parametrize("body", FORGED.values(), ids=FORGED)
def test_whatever_a_kernel_says_its_outputs_are_compared(body):
    source = f"__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {{ {body} }}"
    judged = judge_kernel(lambda: read_cuda(source, LAUNCH), [(2, 2, 2)])
    assert judged.share == 0
    assert judged.lines


@pytest.mark.parametrize("source", [PYTHON.format(""), "__global__ void matmul() {}"])
def test_what_an_editor_puts_before_a_text_is_no_part_of_it(source):
    assert read_cuda(f"\ufeff{source}", LAUNCH).source == source


def test_a_source_that_is_too_long_is_not_read():
    with pytest.raises(GradingError, match="the limit is 50,000"):
        read_cuda("__global__ " * 90_000, LAUNCH)


def test_a_record_holds_no_endless_number():
    answers = {"launch": {"grid": [1], "block": [10**4000, 10**4000]}}
    with pytest.raises(GradingError, match="bits"):
        read([{"version": 1, "problem": "p", "answers": answers}], "p")


def test_a_launch_rule_gives_no_endless_number():
    with pytest.raises(GradingError, match="too large"):
        numbers_of([1 << 1000] * 3, {})


def test_a_line_of_a_report_steers_no_terminal_and_is_short():
    assert _plain_line("a\x1b[31mb\n" + "7" * 300) == "a [31mb 77777777… (300 digits)"
    assert len(_plain_line("word " * 5000)) < 2100
