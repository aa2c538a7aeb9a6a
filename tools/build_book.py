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
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "_build"
CACHE = BUILD / ".jupyter_cache"
#: Edition -> the folder that jupyter-book makes its own ``_build`` in.
OUTPUT = {"learner": ROOT, "instructor": BUILD / "instructor"}


def environment_key() -> str:
    """Hash of all that executed pages depend on besides themselves: the package, records, pinned versions, Python."""
    digest = hashlib.sha256(sys.version.encode())
    package = sorted(p for p in (ROOT / "src").rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    records = sorted((ROOT / "benchmarks" / "records").glob("*.json"))
    for path in [ROOT / "constraints.txt", *package, *records]:
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def drop_stale_outputs() -> None:
    """Forget executed cells, and the pages read with them, when what they depend on has changed."""
    stamp, key = CACHE / "environment.sha256", environment_key()
    if not stamp.exists() or stamp.read_text() != key:
        for folder in [CACHE, *(output / "_build" / ".doctrees" for output in OUTPUT.values())]:
            shutil.rmtree(folder, ignore_errors=True)
        CACHE.mkdir(parents=True)
        stamp.write_text(key)


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
