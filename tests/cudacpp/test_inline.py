"""load_inline without its traps. PyTorch's own part is stood in for: building takes a GPU machine and most of a minute."""
# ruff: noqa: E501

import shutil

import pytest

from tilelab.cudacpp import inline, nvcc
from tilelab.cudacpp.errors import BuildError

cpp_extension = pytest.importorskip("torch.utils.cpp_extension")
CUDA = "__global__ void k(float* x) {\n    x[0] = 1\n}\n"


@pytest.fixture
def tools(monkeypatch, tmp_path):
    monkeypatch.setenv("TILELAB_CACHE", str(tmp_path))
    monkeypatch.setattr(nvcc, "find", lambda: "/somewhere/nvcc")
    monkeypatch.setattr(shutil, "which", lambda name: f"/somewhere/{name}")
    return tmp_path / "load_inline"


def test_the_name_follows_everything_that_goes_into_the_build():
    base = inline.module_name("a", "b", ["-O3"], "sm_90a")
    assert base == inline.module_name("a", "b", ["-O3"], "sm_90a")
    others = [
        ("A", "b", ["-O3"], "sm_90a"),
        ("a", "B", ["-O3"], "sm_90a"),
        ("a", "b", [], "sm_90a"),
        ("a", "b", ["-O3"], "sm_80"),
    ]
    assert len({base, *(inline.module_name(*other) for other in others)}) == 5


def test_hoppers_own_target_is_passed_by_us(tools, monkeypatch):
    asked = {}
    monkeypatch.setattr(cpp_extension, "load_inline", lambda **words: asked.update(words) or "module")
    assert inline.load_inline("", CUDA, ["run"], arch="sm_90") == "module"
    assert "-gencode=arch=compute_90a,code=sm_90a" in asked["extra_cuda_cflags"]
    assert asked["cuda_sources"].startswith('#line 1 "kernel.cu"\n')


def test_a_failed_build_leaves_nothing_behind_and_shows_the_line(tools, monkeypatch):
    def fail(**words):
        (tools / words["name"] / "half").write_text("built")
        raise RuntimeError('Error building extension: [1/2] nvcc …\nkernel.cu(3): error: expected a ";"\n')

    monkeypatch.setattr(cpp_extension, "load_inline", fail)
    for _ in range(2):
        with pytest.raises(BuildError, match=r"^line 2: x\[0\] = 1\nexpected a"):
            inline.load_inline("", CUDA, ["run"], arch="sm_80")
        assert list(tools.iterdir()) == []


@pytest.mark.skipif(shutil.which("ninja") is None, reason="PyTorch looks for ninja before anything else")
def test_a_second_try_fails_for_the_same_reason(monkeypatch, tmp_path):
    """PyTorch itself, as far as it goes without a toolkit: it notes the text before it builds, and then only imports."""
    monkeypatch.setenv("TILELAB_CACHE", str(tmp_path))
    monkeypatch.setattr(nvcc, "find", lambda: "/somewhere/nvcc")
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", None)
    for _ in range(2):
        with pytest.raises(BuildError, match="CUDA_HOME"):
            inline.load_inline("", CUDA, ["run"], arch="sm_90")


def test_a_pytorch_that_finds_no_toolkit():
    assert "2.13.0+cpu) is not: install one" in inline._no_toolkit("2.13.0+cpu", None)
    assert "set CUDA_HOME to the folder" in inline._no_toolkit("2.13.0+cu130", "13.0")


@pytest.mark.parametrize(
    ("functions", "arch", "said"),
    [
        ("run", "sm_90", r"functions is 'run'; a list of names"),
        ([], "sm_90", r"functions is \[\]; a list of names"),
        ([3], "sm_90", r"functions is \[3\]; a list of names"),
        (["run"], "hopper", 'arch is .hopper.; name one as nvcc does, such as "sm_90"'),
        (["run"], 90, 'arch is 90; name one as nvcc does, such as "sm_90"'),
    ],
)
def test_what_no_build_can_start_with(functions, arch, said):
    with pytest.raises(BuildError, match=said):
        inline.load_inline("", CUDA, functions, arch=arch)


def test_force_builds_afresh(tools, monkeypatch):
    seen = []

    def build(**words):
        folder = tools / words["name"]
        noted = cpp_extension.JIT_EXTENSION_VERSIONER.entries
        seen.append(((folder / "kept").exists(), words["name"] in noted))
        (folder / "kept").write_text("")
        noted[words["name"]] = None

    monkeypatch.setattr(cpp_extension, "load_inline", build)
    for force in (False, False, True):
        inline.load_inline("", CUDA, ["run"], arch="sm_80", force=force)
    assert seen == [(False, False), (True, True), (False, False)]


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr(nvcc, "find", lambda: "/somewhere/nvcc")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match="pip install ninja"):
        inline.load_inline("", CUDA, ["run"], arch="sm_80")
