"""Shared memory in every order of words that nvcc takes: it works in emulation, and the checker sees it."""
# ruff: noqa: E501

import re
import shutil

import numpy as np
import pytest

from tilelab.cudacpp import nvcc
from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.kernel import Kernel
from tilelab.cudacpp.shared import for_emulation, shared_statements, unsized_shared

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="emulation needs g++")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA toolkit here")

HEAD = """
#define TILE(name, t) static __shared__ float name[t][t]
#define ALIGNED_TILE(name, t) __shared__ alignas(16) float name[t][t];
#define LONG_TILE(name, t) \\
    static __shared__ \\
    float name[t][t]
#define SMEM __shared__
#define STATIC_SMEM static __shared__
#define A16 alignas(16)
#define ALIGN(n) __align__(n)
#define OF(T, name) __shared__ T tile_##name[32]
#define DYN(T, name) extern __shared__ T name[]
#define DYN_SMEM extern __shared__
struct Pair { float x, y; };
struct Traits { using type = float; };
template <class T, int N> struct Tile { T v[N][N + 1]; };
typedef float Row[32];
constexpr int SIDE = 8;
const int LENGTH = 32;
"""
#: Each declares ``a``, at least 128 bytes.
SIZED = """
__shared__ float a[32];
static __shared__ float a[32];
__shared__ static float a[32];
float __shared__ a[32];
volatile __shared__ float a[32];
__shared__ volatile float a[32];
float volatile __shared__ a[32];
static volatile __shared__ float a[32];
__shared__ alignas(16) float a[32];
alignas(16) __shared__ float a[32];
__shared__ alignas(float4) float a[32];
__shared__ float a alignas(16) [32];
alignas(16) static __shared__ float a[32];
__shared__ __align__(16) float a[32];
__align__(16) __shared__ float a[32];
__shared__ float __align__(16) a[32];
__shared__ static __align__(16) float a[32];
__shared__ float a[32] __align__(16);
__shared__ __attribute__((aligned(16))) float a[32];
__device__ __shared__ float a[32];
__shared__ [[maybe_unused]] float a[32];
static __shared__ float a[32], b[32]; b[threadIdx.x] = 1;
__shared__ float a[32], s, b[2][3]; if (threadIdx.x == 0) s = b[0][0] = 1;
static __shared__ float4 a[8];
static __shared__ Pair a[16];
__shared__ alignas(8) struct Pair a[16];
static __shared__ struct { float u[16], v[16]; } a;
static __shared__ union { float u[32]; int v[32]; } a;
static __shared__ float a[2 * 2][(8 > 4) ? 8 : 4];
static __shared__ float a[2][2][SIDE + 1];
const int T = 4; static __shared__ float a[T][T * 2];
enum { T = 32 }; static __shared__ float a[T];
static __shared__ float a[sizeof(float4) * 2];
static __shared__ Row a;
__shared__ alignas(16) Tile<float, 8> a;
static __shared__ Tile<float, (9 > 8 ? 8 : 4)> a;
static __shared__ decltype(x[0] + 0) a[LENGTH];
static __shared__ float(a)[32];
static /* one; */ __shared__ /* two */ float a[32]; // static __shared__ float b[3];
switch (mode) { case 77: static __shared__ float b[32]; b[0] = 1; } __shared__ static float a[32];
TILE(a, 8);
ALIGNED_TILE(a, 8)
LONG_TILE(a, 8);
OF(float, q); auto& a = tile_q;
STATIC_SMEM float a[32];
static SMEM float a[32];
SMEM A16 float a[32];
__shared__ ALIGN(16) float a[32];
extern __shared__ float a[32];
""".strip().split("\n")
UNSIZED = """
extern __shared__ float a[];
__shared__ extern float a[];
extern float __shared__ a[];
extern __shared__ __align__(16) float a[];
extern __align__(16) __shared__ float a[];
extern __shared__ __align__(sizeof(float4)) float a[];
alignas(16) extern __shared__ float a[];
extern __shared__ float a[] __align__(16);
extern __shared__ __attribute__((aligned(16))) float a[];
extern __shared__ float a[], b[]; if (&a[0] != &b[0]) x[0] = -1;
extern __device__ __shared__ float a[];
extern /* the */ __shared__ float /* length */ a[/* n */];
extern __shared__ float(a)[];
DYN(float, a);
DYN_SMEM float a[];
extern SMEM float a[];
A16 extern __shared__ float a[];
extern __shared__ decltype(x[0] + 0) a[];
extern __shared__ float a[]; auto set = [](int i) { a[i] = 0; }; if (mode == 7) set(threadIdx.x);
""".strip().split("\n")
#: Of other types: to nvcc each name has one type in all of a source.
OTHER = """
extern __shared__ volatile float av[]; auto& a = av;
extern volatile __shared__ float av[]; auto& a = av;
volatile extern __shared__ float av[]; auto& a = av;
extern __shared__ float a2[][8]; auto& a = a2;
extern __shared__ float4 a4[]; auto& a = a4;
extern __shared__ unsigned char ac[]; auto& a = ac;
alignas(8) extern __shared__ unsigned long long int al[]; auto& a = al;
extern __shared__ struct Pair ap[]; auto& a = ap;
extern __shared__ Tile<float, 8> at[]; auto& a = at;
extern __shared__ float* as[]; auto& a = as;
""".strip().split("\n")
#: What a right block does, then without a barrier, without writing, and out of bounds.
USE = (
    "float* p = (float*)&a; const int i = threadIdx.x; if (mode != 2) p[mode == 3 ? i + 200 : i] = i; "
    "if (mode != 1) __syncthreads(); x[i] += p[mode == 3 ? i : 31 - i]; __syncthreads();"
)
FORMS = SIZED + UNSIZED + OTHER
#: These declare nothing in their own text.
MACROS = ("TILE(a, 8);", "TILE(a, 8)", "tile_q;", "DYN(float, a);")


