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
            line["bound here"] = bound_of(row)
        if key(row) in other:
            old = other[key(row)]
            line |= {"ms": old["ms"], "TFLOP/s": old["tflops"], "% of cuBLAS": old["percent_of_cublas"]}
            line["bound"] = bound_of(old)
        if here and row["trouble"]:
            line["trouble"] = row["trouble"]
        joined.append(line)
    return joined


def bound_of(row: dict[str, Any]) -> str:
    """What bounds a row, in words; ``~`` marks an estimate."""
    from tilelab.measure.bounds import Bound

    told = Bound.of(row)
    return f"{'~ ' if told.told_by == 'estimate' else ''}{told}"


def read_sides(sides: str) -> list[tuple[int, int, int]]:
    """Sizes between commas: cubes, or M×N×K.

    Raises
    ------
    click.UsageError
        One is no size, or its matrices have more elements than a kernel's index counts.
    """
    from tilelab.cudacpp.arguments import INDEX_LIMIT

    shapes = []
    for text in sides.split(","):
        given = text.strip().replace("×", "x").split("x")
        if len(given) not in (1, 3) or not all(side.isdecimal() and int(side) for side in given):
            raise click.UsageError(f"--sides: {text!r} is no size; write cubes such as 1024, or 4095x4097x4093")
        M, N, K = (int(side) for side in given * (3 // len(given)))
        if max(M * N, M * K, K * N) > INDEX_LIMIT:
            raise click.UsageError(f"--sides: {text!r} makes matrices of more than {INDEX_LIMIT} elements")
        shapes.append((M, N, K))
    return shapes


def read_ladder(file: Path) -> dict[str, Any]:
    """A recorded ladder.

    Raises
    ------
    click.ClickException
        The file is none, with what is wrong with it.
    """
    from tilelab.measure.records import read_record

    try:
        record = read_record(file)
        for row in record["rows"]:
            bound_of(row), row["kernel"], row["M"], row["ms"], row["tflops"], row["percent_of_cublas"]
    except (OSError, ValueError, TypeError) as error:
        raise click.ClickException(f"{file} cannot be read as a recorded ladder: {error}") from None
    except KeyError as error:
        raise click.ClickException(f"{file} is no recorded ladder: its rows have no {error.args[0]!r}") from None
    return record


@command.command()
@click.option("--sides", default="", help="cubes such as 1024, or MxNxK  [default: 1024,2048,4096, or all recorded]")
@click.option("--rungs", default="", help="only these rungs, by name, between commas")
@click.option("--json", "as_json", is_flag=True, help="one JSON object instead of a table")
@click.option("--recorded", type=click.Path(dir_okay=False, path_type=Path), default=RECORDS / "ladder_h200.json")
def ladder(sides: str, rungs: str, as_json: bool, recorded: Path) -> None:
    """The ladder of fp32 products: milliseconds, TFLOP/s, share of cuBLAS, and what bounds each rung.

    Without a GPU it shows the recorded run and says so. A bound with ~ before it is an estimate; others a profiler saw.
    """
    from tilelab.cudacpp.device import gpu_missing
    from tilelab.kernels.ladder import LADDER, rung
    from tilelab.measure.compare import DISTRIBUTION, compare
    from tilelab.measure.records import table, where_gpu

    try:
        chosen = [rung(name.strip()) for name in rungs.split(",")] if rungs else list(LADDER)
    except KeyError as error:
        raise click.UsageError(f"--rungs: {error.args[0]}") from None
    shapes = read_sides(sides or "1024,2048,4096")
    record = read_ladder(recorded) if recorded.exists() else None
    reason = gpu_missing()
    if reason and record is None:
        raise click.ClickException(f"{reason}; and there is no recorded run at {recorded}")
    here: list[dict[str, Any]] = []
    where: dict[str, Any] = {}
    if not reason:
        if not as_json:
            click.echo(f"measuring {len(chosen)} rungs at {len(shapes)} sizes …", err=True)
        comparison = compare({one.name: one for one in chosen}, shapes)
        here, where = comparison.as_dicts(), where_gpu(DISTRIBUTION, l2=comparison.l2)
    if as_json:
        json.dump({"rows": here, "targets": [], "where": where, "not_measured": reason or ""}, sys.stdout, indent=1)
        return
    names = {one.name for one in chosen}
    old = [] if record is None else record["rows"]
    if reason:
        click.echo(f"not measured here: {reason}")
        there = list(dict.fromkeys((row["M"], row["N"], row["K"]) for row in old))
        wanted = shapes if sides else there
        lacking = [_size(shape) for shape in wanted if shape not in there]
        if lacking:
            click.echo(f"not recorded: {', '.join(lacking)}; recorded are {', '.join(map(_size, there))}")
        old = [row for row in old if (row["M"], row["N"], row["K"]) in wanted]
        old = [row for row in old if row["kernel"] in names or row["kernel"].startswith("cuBLAS")]
        if not old:
            raise click.ClickException("nothing to show")
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


def _size(shape: tuple[int, int, int]) -> str:
    """A size as ``--sides`` takes it."""
    return str(shape[0]) if len(set(shape)) == 1 else "x".join(map(str, shape))
