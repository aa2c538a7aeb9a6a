"""``tilelab bench``: the course's measurements on the reader's own GPU, beside the recorded ones."""

import json
import sys
from pathlib import Path
from typing import Any

import click

import tilelab

RECORDS = Path(tilelab.__file__).parents[2] / "benchmarks" / "records"


@click.group()
def command() -> None:
    """Measure on this machine's GPU, beside the recorded run."""


def beside(here: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of both runs next to one another, by kernel and shape, in the order of the run here or else the recorded."""

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["kernel"], row["M"], row["N"], row["K"]

    other = {key(row): row for row in recorded}
    joined = []
    for row in here or recorded:
        line = {"kernel": row["kernel"], "M": row["M"], "N": row["N"], "K": row["K"]}
        if here:
            line |= {"ms here": row["ms"], "TFLOP/s here": row["tflops"], "% of cuBLAS here": row["percent_of_cublas"]}
        if key(row) in other:
            old = other[key(row)]
            line |= {"ms": old["ms"], "TFLOP/s": old["tflops"], "% of cuBLAS": old["percent_of_cublas"]}
        if here and row["trouble"]:
            line["trouble"] = row["trouble"]
        joined.append(line)
    return joined


@command.command()
@click.option("--sides", default="1024,2048,4096", show_default=True, help="cubes to multiply")
@click.option("--rungs", default="", help="only these rungs, by name, between commas")
@click.option("--json", "as_json", is_flag=True, help="one JSON object instead of a table")
@click.option("--recorded", type=click.Path(dir_okay=False, path_type=Path), default=RECORDS / "ladder_h200.json")
def ladder(sides: str, rungs: str, as_json: bool, recorded: Path) -> None:
    """The ladder of fp32 products: milliseconds, TFLOP/s and share of cuBLAS.

    Without a GPU it shows the recorded run and says so.
    """
    from tilelab.cudacpp.device import gpu_missing
    from tilelab.kernels.ladder import LADDER, rung
    from tilelab.measure.compare import DISTRIBUTION, compare
    from tilelab.measure.records import read_record, table, where_gpu

    try:
        shapes = [(int(side),) * 3 for side in sides.split(",")]
        chosen = [rung(name) for name in rungs.split(",")] if rungs else list(LADDER)
    except (ValueError, KeyError) as error:
        raise click.UsageError(f"{error.args[0]}") from None
    record = read_record(recorded) if recorded.exists() else None
    reason = gpu_missing()
    if reason and record is None:
        raise click.ClickException(f"{reason}; and there is no recorded run at {recorded}")
    here: list[dict[str, Any]] = []
    where: dict[str, Any] = {}
    if not reason:
        if not as_json:
            click.echo(f"measuring {len(chosen)} rungs at {sides} …", err=True)
        comparison = compare({one.name: one for one in chosen}, shapes)
        here, where = comparison.as_dicts(), where_gpu(DISTRIBUTION, l2=comparison.l2)
    if as_json:
        json.dump({"rows": here, "targets": [], "where": where, "not_measured": reason or ""}, sys.stdout, indent=1)
        return
    names = {one.name for one in chosen}
    old = [] if record is None else record["rows"]
    if reason:
        sizes = {shape[0] for shape in shapes}
        old = [row for row in old if row["M"] == row["N"] == row["K"] and row["M"] in sizes]
        old = [row for row in old if row["kernel"] in names or row["kernel"].startswith("cuBLAS")]
        click.echo(f"not measured here: {reason}")
    click.echo(table(beside(here, old)))
    if where:
        click.echo("here: {device}, driver {driver}, CUDA {toolkit}, {distribution}".format(**where))
    if record is not None:
        then = record["recorded"]
        which = "recorded" if reason else "columns without “here”: recorded"
        click.echo(
            f"{which} on {then['device']}, driver {then['driver']}, "
            f"CUDA {then['toolkit']}, {then['date'][:10]}, {then['distribution']}"
        )
