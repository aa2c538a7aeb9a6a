"""What a benchmark prints, and what a recorded run is.

Every script prints an aligned table, or with ``--json`` one object: ``rows``, ``targets`` and ``where``. A recorded
run is that object with ``recorded``, kept in ``benchmarks/records/``.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

Row = Mapping[str, Any]


def table(rows: Sequence[Row]) -> str:
    """Rows as an aligned text table; numbers to the right, four figures each."""
    if not rows:
        return "no rows"
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(row.get(key, "")) for key in keys] for row in rows]
    widths = [max(len(key), *(len(line[i]) for line in cells)) for i, key in enumerate(keys)]
    right = [all(isinstance(row.get(key, 0), int | float) for row in rows) for key in keys]

    def line(texts: Sequence[str]) -> str:
        put = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True))
        return "  ".join(put).rstrip()

    return "\n".join([line(keys), line(["-" * width for width in widths]), *(line(cell) for cell in cells)])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    if isinstance(value, list | tuple):
        return " … ".join(_cell(one) for one in value)
    return str(value)


def target(name: str, value: float, bound: float, sense: str) -> dict[str, Any]:
    """A claim with its bound: ``sense`` is ``<=`` or ``>=``. What is not a number never holds."""
    ok = value <= bound if sense == "<=" else value >= bound
    return {"name": name, "value": value, "bound": bound, "sense": sense, "ok": bool(ok)}


def report(rows: Sequence[Row], targets: Sequence[Mapping[str, Any]], where: Mapping[str, Any], as_json: bool) -> None:
    """Print a benchmark's outcome."""
    if as_json:
        print(json.dumps({"rows": list(rows), "targets": list(targets), "where": dict(where)}, indent=1))
        return
    print(table(rows))
    for one in targets:
        outcome = "holds" if one["ok"] else "FAILS"
        print(f"{outcome}  {one['name']}: {_cell(one['value'])} {one['sense']} {_cell(one['bound'])}")
    print("; ".join(f"{key} {_cell(value)}" for key, value in where.items() if not isinstance(value, dict)))


#: What of ``where`` a recorded run repeats beside it, for every reader to find in one place.
RECORDED = ("date", "device", "driver", "toolkit", "versions", "distribution", "commit")


def as_record(rows: Sequence[Row], targets: Sequence[Mapping[str, Any]], where: Mapping[str, Any]) -> dict[str, Any]:
    """A benchmark's outcome as a recorded run."""
    recorded = {key: where.get(key, "") for key in RECORDED}
    return {"rows": list(rows), "targets": list(targets), "where": dict(where), "recorded": recorded}


def conclude(
    rows: Sequence[Row],
    targets: Sequence[Mapping[str, Any]],
    where: Mapping[str, Any],
    as_json: bool,
    record: Path | None = None,
) -> NoReturn:
    """Print a benchmark's outcome, write it down if asked to, and exit: 0 if every target holds, 1 if one fails."""
    report(rows, targets, where, as_json)
    if record:
        record.write_text(json.dumps(as_record(rows, targets, where), indent=1, ensure_ascii=False) + "\n")
    sys.exit(0 if all(one["ok"] for one in targets) else 1)


def read_record(file: Path) -> dict[str, Any]:
    """A recorded run.

    Raises
    ------
    ValueError
        The file is not one: the message names what it lacks.
    """
    found = json.loads(file.read_text())
    if not isinstance(found, dict):
        found = {}
    lacking = [key for key in ("rows", "targets", "where", "recorded") if key not in found]
    lacking += [f"recorded.{key}" for key in RECORDED if key not in found.get("recorded", {})]
    if lacking:
        raise ValueError(f"{file.name} is no recorded run: it has no {', '.join(lacking)}")
    return dict(found)


def around() -> Iterator[Path]:
    """The current folder and those above it, nearest first."""
    here = Path.cwd()
    yield here
    yield from here.parents


def records_folder() -> Path | None:
    """The folder of recorded runs: around the current one, else around the package's sources; or nothing."""
    places = (folder / "benchmarks" / "records" for folder in (*around(), Path(__file__).parents[3]))
    return next((place for place in places if place.is_dir()), None)


def recorded(name: str) -> dict[str, Any] | None:
    """The recorded run of a name, such as ``builds_h200``; nothing where there is none."""
    folder = records_folder()
    file = None if folder is None else folder / f"{name}.json"
    return read_record(file) if file is not None and file.exists() else None


def badge(run: Mapping[str, Any]) -> str:
    """Where and when a run was recorded, for the line above its numbers."""
    where = run["recorded"]
    toolkit = f", CUDA {where['toolkit']}" if where["toolkit"] else ""
    return f"recorded on {where['device']}, {where['date'][:10]}{toolkit}"


def commit() -> str:
    """The commit that runs: what ``$TILELAB_COMMIT`` names, or the repository's; empty if neither says.

    Where files are not as they were committed, records aside, the name ends in `` with changes``.
    """
    named = os.environ.get("TILELAB_COMMIT")
    if named:
        return named
    git = ["git", "-C", str(Path(__file__).parent)]
    code = [":/", ":(top,exclude)benchmarks/records"]
    try:
        head, changed = (
            subprocess.run([*git, *asked], capture_output=True, text=True, check=True).stdout.strip()
            for asked in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", *code])
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head} with changes" if changed else head


def where_gpu(distribution: str, **more: Any) -> dict[str, Any]:
    """Where a benchmark ran: device, driver, toolkit, versions, date, and how the data were drawn."""
    import cupy

    runtime = cupy.cuda.runtime
    driver, toolkit = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    asked = "driver_version,clocks.max.sm,clocks.max.memory,power.limit"
    smi = subprocess.run(
        ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split(",")
    names = ("driver", "max_sm_mhz", "max_memory_mhz", "power_limit_w")
    return {
        "device": runtime.getDeviceProperties(0)["name"].decode(),
        **dict(zip(names, (text.strip() for text in smi), strict=False)),
        "cuda_driver": f"{driver // 1000}.{driver % 1000 // 10}",
        "nvrtc": "{}.{}".format(*cupy.cuda.nvrtc.getVersion()),
        "toolkit": f"{toolkit // 1000}.{toolkit % 1000 // 10}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "distribution": distribution,
        "commit": commit(),
        "versions": versions("cupy-cuda13x", "torch", "numpy"),
        "python": platform.python_version(),
        **more,
    }


def versions(*packages: str) -> dict[str, str]:
    """Installed versions; packages that are not there are left out."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
