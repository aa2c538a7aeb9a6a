"""What translators need: ``extract`` all strings, and ``build`` the Korean edition from the catalogues.

``extract`` writes one ``.pot`` a page to ``_build/gettext``. ``build`` takes ``book/locale/ko``; a page without a
catalogue, or a string without a translation, stays English. Both use the executed cells of `make book`.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from build_book import BUILD, ROOT, drop_stale_outputs

POT = BUILD / "gettext"
LOCALE = ROOT / "book" / "locale"
KOREAN = BUILD / "ko"
TITLE = "tilelab"


def program(name: str) -> str:
    """Return the path of a program beside this Python."""
    return str(Path(sys.executable).with_name(name))


def environment() -> dict[str, str]:
    """Return the environment in which Sphinx finds the book's extensions wherever its settings stand."""
    paths = [str(ROOT / "book" / "_ext"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TILELAB_PROGRESS": ""}


def extract() -> int:
    """Write the strings of every page, and return the exit code."""
    conf = ROOT / "conf.py"  # jupyter-book writes it, and Sphinx wants it where the pages are
    try:
        made = subprocess.run(
            [program("jupyter-book"), "config", "sphinx", "."], cwd=ROOT, capture_output=True, text=True
        )
        if made.returncode:
            print(made.stdout, made.stderr, file=sys.stderr)
            return made.returncode
        command = [program("sphinx-build"), "-q", "-W", "--keep-going", "-b", "gettext"]
        command += ["-d", str(BUILD / ".doctrees-gettext"), ".", str(POT)]
        return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    finally:
        conf.unlink(missing_ok=True)


def empty_catalogues(folder: Path) -> None:
    """Make a catalogue without any translation out of each page's strings."""
    shutil.rmtree(folder, ignore_errors=True)
    for template in POT.rglob("*.pot"):
        catalogue = folder / "ko" / "LC_MESSAGES" / template.relative_to(POT).with_suffix(".po")
        catalogue.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(template, catalogue)


def build(empty: bool) -> int:
    """Build the Korean edition, and return the exit code."""
    folder = LOCALE
    if empty or not LOCALE.is_dir():
        folder = BUILD / "locale"
        empty_catalogues(folder)
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    config["title"] = TITLE
    config["sphinx"]["config"] |= {"language": "ko", "locale_dirs": [str(folder)], "html_title": TITLE}
    path = BUILD / "_config.ko.yml"
    path.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False))
    command = [program("jupyter-book"), "build", ".", "-q", "-W", "--keep-going", "--config", str(path)]
    command += ["--toc", str(ROOT / "_toc.yml"), "--path-output", str(KOREAN)]
    code = subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    if not code:
        print(f"\nThe Korean edition is built:\n    {(KOREAN / '_build' / 'html' / 'index.html').as_uri()}")
    return code


def main() -> int:
    """Do what was asked for, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["extract", "build", "check"])
    step = parser.parse_args().step
    drop_stale_outputs()
    if step == "build":
        return build(empty=False)
    return extract() or (build(empty=True) if step == "check" else 0)


if __name__ == "__main__":
    sys.exit(main())