def device_functions(forms):
    """One function a form, each in one line, and a kernel that calls them all."""
    lines = [f"__device__ __noinline__ void f{n}(float* x, int mode) {{ {form}" for n, form in enumerate(forms)]
    lines = [line.replace(" // ", f" {USE} }} // ") if " // " in line else f"{line} {USE} }}" for line in lines]
    calls = " ".join(f"f{n}(x, mode);" for n in range(len(forms)))
    return HEAD + "\n".join(lines) + f"\n__global__ void k(float* x, int mode) {{ {calls} }}\n"


@pytest.fixture(scope="module", params=[SIZED[:16], SIZED[16:32], SIZED[32:], UNSIZED, OTHER])
def forms(request):
    return request.param


def kernel(forms):
    return Kernel(device_functions(forms), "k", grid=1, block=32, shared=128)


@pytest.mark.slow
@needs_gcc
def test_every_form_works(forms):
    x = np.zeros(32, "f4")
    kernel(forms)(x, 0)
    np.testing.assert_array_equal(x, len(forms) * np.arange(31, -1, -1))


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize(("mode", "kind"), [(0, ""), (1, "race"), (2, "unwritten"), (3, "bounds")])
def test_the_checker_sees_every_form(forms, mode, kind):
    given = kernel(forms)
    found = given.emulate(np.zeros(32, "f4"), mode, checked=True).findings
    wanted = {n for n, line in enumerate(given.source.splitlines(), 1) if "__noinline__" in line} if kind else set()
    assert {one.line for one in found if one.kind == kind} == wanted
    assert {one.kind for one in found} <= {kind, "unwritten"}
    dynamic = [one for one in found if "dynamic shared memory" in one.message]
    assert len(dynamic) == (len(found) if forms[0].startswith("extern") else 0)


@pytest.mark.slow
@needs_nvcc
def test_nvcc_takes_every_form(forms):
    assert nvcc.compile_cubin(device_functions(forms), options=["-w"]).code


def test_lines_keep_their_numbers_and_every_form_is_read():
    for form in FORMS:
        source = HEAD + form.replace(" ", "\n")
        assert for_emulation(source).count("\n") == source.count("\n")
        assert len(shared_statements(HEAD + form)) > len(shared_statements(HEAD)) or form.endswith(MACROS)
    assert " ".join(one.name for one in unsized_shared("\n".join(OTHER))) == "av av av a2 a4 ac al ap at as"
    assert unsized_shared("extern __shared__ Tile<A, (1 > 0)>::Row * const x[][4];") == [
        ("Tile<A, (1 > 0)> :: Row* const", "x", "[4]")
    ]


@needs_gcc
def test_macros_of_the_build_are_followed():
    x = np.zeros(32, "f4")
    source = f"__global__ void k(float* x, int mode) {{ SHARED float a[32]; {USE} }}"
    for words in ("static __shared__", "extern __shared__"):
        Kernel(source, "k", grid=1, block=32, defines={"SHARED": words})(x, 0)
    np.testing.assert_array_equal(x, 2 * np.arange(31, -1, -1))


@needs_gcc
@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("__shared__ float a[32]{};", "a __shared__ variable cannot have a first value"),
        ("__shared__ int a(0);", "a __shared__ variable cannot have a first value"),
        ("__shared__ float a[32], b = 0;", "a __shared__ variable cannot have a first value"),
        ("static __shared__ unsigned a{0};", "a __shared__ variable cannot have a first value"),
    ],
)
def test_first_values_are_refused(declared, said):
    with pytest.raises(BuildError, match=f"^line 2: {re.escape(declared)}\n{said}"):
        Kernel(f"__global__ void k(float* x) {{\n{declared}\nx[0] = *(float*)&a; }}", "k").build()


@needs_gcc
@pytest.mark.parametrize("checked", [False, True])
def test_shared_and_static_variables_of_every_kind_of_function(checked):
    """A static variable that is not shared lives as long as the program, and begins with its first value."""
    source = """
    template <class T> __device__ T of_template() { static T n = 5; static T z; __shared__ T s[4]; s[threadIdx.x] = 1; return atomicAdd(&n, (T)1) + z; }
    __device__ inline int of_inline() { static int n = 5; __shared__ int s[4]; s[threadIdx.x] = 1; return atomicAdd(&n, 1); }
    struct M { __device__ static int f() { static int n = 5; __shared__ int s[4]; s[threadIdx.x] = 1; return atomicAdd(&n, 1); } };
    __global__ void k(int* x) {
        static int n = 5; __shared__ int s[4]; s[threadIdx.x] = 1;
        auto f = [] { static int m = 5; __shared__ int t[4]; t[threadIdx.x] = 1; return atomicAdd(&m, 1); };
        x[threadIdx.x + blockIdx.x * 4] = atomicAdd(&n, 1) + of_template<int>() + of_inline() + M::f() + f();
    }"""
    given, x = Kernel(source, "k", grid=2, block=4), np.zeros(8, "i4")
    assert not given.emulate(x, checked=checked).findings
    assert sorted(x) == [5 * n for n in range(5, 13)]
    assert given.build(checked).static_shared == 5 * 16
