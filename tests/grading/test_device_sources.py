"""What is right in emulation compiles for a GPU as well, or is refused on both sides in the same words."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilelab.cudacpp.errors import BuildError
from tilelab.grading.cuda_answers import can_emulate, judge_kernel, kernel_fault, look_at_kernel, read_cuda
from tilelab.grading.device_sources import HEADERS, STANDARD, device_text, files_fault, library_fault
from tilelab.grading.errors import GradingError
from tilelab.grading.timed import cubin
from tilelab.grading.timed.cubin import compile_cubin, nvrtc

sys.path.insert(0, str(Path(__file__).parents[2] / "autograder" / "corpora"))

from kernels import TILED, TILES, changed


def start(code):
    return changed(TILED, ("float acc = 0.0f;", f"{code} float acc = 0.0f;"))


def scalars(declared):
    return changed(TILED, ("int M, int N, int K", declared))


def include(header):
    return f"#include <{header}>\n{TILED}"


MANY = """
    float values[3] = {std::abs(A[0]), std::sqrt(2.0f), std::fmaxf(1.0f, 2.0f)}, other = std::clamp(A[0], -1.0f, 1.0f);
    std::swap(values[0], other);
    auto both = std::make_pair(std::max({1, 2, 3}), std::numeric_limits<float>::infinity());
    static_assert(std::is_same_v<std::remove_const_t<const int>, std::int32_t> && std::is_integral<long>::value);
    static_assert(std::is_floating_point_v<float> && !std::is_pointer<float>::value && std::is_unsigned_v<uint>);
    constexpr float lowest = std::numeric_limits<float>::lowest(), most = std::numeric_limits<int>::max();
    std::conditional_t<true, float, int> kept = std::move(other);
    if (std::isnan(values[2]) || K < 0) printf("%d %f %f %f %zu", both.first, kept, lowest, most, strlen("abc"));
"""
WHOLE = """
    double u = std::pow(2, 3) + pow(2, 3) + pow(2.0f, 0.5) + pow(2.0f, 3) + pow(2.0, 2.0f) + std::sqrt(K) + sqrt(K);
    u += std::log2(K) + std::fmax(A[0], 0.0) + fmax(1.0f, 2) + fmin(1, 2) + floor(3) + hypot(1, 2) + abs(-2.5f);
    (void)u;
"""
PAIRS = """
    std::pair<int, float> p(1, 2.0f), q;
    bool u = p == q || std::make_pair(1, 2.0) != std::make_pair(1, 2.0), v = std::is_same<int, int>::type::value;
    (void)(u && v);
"""
SIZES = """
    size_t u = 1;
    uint64_t* v = &u;
    auto w = std::max(u, (uint64_t)2), x = std::max((uint64_t)wide((size_t)1), *v);
    auto y = std::max(1l, (int64_t)3);
    (void)(w + x + y);
