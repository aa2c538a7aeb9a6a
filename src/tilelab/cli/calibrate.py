"""``tilelab calibrate``: what timed points can ask for on this GPU."""

import json
from pathlib import Path

import click

from tilelab.cli.needs import needs_grading
from tilelab.cli.timed import no_device, say, say_waiting
from tilelab.cli.visible import visible


@click.command()
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default="autograder/thresholds.toml",
    show_default=True,
    help="The thresholds file; this device's entry in it is written anew.",
)
@click.option("--device", type=click.IntRange(0), default=0, show_default=True, help="The GPU's number.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def command(file: Path, device: int, as_json: bool) -> None:
    """Measure how much the course's own kernels gain on this GPU, and write the thresholds that follow.

    Takes under a minute. On a GPU that is not calibrated timed points stay pending.
    """
    with needs_grading():
        from tilelab.grading.errors import GradingError
        from tilelab.grading.timed.calibrate import calibrate, entry_of
        from tilelab.grading.timed.conductor import Conductor
        from tilelab.grading.timed.thresholds import read_thresholds, with_device
        from tilelab.measure.records import table

        if reason := no_device(str(device)):
            raise GradingError(reason)
        thresholds = read_thresholds(file)
        with Conductor(
            str(device), waiting=say_waiting
        ) as conductor:  # ceilings are measured, whatever the file says of them
            found = dict(calibrate(thresholds, conductor))
            entry = entry_of(conductor, thresholds, found)
        with_device(file, entry)
    rows = [{"part": cell, **one} for cell, one in found.items()]
    click.echo(visible(json.dumps({"device": entry, "rows": rows}) if as_json else table(rows)))
    say(f"wrote {entry['name']} into {file}")
