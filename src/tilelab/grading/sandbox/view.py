"""What of the machine's files can be seen from inside: the system, this Python, the package. All of it read-only."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import tilelab
from tilelab.grading.sandbox.errors import SandboxError

HOME = "/home/student"
#: Folders that hold people's files, or the sandbox's own: never shown whole.
PRIVATE = frozenset(map(Path, ("/", "/home", "/root", "/tmp", "/var", "/etc", "/proc", "/sys", "/dev", "/run", HOME)))
#: What compilers and libraries look for outside /usr.
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
                "/etc/fonts")  # fmt: skip
#: Installed packages that are not shown: a kernel imports its debugger at the start, a quarter of the time that takes,
#: and nobody debugs in here.
LEFT_OUT = ("debugpy",)


def package() -> Path:
    """Return the folder of ``tilelab`` itself."""
    return Path(tilelab.__file__).parent


def python_folders() -> list[Path]:
    """Return the folders without which this interpreter does not run or import what is installed for it.

    The folder of the running script and the working folder, which are on ``sys.path`` too, are not among them: in a
    course they hold the checks.
    """
    installed = [*site.getsitepackages(), *(path for path in sys.path if Path(path).name.endswith("-packages"))]
    if site.ENABLE_USER_SITE:
        installed.append(site.getusersitepackages())
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, *installed]
    folders += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    link = Path(sys.executable)
    folders.append(str(link.parent))
    while link.is_symlink():  # each hop from the virtual environment's python to the real one
        link = link.parent / link.readlink()
        folders.append(str(link.parent))
    return [Path(folder) for folder in folders if os.path.isdir(folder)]


@cache
def folders_of(packages: tuple[str, ...]) -> tuple[Path, ...]:
    """Return where packages are installed, links followed, in any of the folders that this interpreter needs.

    Import is not asked: what it would find first can be another copy, a debugger's own or one in the working folder.
    """
    places = {str(folder / name) for folder in python_folders() for name in packages}
    return tuple(sorted({Path(os.path.realpath(place)) for place in places if os.path.isdir(place)}))


def shortest(paths: Iterable[Path]) -> list[Path]:
    """Return the paths without those that lie inside another."""
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(above) for above in kept):
            kept.append(path)
    return kept


@cache
def visible_paths(extra: tuple[str, ...] = ()) -> tuple[Path, ...]:
    """Return every path of the machine that is shown inside, besides the system's links such as ``/bin``.

    Parameters
    ----------
    extra : tuple of str
        Further files or folders to show, such as a compiler's.

    Raises
    ------
    SandboxError
        Where showing what Python needs would show a folder of people's files whole.
    """
    wanted: set[Path] = {Path("/usr"), package(), package().resolve()}
    for folder in [*python_folders(), *map(Path, extra)]:
        wanted |= {folder.absolute(), folder.resolve()}
    for path in wanted:
        if path in PRIVATE or path == Path.home():
            raise SandboxError(
                f"the sandbox would have to show {path} whole, because Python or a compiler is installed there: "
                "use a virtual environment in a folder of its own"
            )
    return tuple(shortest(path for path in wanted if path.exists()))


def arguments(extra: tuple[str, ...] = ()) -> list[str]:
    """Return bwrap's arguments that build the read-only part of the file system."""
    paths = visible_paths(extra)
    built = folders_above(*paths, Path("/etc/passwd"))
    for path in paths:
        built += ["--ro-bind", str(path), str(path)]
    for path in paths:
        for folder in folders_of(LEFT_OUT):
            if folder.is_relative_to(path.resolve()):
                # Under each path that shows it, and by a name without links: bwrap mounts on none that begins with /.
                covered = str(path / folder.relative_to(path.resolve()))
                built += ["--size", "4096", "--tmpfs", covered, "--remount-ro", covered]
    for link in ("/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"):
        if os.path.islink(link):
            built += ["--symlink", os.readlink(link), link]
        elif os.path.isdir(link):
            built += ["--ro-bind", link, link]
    for file in SYSTEM_FILES:
        built += ["--ro-bind-try", file, file]
    return built


def folders_above(*paths: Path) -> list[str]:
    """Return bwrap's arguments that make the folders in which paths lie; by itself it closes them to all but root."""
    built = []
    for folder in sorted({above for path in paths for above in path.parents} - {Path("/")}):
        built += ["--perms", "0755", "--dir", str(folder)]
    return built


def environment(cpus: int) -> dict[str, str]:
    """Return the environment inside: nothing of the grader's."""
    source = package().parent
    return {
        "HOME": HOME,
        "USER": "student",
        "LOGNAME": "student",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
        "IPYTHONDIR": "/tmp/ipython",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "XDG_CACHE_HOME": "/tmp/cache",
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"{library}_NUM_THREADS": str(cpus) for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")},
        # A package that is not installed but lies in its source folder, as under PYTHONPATH=src.
        **({} if source.name.endswith("-packages") else {"PYTHONPATH": str(source)}),
    }
