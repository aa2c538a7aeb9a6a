"""Unix accounts for a demo that leave the machine as it is: a mount namespace with a list of users of its own.

Only root can make one. Inside, every learner, formgrader and the exchange have an account each, as on a real server,
and the walls between them are the system's.
"""

import itertools
import os
import pwd
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

from deployment import Deployment

from tilelab.grading.sandbox import view

#: Numbers of accounts that nothing else on a machine has: a block of them for each hub's folder, so that an account of
#: one course can read nothing of another's. Where a container has fewer numbers, from here on those that are free.
BLOCKS, BLOCK, FEW = range(0x7000_0000, 0x8000_0000, 4096), 4096, 61000
#: The file, in the state's folder, that keeps them.
NUMBERS = "account-numbers"


def accounts(of: Deployment) -> list[str]:
    """Return every account that a course needs."""
    return [*of.users, of.grader_account, of.exchange_account]


def have_accounts(of: Deployment) -> bool:
    """Whether the machine itself has every account."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return known.issuperset(accounts(of))


def private_machine(of: Deployment, show: Iterable[Path] = ()) -> list[str]:
    """Make the accounts and their homes, and return the command before which to put what is to run among them.

    Parameters
    ----------
    of : Deployment
        The course.
    show : iterable of path
        Folders that must be reachable though they may lie in root's own, which is closed to others.
    """
    homes = of.state / "home"
    homes.mkdir(parents=True, exist_ok=True)
    numbers = _numbers(of)
    passwd = [line for line in Path("/etc/passwd").read_text().splitlines() if line.split(":")[0] not in numbers]
    group = [line for line in Path("/etc/group").read_text().splitlines() if line.split(":")[0] not in numbers]
    for name, number in numbers.items():
        home = of.grader_home if name == of.grader_account else homes / name
        home.mkdir(mode=0o700, exist_ok=True)
        os.chown(home, number, number)
        passwd.append(f"{name}:x:{number}:{number}::{home}:/bin/bash")
        group.append(f"{name}:x:{number}:")
    walls = ["bwrap", "--dev-bind", "/", "/", "--die-with-parent"]
    walls += _opened([of.state, of.file.parent, *show])
    for file, lines in (("passwd", passwd), ("group", group)):
        path = of.state / file
        path.write_text("\n".join(lines) + "\n")
        walls += ["--ro-bind", str(path), f"/etc/{file}"]
    for folder in (of.state, homes):
        folder.chmod(0o755)
    return [*walls, "--"]


def _numbers(of: Deployment) -> dict[str, int]:
    """Return a number for each account: that which it had, for whoever was here before, else one nobody ever had.

    Files belong to numbers. Who comes later must not get those of somebody who left, nor move them to others.
    """
    had = _numbers_before(of)
    taken = {entry.pw_uid for entry in pwd.getpwall()} | set(had.values())
    free = (number for number in itertools.count(_first(of.state)) if number not in taken)
    numbers = had | {name: next(free) for name in accounts(of) if name not in had}
    (of.state / NUMBERS).write_text("".join(f"{name}:{number}\n" for name, number in numbers.items()))
    return {name: numbers[name] for name in accounts(of)}


def _first(state: Path) -> int:
    """Return from where on the accounts of a hub's folder have their numbers."""
    block = BLOCKS[zlib.crc32(os.fsencode(state)) % len(BLOCKS)]
    lines = [list(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    there = any(first <= block and block + BLOCK <= first + count for first, _, count in lines)
    return block if there else FEW


def _numbers_before(of: Deployment) -> dict[str, int]:
    """Return the numbers of everybody who ever had an account here."""
    file = of.state / NUMBERS
    if file.exists():
        pairs = (line.rsplit(":", 1) for line in file.read_text().splitlines())
        return {name: int(number) for name, number in pairs}
    before = of.state / "passwd"  # a state from before numbers were kept
    if not before.exists():
        return {}
    entries = (line.split(":") for line in before.read_text().splitlines())
    return {entry[0]: int(entry[2]) for entry in entries if entry[5].startswith(f"{of.state}/")}


def _opened(show: Iterable[Path]) -> list[str]:
    """Return bwrap's arguments by which closed folders above what is needed hold that alone, and are open."""
    needed = [*view.visible_paths(), *(path.resolve() for path in show), Path(sys.prefix).resolve()]
    walls = []
    for closed in {_closed_above(path) for path in needed} - {None}:
        inside = [path for path in dict.fromkeys(needed) if path.is_relative_to(closed)]
        walls += ["--perms", "0755", "--tmpfs", str(closed), *_below(closed, view.folders_above(*inside))]
        for path in sorted(inside):
            walls += ["--bind", str(path), str(path)]
    return walls


def _closed_above(path: Path) -> Path | None:
    """Return the topmost folder above a path that other users cannot pass."""
    for above in reversed(path.parents):
        if not above.stat().st_mode & 0o001:
            return above
    return None


def _below(closed: Path, arguments: list[str]) -> list[str]:
    """Keep those of bwrap's ``--perms … --dir PATH`` that lie below a folder."""
    kept = []
    for place in range(0, len(arguments), 4):
        if Path(arguments[place + 3]).is_relative_to(closed) and Path(arguments[place + 3]) != closed:
            kept += arguments[place : place + 4]
    return kept
