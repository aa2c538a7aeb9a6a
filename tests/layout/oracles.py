"""What the other libraries answer: CuTe C++ compiled on the host, pycute and tensor-layouts.

``python tests/layout/oracles.py`` asks all of them about every case and writes ``tests/data/oracles.json``, with where
each answer comes from. It needs ``pip install tilelab[oracle]``, a C++ compiler and the CUDA headers.
"""

import datetime
import importlib.util
import json
import random
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import layout_reference as ref

from tilelab import Layout
from tilelab.layout.parsing import parse_tuple as value

DATA = Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "layout_algebra.json").read_text())
#: Cases about Python's own contract or about printing, which has golden texts of its own.
NOT_ASKED = ("construct", "print_layout")
SUFFIX = re.compile(r"(_tile|_int|_profile|_step|_default|_stride|2)$")
NO_SUFFIX = ("local_tile", "idx2crd", "max_common_layout")


def operation(case):
    op = case["op"]
    return op if op in NO_SUFFIX else SUFFIX.sub("", op)


def asked():
    return [case for case in CASES if case["op"] not in NOT_ASKED]


# ---- CuTe C++


def include_folders():
    """CuTe's headers from its wheel, and CUDA's from a toolkit or from wheels."""
    wheel = importlib.util.find_spec("cutlass_library")
    if wheel is None:
        raise FileNotFoundError("the wheel nvidia-cutlass is not installed: pip install tilelab[oracle]")
    cute = Path(wheel.origin).parent / "source" / "include"
    site = Path(wheel.origin).parents[1]
    toolkits = [*site.glob("nvidia/*"), *sorted(Path("/usr/local").glob("cuda*"), reverse=True)]
    for toolkit in toolkits:
        found = [toolkit / "include", toolkit / "include" / "cccl"]
        if (found[0] / "cuda_runtime.h").exists():
            return [cute, *[folder for folder in found if folder.exists()]]
    raise FileNotFoundError("no CUDA headers: install a CUDA toolkit, or the wheels nvidia-cuda-runtime and -cccl")


def cpp(tree, make="make_shape", dynamic=False):
    if isinstance(tree, tuple):
        return f"{make}({', '.join(cpp(item, make, dynamic) for item in tree)})"
    if tree is None:
        return "_"
    return str(tree) if dynamic else f"Int<{tree}>{{}}"


def cpp_layout(text):
    layout = Layout.parse(text)
    return f"make_layout({cpp(layout.shape)}, {cpp(layout.stride, 'make_stride')})"


def cpp_tile(tile):
    return "_" if tile == "_" else cpp_layout(tile)


def cpp_step(text):
    return "Step<" + ", ".join("X" if part is None else "_1" for part in value(text)) + ">{}"


def cpp_statement(case):
    """The statement that prints CuTe's answer to one case."""
    i, op = case["inputs"], case["op"]
    name = operation(case)
    if op == "call":
        return ' P(","); '.join(
            f"P({cpp_layout(i['layout'])}({cpp(value(c), 'make_coord', True)}));" for c in i["coords"]
        )
    if op in ("swizzle", "swizzled_layout", "cosize_swizzled"):
        swizzle = f"Swizzle<{i['bits']},{i['base']},{i['shift']}>{{}}"
        if op == "swizzle":
            return ' P(","); '.join(f"P({swizzle}({x}));" for x in i["xs"])
        layout = f"composition({swizzle}, {cpp_layout(i['layout'])})"
        if op == "cosize_swizzled":
            return f"P(cosize({layout}));"
        return ' P(","); '.join(f"P({layout}({cpp(value(c), 'make_coord', True)}));" for c in i["coords"])
    if op == "idx2crd_stride":
        return f"P(idx2crd({i['idx']}, {cpp(value(i['shape']))}, {cpp(value(i['stride']))}));"
    if op == "idx2crd":
        return f"P(idx2crd({i['idx']}, {cpp(value(i['shape']))}));"
    if op == "compatible":
        return f"P(compatible({cpp(value(i['a']))}, {cpp(value(i['b']))}) ? 1 : 0);"
    if op == "slice_and_offset":
        coord = cpp(value(i["coord"]), "make_coord")
        return f'auto r = slice_and_offset({coord}, {cpp_layout(i["layout"])}); P(get<1>(r)); P(" o "); P(get<0>(r));'
    if name.startswith("local_"):
        tensor = f"make_tensor(counting_iterator<int>{{0}}, {cpp_layout(i['layout'])})"
        if name == "local_tile":
            rest = [cpp(value(i["tiler"])), cpp(value(i["coord"]), "make_coord")]
        else:
            rest = [cpp_layout(i["thr"]), i["idx"]]
        rest += [cpp_step(i["proj"])] if "proj" in i else []
        return f'auto t = {name}({tensor}, {", ".join(rest)}); P(*t.data()); P(" o "); P(t.layout());'
    if op in ("upcast", "downcast"):
        return f"P({op}<{i['n']}>({cpp_layout(i['layout'])}));"
    arguments = []
    for key in ("layout", "block", "a", "b"):
        if key in i:
            arguments.append(cpp_layout(i[key]))
    if "tiler" in i:
        arguments.append(f"make_tile({', '.join(map(cpp_tile, i['tiler']))})")
    for key, make in (
        ("shape", "make_shape"),
        ("cotarget", "make_shape"),
        ("profile", "make_tuple"),
        ("order", "make_tuple"),
        ("n", ""),
    ):
        if key in i:
            arguments.append(cpp(value(i[key]), make))
    return f"P({name}({', '.join(arguments)}));"