"""
WIDE = "__device__ int wide(uint64_t) { return 8; }\n__device__ int wide(uint32_t) { return 4; }\n"


def own(function, call=""):
    return f"__device__ {function}\n" + start(f"{call} (void)0;")


#: Right kernels that differ in what is beside the matter.
RIGHT = {
    "plain": TILED,
    **{f"#include <{header}>": include(header) for header in sorted(STANDARD)},
    **{
        f"#include <{header}>": include(header)
        for header in ("vector_types.h", "device_launch_parameters.h", "cuda_runtime.h", "cuda_fp16.h")
    },
    "#include <cuda_pipeline.h>": include("cuda_pipeline.h"),
    "#include <math_constants.h>": "#include <math_constants.h>\n" + start("float u = CUDART_INF_F; (void)u;"),
    "assertions off": "#define NDEBUG\n#include <cassert>\n" + start("assert(K < 0);"),
    "uint32_t": start("uint32_t u = UINT32_MAX; int64_t v = INT64_MIN + u; (void)v;"),
    "size_t": start("size_t u = sizeof(ushort) + offsetof(float4, y); (void)u;"),
    "INFINITY": start("float u = INFINITY; double v = HUGE_VAL; float w = NAN; (void)u; (void)v; (void)w;"),
    "INFINITY, constant": "constexpr float WORST = -INFINITY;\n" + start("float u = WORST; (void)u;"),
    "FLT_MAX": start("float u = FLT_MAX; int v = INT_MAX; (void)u; (void)v;"),
    "M_PI": start("float u = M_PI; (void)u;"),
    "std::min": start("int u = std::min(1, 2); float v = std::min<float>(u, 2.0f); (void)v;"),
    "much of std": "#include <algorithm>\n#include <cstdint>\n#include <limits>\n#include <utility>\n" + start(MANY),
    "using namespace std": "using namespace std;\n" + start("float u = sqrt(2.0f) + abs(A[0]); swap(u, u); (void)u;"),
    "mathematics with whole numbers": start(WHOLE),
    "pairs": start(PAIRS),
    "integers of 64 bits": WIDE + start(SIZES),
    "an own uint64_t": "typedef unsigned long uint64_t;\nusing int64_t = long;\n" + TILED,
    "an own strlen": own("size_t strlen(const char* s) { return *s ? 1 + strlen(s + 1) : 0; }", 'strlen("ab");'),
    "an own memcmp": own("int memcmp(const void* a, const void* b, size_t n) { return a != b && n; }"),
    "an own putchar": own("int putchar(int c) { return c; }"),
    "an own pow": own("int pow(int a, int b) { return b ? a * pow(a, b - 1) : 1; }", "int u = pow(2, 3); (void)u;"),
    "texts": start('bool u = strlen("abc") == 3 && !strcmp("a", "a") && !memcmp("a", "a", 1); (void)u;'),
    "a pragma in a macro, and ##": '#define UNROLL _Pragma("unroll")\n#define CAT(a, b) a##b\n'
    + changed(TILED, ("for (int k", "UNROLL for (int k")),
    "a pragma in a macro, and a printing one": '#define UNROLL _Pragma("unroll 4")\n'
    "#define DEBUG(f, ...) printf(f, ##__VA_ARGS__)\n" + changed(TILED, ("for (int k", "UNROLL for (int k")),
    "an include in a comment": "// #include <stdio.h>\n" + TILED,
    "an include in a long comment": "/* was:\n#include <vector>\n*/\n" + TILED,
    "a comment over two lines in a macro": changed(TILED, ("float acc = 0.0f;", "float acc = ZERO;")).replace(
        "__global__", "#define ZERO /* of\nfloat */ 0.0f\n__global__", 1
    ),
    "a blank behind a backslash": "#define TWICE(x) \\ \n    (2 * (x))\n" + start("int u = TWICE(3); (void)u;"),
    "Windows's line ends": TILED.replace("\n", "\r\n"),
    "#pragma GCC unroll": changed(TILED, ("for (int k", "\n#pragma GCC unroll 4\nfor (int k")),
    "#pragma unroll": changed(TILED, ("for (int k", "\n#pragma unroll 4\nfor (int k")),
    "_##b": "#define CAT(_, b) _##b\n" + TILED,
    "acc_##_n": "#define REG(_n) acc_##_n\n" + TILED,
    "x##_": "#define LOAD(x, _) x##_\n" + TILED,
    "static": changed(TILED, ("__global__ void", "static __global__ void")),
    'extern "C"': changed(TILED, ("__global__ void", 'extern "C" __global__ void')),
    "main": f"{TILED}\nint main() {{ return EXIT_SUCCESS; }}",
    "a helper of the host": f"{TILED}\n__host__ int up(int a, int b) {{ return (a + b - 1) / b; }}",
    "a helper of both": "__host__ __device__ int up(int a) { return a; }\n" + start("int u = up(3); (void)u;"),
    "a helper of nobody": "int up(int a, int b) { return (a + b - 1) / b; }\n" + start("int u = up(K, 2); (void)u;"),
    "a constexpr helper": "constexpr int up(int a) { return a; }\n" + start("int u = up(K); (void)u;"),
    "variables": "static int one = 1; const int two = 2;\n" + start("int u = one + two; (void)u;"),
    "a namespace": f"namespace {{\n{TILED}\n}}",
    "__restrict__": changed(TILED, ("const float* A", "const float* __restrict__ A")),
    "unsigned": scalars("unsigned M, unsigned N, unsigned K"),
    "const int": scalars("const int M, int32_t N, uint32_t K"),
    "a name for int": "using extent = int;\n" + scalars("extent M, extent N, extent K"),
}
#: What is refused on both sides, and words of it.
REFUSED = {
    "<iostream>": (include("iostream"), "line 1: #include <iostream> — not emulated: <iostream>"),
    "<vector>": (include("vector"), "line 1: #include <vector> — a kernel may include cooperative_groups.h"),
    "<cuda_runtime_api.h>": (include("cuda_runtime_api.h"), "a kernel may include"),
    "<device_functions.h>": (include("device_functions.h"), "a kernel may include"),
    "<sm_20_intrinsics.h>": (include("sm_20_intrinsics.h"), "a kernel may include"),
    "<cuda/std/cstdint>": (include("cuda/std/cstdint"), "not emulated: the library libcu++"),
    "<cooperative_groups/reduce.h>": (include("cooperative_groups/reduce.h"), "not emulated: cooperative groups"),
    "a name that a header's macro puts together": (
        '#ifdef __CUDACC_RTC__\n#include <cuda/barrier>\n#if _CCCL_PP_CAT(__has_, include)("/etc/passwd")\n#error yes\n'
        f"#endif\n#endif\n{TILED}",
        "'__has_include', which ## may put together",
    ),
    "_Pragma by a macro": ('#define F(x) x("GCC dependency")\nF(_Pragma)\n' + TILED, "'_Pragma' asks for files"),
    "std::sort": (start("std::sort(&K, &K);"), "std::sort is not there on the judge's GPU"),
    "float M": (
        scalars("float M, int N, int K"),
        "M is declared `float M`; the launch passes an int: declare it `int M`",
    ),
    "long long": (scalars("long long M, long long N, long long K"), "M is declared `long long M`"),
    "size_t": (scalars("int M, size_t N, int K"), "N is declared `size_t N`; the launch passes an int"),
    "short": (scalars("int M, int N, const short K"), "K is declared `const short K`"),
    "a name for float": ("typedef float real;\n" + scalars("int M, int N, real K"), "K is declared `float K`"),
}


@pytest.mark.skipif(not can_emulate(), reason="no C++ compiler")
@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_beside_the_matter_changes_no_verdict(source):
    found = judge_kernel(lambda: read_cuda(source, TILES), [(17, 19, 35)])
    assert found.share == 1, found.lines


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_right_compiles_for_a_gpu(source):
    try:
        _, folders = nvrtc()
    except GradingError as error:
        pytest.skip(str(error))
    answer = read_cuda(source, TILES)
    if not folders and re.search(r"include <(?:cuda_fp16|cuda_pipeline|math_constants)", source):
        pytest.skip("no headers of CUDA")
    assert kernel_fault(answer) == ""
    code = compile_cubin(source, "matmul", "sm_90", answer.defines)
    assert "matmul" in code.symbol
    assert code.cubin.startswith(b"\x7fELF")
    if source == TILED:  # of what is read before it nothing lies in a kernel's memory
        assert b".nv.global" not in code.cubin


def test_without_cudas_headers_what_is_built_in_is_there_and_the_rest_is_no_learners_fault(monkeypatch):
    try:
        library, _ = nvrtc()
    except GradingError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(cubin, "nvrtc", lambda: (library, ()))
    assert compile_cubin('#include "cuda_runtime.h"\n' + include("stdio.h"), "matmul", "sm_90", {}).cubin
    with pytest.raises(GradingError, match=r"cuda_fp16\.h was not found"):
        compile_cubin(include("cuda_fp16.h"), "matmul", "sm_90", {})


@pytest.mark.parametrize(("source", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_said_before_anything_runs(source, words):
    answer = read_cuda(source, TILES)
    fault = kernel_fault(answer)
    assert words in fault
    found = judge_kernel(lambda: answer, [(17, 19, 35)])
    assert (found.share, found.lines) == (0, (fault,))
    looked = look_at_kernel(lambda: answer, [(17, 19, 35)])
    assert (looked.ok, looked.text) == (False, fault)


def test_an_error_quotes_the_line_that_was_handed_in():
    try:
        nvrtc()
    except GradingError as error:
        pytest.skip(str(error))
    source = "/* one\ntwo */ // three\n" + start("/* four */ float u = nothing; // five\n")
    line = source[: source.index("nothing")].count("\n") + 1
    with pytest.raises(BuildError, match=rf"line {line}: .*four.*nothing; // five"):
        compile_cubin(source, "matmul", "sm_90", {})


# ---- comments


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a // b\nc", "a     \nc"),
        ("a /* b\nc */ d", "a     \n     d"),
        ('"// a" b // c', '"// a" b     '),
        ("'\"' // a", "'\"'     "),
        ("'\\'' // a", "'\\''     "),
        ("1'000 // 'a", "1'000      "),
        ('R"x(// )" */ )x" // a', 'R"x(// )" */ )x"     '),
        ('R"(/*)" a /* b */', 'R"(/*)" a        '),
        ("// a \\\nb\nc", "      \n \nc"),
        ("/\\\n/ a\nb", "  \n   \nb"),
        ("/\\\n* a *\\\n/ b", "  \n      \n  b"),
        ("#define A /* b\n\nc */ 1", "#define A     \\\n\\\n     1"),
        ("a \\  \nb", "a \\\nb"),
        ("/* a", "/* a"),
        ("a */ b", "a */ b"),
        ("#pragma GCC unroll 4", "#pragma     unroll 4"),
        ('_Pragma("clang loop")', '_Pragma("      loop")'),
        ('#pragma GCC dependency "x"', '#pragma GCC dependency "x"'),
    ],
    ids=ascii,
)
def test_comments_are_blank_and_all_else_keeps_its_place(source, text):
    made = device_text(source)
    assert made.rstrip() == text.rstrip()
    assert made.count("\n") == source.count("\n")


@pytest.mark.skipif(not can_emulate(), reason="no C++ compiler")
def test_gxx_reads_the_text_as_it_reads_the_source():
    """Sources from above, and pieces of comments, texts and line ends in many orders."""
    pieces = ["/*", "*/", "//", '"a"', '"/*"', "'\"'", "1'0", "\n", "\\\n", 'R"(/*)"', "b", " ", "/", "*", "L'a'"]
    sources = [source for source in RIGHT.values() if not re.search("#include|GCC", source)]
    for first in range(15):
        for step in (1, 2, 4, 7):
            sources.append("".join(pieces[(first + step * at) % len(pieces)] for at in range(12)))

    def words(text):
        done = subprocess.run(
            ["g++", "-E", "-P", "-std=c++17", "-x", "c++", "-"], input=text, capture_output=True, text=True
        )
        return None if "error:" in done.stderr or "unterminated" in done.stderr else done.stdout.split()

    read = [(source, words(source)) for source in sources]
    assert sum(said is not None for _, said in read) > 30
    for source, said in read:
        assert said is None or words(device_text(source)) == said, source


@pytest.mark.parametrize(
    "source",
    ["/*" * 20_000, "//\\\n" * 12_000, 'R"(' * 15_000, "/**/" * 12_000, '"' * 50_000, "#define A /*\n*/" * 3000],
    ids=lambda source: ascii(source[:9]),
)
def test_a_source_is_read_in_no_time(source):
    from time import process_time

    start = process_time()
    files_fault(source)
    assert process_time() - start < 5


# ---- names put together


@pytest.mark.parametrize("name", ["__has_include", "__has_embed", "_Pragma"])
def test_a_name_that_asks_for_files_cannot_be_put_together(name):
    for cut in range(1, len(name)):
        source = f"#define JOIN(a, b) a##b\nJOIN({name[:cut]}, {name[cut:]})\n"
        assert "which ## may put together" in files_fault(source)
    letters = "".join(f"{letter} " for letter in name)
    assert "which ## may put together" in files_fault(f"#define JOIN(a, b) a##b\n{letters}\n")
    assert "which ## may put together" in files_fault(f"#define JOIN(a, b) a%:\\\n%:b\n{letters}\n")


def test_what_is_named_as_a_header_is_one_name():
    assert set(STANDARD) < HEADERS
    assert library_fault("int x = cuda::std::sort(1) + std :: sqrtf(2.0f) + mystd::sort(3);  // std::sort") == ""
    assert "line 2: y = std :: sort(1); — std::sort" in library_fault("int x;\ny = std :: sort(1);")
