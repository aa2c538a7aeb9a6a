"""The simulator's speed: against numba-cuda's simulator in the same hour, and growing with the size of the work.

``--numba-python`` names an interpreter that has numba-cuda; both simulators then run the same kernels in turn, each
in a process of its own. Without it only our own times are measured. CPU seconds, best of five.
"""

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import click


class Simulator:
    """One simulator in its own process."""

    def __init__(self, who: str, python: str) -> None:
        environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "OMP_NUM_THREADS": "1", "TILELAB_GROUND": who}
        if who == "numba":
            environment.pop("PYTHONPATH", None)
        else:
            environment["PYTHONPATH"] = str(Path(__file__).parents[1] / "src")
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("simulator_worker.py")), who],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, kernel: str, size: int, checks: bool) -> dict[str, float]:
        """Launch once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kernel} {size} {checks}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise click.ClickException(f"a simulator ended while running {kernel} at {size}")
        made: dict[str, float] = json.loads(answer)
        return made

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(python: str | None, rounds: int, largest: int) -> tuple[list[dict], list[dict]]:
    """Rows and targets."""
    ours = Simulator("ours", sys.executable)
    numba = Simulator("numba", python) if python else None
    rows, targets = [], []

    def target(name: str, value: float, bound: float, sense: str) -> None:
        ok = value >= bound if sense == ">=" else value <= bound
        targets.append({"name": name, "value": value, "bound": bound, "sense": sense, "ok": ok})

    for kernel, bounds in (("tiled", (300, 1000)), ("register_tiled", (10, 30))):
        found: dict[str, list[dict[str, float]]] = {"numba": [], "on": [], "off": []}
        for _ in range(rounds):  # in turn, so that a busy machine is busy for both
            if numba:
                found["numba"].append(numba.run(kernel, 64, True))
            found["on"].append(ours.run(kernel, 64, True))
            found["off"].append(ours.run(kernel, 64, False))
        best = {who: min(r["cpu"] for r in runs) for who, runs in found.items() if runs}
        for who, seconds in best.items():
            label = {"numba": "numba-cuda's simulator", "on": "ours, all checks", "off": "ours, checks off"}[who]
            rows.append(
                {
                    "kernel": kernel,
                    "N": 64,
                    "who": label,
                    "cpu_s": seconds,
                    "times_faster": best.get("numba", float("nan")) / seconds,
                }
            )
        if numba:
            same = found["numba"][0]["sum"] == found["on"][0]["sum"]
            target(
                f"{kernel} N=64, CPU time of numba's over ours with all checks",
                best["numba"] / best["on"],
                bounds[0],
                ">=",
            )
            target(
                f"{kernel} N=64, CPU time of numba's over ours with checks off",
                best["numba"] / best["off"],
                bounds[1],
                ">=",
            )
            target(f"{kernel} N=64, results differ from numba's in bits", float(not same), 0, "<=")
    for n in (32, 64, 128, 256, 512, 1024):
        if n > largest:
            continue
        runs = [ours.run("tiled", n, True) for _ in range(1 if n > 256 else 3)]
        best_run = min(runs, key=lambda r: r["cpu"])
        rows.append(
            {
                "kernel": "tiled",
                "N": n,
                "who": "ours, all checks",
                "cpu_s": best_run["cpu"],
                "ns_per_product": best_run["cpu"] / n**3 * 1e9,
                "wall_s": best_run["wall"],
                "memory_mb": runs[-1]["memory"] / 2**20,
            }
        )
        if n == 256:
            target("tiled N=256 with all checks, s", best_run["wall"], 1, "<=")
        if n == 1024:
            target("tiled N=1024 with all checks, s", best_run["wall"], 60, "<=")
            target("peak memory at N=1024, GB", runs[-1]["memory"] / 1e9, 2, "<=")
    ours.close()
    if numba:
        numba.close()
    return rows, targets


def where(python: str | None) -> dict[str, object]:
    """The machine and the versions."""
    versions = {"python": platform.python_version(), "numpy": metadata.version("numpy")}
    if python:
        code = "import numba_cuda, numba, numpy; print(numba_cuda.__version__, numba.__version__, numpy.__version__)"
        answer = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
        )
        versions["numba-cuda, numba, numpy beside it"] = answer.stdout.strip()
    return {"machine": platform.processor() or platform.machine(), "cpus": os.cpu_count(), "versions": versions}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--numba-python", help="An interpreter that has numba-cuda and numba.")
@click.option("--rounds", default=5, show_default=True, help="Runs of each; the best counts.")
@click.option("--largest", default=1024, show_default=True, help="Leave out larger sizes.")
def main(as_json: bool, numba_python: str | None, rounds: int, largest: int) -> None:
    """Time the simulator, and numba-cuda's beside it."""
    rows, targets = measure(numba_python, rounds, largest)
    result = {"rows": rows, "targets": targets, "where": where(numba_python)}
    if as_json:
        print(json.dumps(result))
        return
    print(f"{'kernel':16}{'N':>6}  {'who':24}{'CPU s':>10}{'× faster':>10}{'ns/product':>12}{'MB':>8}")
    for row in rows:
        extra = "".join(
            f"{row[key]:>{width}.{digits}f}" if key in row else " " * width
            for key, width, digits in (("times_faster", 10, 0), ("ns_per_product", 12, 1), ("memory_mb", 8, 0))
        )
        print(f"{row['kernel']:16}{row['N']:>6}  {row['who']:24}{row['cpu_s']:>10.4f}{extra}")
    for t in targets:
        print(f"{'ok  ' if t['ok'] else 'MISS'} {t['name']}: {t['value']:.4g} {t['sense']} {t['bound']}")


if __name__ == "__main__":
    main()
