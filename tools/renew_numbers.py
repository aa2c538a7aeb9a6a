"""Write the current values into the sources: for those who read a chapter in Jupyter, where nothing is substituted.

``--check`` writes nothing and exits with 1 where a value is old.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
LINK = re.compile(r"\[([^\[\]]*\d[^\[\]]*)\]\(((?:\.\./book/)?numbers\.md)#([\w-]+)\)")


def renewed(text: str) -> str:
    """Return a source with the value of every id in its link's text."""
    from known_numbers import known_numbers
    from numbers_in_prose import with_value

    def fresh(link: re.Match[str]) -> str:
        return f"[{with_value(link[1], known_numbers()[link[3]].value)}]({link[2]}#{link[3]})"

    return LINK.sub(fresh, text)


def main() -> int:
    """Renew every page, or tell which are old."""
    sources = [*(ROOT / "book").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
    old = [
        path
        for path in sorted(sources)
        if renewed(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")
    ]
    for path in old:
        print(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if old and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
