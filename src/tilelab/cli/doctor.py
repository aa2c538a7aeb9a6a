"""``tilelab doctor``: what is installed, what kernels can run on here, and how to get what is missing."""

import ctypes
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

import click

import tilelab

PACKAGES = {  # distribution -> the extra that brings it, and what it is for
    "numpy": ("book", "offset tables, the simulator"),
    "torch": ("book", "chapters that use tensors"),
    "matplotlib": ("book", "plots"),
    "jupyter-book": ("book", "building the book"),
    "jupyterlab": ("book", "working in notebooks"),
    "nbgrader": ("grade", "grading a class"),
    "jupyterhub": ("hub", "a hub for a class"),
    "cupy-cuda13x": ("gpu", "CUDA C++ on a GPU"),
    "nvidia-cuda-nvrtc": ("gpu", "compiling kernels for timed runs"),
    "nvidia-ml-py": ("gpu", "seeing what disturbs a timed run"),
    "numba-cuda": ("gpu", "Python kernels on a GPU"),
    "nvidia-cutlass": ("gpu", "CuTe C++ headers"),
}


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked for, whether it works here, what was seen, and the remedy."""

    name: str
    ok: bool
    seen: str
    purpose: str
    remedy: str = ""


def package(name: str) -> Finding:
    """Look for an installed distribution, without importing it."""
    extra, purpose = PACKAGES[name]
    try:
        return Finding(name, True, version(name), purpose)
    except PackageNotFoundError:
        return Finding(
            name, False, "not installed", purpose, f".venv/bin/pip install -c constraints.txt -e '.[{extra}]'"
        )


def works(argv: list[str], stdin: str = "") -> tuple[bool, str]:
    """Run a command for at most 20 s; return whether it succeeded, and what it printed."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, f"{argv[0]}: {error}"
    return done.returncode == 0, (done.stdout or done.stderr).strip()


def release(argv: list[str]) -> str:
    """Return the version number that a command prints of itself."""
    found = re.search(r"\d+(\.\d+)+", works(argv)[1])
    return found.group() if found else "version unknown"


def python() -> Finding:
    """Say which Python runs, and whether it is a supported one."""
    ok = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Finding("Python", ok, platform.python_version(), "everything", "install Python 3.11, 3.12 or 3.13")


def system() -> Finding:
    """Say which system this is; the sandbox and the GPU judge need Linux on x86-64."""
    ok = sys.platform == "linux" and platform.machine() == "x86_64"
    seen = f"{platform.system()} {platform.machine()}"
    return Finding(
        "system", ok, seen, "sandbox, GPU", "use Linux on x86-64; on Windows and macOS read and learn in WSL2"
    )


def simulator() -> Finding:
    """Python kernels run on the simulated GPU wherever numpy is."""
    found = package("numpy")
    seen = f"numpy {found.seen}" if found.ok else "numpy is missing"
    return Finding("simulated GPU", found.ok, seen, "kernels written in Python", found.remedy)


def compiler() -> Finding:
    """Compile one line of C++17 with the host's compiler."""
    purpose, remedy = "CUDA C++ emulated on the CPU", "sudo apt-get install -y g++"
    path = shutil.which("g++") or shutil.which("clang++")
    if path is None:
        return Finding("host C++ compiler", False, "no g++ or clang++", purpose, remedy)
    ok, seen = works([path, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"], stdin="#include <tuple>\nint main() {}\n")
    return Finding("host C++ compiler", ok, f"{path} {release([path, '--version'])}" if ok else seen, purpose, remedy)


def nvcc() -> Finding:
    """Look for NVIDIA's compiler."""
    purpose = "CuTe C++"
    ok, _ = works(["nvcc", "--version"])
    seen = release(["nvcc", "--version"]) if ok else "not found"
    return Finding("nvcc", ok, seen, purpose, "install the CUDA toolkit and put its bin folder on PATH")


def gpu() -> Finding:
    """Ask the CUDA driver for its devices."""
    purpose, remedy = "timed runs", "chapters show recorded runs; to time your own, use a machine with an NVIDIA GPU"
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding("NVIDIA GPU", False, "no CUDA driver", purpose, remedy)
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return Finding("NVIDIA GPU", False, "the CUDA driver reports no device", purpose, remedy)
    name = ctypes.create_string_buffer(100)
    cuda.cuDeviceGetName(name, 100, 0)
    return Finding("NVIDIA GPU", True, f"{count.value} × {name.value.decode()}", purpose)


def sandbox() -> Finding:
    """Start a process without network in a namespace of its own, as grading does; say what holds its limits."""
    from tilelab.grading.sandbox.cgroups import held_by

    purpose, remedy = "grading learners' code", "sudo apt-get install -y bubblewrap"
    if shutil.which("bwrap") is None:
        return Finding("sandbox", False, "bubblewrap is not installed", purpose, remedy)
    ok, seen = works(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"])
    allow = "allow unprivileged user namespaces (Ubuntu 24.04: sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
    held = f"bubblewrap {release(['bwrap', '--version'])}, {held_by()}"
    return Finding("sandbox", ok, held if ok else seen, purpose, allow)


def browser() -> Finding:
    """Look for a Chromium that the book's browser tests can drive."""
    path = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    seen = release([path, "--version"]) if path else "not found"
    return Finding("Chromium", path is not None, seen, "the book's own tests", "sudo apt-get install -y chromium")


SECTIONS: dict[str, list[Callable[[], Finding]]] = {
    "Machine": [python, system],
    "What kernels can run on": [simulator, compiler, nvcc, gpu],
    "Tools": [sandbox, browser],
}


def examine() -> dict[str, list[Finding]]:
    """Look at everything and return the findings by section."""
    found = {title: [probe() for probe in probes] for title, probes in SECTIONS.items()}
    found["Packages"] = [package(name) for name in PACKAGES]
    return found


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def command(as_json: bool) -> None:
    """Show what is installed, what kernels can run on here, and how to get what is missing.

    What is missing is no failure, for few need all of it: the exit code is 0. Grading looks at its sandbox itself.
    """
    found = examine()
    if as_json:
        report = {"tilelab": tilelab.__version__}
        click.echo(json.dumps(report | {title: [asdict(f) for f in rows] for title, rows in found.items()}, indent=1))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    console.print(f"tilelab {tilelab.__version__}")
    for title, rows in found.items():
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, show_header=False)
        for f in rows:
            table.add_row("[green]yes[/]" if f.ok else "[yellow]no [/]", f.name, escape(f.seen), f"[dim]{f.purpose}[/]")
        console.print(table, "")
    missing = [f for rows in found.values() for f in rows if not f.ok]
    if missing:
        console.print("To get what is missing, in the project's folder:")
    for f in missing:
        console.print(f"  {f.name}: {escape(f.remedy)}", soft_wrap=True)
