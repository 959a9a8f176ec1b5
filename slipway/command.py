"""The command `slipway`: those of both runners, and `init`, for the project around the current folder."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from slipway.pipeline.terminal.early_interrupt import answer_at_once

if TYPE_CHECKING:
    from typer import Typer

_ANYWHERE = ("init", "doctor")
"""The commands that need neither a project nor TFX."""
_NO_COMMAND = ("--help", "--install-completion", "--show-completion")


def main() -> None:
    """Runs a command line.

    Raises:
        SystemExit: always, with its exit code.
    """
    answer_at_once()  # before what takes its time to import
    from slipway.pipeline.commands.command_line import call

    words = sys.argv[1:]
    sys.argv[0] = str(Path(sys.executable).with_name("slipway"))  # also for python -m slipway
    call(_app(words), first=lambda: _enter_project(words))


def _app(words: list[str]) -> "Typer":
    """The command line.

    Args:
        words: of the call; what it does not need is not imported.
    """
    import typer

    from slipway.local_runner import app

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
        cloud = typer.Typer()
    app.add_typer(cloud, name="cloud", help="Run on Vertex AI, Kubeflow or Airflow, or rehearse that here.")
    return app


def _enter_project(words: list[str]) -> None:
    """Makes the project's modules importable.

    Raises:
        UsageError: the command needs a project, and there is none, or TFX is not installed.
    """
    from slipway.components.project import INSTALL, PROJECT_ROOT, find_project
    from slipway.pipeline.errors import UsageError

    sys.path.insert(0, str(PROJECT_ROOT))
    if (words[:1] and words[0] in _ANYWHERE) or not set(words).isdisjoint(_NO_COMMAND):
        return
    if find_project(PROJECT_ROOT) is None:
        raise UsageError(
            f"{PROJECT_ROOT} lies in no project: neither it nor a folder above has a pyproject.toml with "
            "[tool.slipway].",
            hint="go to your project's folder, or make one: slipway init my-project",
        )
    if find_spec("tfx") is None:
        raise UsageError(f"TFX is not installed for {sys.executable}.", hint=f"in {PROJECT_ROOT}: {INSTALL}")
