"""The command `slipway`: those of both runners, and `init`, for the project around the current folder."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from slipway.pipeline.terminal.early_interrupt import answer_at_once

if TYPE_CHECKING:
    from typer import Typer


def main() -> None:
    """Runs a command line.

    Raises:
        SystemExit: always, with its exit code.
    """
    answer_at_once()  # before what takes its time to import
    from slipway.pipeline.commands.command_line import call
    from slipway.pipeline.commands.enter_project import enter_project

    words = sys.argv[1:]
    if Path(sys.argv[0]).name == "__main__.py":  # python -m slipway
        sys.argv[0] = "slipway"
    call(_app(words), first=lambda: enter_project(words))


def _app(words: list[str]) -> "Typer":
    """The command line.

    Args:
        words: of the call; what it does not need is not imported.
    """
    import typer

    from slipway.local_runner import app
    from slipway.pipeline.commands.command_line import CommandLine

    @app.command()
    def init(
        folder: Annotated[
            Path, typer.Argument(help="The project's folder, new or empty; its last part is the name.")
        ],
        wheel: Annotated[
            Path | None,
            typer.Option(
                help="Slipway's wheel, which the project keeps a copy of; by default the installed one."
            ),
        ] = None,
    ) -> None:
        """Make a project: folders, lock file, image, CI workflow."""
        from slipway.pipeline.start.project import init as begin

        print(begin(folder, wheel=wheel).text())

    if words[:1] == ["cloud"] or "_SLIPWAY_COMPLETE" in os.environ:
        from slipway.cloud_runner import app as cloud
    else:  # only named in the help: its imports take a third of a second
        cloud = CommandLine()
    app.add_typer(cloud, name="cloud", help="Run on Vertex AI, Kubeflow or Airflow, or rehearse that here.")
    return app
