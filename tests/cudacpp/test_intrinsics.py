"""Intrinsics give what a GPU gives: whole numbers bit by bit, halves two at a time. Each due value is from CUDA's own definition."""
# ruff: noqa: E501

import shutil

import numpy as np
import pytest

from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.kernel import Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")

WHOLE = {
    "__brevll(1)": 1 << 63,
    "__byte_perm(0x33221100, 0x77665544, 0x7610)": 0x77661100,
    "__byte_perm(0x33221100, 0x77665544, 0x0123)": 0x00112233,
    "__funnelshift_l(0x89abcdef, 0x01234567, 8)": 0x23456789,
    "__funnelshift_l(0x89abcdef, 0x01234567, 32)": 0x01234567,
    "__funnelshift_lc(0x89abcdef, 0x01234567, 40)": 0x89ABCDEF,
    "__funnelshift_r(0x89abcdef, 0x01234567, 8)": 0x6789ABCD,
    "__funnelshift_rc(0x89abcdef, 0x01234567, 32)": 0x01234567,
    "__sad(-5, 7, 3)": 15,
    "__usad(5, 7, 3)": 5,
    "__mul64hi(-1, 1)": -1,
    "__umul64hi(1ull << 63, 6)": 3,
    "__hadd(-3, 0)": -2,
    "__rhadd(-3, 0)": -1,
    "__uhadd(0xffffffff, 1)": 0x80000000,
    "__urhadd(0xffffffff, 0)": 0x80000000,
    "umax(1, 0xffffffff)": 0xFFFFFFFF,
    "__float2ll_rn(1e30f)": 2**63 - 1,
    "__double2ll_rz(-2.5)": -2,
    "__double2uint_rn(-1.0)": 0,
    "__hiloint2double(0x3ff00000, 0) == 1.0": 1,
    "__double2hiint(-2.0)": -0x40000000,
    "__double2loint(1.0 + 0x1p-52)": 1,
    "dim3(make_uint3(1, 2, 3)).z": 3,
    "((uint3)dim3(4)).x": 4,
    "make_ulong2(5, 6).y": 6,
    "__match_all_sync(~0u, 7, &p) & p": 1,
    "__match_all_sync(~0u, threadIdx.x, &p) | p": 0,
    "__hisinf(__float2half(-INFINITY))": -1,
    "__hbeq2(h2, h2) && !__hbeq2(h2, -h2)": 1,
    "h2 == __lowhigh2highlow(__lowhigh2highlow(h2))": 1,
    "__half2uint_rz(half(3.7f))": 3,
}
FLOATS = {
    "__low2float(half2(1.5f, 2.5f))": 1.5,
    "__high2float(__nv_bfloat162(1.5f, 2.5f))": 2.5,
    "(float)(h2 / h2).y": 1,
    "(float)(h2 += h2).x": 6,
    "(float)__hmax2(h2, make_half2(4.f, 4.f)).y": 4,
    "(float)__hgt2(h2, make_half2(0.f, 0.f)).y": 0,
    "(float)__highs2half2(h2, h2).x": -2,
    "(float)__lows2bfloat162(b2, b2).y": 1,
    "(float)h2sqrt(make_half2(4.f, 9.f)).y": 3,
    "(float)__hadd_sat(h2.x, h2.x)": 1,
    "(float)__hfma_relu(h2.y, h2.x, h2.x)": 0,
    "(float)__double2half(0.1)": float(np.float16(0.1)),
    "(float)(h++) + (float)h": 1 + 2,
    "(float)(--h)": 0,
    "sinpif(0.5f) + cospif(1.f)": 0,
    "normcdff(0.f)": 0.5,
    "norm3df(2.f, 3.f, 6.f)": 7,
    "__ldcv(&x[0]) * 0": 0,
}  # fmt: skip
LOCALS = "half h = 1.f; half2 h2 = half2(3.f, -2.f); __nv_bfloat162 b2 = {1.f, 2.f}; int p = 0;"


def test_whole_numbers():
    stores = "\n".join(f"{{ {LOCALS} x[{n}] = (long long)({e}); }}" for n, e in enumerate(WHOLE))
    x = np.zeros(len(WHOLE), "i8")
    Kernel(f"#include <cuda_fp16.h>\n__global__ void k(long long* x) {{ {stores} }}", "k", block=32)(x)
    found = dict(zip(WHOLE, x.tolist(), strict=True))
    assert found == {e: due if due < 2**63 else due - 2**64 for e, due in WHOLE.items()}


def test_floats():
    stores = "\n".join(f"{{ {LOCALS} x[{n}] = {e}; }}" for n, e in enumerate(FLOATS))
    x = np.zeros(len(FLOATS), "f4")
    Kernel(f"#include <cuda_bf16.h>\n__global__ void k(float* x) {{ {stores} }}", "k")(x)
    assert dict(zip(FLOATS, x.tolist(), strict=True)) == pytest.approx(FLOATS, abs=1e-6)


@pytest.mark.parametrize("name", ["__fadd_rz(x[0], x[1])", "__vadd4(1, 2)", "h2fancy(x)"])
def test_what_is_lacking_is_said_to_be(name):
    word = name.partition("(")[0]
    with pytest.raises(
        BuildError, match=rf"^line 2: {word}.*\n{word} is declared nowhere.*; if it is CUDA's own, the emulation lacks"
    ):
        Kernel(f"__global__ void k(float* x) {{\n{name};\n}}", "k").build()


def test_a_macro_of_the_build_is_blamed_where_it_is_used():
    with pytest.raises(BuildError, match=r"^line 3: x.0. = TILE;\n"):
        Kernel("// TILE\n__global__ void k(float* x) {\nx[0] = TILE;\n}", "k", defines={"TILE": "sixteen"}).build()
