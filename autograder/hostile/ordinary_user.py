"""A command as an ordinary user: the sandbox must hold for graders who are not root."""

import os
import subprocess
from pathlib import Path
from typing import Any

from to_its_end import to_its_end

import tilelab
from tilelab.grading.sandbox import view

USER = "65534"


def as_ordinary_user(
    command: list[str], folder: Path, seconds: float, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user without privileges and return how it ended; see `to_its_end`.

    Root's own folder is closed to others, and a Python may be installed there: in a mount namespace of the command's
    own, the folder is an open one that holds that Python alone.
    """
    if os.getuid():
        return to_its_end(command, seconds, cwd=folder, **options)
    os.chown(folder, int(USER), int(USER))
    walls = ["bwrap", "--dev-bind", "/", "/"]
    for closed in {path for path in map(Path, ("/root",)) if path.is_dir()}:
        inside = [path for path in view.visible_paths() if path.is_relative_to(closed)]
        walls += ["--perms", "0755", "--tmpfs", str(closed), *view.folders_above(*inside)]
        for path in inside:
            walls += ["--ro-bind", str(path), str(path)]
    drop = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(tilelab.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **options.pop("env", {}),
    }
    return to_its_end([*walls, "--chdir", str(folder), *drop, *command], seconds, env=environment, **options)