HEADER = """#include <cstring>
#include <cute/tensor.hpp>
#include <cute/swizzle_layout.hpp>
using namespace cute;
template <class T> void P(T const& t) { print(t); }
void P(char const* t) { printf("%s", t); }
"""


class CuTe:
    """Compiles against CuTe's headers on the host; the headers are compiled once."""

    def __init__(self, folder):
        self.folder = Path(folder)
        cute, *cuda = include_folders()
        self.command = [
            "g++",
            "-std=c++17",
            "-w",
            "-O0",
            f"-I{cute}",
            *[part for c in cuda for part in ("-isystem", str(c))],
        ]
        (self.folder / "all.hpp").write_text(HEADER)
        subprocess.run([*self.command, "-x", "c++-header", "all.hpp"], cwd=folder, check=True, capture_output=True)

    def run(self, cases):
        """Return id -> what CuTe prints; a case that does not compile or dies is told so, and costs one more try."""
        answers, rest = {}, list(cases)
        while rest:
            lines = [f'if (!strcmp(v[1], "{case["id"]}")) {{ printf("\\t"); {cpp_statement(case)} }}' for case in rest]
            (self.folder / "unit.cpp").write_text(
                "\n".join(['#include "all.hpp"', "int main(int, char** v) {", *lines, "}"])
            )
            built = subprocess.run(
                [*self.command, "unit.cpp", "-o", "unit"], cwd=self.folder, capture_output=True, text=True
            )
            if built.returncode == 0:
                break
            refused = {int(number) - 3 for number in re.findall(r"unit\.cpp:(\d+):", built.stderr)}
            if not refused:
                raise RuntimeError(built.stderr[-2000:])
            answers |= {rest[k]["id"]: "does not compile" for k in refused}
            rest = [case for k, case in enumerate(rest) if k not in refused]
        for case in rest:  # one process each: some die of a division by zero
            ran = subprocess.run(["./unit", case["id"]], cwd=self.folder, capture_output=True, text=True)
            printed = ran.stdout.partition("\t")[2].strip().replace("_", "")
            answers[case["id"]] = printed if ran.returncode == 0 else f"dies with signal {-ran.returncode}"
        return answers


def ask_cute():
    """Ask CuTe C++: the cases that it should answer in one unit, then those it may refuse."""
    doubtful = [
        case
        for case in asked()
        if {"error", "policy"} & set(case["expected"]) or "_" in case["inputs"].get("tiler", ())
    ]
    with tempfile.TemporaryDirectory() as folder:
        cute = CuTe(folder)
        return cute.run([case for case in asked() if case not in doubtful]) | cute.run(doubtful)


