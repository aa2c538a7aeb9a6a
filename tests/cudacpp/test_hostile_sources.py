"""Sources that are written against whoever reads them: they cost their own kernel, and no time and no file."""

import subprocess
import sys

import numpy as np
import pytest

from tilelab.cudacpp.diagnostics import errors, explain
from tilelab.cudacpp.errors import BuildError, CudaError, KernelFault
from tilelab.cudacpp.findings import read_report
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.source import declaration

KERNEL = "__global__ void k(float* x) { float own[4]; x[threadIdx.x] = 1; }\n"
REPEATED = [
    "__global__ ", "template<a> __global__ ", "typedef a ", "using a = b b;", "/*", '\\"', "#if 1\n", "__device__ ",
    "extern __shared__ ", "# \n", "__shared__ a[", "__shared__ a<", "__shared__ (", "::__shared__ ", "__shared__ a, ",
    "#define a __shared__\n", "__shared__ struct {", "__shared__ alignas(", "static a = ",
]  # fmt: skip
LONG = ["//" + "a" * 50_000, "#define x " + " " * 50_000 + "y", "typedef" + " " * 50_000, "#if " + "9" * 5000 + "\n"]
LONG += ["".join(f"#define z{i} z{i + 1} __shared__ z{i + 1}\n" for i in range(1000)), "z1 __shared__ " * 4000]
LONG += ["".join(f"using z{i} = z{i + 1} z{i + 1};" for i in range(1000))]


def test_reading_a_source_takes_no_time_whatever_it_holds() -> None:
    texts = [(piece * 50_000)[:50_000] for piece in REPEATED] + LONG
    program = (
        "import sys\nfrom tilelab.cudacpp.source import *\nfrom tilelab.cudacpp.shared import *\n"
        "from tilelab.cudacpp.findings import _place\n"
        f"for text in {texts!r}:\n"
        f"    source = text + {KERNEL!r}\n    kernels_in(source), unset_arrays(source), for_emulation(source)\n"
        "    plain_statics(source), first_value_of_shared(source)\n"
        "    try: declaration(source, 'k')\n"
        "    except Exception as error: assert type(error).__name__ == 'BuildError', error\n"
        "    _place({'array': 'a', 'offset': '0', 'element': '4', 'length': '4'}, source)\n"
    )
    subprocess.run([sys.executable, "-"], input=program, text=True, check=True, timeout=250)  # once it was hours


def test_a_condition_of_thousands_of_digits_is_a_condition() -> None:
    assert declaration("#if " + "9" * 5000 + "\n" + KERNEL + "#endif", "k").name == "k"


def run(source: str, checked: bool = False) -> None:
    Kernel(source, "k", block=4).emulate(np.zeros(4, np.float32), checked=checked)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('extern "C" long syscall(long, ...); __global__ void k(float* x) { syscall(231, 0); }', "syscall"),
        ("void finished(); __global__ void k(float* x) { finished(); }", "finished"),
        ('#include <unistd.h>\n__global__ void k(float* x) { unlink("memory"); }', "unlink"),
        ('int other() asm("open");__global__ void k(float* x) { other(); }', "asm"),
        ('int other() __asm__("open");__global__ void k(float* x) { other(); }', "open"),
        ('#define A __as##m__\n__global__ void k(float* x) { A("nop"); }', "asm"),
        ("__device__ float big[50000000] = {1}; __global__ void k(float* x) { x[0] = big[3]; }", "MiB"),
        (
            'static_assert(false, "\\nkernel.cu(' + "9" * 5000 + '): error: x"); __global__ void k(float* x) {}',
            "line 1",
        ),
    ],
)
def test_what_no_device_code_has_does_not_build(source: str, words: str) -> None:
    with pytest.raises(BuildError, match=words):
        run(source)


# Machine code in data that can run: what asks the system itself, and has to be refused by the system.
CALL = """
__attribute__((section(".text#"))) extern const unsigned char call[] = {
    0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x0f, 0x05, 0xc3};
"""


def test_a_kernel_that_calls_the_system_itself_is_refused_there() -> None:
    wanted = {"open": 2, "openat": 257, "unlink": 87, "symlink": 88, "socket": 41, "fork": 57, "execve": 59, "kill": 62}
    numbers = ", ".join(map(str, wanted.values()))
    source = f"""{CALL}
    __global__ void k(float* x) {{
        const int numbers[] = {{{numbers}}};
        typedef long (*Call)(long, const char*, const char*, long, long);
        for (int i = 0; i < {len(wanted)}; ++i) x[i] = ((Call)call)(numbers[i], "memory", "memory", 0, 0);
    }}"""
    x = np.zeros(len(wanted), np.float32)
    Kernel(source, "k").emulate(x)
    assert dict(zip(wanted, x.tolist(), strict=True)) == dict.fromkeys(wanted, -1.0)  # EPERM


def test_lines_that_a_source_makes_up_are_only_lines() -> None:
    source = '#line 3 "a\\n0xzz kernel.cu"\n__global__ void k(float* x) { __shared__ float s[4]; x[0] = s[0]; }'
    Kernel(source, "k", block=4).emulate(np.zeros(4, np.float32), checked=True)


def test_numbers_of_a_log_are_bounded() -> None:
    assert errors("kernel.cu(" + "9" * 5000 + "): error: x") == []
    assert isinstance(explain("kernel.cu:" + "9" * 5000 + ": error: x", KERNEL, "g++"), CudaError)


def test_a_report_that_cannot_be_read_is_the_kernels_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(report: str, *_: object) -> tuple[()]:
        return read_report("race\tcode=zz\n", b"", "", (1, 1, 1), (1, 1, 1))  # type: ignore[return-value]

    monkeypatch.setattr("tilelab.cudacpp.emulation.read_report", broken)
    with pytest.raises(KernelFault, match="record"):
        run(KERNEL)
