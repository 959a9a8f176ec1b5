"""The command line for cloud runs: parse, call pipeline.cloud, exit code. Nothing else."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from components.errors import SlipwayError
from pipeline.cloud import commands
from pipeline.local.invocation import DEFAULT_OUTPUT
from pipeline.local.printable import printable
from pipeline.local.request import DEFAULT_WORKLOAD

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Takes TFX pipelines to Vertex AI Pipelines and Kubeflow, and rehearses them on this machine first.",
    epilog="Exit codes: 0 done; 1 a task failed; 2 wrong usage or workload file; 3 a gate stopped it; "
    "130 interrupted.",
)

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


@app.callback()
def default() -> None:
    """Keeps the commands' names where there is only one."""


@app.command("compile")
def compile_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; standard output if left out.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Compile a job for Vertex AI Pipelines and Kubeflow."""
    result = commands.compile_workload(workload, sets=sets or [], profile=profile, file=file)
    sys.stdout.write(result if isinstance(result, str) else f"{result}\n")


@app.command()
def rehearse(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tasks at once; from cores and memory if left out.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder of the local runs; rehearsals go to rehearsal/ in it.")
    ] = DEFAULT_OUTPUT,
    verbose: Verbose = False,
) -> None:
    """Run the compiled job on this machine, task by task, as the service would."""
    code = commands.rehearse_workload(
        workload,
        sets=sets or [],
        profile=profile,
        output=output,
        jobs=jobs,
        again=shlex.join(["python", *sys.argv]),
    )
    raise typer.Exit(code)


def main() -> None:
    """Runs the command line; errors that a user can act on end in two lines and an exit code."""
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


if __name__ == "__main__":
    main()
