"""Compilers' logs, cut down to the learner's line and one sentence."""
# ruff: noqa: E501

import shutil

import pytest

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.diagnostics import explain
from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.kernel import Kernel

SOURCE = """__global__ void k(float* x, int n) {
    int i = threadIdx.x
    if (i < n) x[i] = y;
}"""


def lines(error):
    return str(error).splitlines()


def test_nvrtc():
    log = 'kernel.cu(3): error: expected a ";"\n      if (i < n) x[i] = y;\n      ^\n\nkernel.cu(3): error: identifier "y" is undefined\n\n2 errors detected in the compilation of "/tmp/tmpx/ab.cubin.cu".\n'
    assert lines(explain(log, SOURCE, "nvrtc"))[:2] == ["line 2: int i = threadIdx.x", 'expected a ";" [nvrtc]']


def test_a_semicolon_is_only_moved_where_it_is_missing():
    log = 'kernel.cu(3): error: expected a ";"\n'
    assert (
        lines(explain(log, SOURCE.replace("threadIdx.x", "threadIdx.x;"), "nvrtc"))[0] == "line 3: if (i < n) x[i] = y;"
    )


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_gcc_shows_the_learners_line_first():
    with pytest.raises(BuildError) as caught:
        Kernel(SOURCE, "k").build()
    assert lines(caught.value)[0] == "line 2: int i = threadIdx.x"
    assert "kernel.cu" in caught.value.log
    with pytest.raises(BuildError) as caught:
        Kernel(SOURCE.replace("threadIdx.x", "threadIdx.x;"), "k").build()
    assert lines(caught.value)[:2] == ["line 3: if (i < n) x[i] = y;", "‘y’ was not declared in this scope [g++]"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_an_error_inside_a_header_is_shown_where_the_learner_caused_it():
    source = "__global__ void k(float* x) {\n  x[0] = __shfl_sync(0xffffffff, make_float4(1, 2, 3, 4), 0).x;\n}"
    with pytest.raises(BuildError, match=r"^line 2: x\[0\] = __shfl_sync"):
        Kernel(source, "k").build()


@pytest.mark.parametrize(
    ("log", "remedy"),
    [
        ('kernel.cu(1): catastrophic error: cannot open source file "cute/tensor.hpp"\n', "pip install nvidia-cutlass"),
        ('kernel.cu(1): catastrophic error: cannot open source file "cuda/std/cstdint"\n', "pip install nvidia-cuda-cccl"),
        ('kernel.cu(1): catastrophic error: cannot open source file "type_traits"\n', "NVRTC brings no C\\+\\+ standard library"),
        ("kernel.cu:1:10: fatal error: cutlass/gemm.h: No such file or directory\n", "pip install nvidia-cutlass"),
        ('/x/cuda_fp16.h(12): catastrophic error: cannot open source file "vector_types.h"\n', "vector_types.h was not found"),
    ],
)  # fmt: skip
def test_missing_headers_name_the_package(log, remedy):
    with pytest.raises(BuildError, match=remedy):
        raise explain(log, "#include <x>\n", "nvcc")


def test_too_much_static_shared_memory():
    log = "ptxas error   : Entry function 'k' uses too much shared data (0x10000 bytes, 0xc000 max)\n"
    with pytest.raises(
        BuildError, match=r"65536 bytes of static shared memory, but 49152 is the most .*extern __shared__"
    ):
        raise explain(log, SOURCE, "nvcc")


def test_a_log_without_any_known_form_still_says_something():
    assert "undefined symbol: foo" in str(explain("ld: undefined symbol: foo\n", SOURCE, "nvcc"))
    assert "without a word" in str(explain("", SOURCE, "nvcc"))


def test_no_nvcc(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("os.access", lambda *a: False)
    nvcc.find.cache_clear()
    with pytest.raises(BuildError, match="needs the CUDA compiler"):
        nvcc.find()
    nvcc.find.cache_clear()


def test_no_compiler_for_emulation(monkeypatch):
    from tilelab.cudacpp import host_build

    monkeypatch.setattr(shutil, "which", lambda name: None)
    host_build.compiler.cache_clear()
    with pytest.raises(BuildError, match="apt install g\\+\\+"):
        Kernel(SOURCE, "k").build()
    host_build.compiler.cache_clear()


def test_what_the_assembler_reports():
    log = """ptxas info    : Compiling entry function 'matmul' for 'sm_90a'
ptxas info    : Function properties for matmul
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem, 384 bytes cmem[0]
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Used 8 registers, 352 bytes cmem[0]
"""
    found = nvcc.parse_resources(log)
    assert found == {"matmul": nvcc.Resources(40, 2048, 4, 8, 16), "other": nvcc.Resources(8, 0, 0, 0, 0)}


def test_targets_that_have_instructions_of_their_own():
    assert [nvcc.target(arch) for arch in ("sm_80", "sm_89", "sm_90", "sm_100")] == [
        "sm_80",
        "sm_89",
        "sm_90a",
        "sm_100a",
    ]


def needs_nvcc():
    try:
        nvcc.find()
    except BuildError as reason:
        pytest.skip(str(reason))


def test_nvcc_builds_for_hopper_and_reports():
    needs_nvcc()
    source = 'extern "C" __global__ void k(float* x) { __shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x]; '
    source += '__syncthreads(); asm volatile("wgmma.fence.sync.aligned;"); x[threadIdx.x] = s[63 - threadIdx.x]; }'
    built = nvcc.compile_cubin(source, "sm_90")
    assert built.code[:4] == b"\x7fELF"
    assert built.resources["k"].static_shared == 256
    assert 0 < built.resources["k"].registers < 64
    with pytest.raises(BuildError) as caught:
        nvcc.compile_cubin(SOURCE, "sm_90")
    assert lines(caught.value)[0] == "line 2: int i = threadIdx.x"
