"""The ``tilelab`` command: finds a command's module by its name and loads only that one."""

from importlib import import_module

import click

import tilelab

#: Command name -> one line of help. Each command lives in ``tilelab.cli.<name>`` as a click command ``command``.
COMMANDS: dict[str, str] = {
    "doctor": "what is installed, what kernels can run on here, how to get what is missing",
    "check": "judge one notebook of yours, without a course",
    "grade": "grade the collected submissions of an assignment",
    "jobs": "carry timed points to a machine with a GPU, and bring them back",
    "calibrate": "measure what timed points can ask for on this GPU",
    "export": "results as CSV or JSON, also for Canvas and Moodle",
    "progress": "what you have solved so far, from a file on this machine",
    "bench": "measure the kernels on this GPU, beside the recorded run",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for, so that ``tilelab --help`` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or ``None`` for a name that is not one."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"tilelab.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tilelab.__version__, prog_name="tilelab")
def cli() -> None:
    """Learn GPU memory layouts, tiling and shared memory; check and grade the exercises."""