def random_cases(count=150, seed=20_260_302):
    """Cases that nobody chose: small random layouts, strides 0, holes, no powers of two."""
    rng = random.Random(seed)

    def any_layout():
        return ref.random_layout(rng, modes=3, extents=(1, 2, 3, 4, 5), most=8)

    def distinct():
        shape, stride, running = [rng.choice((2, 3, 4, 5)) for _ in range(rng.randint(1, 3))], {}, 1
        for place in rng.sample(range(len(shape)), len(shape)):
            running *= rng.choice((1, 1, 1, 2, 3))
            stride[place] = running
            running *= shape[place]
        return Layout(tuple(shape), tuple(stride[place] for place in range(len(shape))))

    makers = {
        "composition": lambda: dict(zip("ab", map(str, next(ref.random_pairs(1, rng.random()))), strict=True)),
        "complement": lambda: {"layout": str(distinct()), "cotarget": str(rng.randint(1, 300))},
        "left_inverse": lambda: {"layout": str(distinct())},
        "upcast": lambda: {"layout": str(any_layout()), "n": str(rng.choice((2, 3, 4)))},
        "max_common_vector": lambda: {"a": str(any_layout()), "b": str(any_layout())},
    }
    for op in ("right_inverse", "coalesce", "filter", "make_layout_like", "nullspace"):
        makers[op] = lambda: {"layout": str(any_layout())}
    for op in ("logical_divide", "logical_product", "blocked_product", "raked_product"):
        makers[op] = lambda: {"a": str(distinct()), "b": str(distinct())}
    ops = sorted(makers)
    return [
        {"id": f"random-{k}", "op": op, "inputs": makers[op](), "expected": {}}
        for k, op in enumerate(rng.choice(ops) for _ in range(count))
    ]


# ---- the Python libraries


def python_arguments(case, lib, tuple_of):
    i = case["inputs"]

    def layout(text):
        ours = Layout.parse(text)
        return lib.Layout(ours.shape, ours.stride)

    arguments = [layout(i[key]) for key in ("layout", "block", "a", "b") if key in i]
    if "tiler" in i:
        arguments.append(tuple_of(None if tile == "_" else layout(tile) for tile in i["tiler"]))
    return arguments + [value(i[key]) for key in ("shape", "cotarget", "profile", "order", "n") if key in i]


def ask_python(name):
    """Ask pycute or tensor-layouts about the operations they have; errors are answers."""
    import warnings

    import tilelab

    warnings.simplefilter("ignore")
    lib = __import__({"pycute": "pycute", "tensor-layouts": "tensor_layouts"}[name])
    renamed = {"composition": "compose"} if name == "tensor-layouts" else {}
    answers = {}
    for case in asked():
        op, i = operation(case), case["inputs"]
        function = getattr(lib, renamed.get(op, op), None)
        if op.startswith(("local_", "swizzle", "upcast", "downcast", "domain", "cosize_")) or op in (
            "call",
            "compatible",
            "slice_and_offset",
        ):
            continue
        try:
            if op.startswith("idx2crd"):
                result = lib.idx2crd(*[value(i[key]) for key in ("idx", "shape", "stride") if key in i])
            elif function is None:
                continue
            else:
                result = function(*python_arguments(case, lib, tuple))
            text = str(result).replace(" ", "").replace(",)", ")")
            text = text.removeprefix("Layout(").removesuffix(")") if text.startswith("Layout(") else text
        except RecursionError:
            text = "RecursionError"
        except Exception as error:  # whatever it is, it is the answer
            text = type(error).__name__
        answers[case["id"]] = text
    assert tilelab
    return answers


def record():
    """Ask everybody and write what they said."""
    compiler = subprocess.run(["g++", "-dumpfullversion"], check=True, capture_output=True, text=True).stdout.strip()
    cute = include_folders()[0]
    cute_version = dict(
        re.findall(r"#define CUTLASS_(MAJOR|MINOR|PATCH) (\d+)", (cute / "cutlass" / "version.h").read_text())
    )
    answers = {"CuTe C++": ask_cute(), "pycute": ask_python("pycute"), "tensor-layouts": ask_python("tensor-layouts")}
    about = {
        "date": datetime.date.today().isoformat(),
        "CuTe C++": {
            "headers": f"CUTLASS {'.'.join(cute_version.values())}, wheel nvidia-cutlass {version('nvidia-cutlass')}",
            "compiler": f"g++ {compiler}, -std=c++17, all integers Int<>",
        },
        "pycute": f"in the wheel nvidia-cutlass {version('nvidia-cutlass')}",
        "tensor-layouts": version("tensor-layouts"),
        "how": "python tests/layout/oracles.py",
    }
    return {"recorded": about, "answers": answers, "random": ask_cute_about(random_cases())}


def ask_cute_about(cases):
    """Return the cases with CuTe's answers."""
    with tempfile.TemporaryDirectory() as folder:
        answers = CuTe(folder).run(cases)
    return [case | {"cute": answers[case["id"]]} for case in cases]


if __name__ == "__main__":
    recorded = record()
    (DATA / "oracles.json").write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
    counts = {name: len(found) for name, found in recorded["answers"].items()}
    print(counts | {"random": len(recorded["random"])}, file=sys.stderr)
