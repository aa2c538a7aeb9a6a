"""The simulator held to a GPU: Nsight Compute's counters, compute-sanitizer's races, and numba-cuda's results.

On a machine with an NVIDIA GPU, ``ncu``, ``compute-sanitizer`` and ``nvcc`` it does all three and compares. The two
steps can be apart: ``--collect DIR`` runs on the GPU and writes what it read, ``--compare DIR`` needs no GPU.
"""

import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from importlib import metadata
from pathlib import Path

import click
import numpy as np

HERE = Path(__file__).parent
#: Counter of the hardware for (space, what is counted, read or write).
COUNTERS = {
    ("shared", "conflicts", op): f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st")
} | {
    ("shared", "wavefronts", op): f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")
} | {
    ("shared", "requests", op): f"smsp__inst_executed_op_shared_{op}.sum" for op in ("ld", "st")
} | {
    ("global", what, op): f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
    for what in ("requests", "sectors") for op in ("ld", "st")
}  # fmt: skip
RACES = (
    "reverse_racy", "reverse_right", "loop_without_second_barrier", "loop_right", "reduce_racy", "reduce_right",
    "count_racy", "count_right", "warp_exchange_racy", "warp_exchange_right",
)  # fmt: skip
WHOLE = (
    "transpose_naive",
    "transpose_tile",
    "transpose_padded",
    "transpose_swizzled",
    "matmul_tiled",
    "matmul_swapped",
)


