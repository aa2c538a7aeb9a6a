"""What a Python kernel's source may consist of: a kernel, not a program that runs beside the judge's.

The simulated GPU reads a kernel's body and runs what it understands. Everything else in a source would run as plain
Python in the process that writes the results down, and could compute them without any kernel. So a source is imports
of the GPU's names, constants, and functions.
"""

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: Modules that a kernel has names from.
MODULES = ("numba", "numpy", "math", "tilelab.simt")
#: Those that change nothing in what runs.
_NAMES_ALONE = ("__future__", "typing")
_DECORATED = re.compile(r"^[ \t]*+@(?:\w++\.){0,3}jit\b", re.M)
_IN_CUDA = re.compile(r"^[^#\n\"']{0,200}?\b__global__\b", re.M)


def looks_like_python(source: str) -> bool:
    """Whether a source is a kernel in Python, not in CUDA C++: it has ``cuda.jit`` and no ``__global__``."""
    return ("cuda.jit" in source or bool(_DECORATED.search(source))) and not _IN_CUDA.search(source)


@contextmanager
def numba_simulated() -> Iterator[None]:
    """Let what is imported from numba meanwhile be the simulated GPU's, whether numba is installed or not."""
    from tilelab import simt

    places = {"numba": simt, "numba.cuda": simt.cuda, "numba.types": simt.types}
    before = {name: sys.modules.get(name) for name in places}
    sys.modules.update(places)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def form_fault(source: str) -> str:
    """Say which statement is not part of a kernel, or ``""``."""
    for node in ast.parse(source).body:
        if not _fits(node):
            first = source.splitlines()[node.lineno - 1].strip()
            return (
                f"line {node.lineno}: {first[:60]!r} is not part of a kernel: a source holds imports from "
                f"{', '.join(MODULES)}, constants, and functions with @cuda.jit"
            )
    return ""


def _fits(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Import(names=names):
            return all(_known(alias.name) for alias in names)
        case ast.ImportFrom(module=str(module), level=0):
            return _known(module)
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name | ast.Tuple) for target in targets) and _plain(value)
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]), orelse=[]):
            return ast.unparse(node.test) == "__name__ == '__main__'"  # which it never is here
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or _plain(value)
        case ast.FunctionDef():
            return _is_kernel(node)
    return False


def _known(module: str) -> bool:
    return any(module == known or module.startswith(f"{known}.") for known in (*MODULES, *_NAMES_ALONE))


def _plain(value: ast.expr) -> bool:
    """Tell whether an expression is arithmetic on constants and names."""
    allowed = (ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.operator)
    return all(isinstance(part, (*allowed, ast.unaryop, ast.expr_context)) for part in ast.walk(value))


def _is_kernel(function: ast.FunctionDef) -> bool:
    """Tell whether nothing of a function runs when it is defined but its decorator, ``cuda.jit``."""
    given = function.args
    defaults = [*given.defaults, *(default for default in given.kw_defaults if default is not None)]
    notes = [one.annotation for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)] + [function.returns]
    jit = all(
        _is_jit(one.func if isinstance(one, ast.Call) else one)
        and (not isinstance(one, ast.Call) or all(map(_plain, _given(one))))
        for one in function.decorator_list
    )
    return jit and bool(function.decorator_list) and all(_plain(one) for one in (*defaults, *notes) if one is not None)


def _is_jit(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) in ("cuda.jit", "numba.cuda.jit", "jit")


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]
