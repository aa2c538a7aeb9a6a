"""Execute and build the book, and say where to open it.

The execution cache of jupyter-cache looks at the notebooks alone. Here a change in the package or in the pinned
versions empties it as well, so that no page shows the output of code that is gone.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "_build"
CACHE = BUILD / ".jupyter_cache"
#: Edition -> the folder that jupyter-book makes its own ``_build`` in.
OUTPUT = {"learner": ROOT, "instructor": BUILD / "instructor"}


def hash_of(paths: Iterable[Path], *more: str) -> str:
    """Hash of files, with their names, and of texts."""
    digest = hashlib.sha256("\n".join(more).encode())
    for path in paths:
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def files_below(*folders: str) -> list[Path]:
    """Files in these folders, in the order of their names, without what Python leaves there."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)


def environment_key() -> str:
    """Hash of all that executed pages depend on besides themselves.

    These are the package, recorded runs (also the reader's own), Python and what is installed beside it, and the
    compilers that cells can find.
    """
    own = [path for path in (ROOT / "my_ladder.json", ROOT / "notebooks" / "my_ladder.json") if path.exists()]
    installed = sorted(f"{one.name}=={one.version}" for one in metadata.distributions())
    compilers = [f"{name}: {shutil.which(name)}" for name in ("g++", "nvcc", "nvidia-smi")]
    files = [*files_below("src", "benchmarks/records", "book/recorded"), ROOT / "constraints.txt", *own]
    return hash_of(files, sys.version, *installed, *compilers)


def drop_stale_outputs() -> None:
    """Forget executed cells when what they depend on has changed, and pages that were read by other extensions."""
    executed, read = environment_key(), hash_of(files_below("book/_ext"))
    stamps = {CACHE / "environment.sha256": executed, CACHE / "extensions.sha256": executed + read}
    stale = {path.stem for path, key in stamps.items() if not path.exists() or path.read_text() != key}
    # Pages of sources are made anew by their dates alone, so a source that was checked out late would keep an old one.
    for folder in (output / "_build" / name for output in OUTPUT.values() for name in (".doctrees", "html/_modules")):
        if stale:
            shutil.rmtree(folder, ignore_errors=True)
    if "environment" in stale:
        shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    for path, key in stamps.items():
        path.write_text(key)


def instructor_toc() -> Path:
    """Write the table of contents with the worked solutions added, and return its path."""
    from make_views import write_solution_pages

    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    pages = [str(page.relative_to(ROOT).with_suffix("")) for page in write_solution_pages()]
    toc["parts"].append({"caption": "Worked solutions (instructors)", "chapters": [{"file": page} for page in pages]})
    path = BUILD / "_toc.instructor.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(toc, sort_keys=False))
    return path


def tracebacks(html: Path) -> str:
    """Return the tracebacks that failed notebooks left, each under its page's name."""
    logs = sorted((html.parent / "html" / "reports").rglob("*.err.log"))
    return "\n".join(f"---- {log.name.removesuffix('.err.log')}\n{log.read_text()}" for log in logs)


def main() -> int:
    """Build one edition and return the process's exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edition", choices=list(OUTPUT), default="learner")
    edition = parser.parse_args().edition

    output = OUTPUT[edition]
    html = output / "_build" / "html"
    drop_stale_outputs()
    shutil.rmtree(html / "reports", ignore_errors=True)
    toc = instructor_toc() if edition == "instructor" else ROOT / "_toc.yml"
    command = [Path(sys.executable).with_name("jupyter-book"), "build", ".", "-W", "--keep-going"]
    command += ["--toc", str(toc), "--path-output", str(output)]
    # What a page's cells solve is not what its reader solved: no progress is noted.
    code = subprocess.run(command, cwd=ROOT, env=os.environ | {"TILELAB_PROGRESS": ""}, check=False).returncode
    if code:
        # Sphinx remembers a failed page as read, and would call the next build a success.
        shutil.rmtree(output / "_build" / ".doctrees", ignore_errors=True)
        print(tracebacks(html), file=sys.stderr)
        print(f"The book was not built: the lines above say why (exit code {code}).", file=sys.stderr)
        return code
    # Sphinx copies static files only when some page is written anew.
    shutil.copytree(ROOT / "book" / "_static", html / "_static", dirs_exist_ok=True)
    print(f"\nThe book is built. Open it with a browser:\n    {(html / 'index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