def patterns() -> list[tuple[str, str, list[int]]]:
    """(label, kernel, index of each thread): strides, padding, swizzles, broadcasts, and random ones."""
    lanes = range(32)
    made = []

    def add(label: str, kernel: str, index: list[int]) -> None:
        made.append((label, kernel, index))

    for kernel in ("shared_load_4", "shared_store_4"):
        for stride in (1, 2, 3, 16, 32, 33):
            add(f"stride {stride}", kernel, [stride * t for t in lanes])
        add("swizzled column", kernel, [32 * t + (7 ^ t) for t in lanes])
    add("one word", "shared_load_4", [5] * 32)
    add("column of a 16 x 16 tile", "shared_load_4", [t % 16 * 16 + t // 16 for t in range(256)])
    for width, strides in ((8, (1, 2, 3, 4, 16, 17)), (16, (1, 2, 3, 4, 8, 9))):
        for stride in strides:
            add(f"stride {stride}", f"shared_load_{width}", [stride * t for t in lanes])
            add(f"stride {stride}", f"shared_store_{width}", [stride * t for t in lanes])
        add("one element", f"shared_load_{width}", [5] * 32)
        add("one element for each half", f"shared_load_{width}", [t // 16 for t in lanes])
        add("pairs share", f"shared_load_{width}", [t // 2 for t in lanes])
        add("pairs share, far apart", f"shared_load_{width}", [t // 2 * 16 for t in lanes])
        add("lanes t and t XOR 2 share", f"shared_load_{width}", [(t & ~2) * 3 for t in lanes])
        add("every fourth lane shares", f"shared_load_{width}", [t % 4 * 8 for t in lanes])
        add("quarters share", f"shared_load_{width}", [t % 8 for t in lanes])
    rng = np.random.default_rng(7)
    for width in (4, 8, 16):
        for n in range(4):
            add(f"random {n}", f"shared_load_{width}", rng.integers(0, 600, 32).tolist())
            add(f"random {n}", f"shared_store_{width}", rng.permutation(600)[:32].tolist())
        add("random, pairs share", f"shared_load_{width}", (rng.integers(0, 300, 16).repeat(2)).tolist())
    for width in (4, 8):
        for stride in (1, 2, 3, 8, 16, 32, 33):
            add(f"stride {stride}", f"global_load_{width}", [stride * t for t in lanes])
            add(f"stride {stride}", f"global_store_{width}", [stride * t for t in lanes])
        add("misaligned by one", f"global_load_{width}", [t + 1 for t in lanes])
        add("one element", f"global_load_{width}", [9] * 32)
        add("rows of 16", f"global_load_{width}", [t // 16 * 64 + t % 16 for t in lanes])
        add("random", f"global_load_{width}", rng.integers(0, 4000, 128).tolist())
        add("random", f"global_store_{width}", rng.permutation(4000)[:128].tolist())
    return made


def launches() -> list[tuple[str, str, list[int]]]:
    """All launches of the twins, in their order."""
    return patterns() + [("64 x 64", name, []) for name in WHOLE]


# ---- on the GPU
def collect(folder: Path, twins: Path | None) -> None:
    """Run the twins under the tools and the Python kernels under numba-cuda; write what was read."""
    folder.mkdir(parents=True, exist_ok=True)
    if twins is None:
        twins = folder / "twins"
        subprocess.run(["nvcc", "-O3", "-arch=native", "-o", str(twins), str(HERE / "simulator_twins.cu")], check=True)
    listing = folder / "patterns.txt"
    listing.write_text("".join(f"{name} {len(i)} {' '.join(map(str, i))}\n" for _, name, i in launches()))
    metrics = ",".join(COUNTERS.values())
    tool = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--metrics", metrics]
    run = subprocess.run([*tool, str(twins), str(listing)], capture_output=True, text=True)
    (folder / "counters.csv").write_text(run.stdout)
    if run.returncode:
        (folder / "ncu_error.txt").write_text(run.stderr)
    hazards = {}
    for name in RACES:
        run = subprocess.run(
            ["compute-sanitizer", "--tool", "racecheck", "--print-limit", "2", str(twins), name],
            capture_output=True, text=True,
        )  # fmt: skip
        hazards[name] = run.stdout[-1500:]
    (folder / "races.json").write_text(json.dumps(hazards))
    numba = subprocess.run(
        [sys.executable, str(HERE / "simulator_results.py"), str(folder / "numba.npz")],
        capture_output=True, text=True, env=os.environ | {"TILELAB_GROUND": "gpu"},
    )  # fmt: skip
    (folder / "numba.txt").write_text(numba.stdout + numba.stderr[-3000:])
    (folder / "where.json").write_text(json.dumps(place()))


def place() -> dict[str, object]:
    """The device, driver, toolkit and versions."""
    query = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True
    )
    name, _, driver = query.stdout.strip().splitlines()[0].partition(", ")
    toolkit = re.search(
        r"release ([\d.]+)", subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout
    )
    ncu = re.search(r"Version ([\d.]+)", subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout)
    versions = {"python": platform.python_version(), "Nsight Compute": ncu[1] if ncu else ""}
    for package in ("numba-cuda", "numba", "numpy"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {"device": name, "driver": driver, "toolkit": toolkit[1] if toolkit else "", "versions": versions}


# ---- anywhere
def simulated(kernel: str, index: list[int]) -> dict[str, int]:
    """Counts of the simulator for one launch, under the counters' names."""
    sys.path.insert(0, str(HERE))
    import simulator_kernels as kernels

    from tilelab.simt import cuda

    made = cuda.inspect(getattr(kernels, kernel))
    threads = len(index)
    idx = np.array(index, np.int32)
    wide = np.float64 if kernel.endswith("_8") else np.float32
    if kernel.startswith("shared"):
        report = made[1, threads](np.zeros(1024, np.float32), idx)
    elif kernel.startswith("global_load"):
        report = made[1, threads](np.zeros(1 << 16, wide), np.zeros(1 << 16, wide), idx)
    elif kernel.startswith("global_store"):
        report = made[1, threads](np.zeros(1 << 16, wide), idx)
    else:
        a, b, c = (np.zeros((64, 64), np.float32) for _ in range(3))
        report = made[(2, 2), (32, 8)](c, a) if kernel.startswith("transpose") else made[(4, 4), (16, 16)](c, a, b)
    counts = dict.fromkeys(COUNTERS.values(), 0)
    for access in report.accesses:
        op = "ld" if access.kind == "read" else "st"
        found = {
            "requests": access.requests, "sectors": access.sectors, "wavefronts": access.wavefronts,
            "conflicts": access.replays,
        }  # fmt: skip
        for (space, what, which), counter in COUNTERS.items():
            if space == access.space and which == op:
                counts[counter] += found[what]
    return counts


def measured(folder: Path) -> list[dict[str, int]]:
    """Counters of the hardware, one launch after another."""
    lines = (folder / "counters.csv").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    table = list(csv.DictReader(lines[start:]))
    out = []
    for row in table:
        if row["ID"]:  # the line under the head holds units
            out.append({c: int(float(row[c].replace(",", "") or 0)) for c in COUNTERS.values()})
    return out


def compare(folder: Path) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Rows with both sides, and what must hold."""
    hardware = measured(folder)
    plan = launches()
    if len(hardware) != len(plan):
        raise click.ClickException(f"{len(hardware)} launches were measured, {len(plan)} planned")
    rows: list[dict[str, object]] = []
    for (label, kernel, index), real in zip(plan, hardware, strict=True):
        ours = simulated(kernel, index)
        row: dict[str, object] = {"kernel": kernel, "pattern": label, "threads": len(index) or 256}
        for (space, what, op), counter in COUNTERS.items():
            if ours[counter] or real[counter]:
                row[f"{space} {op} {what}"] = [ours[counter], real[counter]]
        row["equal"] = ours == real
        rows.append(row)
    equal = sum(bool(row["equal"]) for row in rows)
    targets = [
        {"name": "kernels compared with the hardware's counters", "value": len(rows), "bound": 14, "sense": ">="}
    ]
    targets.append(
        {"name": "of these, with a counter that differs", "value": len(rows) - equal, "bound": 0, "sense": "<="}
    )
    rows += races(folder, targets) + results(folder, targets)
    for t in targets:
        t["ok"] = t["value"] >= t["bound"] if t["sense"] == ">=" else t["value"] <= t["bound"]  # type: ignore[operator]
    return rows, targets


def races(folder: Path, targets: list[dict[str, object]]) -> list[dict[str, object]]:
    """compute-sanitizer's verdict beside the simulator's."""
    sys.path.insert(0, str(HERE))
    import simulator_kernels as kernels

    from tilelab.simt import cuda

    rows, differ = [], 0
    for name, text in json.loads((folder / "races.json").read_text()).items():
        found = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed", text)
        real = int(found[1]) if found else -1
        report = cuda.inspect(getattr(kernels, name))[1, 256](np.zeros(256, np.int32))
        ours = len([f for f in report.races if f.space == "shared"])
        differ += bool(ours) != bool(real) or real < 0
        rows.append(
            {"kernel": name, "races, simulator": ours, "hazards, racecheck": real, "equal": bool(ours) == bool(real)}
        )
    targets.append({"name": "race verdicts that differ from racecheck's", "value": differ, "bound": 0, "sense": "<="})
    return rows


def results(folder: Path, targets: list[dict[str, object]]) -> list[dict[str, object]]:
    """numba-cuda's results beside the simulator's, bit for bit."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "simulator.npz"
        subprocess.run(
            [sys.executable, str(HERE / "simulator_results.py"), str(path)], check=True, capture_output=True,
            env=os.environ | {"TILELAB_GROUND": "simulator", "PYTHONPATH": str(HERE.parent / "src")},
        )  # fmt: skip
        ours = dict(np.load(path))
    if not (folder / "numba.npz").exists():
        raise click.ClickException((folder / "numba.txt").read_text()[-1000:])
    real = dict(np.load(folder / "numba.npz"))
    failed = [str(x) for x in real.pop("failed")] + [str(x) for x in ours.pop("failed")]
    rows = [
        {"kernel": name, "results": "numba-cuda on the GPU", "equal": bool(np.array_equal(ours[name], real[name]))}
        for name in ours
        if name in real
    ]
    targets.append({"name": "kernels of one source run by both", "value": len(rows), "bound": 14, "sense": ">="})
    differ = sum(not row["equal"] for row in rows) + len(failed)
    targets.append({"name": "of these, with another result", "value": differ, "bound": 0, "sense": "<="})
    return rows + [{"kernel": text, "results": "failed", "equal": False} for text in failed]


def recorded(folder: Path) -> dict[str, object]:
    """What a record says of its making."""
    from tilelab.measure.records import commit

    where = json.loads((folder / "where.json").read_text())
    return {
        "date": date.today().isoformat(), **where,
        "distribution": "indices as listed by patterns() (seed 7); whole numbers between -8 and 8 (seed 0)",
        "commit": commit(),
    }  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--collect", "collect_to", type=click.Path(path_type=Path), help="Only run on the GPU, writing here.")
@click.option(
    "--compare", "compare_from", type=click.Path(path_type=Path, exists=True), help="Only compare what is here."
)
@click.option(
    "--twins", type=click.Path(path_type=Path, exists=True), help="The compiled twins, if nvcc is not to run."
)
@click.option("--record", type=click.Path(path_type=Path), help="Also write a recorded run there.")
def main(
    as_json: bool, collect_to: Path | None, compare_from: Path | None, twins: Path | None, record: Path | None
) -> None:
    """Hold the simulator to a GPU."""
    if collect_to is not None:
        collect(collect_to, twins)
        return
    folder = compare_from
    if folder is None:
        for tool in ("ncu", "compute-sanitizer", "nvidia-smi"):
            if shutil.which(tool) is None:
                raise click.ClickException(
                    f"{tool} is not here; run on a machine with an NVIDIA GPU, or give --compare"
                )
        folder = Path(tempfile.mkdtemp())
        collect(folder, twins)
    rows, targets = compare(folder)
    result = {
        "rows": rows,
        "targets": targets,
        "where": {"simulator": platform.python_version()},
        "recorded": recorded(folder),
    }
    if record is not None:
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        rest = json.dumps({key: value for key, value in result.items() if key != "rows"}, indent=1)
        record.write_text(f'{{\n "rows": [\n  {lines}\n ],{rest[1:]}\n')
    outcome = 0 if all(t["ok"] for t in targets) else 1
    if as_json:
        print(json.dumps(result))
        sys.exit(outcome)
    for row in rows:
        pairs = ", ".join(f"{k} {v[0]}/{v[1]}" for k, v in row.items() if isinstance(v, list))
        label = (
            row.get("pattern") or row.get("results") or f"{row.get('races, simulator')}/{row.get('hazards, racecheck')}"
        )
        print(f"{'=' if row['equal'] else '≠'} {row['kernel']!s:28} {label!s:28} {pairs}")
    for t in targets:
        print(f"{'ok  ' if t['ok'] else 'MISS'} {t['name']}: {t['value']} {t['sense']} {t['bound']}")
    sys.exit(outcome)


if __name__ == "__main__":
    main()
