"""What a command needs beyond the base installation, said in one line where it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from tilelab.cli.visible import visible
from tilelab.grading.errors import GradingError


@contextmanager
def needs_grading() -> Iterator[None]:
    """Turn a `GradingError`, a file that cannot be used and a missing nbgrader into one line and a non-zero exit."""
    try:
        yield
    except GradingError as error:
        raise click.ClickException(visible(str(error))) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise click.ClickException(visible(f"{error.filename}: {error.strerror}")) from error
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("tilelab"):
            raise
        remedy = ".venv/bin/pip install -c constraints.txt -e '.[grade]'"
        raise click.ClickException(f"grading needs {error.name}. In the project's folder: {remedy}") from error
