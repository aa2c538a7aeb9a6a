"""Print the built book into one PDF, with the Chromium that the browser tests use.

The pages are built once more as a single one, from the same executed notebooks. Hidden answers are opened, and a
step-through shows all its steps: paper does not answer.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from build_book import BUILD, CACHE, ROOT, drop_stale_outputs

SINGLE = BUILD / "single"
PDF = BUILD / "tilelab.pdf"


def chromium() -> str:
    """Return the browser's path."""
    found = next(filter(None, map(shutil.which, ["chromium", "google-chrome", "chromium-browser"])), None)
    if found is None:
        sys.exit("make pdf needs Chromium: apt-get install chromium, or Google Chrome")
    return found


def main() -> int:
    """Build the single page, print it, and return the exit code."""
    drop_stale_outputs()
    if not any(CACHE.glob("*.db")):
        print("no page has been executed yet; this takes as long as `make book`")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", ".", "--builder", "singlehtml", "-q"]
    command += ["-W", "--keep-going", "--path-output", str(SINGLE)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        return code
    [page] = (SINGLE / "_build" / "singlehtml").glob("index.html")
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={profile}"]
        flags += ["--virtual-time-budget=120000", "--run-all-compositor-stages-before-draw"]
        done = subprocess.run(
            [chromium(), *flags, f"--print-to-pdf={PDF}", page.as_uri()], capture_output=True, text=True, check=False
        )
    if done.returncode or not PDF.exists():
        print(done.stderr[-2000:], file=sys.stderr)
        return done.returncode or 1
    print(f"\nThe book is printed:\n    {PDF}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
