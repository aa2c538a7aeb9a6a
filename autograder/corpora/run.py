"""Judge every corpus and print a table of what was designed and what came out: ``make corpus``."""

import argparse
import sys
from time import perf_counter

from cases import CHECKS, cases, problems
from rich.console import Console
from rich.table import Table

from tilelab.grading.judge import Judge


def main() -> int:
    """Print the table; 0 where everything came out as designed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="all problems unless told")
    wanted = parser.parse_args().problems or problems()
    table = Table("problem", "kind", "what is handed in", "designed", "came out", "")
    judge, count, right = Judge(CHECKS), 0, 0
    for name in wanted:
        start = perf_counter()
        for case in cases(name):
            judged = case.judge(judge)
            designed = _points(case.expected, case.pending)
            came_out = _points(
                {part: found.earned for part, found in judged.items()},
                {part: found.pending for part, found in judged.items() if found.pending},
            )
            count += 1
            right += designed == came_out
            table.add_row(name, case.kind, case.name, designed, came_out, "✓" if designed == came_out else "✗")
        table.add_section()
        print(f"{name}: {perf_counter() - start:.1f} s", file=sys.stderr)
    Console(width=180).print(table)
    print(f"{right} of {count} as designed")
    return 0 if right == count else 1


def _points(earned: dict[str, float], pending: dict[str, float]) -> str:
    return "  ".join(
        f"{part} {points:g}" + (f"+{pending[part]:g} pending" if pending.get(part) else "")
        for part, points in earned.items()
    )


if __name__ == "__main__":
    sys.exit(main())
