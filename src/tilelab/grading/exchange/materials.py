"""The chapters on a learner's server: a new version comes without losing anything that they wrote.

A file that a learner has not changed since it came is replaced. One that they changed stays as it is, and the new one
is put beside it under a name that says its version. What they deleted stays deleted until it changes; nothing of
theirs is ever removed.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from tilelab.grading.errors import GradingError
from tilelab.grading.exchange.bundle import Files, checked

#: What came, and as which version: beside the chapters.
MANIFEST = ".course.json"


@dataclass
class Update:
    """What an update did, by the names of files."""

    version: int
    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Say it in a line."""
        parts = [
            f"{len(self.new)} new",
            f"{len(self.replaced)} replaced",
            f"{len(self.beside)} beside yours, which you changed",
        ]
        return f"the course is at version {self.version}: {', '.join(parts)}"


def version_in(folder: Path) -> int:
    """Return the version of the course that a folder holds; 0 where it holds none."""
    return _manifest(folder)[0]


def update(folder: Path, version: int, files: Files) -> Update:
    """Bring a learner's folder to a version of the course.

    Parameters
    ----------
    folder : path
        Where the chapters lie; made where it does not exist.
    version : int
        Of the files.
    files : mapping
        All files of that version.

    Raises
    ------
    GradingError
        The folder cannot be written; what was not written yet comes with the next try.
    """
    done = Update(version)
    came = _manifest(folder)[1]
    try:
        for name, content in checked(files).items():
            path, digest = folder / name, _digest(content)
            before = came.get(name)
            if before == digest and not path.exists():
                continue  # they deleted it, and it is no other now
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                _put(path, content)
                done.new.append(name)
            elif (theirs := _digest(path.read_bytes())) == digest:
                pass
            elif theirs == before:
                _put(path, content)
                done.replaced.append(name)
            elif before != digest:
                beside = path.with_name(f"{path.stem} (version {version}){path.suffix}")
                if not beside.exists():
                    _put(beside, content)
                done.beside.append(str(beside.relative_to(folder)))
            came[name] = digest
        _put(folder / MANIFEST, json.dumps({"version": version, "files": came}, indent=1).encode())
    except OSError as error:
        raise GradingError(f"the course could not be brought to version {version}: {error}") from error
    return done


def _manifest(folder: Path) -> tuple[int, dict[str, str]]:
    """Return the version that a folder holds, and the digests of the files as they came."""
    try:
        said = json.loads((folder / MANIFEST).read_bytes())
        return int(said["version"]), {str(name): str(digest) for name, digest in said["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0, {}


def _put(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name}.new")
    draft.write_bytes(content)
    draft.replace(path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
