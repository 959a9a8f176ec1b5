"""What both command lines share: options of the same meaning, and how an error ends."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from components.errors import SlipwayError
from pipeline.local.printable import printable

Workload = Annotated[
    Path, typer.Argument(help="The workload file, or its name in workloads/.", metavar="[WORKLOAD]")
]
Sets = Annotated[list[str] | None, typer.Option("--set", help="Overrides one key: KEY=VALUE. Repeatable.")]
Profile = Annotated[str | None, typer.Option(help="One of the workload's profiles, laid over the file.")]
_verbose = False


def _be_verbose(value: bool) -> None:
    global _verbose
    _verbose = _verbose or value


Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", callback=_be_verbose, expose_value=True, help="Show the traceback of an error."
    ),
]


def call(app: typer.Typer) -> None:
    """Runs a command line; errors that a user can act on end in two lines and an exit code.

    Raises:
        SlipwayError: such an error, with --verbose.
        SystemExit: as typer ends every command.
    """
    try:
        app()
    except SlipwayError as error:
        if _verbose:
            raise
        print(printable(f"error: {error}"), file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
    except BrokenPipeError:
        # The reader of our output (`head`, a pager) has seen enough.
        sys.stdout = None
